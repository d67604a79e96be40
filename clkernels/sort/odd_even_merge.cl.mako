/*
 * Stable merge sort of rows by odd-even merging with binary search.
 *
 * Blocks of `width` elements are sorted; one pass merges each even block with
 * the odd block to its right. An element needs no other thread to find its
 * place: it keeps its rank inside its own block and adds the number of
 * elements of the sibling block that go before it.
 *
 *        even block (sorted)        odd block (sorted)
 *      | 1   4   4   9         |  2   4   7   8         |   width = 4
 *        |                        |
 *        rank 0 + strictly        rank 0 + not after
 *        before in odd: 0         in even: 1
 *        v                        v
 *      | 1   2   4   4   4   7   8   9                  |   width = 8
 *
 * The even block counts strictly smaller elements and the odd block counts
 * smaller or equal ones, so no two elements get the same place and equal keys
 * keep their order. Source: N. Satish, M. Harris, M. Garland, "Designing
 * efficient sorting algorithms for manycore GPUs", IPDPS 2009, section V
 * (merging by ranks); the passes ping-pong between two buffers.
 *
 * sort_tile     first passes, inside one work-group: TILE elements in local memory
 * merge_pass    one pass over global memory
 *
 * An item owns elements of its work-group's span either a work-group apart, and
 * searches for the place of each, or one after the other (BLOCKED). A BLOCKED
 * item searches once a pair of blocks, for where its first output comes from,
 * and merges from there; where it owns the whole pair it need not search at all.
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
 * BLOCKED        whether an item's elements are consecutive
 */
<%page args="ELEMENT, POSITIONS_IN, INDICES_OUT, INDEX_T, WG_SIZE, TILE, WORK_PER_ITEM,
             BLOCKED"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="merges" file="odd_even_merge_range.mako"/>\
${extensions.enable(fp64=ELEMENT.key == 'double')}\
<%
    RUN = 16 if BLOCKED and TILE >= 16 * WG_SIZE else 1
    one, other = ("b", "a") if ELEMENT.nan_first else ("a", "b")
    sign = ">" if ELEMENT.descending and not ELEMENT.nan_first else "<"
    before = f"{one} {sign} {other}"
    if ELEMENT.key in ("float", "double"):
        before = f"({before}) | (({one} == {one}) & ({other} != {other}))"
    elif ELEMENT.time and sign == "<":
        before = f"(ulong){one} - (ulong)LONG_MIN - 1 < (ulong){other} - (ulong)LONG_MIN - 1"
%>\
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
${merges.searches("__local", "local", BLOCKED)}
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

% if BLOCKED:
    const index_t begin = min((index_t)get_local_id(0) * ${TILE // WG_SIZE}, count);
    const index_t end = min(begin + ${TILE // WG_SIZE}, count);
% endif
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
% if BLOCKED:
    ${merges.merge_range("local", "count", "(keys + from)", "(keys + to)", "(values + to)", ELEMENT.value and "value_t", POSITIONS_IN)}
% else:
        for (index_t i = get_local_id(0); i < count; i += ${WG_SIZE}) {
            const index_t block = i & ~(width - 1);
            const index_t sibling = min(block ^ width, count);
            const index_t length = min(width, count - sibling);
            const bool odd = (block & width) != 0;
            const key_t key = keys[from + i];
            const index_t rank = search_local(keys + from + sibling, key, odd, length);
            const index_t place = to + (block & ~width) + (i - block) + rank;
            keys[place] = key;
% if ELEMENT.value:
            values[place] = values[from + i];
% endif
        }
% endif
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
${merges.searches("__global", "global", BLOCKED)}
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
% if BLOCKED:
    const index_t begin = min(first + (index_t)get_local_id(0) * ${WORK_PER_ITEM}, last);
    const index_t end = min(begin + ${WORK_PER_ITEM}, last);
${merges.merge_range("global", "n", "keys", "(target + row)", "(target_values + row)", ELEMENT.value and "value_out_t", POSITIONS_IN)}
% else:
    for (index_t i = first + get_local_id(0); i < last; i += ${WG_SIZE}) {
        const index_t block = i & ~(width - 1);
        const index_t sibling = min(block ^ width, n);
        const index_t length = min(width, n - sibling);
        const bool odd = (block & width) != 0;
        const key_t key = keys[i];
        __global const key_t *others = keys + sibling;
        const index_t rank = search_global(others, key, odd, length);
        const ulong place = row + (block & ~width) + (i - block) + rank;
        target[place] = key;
% if ELEMENT.value:
        target_values[place] = (value_out_t)${merges.value_at("global", "i", POSITIONS_IN)};
% endif
    }
% endif
}
