/*
 * An example of clkernels/sort/radix_cpu.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       sort n=1000000
 *     algorithm     radix
 *     configuration DIGIT_BITS=11 CAPACITY=32768 STREAM=False
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        radix_cpu, (2,) items in groups of (1,)
 */
/*
 * Stable radix sort of rows by threads with caches: the form for CPUs, without a barrier. Groups of
 * one item, one for each compute unit, go through phases of tasks.
 *
 * Rows that are many or short are one task each (no CUT): radix_cpu_run.mako. Long rows are first
 * cut into buckets that lie in a cache, from the most significant bits on (CUT):
 *
 *     phase 0   count     a chunk: how many keys are in each bucket of a range that a sample spans
 *     phase 1   scan      a row: where buckets begin; neighbours become runs of about equal size
 *     phase 2   scatter   a chunk: elements to their buckets
 *     phase 3   finish    a share of the runs: radix_cpu_run.mako
 *
 * Where one run would have a large share of the keys, the row goes through its digits from the
 * least significant one on, by all units, and phases 2 and 3 do nothing:
 *
 *     phase 4 + 3 k   count    a chunk: how many keys have each value of digit k
 *     phase 5 + 3 k   scan     a row: where they begin
 *     phase 6 + 3 k   scatter  a chunk
 *     the last phase  copy     a chunk: what is not where the caller wants it
 *
 * So the time depends little on how keys are distributed. Elements are gathered in lines of a cache
 * before they are written, as memory that is written here and there costs most; with STREAM lines
 * go past the caches.
 *
 * Source: own. Gathering in lines after N. Satish et al., "Fast sort on CPUs and GPUs: a case for
 * bandwidth oblivious SIMD sort", SIGMOD 2010, and J. Wassenberg, P. Sanders, "Engineering a
 * multi-core radix sort", Euro-Par 2011.
 *
 * The host guarantees: n > 0; what common/work_stealing.mako asks for; `spares` has 2 * CAPACITY elements
 * for each item. With CUT: `first` and `second` have an element for each key, `table`
 * chunks * 2^bits words a row, `limits` 3 * chunks words, `state` STATE words, and `starts`
 * 2^bits + 1 + 8 * items words. Without CUT they have room for all elements if n > CAPACITY.
 * `second` is `sorted` where elements are keys.
 *
 * ELEMENT       what is sorted: see keys.mako
 * INDEX_T       unsigned type that counts the elements of all rows
 * CAPACITY      elements of a run that fits in a cache
 * CUT           None where rows are not cut; else
 *   bits            of a bucket, and of a digit of a row that is not cut into buckets
 *   share           elements of a run, about
 *   float_type      type in which keys are numbers, or None for integers and where it is not to be used
 *   sample          keys that are looked at to find the range of a row
 *   skew            most keys of a sample in such a section of its range make buckets narrower there
 *   largest         elements of the largest run that one unit may have
 *   finish_shares   tasks of a unit in phase 3
 * RUN           bits, spare_bits, few, block: see radix_cpu_run.mako; network, lanes: see
 *               radix_cpu_network.mako; network is 0 where no run goes there
 * STREAM        whether lines go past the caches
 * MAX_POLLS     how often an item looks for others to finish, at least; else as often as tasks have keys
 */
/* `min` and `max` are calls of functions on PoCL 3.0, and loops with calls get no vectors. */
#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) > (b) ? (a) : (b))

typedef uint ukey_t;
#define KEY_BITS 32
#define CODE_BITS 32 /* of a code; all above are zero */

static inline ukey_t code(const ukey_t bits)
{
    const ukey_t result = bits ^ ((ukey_t)0x80000000U);
    return result;
}

typedef ukey_t elem_t;
#define KEY_OF(e) (e)
typedef uint index_t;
typedef uchar out_value_t;
typedef struct {
    __global const ukey_t *keys;
} source_t;

