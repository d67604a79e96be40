/*
 * Stable radix sort of rows by threads with caches: the form for CPUs, without a barrier. Groups of
 * one item, one for each compute unit, go through phases of tasks.
 *
 * Rows that are many or short are one task each (no CUT): radix_cpu_run.mako. Of long rows (CUT), those
 * that look ordered are copied and merged, if they are: slopes_cpu.mako.
 *
 *     phase 0   find      a chunk: pieces of slopes
 *     phase 1   join      a row: slopes, or that there are too many
 *     phase 2   copy      a chunk: pieces to their places
 *
 * Others are first cut into buckets that lie in a cache, from the most significant bits on:
 *
 *     phase 3   count     a chunk: how many keys are in each bucket of a range that a sample spans
 *     phase 4   scan      a row: where buckets begin; neighbours become runs of about equal size
 *     phase 5   scatter   a chunk: elements to their buckets
 *     phase 6   finish    a share of the runs: radix_cpu_run.mako; or the keys that slopes have dropped
 *
 *     phases 7 and 8  merge    a share of the row: slopes
 *
 * Where one run would have a large share of the keys, the row goes through its digits from the
 * least significant one on, by all units, and phases 5 and 6 do nothing:
 *
 *     phase 9 + 3 k   count    a chunk: how many keys have each value of digit k
 *     phase 10 + 3 k  scan     a row: where they begin
 *     phase 11 + 3 k  scatter  a chunk
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
 * chunks * 2^bits words a row, `limits` 3 * chunks words, `state` STATE words, `starts`
 * 2^bits + 1 + 8 * items words, and `pieces` room + 1 of four words for each chunk. Without CUT
 * `first` and `second` have room for all elements if n > CAPACITY.
 * `second` is `sorted` where elements are keys.
 *
 * ELEMENT       what is sorted: see keys.mako
 * INDEX_T       unsigned type that counts the elements of all rows
 * CAPACITY      elements of a run that fits in a cache
 * CUT           None where rows are not cut; else
 *   bits            of a bucket, and of a digit of a row that is not cut into buckets
 *   share           elements of a run, about
 *   float_type      type in which keys are numbers, or None for integers and where it is not to be used
 *   sample          keys by which the range of a row is found
 *   skew            if most keys of a sample are in this fraction of its range, 1 / skew, at either end,
 *                   buckets are narrower there
 *   often           a key that is this fraction of a sample, 1 / often, has a bucket of its own
 *   largest         elements of the largest run that one unit may have
 *   finish_shares   tasks of a unit in phases 6 to 8
 * RUN           bits, spare_bits, few, block: see radix_cpu_run.mako; network, lanes: see
 *               radix_cpu_network.mako; network is 0 where no run goes there
 * STREAM        whether lines go past the caches
 * MAX_POLLS     how often an item looks for others to finish, at least; else as often as tasks have keys
 */
<%page args="ELEMENT, INDEX_T, CAPACITY, CUT, RUN, STREAM, MAX_POLLS"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="blocks" file="radix_cpu_blocks.mako"/>\
<%namespace name="radix_cpu_network" file="radix_cpu_network.mako"/>\
<%namespace name="radix_cpu_run" file="radix_cpu_run.mako"/>\
<%namespace name="radix_cpu_buckets" file="radix_cpu_buckets.mako"/>\
<%namespace name="merge_stretch" file="merge_stretch.mako"/>\
<%namespace name="slopes_cpu" file="slopes_cpu.mako"/>\
<%namespace name="stealing" file="/common/work_stealing.mako"/>\
${extensions.enable(fp64=CUT and CUT.float_type == 'double')}\
${keys.declare(ELEMENT)}\
<%
    # Slopes go where as many merges as they need end in the result.
    target = "sorted" if ELEMENT.value else "(slopes && levels_of(slopes) & 1 ? first : sorted)"
    number_sign = "-" if ELEMENT.descending else ""
    words = max(3 << RUN.bits, (2 << CUT.bits) if CUT else 0)
%>\
typedef ${INDEX_T} index_t;
${blocks.declare_source(ELEMENT)}\

