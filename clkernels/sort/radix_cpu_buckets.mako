## How all units together cut a long row, chunk by chunk: the phases of radix_cpu.cl.mako but for
## FINISH_RUNS, and what slopes_cpu.mako does.
##
##     row      | chunk 0 | chunk 1 | chunk 2 | ..      a task each
##     table      counts of buckets 0 .. BUCKETS - 1 by chunk 0; by chunk 1; ..
##                scan_counts makes of these where each chunk's elements of a bucket go:
##     buckets  | chunk 0's, chunk 1's, ..| chunk 0's, ..|
##     runs     |    buckets of a run     |  of the next |
##
##   count_buckets     COUNT_BUCKETS
##   choose_runs       CHOOSE_RUNS, which also decides whether the row is cut
##   scatter_*         SCATTER_BUCKETS and SCATTER_DIGITS: of `arrays`, the user's, or of `elements`
##   count_digits_*    COUNT_DIGITS
##   scan_counts       SCAN_DIGITS
##   declare_phases    which phases have which tasks
##
## Source: see there. The caller guarantees: names of OpenCL C are those of radix_cpu.cl.mako.
##
## ELEMENT, CUT, STREAM   see there
## BLOCK                  see radix_cpu_blocks.mako
<%namespace name="radix_cpu_range" file="radix_cpu_range.mako"/>\
<%namespace name="blocks" file="radix_cpu_blocks.mako"/>\
<%def name="declare(ELEMENT, CUT, BLOCK, STREAM)">\
#define BUCKETS ${1 << CUT.bits}
#define LAST_BUCKET ((ukey_t)(KEY_BITS < ${CUT.bits} ? ~0u : BUCKETS - 1u))

/* The state of a row: how many runs of buckets, or 0 and digits, and their range; how many slopes to
   merge, or 0, and where these end. */
enum { RUN_COUNT, LEAST, LOW, DIGIT, PASSES, SLOPES, SLOPE_ENDS, STATE = SLOPE_ENDS + 4 };

/* A line of a cache. */
typedef struct __attribute__((packed)) { uint16 vector; } line_t;
#define LINE (64 / sizeof(elem_t))

${radix_cpu_range.declare(ELEMENT, CUT, BLOCK)}\
## Two counts of each, as equal keys in a row would wait for each other.
<%def name="count_found()">\
        uint j = 0;
        for (; j + 2 <= here; j += 2) {
            ++counts[found[j]];
            ++counts[BUCKETS + found[j + 1]];
        }
        if (j < here)
            ++counts[found[j]];
</%def>\
/* Count a chunk's keys of each bucket in `share`, of a range that `sampled` spans, `n` keys; the least and
   largest codes go to `limits`. */
static void count_buckets(const source_t source, __global const ukey_t *sampled, const index_t n,
                          const index_t begin, const index_t end, __global index_t *share,
                          __global ukey_t *limits, __local index_t *counts)
{
    ukey_t codes[${BLOCK}];
    uint found[${BLOCK}];
    const range_t range = sample_range(sampled, n);
    for (uint c = 0; c < 2 * BUCKETS; ++c)
        counts[c] = 0;
    extremes_t extremes;
    extremes.one = code(source.keys[0]);
    extremes.least = extremes.largest = extremes.one;
    extremes.differ = 0;
    for (index_t i = begin; i < end; i += ${BLOCK}) {
        const uint here = stage_arrays(source, i, end, codes);
        update_extremes(&extremes, codes, here);
        stage_buckets(source, i, end, found, range);
${count_found()}\
    }
    for (uint c = 0; c < BUCKETS; ++c)
        share[c] = counts[c] + counts[BUCKETS + c];
    limits[0] = extremes.least;
    limits[1] = extremes.largest;
    limits[2] = extremes.differ;
}