#if defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM_STORE(value, place) __builtin_nontemporal_store((value), (place))
#endif
#endif
#if !defined(STREAM_STORE)
#define STREAM_STORE(value, place) (*(place) = (value))
#endif

static inline uint length_of_index(const index_t number)
{
    return 8 * sizeof(index_t) - (uint)clz(number);
}

#define RUN_RADIX 2048

/* Length of a number in bits. */
static inline uint length_of(const ukey_t number)
{
    return KEY_BITS - clz(number);
}

/* What is extremes of keys: the least and the largest code, and where some differ from `one`. */
typedef struct {
    ukey_t least, largest, one, differ;
} extremes_t;

/* Look at `count` codes in all, from staged ones. */
static inline void update_extremes(extremes_t *extremes, const ukey_t *codes, const uint count)
{
    ukey_t least = extremes->least, largest = extremes->largest, differ = extremes->differ;
    const ukey_t one = extremes->one;
    for (uint j = 0; j < count; ++j) {
        least = LESSER(least, codes[j]);
        largest = GREATER(largest, codes[j]);
        differ |= codes[j] ^ one;
    }
    extremes->least = least;
    extremes->largest = largest;
    extremes->differ = differ;
}

/* Write sorted elements where the caller wants them. */
static void store_sorted(__global const elem_t *from, __global ukey_t *sorted,
                         __global out_value_t *sorted_values, const index_t count)
{
    for (index_t i = 0; i < count; ++i) {
        sorted[i] = KEY_OF(from[i]);
    }
}

/* Make of counts the places where digits begin. */
static inline void exclusive_scan(__local index_t *counts, const uint radix)
{
    index_t sum = 0;
    for (uint d = 0; d < radix; ++d) {
        const index_t count = counts[d];
        counts[d] = sum;
        sum += count;
    }
}

/* Stage the codes of up to BLOCK keys. Returns how many. */
static inline uint stage_arrays(const source_t source, const index_t first, const index_t end, ukey_t *codes)
{
    const uint here = (uint)LESSER((index_t)512, end - first);
    if (here == 512)
        for (uint j = 0; j < 512; ++j)
            codes[j] = code(source.keys[first + j]);
    else
        for (uint j = 0; j < here; ++j)
            codes[j] = code(source.keys[first + j]);
    return here;
}

/* Stage digits, of the bits that `mask` leaves above `shift` of what codes are more than `base`. */
static inline uint stage_digits_arrays(const source_t source, const index_t first, const index_t end, uint *digits,
                                       const ukey_t base, const uint shift, const uint mask)
{
    const uint here = (uint)LESSER((index_t)512, end - first);
    if (here == 512)
        for (uint j = 0; j < 512; ++j)
            digits[j] = (uint)((ukey_t)(code(source.keys[first + j]) - base) >> shift) & mask;
    else
        for (uint j = 0; j < here; ++j)
            digits[j] = (uint)((ukey_t)(code(source.keys[first + j]) - base) >> shift) & mask;
    return here;
}

static inline elem_t element_arrays(const source_t source, const index_t i)
{
    return source.keys[i];
}

/* One pass: move `count` elements to the places of their digits. */
static void pass_arrays(const source_t source, const index_t count, __global elem_t *target,
                        __local index_t *places, const ukey_t base, const uint shift, const uint mask)
{
    uint digits[512];
    for (index_t i = 0; i < count; i += 512) {
        const uint here = stage_digits_arrays(source, i, count, digits, base, shift, mask);
        for (uint j = 0; j < here; ++j)
            target[places[digits[j]]++] = element_arrays(source, i + j);
    }
}

/* Stage the codes of up to BLOCK keys. Returns how many. */
static inline uint stage_elements(__global const elem_t *source, const index_t first, const index_t end, ukey_t *codes)
{
    const uint here = (uint)LESSER((index_t)512, end - first);
    if (here == 512)
        for (uint j = 0; j < 512; ++j)
            codes[j] = code(KEY_OF(source[first + j]));
    else
        for (uint j = 0; j < here; ++j)
            codes[j] = code(KEY_OF(source[first + j]));
    return here;
}

