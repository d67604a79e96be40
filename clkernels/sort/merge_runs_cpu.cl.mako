/*
 * Stable merge of sorted runs by threads with caches: groups of one item, one for each compute unit,
 * go through phases of tasks.
 *
 *     runs        | 0 | 1      | 2  | 3 | 4      |       of any lengths, also 0
 *     phase 0     |   0 and 1  | 2 and 3| 4      |       a task makes STRETCH elements of the result,
 *     phase 1     |         0 to 3      | 4      |       wherever these begin
 *     phase 2     |              all             |
 *
 * Where elements are not the keys, a phase before these makes them: codes with keys or keys with values.
 *
 * A stretch: merge_stretch.mako.
 *
 * Source: O. Green, R. McColl, D. Bader, "GPU merge path", ICS 2012, for the stretches; the rest is own.
 *
 * The host guarantees: n > 0; what common/work_stealing.mako asks for; at least two runs; run i ends at
 * ends[i], the last one at n. Phases write `first` and `second` alternately, and the last one the result:
 * with two phases, `first` has n elements, with more both have. `spares` has STRETCH for each item.
 *
 * ELEMENT    what is sorted: see keys.mako; its value is what MOVED says
 * MOVED      what elements are: keys; codes, with the keys as values; or pairs of keys and values
 * INDEX_T    unsigned type that counts the elements
 * STRETCH    elements of a task
 * MAX_POLLS  how often an item looks for others to finish
 */
<%page args="ELEMENT, MOVED, INDEX_T, STRETCH, MAX_POLLS"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="merge_stretch" file="merge_stretch.mako"/>\
<%namespace name="stealing" file="/common/work_stealing.mako"/>\
${keys.declare(ELEMENT)}\
typedef ${INDEX_T} index_t;
#define CODE_OF(e) ${"KEY_OF(e)" if MOVED == "codes" else "code(KEY_OF(e))"}

${merge_stretch.declare(ELEMENT, ENDS="__global const long")}\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void merge_runs(__global const ukey_t *keys,
% if MOVED == "pairs":
                __global const value_t *values,
% endif
                __global ukey_t *sorted,
% if MOVED == "pairs":
                __global value_t *sorted_values,
% endif
                __global const long *ends,
                __global elem_t *first,
% if ELEMENT.value:
                __global elem_t *second,
                __global elem_t *spares,
% endif
                const uint runs,
                const ulong n,
                const ulong rows,
                const uint from,
                const uint to,
                const uint last,
                volatile __global uint *counters)
{
% if not ELEMENT.value:
    __global elem_t *second = (__global elem_t *)sorted;
% endif
    const ulong stretches = (n - 1) / ${STRETCH} + 1;
    <%stealing:phases shares="1u" tasks="(uint)stretches" max_polls="${MAX_POLLS}">
        __global elem_t *target = (last - 1 - phase) & 1 ? first : second;
        __global const elem_t *source = (last - 1 - phase) & 1 ? second : first;
        const index_t begin = (index_t)task * ${STRETCH};
        const index_t end = (index_t)min((ulong)begin + ${STRETCH}, n);
% if ELEMENT.value:
        if (phase == 0) {
            for (index_t i = begin; i < end; ++i) {
                target[i].key = ${"keys[i]" if MOVED == "pairs" else "code(keys[i])"};
                target[i].value = ${"values[i]" if MOVED == "pairs" else "keys[i]"};
            }
        } else {
            const uint width = 1u << (phase - 1);
            if (phase + 1 == last)
                target = spares + get_global_id(0) * (size_t)${STRETCH};
            else
                target += begin;
% else:
        {
            const uint width = 1u << phase;
            source = phase == 0 ? keys : source;
            target += begin;
% endif
            merge_pairs(source, ends, runs, width, begin, end, target);
% if ELEMENT.value:
            if (phase + 1 == last) {
                for (index_t i = 0; i < end - begin; ++i) {
                    sorted[begin + i] = target[i].${"key" if MOVED == "pairs" else "value"};
% if MOVED == "pairs":
                    sorted_values[begin + i] = target[i].value;
% endif
                }
            }
% endif
        }
    </%stealing:phases>
}
