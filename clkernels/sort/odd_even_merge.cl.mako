/*
 * Stable merge sort of rows by odd-even merging with binary search.
 *
 * Blocks of `width` elements are sorted; one pass merges each even block with
 * the odd block to its right. An item owns neighbouring outputs and needs no
 * other thread: a binary search finds how many of the elements before its first
 * output come from the even block, and it merges from there on.
 *
 *        even block (sorted)        odd block (sorted)
 *      | 1   4   4   9         |  2   4   7   8         |   width = 4
 *              ^                      ^
 *              outputs 2 and 3: after one of each block, 4 and 4, both of the even one
 *
 *      | 1   2   4   4   4   7   8   9                  |   width = 8
 *
 * Of equal keys those of the even block go first, so that they keep their order.
 * Source: N. Satish, M. Harris, M. Garland, "Designing efficient sorting algorithms
 * for manycore GPUs", IPDPS 2009, section V (merging by ranks); C. Siebert,
 * J. L. Traeff, "Perfectly load-balanced, stable, synchronization-free parallel
 * merge", 2013 (co-ranks); the passes ping-pong between two buffers.
 *
 * sort_tile     first passes, inside one work-group: TILE elements in local memory
 * merge_pass    one pass over global memory
 *
 * The host guarantees: n > 0; as many work-groups as cover a row, row after row, in
 * dimension 0, as others may be short; `width` is a power of two, at least TILE in
 * merge_pass; `source` and `target` do not overlap.
 *
 * ELEMENT        what is sorted: see keys.mako. Keys are compared as they are; only times in ascending
 *                order as unsigned numbers above NaT
 * POSITIONS_IN   whether values are positions that no array holds yet
 * INDICES_OUT    whether values in the target are long
 * INDEX_T        unsigned type that counts the elements of a row
 * WG_SIZE        work-items in a work-group
 * TILE           elements sorted in local memory, a power of two; 0: no sort_tile
 * WORK_PER_ITEM  elements an item owns in merge_pass
 */
<%page args="ELEMENT, POSITIONS_IN, INDICES_OUT, INDEX_T, WG_SIZE, TILE, WORK_PER_ITEM"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
${extensions.enable(fp64=ELEMENT.key == 'double')}\
<%
    RUN = 16 if TILE >= 16 * WG_SIZE else 1
    one, other = ("b", "a") if ELEMENT.nan_first else ("a", "b")
    sign = ">" if ELEMENT.descending and not ELEMENT.nan_first else "<"
    before = f"{one} {sign} {other}"
    if ELEMENT.key in ("float", "double"):
        before = f"({before}) | (({one} == {one}) & ({other} != {other}))"
    elif ELEMENT.time and sign == "<":
        before = f"(ulong){one} - (ulong)LONG_MIN - 1 < (ulong){other} - (ulong)LONG_MIN - 1"