/* Stage digits, of the bits that `mask` leaves above `shift` of what codes are more than `base`. */
static inline uint stage_digits_elements(__global const elem_t *source, const index_t first, const index_t end, uint *digits,
                                         const ukey_t base, const uint shift, const uint mask)
{
    const uint here = (uint)LESSER((index_t)512, end - first);
    if (here == 512)
        for (uint j = 0; j < 512; ++j)
            digits[j] = (uint)((ukey_t)(code(KEY_OF(source[first + j])) - base) >> shift) & mask;
    else
        for (uint j = 0; j < here; ++j)
            digits[j] = (uint)((ukey_t)(code(KEY_OF(source[first + j])) - base) >> shift) & mask;
    return here;
}

static inline elem_t element_elements(__global const elem_t *source, const index_t i)
{
    return source[i];
}

/* One pass: move `count` elements to the places of their digits. */
static void pass_elements(__global const elem_t *source, const index_t count, __global elem_t *target,
                          __local index_t *places, const ukey_t base, const uint shift, const uint mask)
{
    uint digits[512];
    for (index_t i = 0; i < count; i += 512) {
        const uint here = stage_digits_elements(source, i, count, digits, base, shift, mask);
        for (uint j = 0; j < here; ++j)
            target[places[digits[j]]++] = element_elements(source, i + j);
    }
}

/* Put each element after those of no larger code, by at most `budget` moves. Returns whether all
   are in order. */
static bool insertion_sort(__global elem_t *run, const index_t count, index_t budget)
{
    ukey_t codes[512];
    ukey_t largest = code(KEY_OF(run[0]));
    for (index_t first = 0; first < count; first += 512) {
        const uint here = stage_elements(run, first, count, codes);
        for (uint j = 0; j < here; ++j) {
            const ukey_t mine = codes[j];
            if (mine >= largest) {
                largest = mine;
                continue;
            }
            index_t place = first + j;
            const elem_t element = run[place];
            bool before = true;
            for (; before && budget; --budget) {
                run[place] = run[place - 1];
                --place;
                before = place > 0 && mine < code(KEY_OF(run[place - 1]));
            }
            run[place] = element;
            if (before)
                return false;
        }
    }
    return true;
}

/*
 * Sort `count` elements of `source` to `sorted` and `sorted_values`, by way of `a` and `b`, which
 * have room for all of them. `source` may be `b`. `counts` has 3 * RUN_RADIX words.
 */
