/*
 * Stable radix sort of a row that lies on several processes of a node, by threads with caches: a step of it
 * for one process. All wait for each other between the steps, which are phases 3, 5 and 6 of
 * radix_cpu.cl.mako; the host does phase 4.
 *
 *     keys of process 0   keys of process 1        count     how many are in each bucket of a range that a
 *            |     \       /     |                           sample of all keys spans
 *            v      v     v      v                 scatter   elements to their buckets, in memory that all
 *     buckets, one row in shared memory                      processes share
 *            |            |                        finish    runs of buckets: sorted to where they belong
 *     its part     its part
 *
 * A run of which two processes have a part is sorted by both, each on its own.
 *
 * Source: own; see radix_cpu.cl.mako.
 *
 * The host guarantees: n > 0; what common/work_stealing.mako asks for, with one share. `sampled` has
 * sampled_n keys of all processes, the same for all. `table` has chunks * 2^bits words: counts of each chunk,
 * and for `scatter` where its elements of a bucket go in `first`. `starts` has how many runs have keys of this
 * process, where they begin in `first`, and where the last one ends. The part of this process begins there at
 * `low`, and has n elements. `spares` has 2 * CAPACITY elements for each item, `second`, where elements are not
 * keys, n. A run that reaches beyond the part has at most BORDER elements, of which `aside` has room for four
 * times, `aside_keys` and `aside_values` for two times as many.
 *
 * STEP          count, scatter or finish
 * BORDER        see above
 * the others    see radix_cpu.cl.mako
 */
<%page args="ELEMENT, INDEX_T, CAPACITY, CUT, RUN, STREAM, STEP, BORDER"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="blocks" file="radix_cpu_blocks.mako"/>\
<%namespace name="radix_cpu_network" file="radix_cpu_network.mako"/>\
<%namespace name="radix_cpu_run" file="radix_cpu_run.mako"/>\
<%namespace name="radix_cpu_buckets" file="radix_cpu_buckets.mako"/>\
<%namespace name="stealing" file="/common/work_stealing.mako"/>\
${extensions.enable(fp64=CUT.float_type == 'double')}\
${keys.declare(ELEMENT)}\
typedef ${INDEX_T} index_t;
${blocks.declare_source(ELEMENT)}\

% if RUN.network:
${radix_cpu_network.declare(ELEMENT, NETWORK=RUN.network, LANES=RUN.lanes)}\
% endif
${radix_cpu_run.declare(ELEMENT, RUN, WHOLE=False, STREAM=STREAM)}\
${radix_cpu_buckets.declare(ELEMENT, CUT, BLOCK=RUN.block, STREAM=STREAM)}\

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void radix_cpu_ranks(
% if STEP != "finish":
                 __global const ukey_t *keys,
% if ELEMENT.value and STEP == "scatter":
                 __global const value_t *values,
% endif
                 __global const ukey_t *sampled,
                 __global index_t *table,
% endif
% if STEP == "count":
                 __global ukey_t *limits,
% else:
                 __global elem_t *first,
% endif
% if STEP == "finish":
                 __global const index_t *starts,
                 __global ukey_t *sorted,
                 __global elem_t *spares,
                 __global elem_t *aside,
                 __global ukey_t *aside_keys,
% if ELEMENT.value:
                 __global out_value_t *sorted_values,
                 __global elem_t *second,
                 __global out_value_t *aside_values,
% endif
                 const index_t low,
% else:
                 const uint chunks,
                 const index_t sampled_n,
% endif
                 const index_t n,
                 volatile __global uint *counters)
{
% if STEP == "finish":
    __local index_t counts[${3 << RUN.bits}];
% if not ELEMENT.value:
    __global elem_t *second = (__global elem_t *)sorted;
    __global out_value_t *sorted_values = 0, *aside_values = 0;
% endif
    __global elem_t *mine = spares + get_global_id(0) * ${2 * CAPACITY};
    const uint runs = (uint)*starts++;
    const index_t all = starts[runs] - starts[0];
% else:
% if STEP == "count":
    __local index_t counts[${2 << CUT.bits}];
% else:
    __local line_t lines[1 << ${CUT.bits}] __attribute__((aligned(64)));
    __local index_t places[2 << ${CUT.bits}];
% endif
    source_t source;
    source.keys = keys;
% if ELEMENT.value and STEP == "scatter":
    source.values = values;
% endif
% endif
${stealing.begin("1u")}\
    <%stealing:phase number="0" tasks="${f'{CUT.finish_shares} * (uint)get_global_size(0)' if STEP == 'finish' else 'chunks'}" max_polls="${None}">
        const index_t begin = (index_t)((ulong)${"all" if STEP == "finish" else "n"} * task / tasks)${" + starts[0]" if STEP == "finish" else ""};
        const index_t end = (index_t)((ulong)${"all" if STEP == "finish" else "n"} * (task + 1) / tasks)${" + starts[0]" if STEP == "finish" else ""};
% if STEP == "count":
        count_buckets(source, sampled, sampled_n, begin, end, table + (ulong)task * BUCKETS, limits + 3 * task, counts);
% elif STEP == "scatter":
        scatter_arrays(source, begin, end, first, table + (ulong)task * BUCKETS, true, sampled, sampled_n, 0, 0, lines, places);
% else:
        for (uint run = first_run(begin, starts, runs); run < runs && starts[run] < end; ++run) {
            const index_t start = starts[run], stop = starts[run + 1], count = stop - start;
            const bool inside = start >= low && stop - low <= n, fits = count <= ${CAPACITY};
            const index_t at = inside ? start - low : 0, side = start < low ? 0 : ${BORDER};
            __global elem_t *there = first + start;
            __global ukey_t *run_keys = inside ? sorted + at : aside_keys + side;
            __global out_value_t *run_values = inside ? sorted_values + at : aside_values + side;
            __global elem_t *a = !inside ? aside + 2 * side : fits ? mine : second + at;
            __global elem_t *b = !inside ? aside + 2 * side + ${BORDER} : fits ? mine + ${CAPACITY} : there;
            sort_run(there, count, a, b, run_keys, run_values, counts);
            for (index_t i = GREATER(start, low); !inside && i < stop && i - low < n; ++i) {
                sorted[i - low] = run_keys[i - start];
% if ELEMENT.value:
                sorted_values[i - low] = run_values[i - start];
% endif
            }
        }
% endif
    </%stealing:phase>
${stealing.end(1)}\
}