%>\
## suffix: local or global, where keys lie, and the end of the function's name.
<%def name="corank(space, suffix)">
/* Count how many of the first `rank` elements of the merged blocks a and b come from a. */
static inline index_t corank_${suffix}(${space} const key_t *a, const index_t a_length,
                                       ${space} const key_t *b, const index_t b_length,
                                       const index_t rank)
{
    index_t low = max(rank, b_length) - b_length;
    index_t high = min(rank, a_length);
    while (low < high) {
        const index_t middle = low + (high - low) / 2;
        if (before(b[rank - 1 - middle], a[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
</%def>\
## Merge what lies under the outputs [begin, end) of pairs of blocks, in a row or tile of `count`.
<%def name="merge_range(suffix, count, from_keys, to_keys, to_values, value_t, positions)">\
    for (index_t pair = begin & ~(2 * width - 1); pair < end; pair += 2 * width) {
        const index_t first_output = max(begin, pair);
        const index_t last_output = min(end, pair + 2 * width);
        const index_t b_start = min(pair + width, ${count});
        const index_t a_length = b_start - pair;
        const index_t b_length = min(width, ${count} - b_start);
        index_t a = corank_${suffix}(${from_keys} + pair, a_length, ${from_keys} + b_start, b_length,
                                     first_output - pair);
        index_t b = b_start + (first_output - pair - a);
        const index_t a_end = pair + a_length;
        const index_t b_end = b_start + b_length;
        a += pair;
        index_t output = first_output;
        for (; output < last_output && a < a_end && b < b_end; ++output) {
            const key_t left = ${from_keys}[a];
            const key_t right = ${from_keys}[b];
            const bool take_right = before(right, left);
            ${to_keys}[output] = take_right ? right : left;
% if value_t:
            ${to_values}[output] = (${value_t})${value_at(suffix, "(take_right ? b : a)", positions)};
% endif
            b += take_right;
            a += !take_right;
        }
        for (; output < last_output; ++output) {
            const index_t rest = a < a_end ? a++ : b++;
            ${to_keys}[output] = ${from_keys}[rest];
% if value_t:
            ${to_values}[output] = (${value_t})${value_at(suffix, "rest", positions)};
% endif
        }
    }
</%def>\
<%def name="value_at(suffix, index, positions)">\
% if suffix == "local":
values[from + ${index}]\
% elif positions:
${index}\
% else:
source_values[row + ${index}]\
% endif
</%def>\
typedef ${ELEMENT.key} key_t;
typedef ${INDEX_T} index_t;
% if ELEMENT.value:
typedef ${ELEMENT.value} value_t;
typedef ${"long" if INDICES_OUT else "value_t"} value_out_t;
% endif

/* Whether key a goes before key b. */
static inline bool before(const key_t a, const key_t b)
{
    return ${before};
}

% if TILE:
${corank("__local", "local")}
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void sort_tile(__global const key_t *restrict source,
               __global key_t *restrict target,
% if ELEMENT.value:
% if not POSITIONS_IN:
               __global const value_t *restrict source_values,
% endif
               __global value_out_t *restrict target_values,
% endif
               const index_t n)
{
    __local key_t keys[2 * ${TILE}];
% if ELEMENT.value:
    __local value_t values[2 * ${TILE}];
% endif
    const index_t groups = (n - 1) / ${TILE} + 1;
    const index_t start = (index_t)(get_group_id(0) % groups) * ${TILE};
    const ulong row = (ulong)(get_group_id(0) / groups) * n;
    const index_t count = min((index_t)${TILE}, n - start);

    /* Load the tile, coalesced. */
    for (index_t i = get_local_id(0); i < count; i += ${WG_SIZE}) {
        keys[i] = source[row + start + i];
% if ELEMENT.value:
        values[i] = (value_t)\
${"(start + i)" if POSITIONS_IN else "source_values[row + start + i]"};
% endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const index_t begin = min((index_t)get_local_id(0) * ${TILE // WG_SIZE}, count);
    const index_t end = min(begin + ${TILE // WG_SIZE}, count);
% if RUN > 1:

    /* Sort short runs by insertion, which beats merging there. */
    for (index_t run = begin; run < end; run += ${RUN}) {
        const index_t run_end = min(run + ${RUN}, end);
        for (index_t i = run + 1; i < run_end; ++i) {
            const key_t key = keys[i];
% if ELEMENT.value:
            const value_t value = values[i];
% endif
            index_t place = i;
            for (; place > run && before(key, keys[place - 1]); --place) {
                keys[place] = keys[place - 1];
% if ELEMENT.value:
                values[place] = values[place - 1];
% endif
            }
            keys[place] = key;
% if ELEMENT.value:
            values[place] = value;
% endif
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endif

    /* Merge pairs of blocks; the halves of the local arrays take turns. */
    index_t from = 0;
    for (index_t width = ${RUN}; width < ${TILE}; width *= 2) {
        const index_t to = ${TILE} - from;
    ${merge_range("local", "count", "(keys + from)", "(keys + to)", "(values + to)", ELEMENT.value and "value_t", POSITIONS_IN)}
        barrier(CLK_LOCAL_MEM_FENCE);
        from = to;
    }

    /* Store the sorted tile. */
    for (index_t i = get_local_id(0); i < count; i += ${WG_SIZE}) {
        target[row + start + i] = keys[from + i];
% if ELEMENT.value:
        target_values[row + start + i] = (value_out_t)values[from + i];
% endif
    }
}
% endif
${corank("__global", "global")}
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void merge_pass(__global const key_t *restrict source,
                __global key_t *restrict target,
% if ELEMENT.value:
% if not POSITIONS_IN:
                __global const value_t *restrict source_values,
% endif
                __global value_out_t *restrict target_values,
% endif
                const index_t n,
                const index_t width)
{
    const index_t groups = (n - 1) / ${WG_SIZE * WORK_PER_ITEM} + 1;
    const ulong row = (ulong)(get_group_id(0) / groups) * n;
    __global const key_t *keys = source + row;
    const index_t first = (index_t)(get_group_id(0) % groups) * ${WG_SIZE * WORK_PER_ITEM};
    const index_t last = min(first + ${WG_SIZE * WORK_PER_ITEM}, n);
    const index_t begin = min(first + (index_t)get_local_id(0) * ${WORK_PER_ITEM}, last);
    const index_t end = min(begin + ${WORK_PER_ITEM}, last);
${merge_range("global", "n", "keys", "(target + row)", "(target_values + row)", ELEMENT.value and "value_out_t", POSITIONS_IN)}
}