static void sort_run(__global const elem_t *source, const index_t count, __global elem_t *a, __global elem_t *b,
                     __global ukey_t *sorted, __global out_value_t *sorted_values,
                     __local index_t *counts)
{
    if (count == 0)
        return;
    ukey_t codes[512];
    uint digits[512];
    uint wanted = 0, differing = 0, shift = 0;
    extremes_t extremes;
    extremes.one = code(KEY_OF(element_elements(source, 0)));
    extremes.least = extremes.largest = extremes.one;
    extremes.differ = 0;
    if (count > 24) {
        for (index_t i = 0; i < count; i += 512)
            update_extremes(&extremes, codes, stage_elements(source, i, count, codes));
        differing = length_of(extremes.largest - extremes.least);
        /* Three digits, as `counts` has room for, in a word of `digits`. */
        wanted = LESSER(4 + length_of_index(count), 32u);
    }
    /* Low bits in which no key differs are none that tell them apart. */
    uint low = 0;
    while (extremes.differ && !(extremes.differ >> low & 1))
        ++low;
    wanted = LESSER(wanted, differing - LESSER(differing, low));
    shift = differing - wanted;
    const uint passes = (wanted + 10) / 11;
    __global elem_t *from = a, *to = b;
    if (!passes) {
        for (index_t i = 0; i < count; ++i)
            a[i] = element_elements(source, i);
    } else {
        const uint bits = (wanted + passes - 1) / passes, radix = 1u << bits, mask = radix - 1;
        for (uint d = 0; d < passes * radix; ++d)
            counts[d] = 0;
        for (index_t i = 0; i < count; i += 512) {
            const uint here = stage_digits_elements(source, i, count, digits, extremes.least, shift, ~0u);
            if (passes == 2)
                for (uint j = 0; j < here; ++j) {
                    ++counts[digits[j] & mask];
                    ++counts[radix + (digits[j] >> bits)];
                }
            else
                for (uint p = 0; p < passes; ++p)
                    for (uint j = 0; j < here; ++j)
                        ++counts[p * radix + (digits[j] >> p * bits & mask)];
        }
        for (uint p = 0; p < passes; ++p)
            exclusive_scan(counts + p * radix, radix);
        pass_elements(source, count, a, counts, extremes.least, shift, mask);
        for (uint p = 1; p < passes; ++p) {
            pass_elements(from, count, to, counts + p * radix, extremes.least, shift + p * bits, mask);
            __global elem_t *other = from;
            from = to;
            to = other;
        }
    }
    /* Without a digit all keys are equal or few. */
    if (shift > low || (!passes && count <= 24)) {
        if (!insertion_sort(from, count, passes ? 2 * count : ~(index_t)0)) {
            for (uint begin = low; begin < differing; begin += 11) {
                for (uint d = 0; d < RUN_RADIX; ++d)
                    counts[d] = 0;
                for (index_t i = 0; i < count; ++i)
                    ++counts[(uint)((ukey_t)(code(KEY_OF(from[i])) - extremes.least) >> begin) & (RUN_RADIX - 1)];
                exclusive_scan(counts, RUN_RADIX);
                pass_elements(from, count, to, counts, extremes.least, begin, RUN_RADIX - 1);
                __global elem_t *other = from;
                from = to;
                to = other;
            }
        }
    }
    if (from != (__global elem_t *)sorted)
        store_sorted(from, sorted, sorted_values, count);
}
#define BUCKETS 256
#define LAST_BUCKET ((ukey_t)(KEY_BITS < 8 ? ~0u : BUCKETS - 1u))

/* The state of a row: how many runs of buckets, or 0 and digits, and their range. */
enum { RUN_COUNT, LEAST, LOW, DIGIT, PASSES, STATE };

/* A line of a cache. */
typedef struct __attribute__((packed)) { uint16 vector; } line_t;
#define LINE (64 / sizeof(elem_t))

/* What the tasks of a phase do: the first four phases, three for each digit, and the last phase. */
enum {
    COUNT_BUCKETS, CHOOSE_RUNS, SCATTER_BUCKETS, FINISH_RUNS,
        COUNT_DIGITS, SCAN_DIGITS, SCATTER_DIGITS,
        COPY
};

static inline uint work_of(const uint phase, const uint last)
{
    if (phase + 1 == last)
        return COPY;
    return phase < COUNT_DIGITS ? phase : COUNT_DIGITS + (phase - COUNT_DIGITS) % 3;
}

/* How many tasks a phase has: as many for each row. */
static inline uint tasks_of(const uint work, const uint rows, const uint chunks, const uint units)
{
    if (work == FINISH_RUNS)
        return rows * LESSER(32 * units, BUCKETS);
    return work == CHOOSE_RUNS || work == SCAN_DIGITS ? rows : rows * chunks;
}

/* Which bucket a key is in: those of a range that a sample of the row spans, the same in whatever task.
   What the sample has not extremes is in the first or the last one. */
typedef struct {
    ukey_t base, top;
    uint shift, fraction;
    enum { EVEN, NEAR_BASE, NEAR_TOP } most;
} range_t;

/* Where most keys of the sample are in a small section of their range, at either end, buckets are narrow
   there: as wide as floats of a few bits are apart, counted from that end. */
