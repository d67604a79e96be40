/*
 * Stable merge sort of rows by threads with caches: the form for CPUs, without a barrier. Groups of
 * one item, one for each compute unit, claim shares of the rows. A row is sorted in the cache, by ranks
 * and merges.
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
 * Blocks of BLOCK keys are sorted by counting how many go before each, in vectors; the first merges
 * then take two pairs of runs at once, whose lengths say how many.
 *
 * Source: O. Green, R. McColl, D. Bader, "GPU merge path", ICS 2012, for the stretches; merging from
 * both ends after I. van den Hoven, "quadsort" (parity merge), and O. Peters, "glidesort", 2021 to 2023;
 * the rest is own.
 *
 * The host guarantees: 0 < n <= CAPACITY; what common/work_stealing.mako asks for; one phase.
 *
 * ELEMENT    what is sorted: see keys.mako; its value is what MOVED says
 * MOVED      what elements are: keys; codes, which are not the whole of their keys, with the keys as
 *            values; codes with indices, positions in the row; or pairs of keys and the user's values
 * INDEX_T    unsigned type that counts the elements of all rows
 * CAPACITY   most elements of a row
 * MAX_POLLS  how often an item looks for others to finish
 */
<%page args="ELEMENT, MOVED, INDEX_T, CAPACITY, MAX_POLLS"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="merge_path_cpu_serial" file="merge_path_cpu_serial.mako"/>\
<%namespace name="stealing" file="/common/work_stealing.mako"/>\
${keys.declare(ELEMENT)}\
typedef ${INDEX_T} index_t;
typedef ${"long" if ELEMENT.indices else ELEMENT.value or "uchar"} out_value_t;
${merge_path_cpu_serial.declare(ELEMENT, MOVED=MOVED, SPACE="__local", CAPACITY=CAPACITY)}\
<%
    def source(place, position):
        """The values of a tile, or the position where it begins."""
        return {"indices": f"{position}, ", "pairs": f"values + {place}, "}.get(MOVED, "")

    def target(place):
        """Where results go."""
        names = ["sorted"] * (MOVED != "indices") + ["sorted_values"] * (MOVED in ("indices", "pairs"))
        return ", ".join(f"{name} + {place}" for name in names)

%>\
/* Write sorted elements where the caller wants them. */
static void store_sorted(__local const elem_t *from,
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
                 const ulong n,
                 const ulong rows,
                 const uint from,
                 const uint to,
                 const uint last,
                 volatile __global uint *counters)
{
    __local elem_t mine[2 * ${CAPACITY}];
    /* A task is a share of the rows. */
    <%stealing:phases shares="1u" tasks="(uint)min(rows, (ulong)get_global_size(0) * 64)" max_polls="${MAX_POLLS}">
        for (ulong row = rows * task / tasks; row < rows * (task + 1) / tasks; ++row) {
            const ulong at = row * n;
            __local elem_t *result = sort_tile(keys + at, ${source("at", "0")}(uint)n, mine);
            store_sorted(result, ${target("at")}, (uint)n);
        }
    </%stealing:phases>
}