/* Make of the counts of all chunks the places where their elements go. */
static void scan_counts(const uint chunks, __global index_t *table)
{
    index_t sum = 0;
    for (uint d = 0; d < BUCKETS; ++d)
        for (uint k = 0; k < chunks; ++k) {
            const index_t here = table[(ulong)k * BUCKETS + d];
            table[(ulong)k * BUCKETS + d] = sum;
            sum += here;
        }
}

/* Make runs of neighbouring buckets, and of each chunk's counts the places of its elements. */
static void choose_runs(const source_t source, const index_t n, const uint chunks, const uint units,
                           __global index_t *table, __global const ukey_t *limits,
                           volatile __global ulong *row_state, __global index_t *starts)
{
    ukey_t least = limits[0], largest = limits[1], differ = limits[2];
    uint runs = 0, low = 0;
    for (uint k = 1; k < chunks; ++k) {
        least = LESSER(least, limits[3 * k]);
        largest = GREATER(largest, limits[3 * k + 1]);
        differ |= limits[3 * k + 2];
    }
    while (differ && !(differ >> low & 1))
        ++low;
    const uint differing = length_of(largest - least) - low;
    const uint passes = (differing + ${CUT.bits - 1}) / ${CUT.bits};
    /* A run ends before it exceeds its share. Large buckets are runs of their own, and several where
       their keys are equal. */
    const index_t piece = GREATER(n / (8 * units) + 1, (index_t)${CUT.share});
    const range_t range = sample_range(source.keys, n);
    index_t size = 0, sum = 0, longest = 0;
    for (uint b = 0; b < BUCKETS; ++b) {
        index_t count = 0;
        for (uint k = 0; k < chunks; ++k)
            count += table[(ulong)k * BUCKETS + b];
        if (!b || size + count > ${CUT.share}) {
            starts[runs++] = sum;
            size = 0;
        }
        size += count;
        if (size > piece && size == count && is_of_one_key(b, range, least, largest))
            for (; size > piece; size -= piece)
                starts[runs++] = sum + count - size + piece;
        sum += count;
        longest = GREATER(longest, size);
    }
    starts[runs] = n;
    const bool even = longest <= GREATER(n / (8 * units) * 5, (index_t)${CUT.share}) && longest <= ${CUT.largest};
    row_state[RUN_COUNT] = even && passes > 1 ? runs : 0;
    row_state[LEAST] = least;
    row_state[LOW] = low;
    row_state[PASSES] = passes;
    row_state[DIGIT] = passes ? (differing + passes - 1) / passes : 0;
    if (even && passes > 1)
        scan_counts(chunks, table);
}