static range_t sample_range(const source_t source, const index_t n)
{
    ukey_t codes[2048];
    ukey_t least = code(source.keys[0]), largest = least;
    const index_t stride = GREATER(n / 1024, (index_t)1);
    uint count = 0, low = 0, high = 0;
    for (index_t i = 0; i < n && count < 2048; i += stride)
        codes[count++] = code(source.keys[i]);
    for (uint j = 0; j < count; ++j) {
        least = LESSER(least, codes[j]);
        largest = GREATER(largest, codes[j]);
    }
    const uint length = length_of(largest - least);
    const ukey_t few = (largest - least) / 64;
    for (uint j = 0; j < count; ++j) {
        low += codes[j] - least <= few;
        high += largest - codes[j] <= few;
    }
    range_t range;
    range.base = least;
    range.top = largest;
    range.shift = GREATER(length, 8u) - 8;
    range.most = !range.shift ? EVEN : 2 * low > count ? NEAR_BASE : 2 * high > count ? NEAR_TOP : EVEN;
    range.fraction = 0;
    while ((length + 1) << (range.fraction + 1) < BUCKETS)
        ++range.fraction;
    return range;
}

/* Whether all keys of a bucket are equal in a row whose least and largest codes are given. What the
   sample has not extremes is in the first or in the last bucket. */
static bool is_of_one_key(const uint bucket, const range_t range, const ukey_t least, const ukey_t largest)
{
    const uint from_end = range.most == NEAR_TOP ? (uint)LAST_BUCKET - bucket : bucket;
    const bool open = range.most == NEAR_TOP ? largest > range.top : least < range.base;
    if (open && from_end == 0)
        return false;
    if (range.most == EVEN)
        return !range.shift && (bucket < LAST_BUCKET || largest <= range.base + LAST_BUCKET);
    return from_end < (range.fraction + 1) << range.fraction;
}

static inline uint bucket_of_even(const ukey_t key, const range_t range)
{
    const ukey_t mine = code(key), above = (ukey_t)(GREATER(mine, range.base) - range.base) >> range.shift;
    return LESSER(above, LAST_BUCKET);
}

/* The bits of floats that are no less than 1 are in their order, and rounding keeps that. */
static inline uint place_of(const ukey_t distance, const range_t range)
{
    const uint place = (as_uint((float)distance + 1) >> (23 - range.fraction)) - (127u << range.fraction);
    return LESSER(place, (uint)LAST_BUCKET);
}

static inline uint bucket_of_near_base(const ukey_t key, const range_t range)
{
    const ukey_t mine = code(key);
    return place_of(GREATER(mine, range.base) - range.base, range);
}

static inline uint bucket_of_near_top(const ukey_t key, const range_t range)
{
    const ukey_t mine = code(key);
    return (uint)LAST_BUCKET - place_of(range.top - LESSER(mine, range.top), range);
}

static inline uint stage_buckets(const source_t source, const index_t first, const index_t end, uint *found,
                                 const range_t range)
{
    const uint here = (uint)LESSER((index_t)512, end - first);
    if (range.most == EVEN) {
        if (here == 512)
            for (uint j = 0; j < 512; ++j)
                found[j] = bucket_of_even(source.keys[first + j], range);
        else
            for (uint j = 0; j < here; ++j)
                found[j] = bucket_of_even(source.keys[first + j], range);
    }
    if (range.most == NEAR_BASE) {
        if (here == 512)
            for (uint j = 0; j < 512; ++j)
                found[j] = bucket_of_near_base(source.keys[first + j], range);
        else
            for (uint j = 0; j < here; ++j)
                found[j] = bucket_of_near_base(source.keys[first + j], range);
    }
    if (range.most == NEAR_TOP) {
        if (here == 512)
            for (uint j = 0; j < 512; ++j)
                found[j] = bucket_of_near_top(source.keys[first + j], range);
        else
            for (uint j = 0; j < here; ++j)
                found[j] = bucket_of_near_top(source.keys[first + j], range);
    }
    return here;
}

