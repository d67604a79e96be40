/*
 * Stable merge sort of rows by threads with caches: the form for CPUs, without a barrier. Groups of
 * one item, one for each compute unit, go through phases of tasks.
 *
 *     phase 0       sort     some tiles: in the cache, by ranks and merges
 *     phase 1, ..   merge    a stretch of STRETCH elements of the result of two runs
 *
 * A processor waits for a comparison before it can load what is compared next. So four merges that
 * do not need each other take turns: two stretches, each from the front and from the rear, where
 * neither needs to know where the other ends.
 *
 *     run a  |    front 0 ->      <- rear 0 | front 1 ->      <- rear 1     |
 *     run b  |  front 0 -> <- rear 0 | front 1 ->            <- rear 1      |
 *     result |  front 0 ->        <- rear 0 | front 1 ->            <- rear 1
 *
 * No branch depends on a key: at the begin of a round it is known how many elements cannot leave a run.
 * In a tile, blocks of BLOCK keys are sorted by counting how many go before each, in vectors; the
 * first merges then take two pairs of runs at once, whose lengths say how many.
 *
 * Source: O. Green, R. McColl, D. Bader, "GPU merge path", ICS 2012, for the stretches; merging from
 * both ends after I. van den Hoven, "quadsort" (parity merge), and O. Peters, "glidesort", 2021 to 2023;
 * the rest is own.
 *
 * The host guarantees: n > 0; what common/work_stealing.mako asks for. With SPACE = __local, n <= CAPACITY
 * and there is one phase. Else `spares` has 2 * CAPACITY elements for each item; `first` and `second`
 * have one for each key where as many as one and two phases come before the last. Runs are in them by
 * turns, and at last in `second`, which is `sorted` where elements are keys.
 *
 * ELEMENT    what is sorted: see keys.mako; its value is what MOVED says
 * MOVED      what elements are: keys; codes, which are not the whole of their keys, with the keys as
 *            values; codes with indices, positions in the row; or pairs of keys and the user's values
 * INDEX_T    unsigned type that counts the elements of all rows
 * SPACE      where runs are: __local where all rows are tiles for which there is room, else __global
 * TILE       elements that one item sorts in its cache
 * STRETCH    elements of a task of merging, not more than two tiles, which it divides
 * CAPACITY   elements that `spares` has twice for each item: a tile or a stretch
 * MAX_POLLS  how often an item looks for others to finish
 */
<%page args="ELEMENT, MOVED, INDEX_T, SPACE, TILE, STRETCH, CAPACITY, MAX_POLLS"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="merge_path_cpu_serial" file="merge_path_cpu_serial.mako"/>\
<%namespace name="stealing" file="/common/work_stealing.mako"/>\
${keys.declare(ELEMENT)}\
typedef ${INDEX_T} index_t;
typedef ${"long" if ELEMENT.indices else ELEMENT.value or "uchar"} out_value_t;
${merge_path_cpu_serial.declare(ELEMENT, MOVED=MOVED, SPACE=SPACE, CAPACITY=CAPACITY)}\
<%
    def source(place, position):
        """The values of a tile, or the position where it begins."""
        return {"indices": f"{position}, ", "pairs": f"values + {place}, "}.get(MOVED, "")

    def target(place):
        """Where results go."""
        names = ["sorted"] * (MOVED != "indices") + ["sorted_values"] * (MOVED in ("indices", "pairs"))
        return ", ".join(f"{name} + {place}" for name in names)

    alone = SPACE == "__local"  # no runs but those of a tile
%>\
% if ELEMENT.value or alone:
/* Write sorted elements where the caller wants them. */
static void store_sorted(${SPACE} const elem_t *from,
% if MOVED != "indices":
                 __global ukey_t *sorted,
% endif
% if MOVED in ("indices", "pairs"):
                 __global out_value_t *sorted_values,
% endif
                 const uint count)
{
    for (uint i = 0; i < count; ++i) {
% if MOVED != "indices":
        sorted[i] = ${{"keys": "from[i]", "codes": "from[i].value", "pairs": "from[i].key"}[MOVED]};
% endif
% if MOVED in ("indices", "pairs"):
        sorted_values[i] = from[i].value;
% endif
    }
}
% endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void merge_cpu(__global const ukey_t *keys,
% if MOVED == "pairs":
                 __global const value_t *values,
% endif
% if MOVED != "indices":
                 __global ukey_t *sorted,
% endif
% if MOVED in ("indices", "pairs"):
                 __global out_value_t *sorted_values,
% endif
% if not alone:
                 __global elem_t *spares,
                 __global elem_t *first,
% if ELEMENT.value:
                 __global elem_t *second,
% endif
% endif
                 const ulong n,
                 const ulong rows,
                 const uint from,
                 const uint to,
                 const uint last,
                 volatile __global uint *counters)
{
% if alone:
    __local elem_t mine[2 * ${CAPACITY}];
    /* A task is a share of the rows. */
    <%stealing:phases shares="1u" tasks="(uint)min(rows, (ulong)get_global_size(0) * 64)" max_polls="${MAX_POLLS}">
        for (ulong row = rows * task / tasks; row < rows * (task + 1) / tasks; ++row) {
            const ulong at = row * n;
            __local elem_t *result = sort_tile(keys + at, ${source("at", "0")}(uint)n, mine, 0);
            store_sorted(result, ${target("at")}, (uint)n);
        }
    </%stealing:phases>
% else:
% if not ELEMENT.value:
    __global elem_t *second = (__global elem_t *)sorted;
% endif
    __global elem_t *mine = spares + get_global_id(0) * (size_t)${2 * CAPACITY};
    const ulong tiles = (n - 1) / ${TILE} + 1, stretches = (n - 1) / ${STRETCH} + 1;
    <%stealing:phases shares="1u" tasks="(uint)(rows * (phase ? stretches : tiles))" max_polls="${MAX_POLLS}">
        __global elem_t *target = (last - 1 - phase) & 1 ? first : second;
        __global const elem_t *source = (last - 1 - phase) & 1 ? second : first;
        const bool ends = phase + 1 == last;
        const ulong row_tasks = phase ? stretches : tiles, at = task / row_tasks * n;
        const index_t begin = (index_t)(task % row_tasks) * (phase ? ${STRETCH} : ${TILE});
        const uint count = (uint)min((ulong)(phase ? ${STRETCH} : ${TILE}), n - begin);
% if not ELEMENT.value:
        __global elem_t *result = target + at + begin;
% else:
        __global elem_t *result = ends ? (phase ? mine : 0) : target + at + begin;
% endif
        if (phase == 0) {
            result = sort_tile(keys + at + begin, ${source("at + begin", "begin")}count, mine, result);
        } else {
            const index_t width = (index_t)${TILE} << (phase - 1);
            const index_t pair = begin & ~(2 * width - 1);
            const index_t a_count = (index_t)min((ulong)width, n - pair);
            const index_t b_count = (index_t)min((ulong)width, n - pair - a_count);
            merge_stretch(source + at + pair, a_count, b_count, begin - pair, begin - pair + count,
                          result);
        }
% if ELEMENT.value:
        if (ends)
            store_sorted(result, ${target("at + begin")}, count);
% endif
    </%stealing:phases>
% endif
}