/* The first run that begins at `place` of the row or after it. */
static inline uint first_run(const index_t place, __global const index_t *starts, const uint runs)
{
    uint low = 0, high = runs;
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (starts[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

% for KIND, SOURCE in blocks.module.SOURCES.items():
/* Count a chunk's keys of each digit in `share`. */
static void count_digits_${KIND}(${SOURCE}, const index_t begin, const index_t end,
                                 __global index_t *share, const ukey_t base, const uint shift,
                                 __local index_t *counts)
{
    uint found[${BLOCK}];
    for (uint d = 0; d < 2 * BUCKETS; ++d)
        counts[d] = 0;
    for (index_t i = begin; i < end; i += ${BLOCK}) {
        const uint here = stage_digits_${KIND}(source, i, end, found, base, shift, BUCKETS - 1);
${count_found()}\
    }
    for (uint d = 0; d < BUCKETS; ++d)
        share[d] = counts[d] + counts[BUCKETS + d];
}

/*
 * Move a chunk's elements to their buckets (`cut`) or to the places of their digits, which `share`
 * holds. Elements of a bucket gather in a line until they fill one of memory.
 */
static void scatter_${KIND}(${SOURCE}, const index_t begin, const index_t end, __global elem_t *target,
                           __global const index_t *share,
% if KIND == "arrays":
                           const bool cut, __global const ukey_t *sampled, const index_t n,
% endif
                           const ukey_t base, const uint shift, __local line_t *lines,
                           __local index_t *places)
{
    uint found[${BLOCK}];
% if KIND == "arrays":
    range_t range;
    if (cut)
        range = sample_range(sampled, n);
% endif
    __local elem_t *gathered = (__local elem_t *)lines;
    __local index_t *first = places + BUCKETS;
    /* Places are counted from where a line of memory begins. */
    const index_t ahead = (index_t)((size_t)target / sizeof(elem_t)) & (LINE - 1);
    target -= ahead;
    for (uint b = 0; b < BUCKETS; ++b)
        places[b] = first[b] = share[b] + ahead;
    for (index_t i = begin; i < end; i += ${BLOCK}) {
% if KIND == "arrays":
        const uint here = cut ? stage_buckets(source, i, end, found, range)
                              : stage_digits_arrays(source, i, end, found, base, shift, BUCKETS - 1);
% else:
        const uint here = stage_digits_elements(source, i, end, found, base, shift, BUCKETS - 1);
% endif
        for (uint j = 0; j < here; ++j) {
            const uint b = found[j];
            const index_t place = places[b]++;
% if not STREAM:
            target[place] = element_${KIND}(source, i + j);
% else:
            const uint slot = (uint)place & (LINE - 1);
            gathered[b * LINE + slot] = element_${KIND}(source, i + j);
            if (slot == LINE - 1) {
                const index_t line = place - (LINE - 1);
                if (line >= first[b])
                    STREAM_STORE(lines[b].vector, (__global uint16 *)(target + line));
                else
                    for (index_t k = first[b]; k <= place; ++k)
                        target[k] = gathered[b * LINE + (k & (LINE - 1))];
            }
% endif
        }
    }
% if STREAM:
    for (uint b = 0; b < BUCKETS; ++b)
        for (index_t k = GREATER(first[b], places[b] & ~(index_t)(LINE - 1)); k < places[b]; ++k)
            target[k] = gathered[b * LINE + (k & (LINE - 1))];
% endif
}

% endfor
</%def>\
## The phases of radix_cpu.cl.mako: needs what slopes_cpu.mako declares.
<%def name="declare_phases(CUT)">\
/* What the tasks of a phase do: what finds and merges slopes, what cuts into buckets, three phases for each
   digit, and the last phase. */
enum {
    FIND_PIECES, JOIN_PIECES, COPY_PIECES,
    COUNT_BUCKETS, CHOOSE_RUNS, SCATTER_BUCKETS, FINISH_RUNS,
    MERGE, MERGE_LAST,
    COUNT_DIGITS, SCAN_DIGITS, SCATTER_DIGITS,
    COPY
};

static inline uint work_of(const uint phase, const uint last)
{
    if (phase + 1 == last)
        return COPY;
    return phase < COUNT_DIGITS ? phase : COUNT_DIGITS + (phase - COUNT_DIGITS) % 3;
}

/* How many tasks a phase has, as many for each row: none if it has nothing to do for any. */
static inline uint tasks_of(const uint work, const uint rows, const uint chunks, const uint units,
                            const bool some_ordered, volatile __global const ulong *state)
{
    uint ordered = 0, most = 0;
    if (some_ordered && work > JOIN_PIECES)
        for (uint row = 0; row < rows; ++row) {
            const uint slopes = (uint)state[row * STATE + SLOPES];
            ordered += slopes > 0;
            most = GREATER(most, slopes);
        }
    const bool merging = work >= MERGE && work <= MERGE_LAST;
    if (work <= JOIN_PIECES ? !some_ordered
        : work == COPY_PIECES ? !ordered
        : merging ? !ordered || work - MERGE >= levels_of(most)
        : ordered == rows && (work != FINISH_RUNS || most < 2))
        return 0;
    if (work == FINISH_RUNS || merging)
        return rows * LESSER(${CUT.finish_shares} * units, BUCKETS);
    return work == JOIN_PIECES || work == CHOOSE_RUNS || work == SCAN_DIGITS ? rows : rows * chunks;
}
</%def>\