/* Count a chunk's keys of each bucket in `share`; its least and largest codes go to `limits`. */
static void count_buckets(const source_t source, const index_t n, const index_t begin, const index_t end,
                          __global index_t *share, __global ukey_t *limits, __local index_t *counts)
{
    ukey_t codes[512];
    uint found[512];
    const range_t range = sample_range(source, n);
    for (uint c = 0; c < 2 * BUCKETS; ++c)
        counts[c] = 0;
    extremes_t extremes;
    extremes.one = code(source.keys[0]);
    extremes.least = extremes.largest = extremes.one;
    extremes.differ = 0;
    for (index_t i = begin; i < end; i += 512) {
        const uint here = stage_arrays(source, i, end, codes);
        update_extremes(&extremes, codes, here);
        stage_buckets(source, i, end, found, range);
        uint j = 0;
        for (; j + 2 <= here; j += 2) {
            ++counts[found[j]];
            ++counts[BUCKETS + found[j + 1]];
        }
        if (j < here)
            ++counts[found[j]];
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
    const uint passes = (differing + 7) / 8;
    /* A run ends before it exceeds its share. Large buckets are runs of their own, and several where
       their keys are equal. */
    const index_t piece = GREATER(n / (8 * units) + 1, (index_t)4096);
    const range_t range = sample_range(source, n);
    index_t size = 0, sum = 0, longest = 0;
    for (uint b = 0; b < BUCKETS; ++b) {
        index_t count = 0;
        for (uint k = 0; k < chunks; ++k)
            count += table[(ulong)k * BUCKETS + b];
        if (!b || size + count > 4096) {
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
    const bool even = longest <= GREATER(n / (8 * units) * 5, (index_t)4096) && longest <= 4194304;
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

/* Count a chunk's keys of each digit in `share`. */
static void count_digits_arrays(const source_t source, const index_t begin, const index_t end,
                                __global index_t *share, const ukey_t base, const uint shift,
                                __local index_t *counts)
{
    uint found[512];
    for (uint d = 0; d < 2 * BUCKETS; ++d)
        counts[d] = 0;
    for (index_t i = begin; i < end; i += 512) {
        const uint here = stage_digits_arrays(source, i, end, found, base, shift, BUCKETS - 1);
        uint j = 0;
        for (; j + 2 <= here; j += 2) {
            ++counts[found[j]];
            ++counts[BUCKETS + found[j + 1]];
        }
        if (j < here)
            ++counts[found[j]];
    }
    for (uint d = 0; d < BUCKETS; ++d)
        share[d] = counts[d] + counts[BUCKETS + d];
}

/*
 * Move a chunk's elements to their buckets (`cut`) or to the places of their digits, which `share`
 * holds. Elements of a bucket gather in a line until they fill one of memory.
 */
static void scatter_arrays(const source_t source, const index_t begin, const index_t end, __global elem_t *target,
                           __global const index_t *share,
                           const bool cut, const index_t n,
                           const ukey_t base, const uint shift, __local line_t *lines,
                           __local index_t *places)
{
    uint found[512];
    range_t range;
    if (cut)
        range = sample_range(source, n);
    __local elem_t *gathered = (__local elem_t *)lines;
    __local index_t *first = places + BUCKETS;
    /* Places are counted from where a line of memory begins. */
    const index_t ahead = (index_t)((size_t)target / sizeof(elem_t)) & (LINE - 1);
    target -= ahead;
    for (uint b = 0; b < BUCKETS; ++b)
        places[b] = first[b] = share[b] + ahead;
    for (index_t i = begin; i < end; i += 512) {
        const uint here = cut ? stage_buckets(source, i, end, found, range)
                              : stage_digits_arrays(source, i, end, found, base, shift, BUCKETS - 1);
        for (uint j = 0; j < here; ++j) {
            const uint b = found[j];
            const index_t place = places[b]++;
            target[place] = element_arrays(source, i + j);
        }
    }
}

/* Count a chunk's keys of each digit in `share`. */
static void count_digits_elements(__global const elem_t *source, const index_t begin, const index_t end,
                                  __global index_t *share, const ukey_t base, const uint shift,
                                  __local index_t *counts)
{
    uint found[512];
    for (uint d = 0; d < 2 * BUCKETS; ++d)
        counts[d] = 0;
    for (index_t i = begin; i < end; i += 512) {
        const uint here = stage_digits_elements(source, i, end, found, base, shift, BUCKETS - 1);
        uint j = 0;
        for (; j + 2 <= here; j += 2) {
            ++counts[found[j]];
            ++counts[BUCKETS + found[j + 1]];
        }
        if (j < here)
            ++counts[found[j]];
    }
    for (uint d = 0; d < BUCKETS; ++d)
        share[d] = counts[d] + counts[BUCKETS + d];
}

/*
 * Move a chunk's elements to their buckets (`cut`) or to the places of their digits, which `share`
 * holds. Elements of a bucket gather in a line until they fill one of memory.
 */
static void scatter_elements(__global const elem_t *source, const index_t begin, const index_t end, __global elem_t *target,
                             __global const index_t *share,
                             const ukey_t base, const uint shift, __local line_t *lines,
                             __local index_t *places)
{
    uint found[512];
    __local elem_t *gathered = (__local elem_t *)lines;
    __local index_t *first = places + BUCKETS;
    /* Places are counted from where a line of memory begins. */
    const index_t ahead = (index_t)((size_t)target / sizeof(elem_t)) & (LINE - 1);
    target -= ahead;
    for (uint b = 0; b < BUCKETS; ++b)
        places[b] = first[b] = share[b] + ahead;
    for (index_t i = begin; i < end; i += 512) {
        const uint here = stage_digits_elements(source, i, end, found, base, shift, BUCKETS - 1);
        for (uint j = 0; j < here; ++j) {
            const uint b = found[j];
            const index_t place = places[b]++;
            target[place] = element_elements(source, i + j);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void radix_cpu(__global const ukey_t *keys,
               __global ukey_t *sorted,
               __global elem_t *spares,
               __global elem_t *first,
               __global index_t *table,
               __global ukey_t *limits,
               volatile __global ulong *state,
               __global index_t *starts,
               const uint chunks,
               const ulong n,
               const ulong rows,
               const uint from,
               const uint to,
               const uint last,
               volatile __global uint *counters)
{
    __local index_t counts[6144];
    __local line_t lines[1 << 8] __attribute__((aligned(64)));
    __local index_t places[2 << 8];
    __global elem_t *second = (__global elem_t *)sorted;
    __global out_value_t *sorted_values = 0;
    __global elem_t *mine = spares + get_global_id(0) * 65536;
    source_t source;
    source.keys = keys;
    /* About as long as a task takes, so that a thread that waits for one without a processor leaves its own. */
    const ulong keys_of_task = n / chunks;
    const uint max_polls = (uint)LESSER(GREATER(keys_of_task, (ulong)4096), (ulong)2147483648);
    const uint shares = 1u;
    bool here = true;
    for (uint phase = from; phase < to; ++phase) {
        if (here) {
            const index_t tasks = tasks_of(work_of(phase, last), (uint)rows, chunks, (uint)get_global_size(0));
            volatile __global uint *claimed = counters + phase * (shares + 1);
            volatile __global uint *finished = claimed + shares;
            /* Do the tasks of this item's share, then what is left of the others'. */
            for (uint other = 0; other < shares; ++other) {
                const uint share = ((uint)get_global_id(0) + other) % shares;
                const index_t begin = (index_t)((ulong)tasks * share / shares);
                const index_t end = (index_t)((ulong)tasks * (share + 1) / shares);
                for (;;) {
                    const index_t task = begin + atomic_inc(&claimed[share]);
                    if (task >= end)
                        break;

                    const uint work = work_of(phase, last), row_tasks = tasks / (uint)rows;
                    const uint row_task = task % row_tasks;
                    const ulong row = task / row_tasks, at = row * n;
                    const index_t begin = (index_t)(n * row_task / row_tasks), end = (index_t)(n * (row_task + 1) / row_tasks);
                    volatile __global ulong *row_state = state + row * STATE;
                    __global index_t *row_table = table + row * chunks * BUCKETS, *share = row_table + (ulong)row_task * BUCKETS;
                    __global ukey_t *row_limits = limits + 3 * row * chunks;
                    __global index_t *row_starts = starts + row * (BUCKETS + 1 + 8 * get_global_size(0));
                    source.keys = keys + at;
                    const uint runs = phase > 1 ? (uint)row_state[RUN_COUNT] : 0;
                    const uint passes = phase > 1 ? (uint)row_state[PASSES] : 0;
                    const uint pass = phase < COUNT_DIGITS ? 0 : (phase - COUNT_DIGITS) / 3; /* which digit */
                    if (work == COUNT_BUCKETS)
                        count_buckets(source, (index_t)n, begin, end, share, row_limits + 3 * row_task, counts);
                    else if (work == CHOOSE_RUNS)
                        choose_runs(source, (index_t)n, chunks, (uint)get_global_size(0), row_table, row_limits, row_state,
                                    row_starts);
                    else if (work == FINISH_RUNS) {
                        /* The runs that begin in an equal share of the row. */
                        for (uint run = first_run(begin, row_starts, runs); run < runs && row_starts[run] < end; ++run) {
                            const index_t start = row_starts[run], count = row_starts[run + 1] - start;
                            __global elem_t *there = first + at + start;
                            const bool fits = count <= 32768;
                            sort_run(there, count, fits ? mine : second + at + start, fits ? mine + 32768 : there,
                                     sorted + at + start, sorted_values + at + start, counts);
                        }
                    } else if (work == COPY && !runs) {
                        if (!passes)
                            for (index_t i = begin; i < end; ++i)
                                second[at + i] = element_arrays(source, i);
                    } else if (work == SCATTER_BUCKETS ? runs > 0 : work != COPY && !runs && pass < passes) {
                        /* The last pass ends in `second`. */
                        const bool to_second = work != SCATTER_BUCKETS && ((passes - pass) & 1);
                        __global elem_t *target = (to_second ? second : first) + at;
                        __global const elem_t *elements = (to_second ? first : second) + at;
                        const ukey_t base = (ukey_t)row_state[LEAST];
                        const uint shift = (uint)(row_state[LOW] + pass * row_state[DIGIT]);
                        if (work == COUNT_DIGITS && pass == 0)
                            count_digits_arrays(source, begin, end, share, base, shift, counts);
                        else if (work == COUNT_DIGITS)
                            count_digits_elements(elements, begin, end, share, base, shift, counts);
                        else if (work == SCAN_DIGITS)
                            scan_counts(chunks, row_table);
                        else if (pass == 0)
                            scatter_arrays(source, begin, end, target, share, work == SCATTER_BUCKETS, (index_t)n, base, shift,
                                           lines, places);
                        else
                            scatter_elements(elements, begin, end, target, share, base, shift, lines, places);
                    }
                    mem_fence(CLK_GLOBAL_MEM_FENCE); /* what was written is seen before it is counted */
                    atomic_inc(finished);
                }
            }
            /* Look for the others to finish, or leave: who finishes the last task goes on. */
            for (uint polls = 0; phase + 1 < to && here && atomic_or(finished, 0) != tasks; ++polls)
                here = polls < max_polls;
            mem_fence(CLK_GLOBAL_MEM_FENCE);
        }
    }
    if (to == last) {
        /* The last to leave, when all is done, makes the counters ready for the next launch. */
        const uint words = last * (shares + 1);
        if (atomic_inc(&counters[words]) + 1 == get_global_size(0))
            for (uint t = 0; t <= words; ++t)
                atomic_xchg(&counters[t], 0);
    }
}