% if RUN.network:
${radix_cpu_network.declare(ELEMENT, NETWORK=RUN.network, LANES=RUN.lanes)}\
% endif
${radix_cpu_run.declare(ELEMENT, RUN, WHOLE=CUT is None, STREAM=STREAM)}\
% if CUT:
% if not ELEMENT.value:
#define CODE_OF(e) ${f"{number_sign}as_{CUT.float_type}(e)" if CUT.float_type else "code(e)"}
${merge_stretch.declare(ELEMENT, ENDS="volatile __global const ulong")}\
% endif
${slopes_cpu.declare(ELEMENT, BLOCK=RUN.block)}\
${radix_cpu_buckets.declare(ELEMENT, CUT, BLOCK=RUN.block, STREAM=STREAM)}\
${radix_cpu_buckets.declare_phases(CUT)}\
% endif
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void radix_cpu(__global const ukey_t *keys,
% if ELEMENT.value and not ELEMENT.indices:
                 __global const value_t *values,
% endif
% if not ELEMENT.indices:
                 __global ukey_t *sorted,
% endif
% if ELEMENT.value:
                 __global out_value_t *sorted_values,
% endif
                 __global elem_t *spares,
                 __global elem_t *first,
% if ELEMENT.value:
                 __global elem_t *second,
% endif
% if CUT:
                 __global index_t *table,
                 __global ukey_t *limits,
                 volatile __global ulong *state,
                 __global index_t *starts,
                 __global piece_t *pieces,
                 const uint chunks,
                 const uint room,
% endif
                 const ulong n,
                 const ulong rows,
                 const uint from,
                 const uint to,
                 const uint last,
                 volatile __global uint *counters)
{
    __local index_t counts[${words}];
% if CUT:
    __local line_t lines[1 << ${CUT.bits}] __attribute__((aligned(64)));
    __local index_t places[2 << ${CUT.bits}];
% endif
% if not ELEMENT.value:
    __global elem_t *second = (__global elem_t *)sorted;
    __global out_value_t *sorted_values = 0;
% elif ELEMENT.indices:
    __global ukey_t *sorted = 0;
% endif
    __global elem_t *mine = spares + get_global_id(0) * ${2 * CAPACITY};
    source_t source;
    source.keys = keys;
% if not CUT:
    /* A task is a share of the rows. */
    <%stealing:phases shares="1u" tasks="(uint)min(rows, (ulong)get_global_size(0) * 64)" max_polls="${MAX_POLLS}">
        for (ulong row = rows * task / tasks; row < rows * (task + 1) / tasks; ++row) {
            const ulong at = row * n;
            source.keys = keys + at;
% if ELEMENT.value and not ELEMENT.indices:
            source.values = values + at;
% endif
            sort_run(source, (index_t)n, n > ${CAPACITY} ? first + at : mine,
                     n > ${CAPACITY} ? second + at : mine + ${CAPACITY}, sorted + at,
                     sorted_values + at, counts);
        }
    </%stealing:phases>
% else:
    /* About as long as a task takes, so that a thread that waits for one without a processor leaves its own. */
    const ulong keys_of_task = n / chunks;
    const uint max_polls = (uint)LESSER(GREATER(keys_of_task, (ulong)${MAX_POLLS}), (ulong)${2 ** 31});
    bool some_ordered = false;
    for (ulong row = 0; row < rows && !some_ordered; ++row)
        some_ordered = looks_ordered(keys + row * n, (index_t)n);
    const uint row_count = (uint)rows, items = (uint)get_global_size(0);
    <%stealing:phases shares="1u" tasks="tasks_of(work_of(phase, last), row_count, chunks, items, some_ordered, state)" max_polls="max_polls">
        const uint work = work_of(phase, last), row_tasks = tasks / (uint)rows;
        const uint row_task = task % row_tasks;
        const ulong row = task / row_tasks, at = row * n;
        const index_t begin = (index_t)(n * row_task / row_tasks), end = (index_t)(n * (row_task + 1) / row_tasks);
        volatile __global ulong *row_state = state + row * STATE;
        __global index_t *row_table = table + row * chunks * BUCKETS, *share = row_table + (ulong)row_task * BUCKETS;
        __global ukey_t *row_limits = limits + 3 * row * chunks;
        __global index_t *row_starts = starts + row * (BUCKETS + 1 + 8 * get_global_size(0));
        __global piece_t *row_pieces = pieces + row * chunks * (room + 1), *part = row_pieces + row_task * (room + 1);
        volatile __global ulong *ends = row_state + SLOPE_ENDS;
        source.keys = keys + at;
% if ELEMENT.value and not ELEMENT.indices:
        source.values = values + at;
% endif
        const uint slopes = some_ordered && work > JOIN_PIECES ? (uint)row_state[SLOPES] : 0;
        const uint runs = slopes || work > CHOOSE_RUNS ? (uint)row_state[RUN_COUNT] : 0;
        const uint passes = work > CHOOSE_RUNS ? (uint)row_state[PASSES] : 0;
        const uint pass = phase < COUNT_DIGITS ? 0 : (phase - COUNT_DIGITS) / 3; /* which digit */
        if (work == FIND_PIECES)
            find_pieces(source.keys, begin, end, part, room);
        else if (work == JOIN_PIECES) {
            /* One unit sorts what is dropped, so it is a run like others. */
            const index_t most = GREATER((index_t)n / (8 * items) * 5, (index_t)${CUT.share});
            index_t kept = n;
            row_state[SLOPES] = join_pieces(source.keys, (index_t)n, chunks, row_pieces, room,
                                            LESSER(most, (index_t)${CUT.largest}), ends, &kept,
                                            (__global ukey_t *)first + at);
            row_state[RUN_COUNT] = kept < n;
            row_starts[0] = kept;
            row_starts[1] = (index_t)n;
        } else if (slopes && work == COPY_PIECES)
            copy_pieces(source, part, ${target} + at, sorted_values + at);
        else if (slopes && work != FINISH_RUNS) {
% if not ELEMENT.value:
            const uint level = work - MERGE, levels = levels_of(slopes);
            if (work >= MERGE && level < levels) {
                const bool to_second = (levels - level) & 1;
                merge_pairs((to_second ? first : second) + at, ends, slopes, 1u << level, begin, end,
                            (to_second ? second : first) + at + begin);
            }
% endif
        } else if (work == COUNT_BUCKETS)
            count_buckets(source, source.keys, (index_t)n, begin, end, share, row_limits + 3 * row_task, counts);
        else if (work == CHOOSE_RUNS)
            choose_runs(source, (index_t)n, chunks, (uint)get_global_size(0), row_table, row_limits, row_state,
                           row_starts);
        else if (work == FINISH_RUNS) {
            /* The runs that begin in an equal share of the row. */
            for (uint run = first_run(begin, row_starts, runs); run < runs && row_starts[run] < end; ++run) {
                const index_t start = row_starts[run], count = row_starts[run + 1] - start;
                __global elem_t *there = first + at + start;
                const bool fits = count <= ${CAPACITY};
                sort_run(there, count, fits ? mine : second + at + start, fits ? mine + ${CAPACITY} : there,
                         ${target} + at + start, sorted_values + at + start, counts);
            }
        } else if (work == COPY && !runs) {
            if (!passes)
                for (index_t i = begin; i < end; ++i)
                    second[at + i] = element_arrays(source, i);
% if ELEMENT.value:
            store_sorted(second + at + begin, sorted + at + begin, sorted_values + at + begin, end - begin);
% endif
        } else if (work == SCATTER_BUCKETS ? runs > 0
                                           : work >= COUNT_DIGITS && work != COPY && !runs && pass < passes) {
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
                scatter_arrays(source, begin, end, target, share, work == SCATTER_BUCKETS, source.keys, (index_t)n,
                              base, shift, lines, places);
            else
                scatter_elements(elements, begin, end, target, share, base, shift, lines, places);
        }
    </%stealing:phases>
% endif
}
