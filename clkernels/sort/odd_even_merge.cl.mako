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
 * An item owns elements of its work-group's span either one after the other
 * (BLOCKED) or a work-group apart. In BLOCKED form the place in the sibling
 * can only grow from one element to the next, so the search gallops on from
 * the last place. In the other form, the places of the first and the last
 * element of the span bound all others (NARROW).
 *
 * The host guarantees: grid dimension 1 is the row; dimension 0 covers the row
 * in whole work-groups; `width` is a power of two, at least TILE in merge_pass;
 * `source` and `target` do not overlap.
 *
 * KEY_T          type of a key
 * KEY_IS_FLOAT   whether NaN exists: it goes after every number, as in NumPy
 * DESCENDING     reverse the order relation; equal keys still keep their order
 * VALUE_T        type of the value that travels with a key, or None
 * VALUE_IN_T     its type in the source; None means: the element's position
 * VALUE_OUT_T    its type in the target
 * INDEX_T        unsigned type that counts the elements of a row
 * WG_SIZE        work-items in a work-group
 * TILE           elements sorted in local memory, a power of two; 0: no sort_tile
 * WORK_PER_ITEM  elements an item owns in merge_pass
 * BLOCKED        whether an item's elements are consecutive
 * NARROW         whether merge_pass bounds the searches of a work-group first
 */
<%page args="KEY_T, KEY_IS_FLOAT, DESCENDING, VALUE_T, VALUE_IN_T, VALUE_OUT_T, INDEX_T,
             WG_SIZE, TILE, WORK_PER_ITEM, BLOCKED, NARROW"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=KEY_T == 'double'"/>\
<%
    has_values = VALUE_T is not None
    before = "LESS(b, a)" if DESCENDING else "LESS(a, b)"
%>\
typedef ${KEY_T} key_t;
typedef ${INDEX_T} index_t;

% if KEY_IS_FLOAT:
#define LESS(a, b) (((a) < (b)) | (((a) == (a)) & ((b) != (b))))
% else:
#define LESS(a, b) ((a) < (b))
% endif

/* Whether key a goes before key b. */
static inline bool before(const key_t a, const key_t b)
{
    return ${before};
}

<%def name="searches(space, suffix)">
/* Count the elements of block[low..high) that go before key, added to low. */
static inline index_t search_${suffix}(${space} const key_t *block, const key_t key,
                                       const bool count_equal, index_t low, index_t high)
{
    while (low < high) {
        const index_t middle = low + (high - low) / 2;
        const key_t other = block[middle];
        if (count_equal ? !before(key, other) : before(other, key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
% if BLOCKED:

/* The same, for a place that is probably near low: double the step, then search. */
static inline index_t gallop_${suffix}(${space} const key_t *block, const key_t key,
                                       const bool count_equal, index_t low, index_t high)
{
    index_t step = 1;
    while (low + step <= high) {
        const key_t other = block[low + step - 1];
        if (count_equal ? before(key, other) : !before(other, key)) {
            high = low + step - 1;
            break;
        }
        low += step;
        step *= 2;
    }
    return search_${suffix}(block, key, count_equal, low, high);
}
% endif
</%def>\
## Give each element of the span [first, last) of a row to one item.
<%def name="for_each_element(first, last, per_item)">\
% if BLOCKED:
    const index_t begin = min(${first} + (index_t)get_local_id(0) * ${per_item}, ${last});
    const index_t end = min(begin + ${per_item}, ${last});
    for (index_t i = begin; i < end; ++i)\
% else:
    for (index_t i = ${first} + get_local_id(0); i < ${last}; i += ${WG_SIZE})\
% endif
</%def>\
% if TILE:
${searches("__local", "local")}
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void sort_tile(__global const key_t *restrict source,
               __global key_t *restrict target,
% if has_values:
% if VALUE_IN_T is not None:
               __global const ${VALUE_IN_T} *restrict source_values,
% endif
               __global ${VALUE_OUT_T} *restrict target_values,
% endif
               const index_t n)
{
    __local key_t keys[2 * ${TILE}];
% if has_values:
    __local ${VALUE_T} values[2 * ${TILE}];
% endif
    const index_t start = (index_t)get_group_id(0) * ${TILE};
    const ulong row = (ulong)get_group_id(1) * n;
    const index_t count = min((index_t)${TILE}, n - start);

    /* Load the tile, coalesced. */
    for (index_t i = get_local_id(0); i < count; i += ${WG_SIZE}) {
        keys[i] = source[row + start + i];
% if has_values:
        values[i] = (${VALUE_T})\
${"(start + i)" if VALUE_IN_T is None else "source_values[row + start + i]"};
% endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Merge pairs of blocks; the halves of the local arrays take turns. */
    index_t from = 0;
    for (index_t width = 1; width < ${TILE}; width *= 2) {
        const index_t to = ${TILE} - from;
% if BLOCKED:
        index_t last_block = count;
        index_t hint = 0;
% endif
        ${for_each_element("(index_t)0", "count", TILE // WG_SIZE)} {
            const index_t block = i & ~(width - 1);
            const index_t sibling = min(block ^ width, count);
            const index_t length = min(width, count - sibling);
            const bool odd = (block & width) != 0;
            const key_t key = keys[from + i];
            __local const key_t *others = keys + from + sibling;
% if BLOCKED:
            hint = gallop_local(others, key, odd, block == last_block ? hint : 0, length);
            last_block = block;
            const index_t rank = hint;
% else:
            const index_t rank = search_local(others, key, odd, 0, length);
% endif
            const index_t place = to + (block & ~width) + (i - block) + rank;
            keys[place] = key;
% if has_values:
            values[place] = values[from + i];
% endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        from = to;
    }

    /* Store the sorted tile. */
    for (index_t i = get_local_id(0); i < count; i += ${WG_SIZE}) {
        target[row + start + i] = keys[from + i];
% if has_values:
        target_values[row + start + i] = (${VALUE_OUT_T})values[from + i];
% endif
    }
}
% endif
${searches("__global", "global")}
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void merge_pass(__global const key_t *restrict source,
                __global key_t *restrict target,
% if has_values:
% if VALUE_IN_T is not None:
                __global const ${VALUE_IN_T} *restrict source_values,
% endif
                __global ${VALUE_OUT_T} *restrict target_values,
% endif
                const index_t n,
                const index_t width)
{
    const ulong row = (ulong)get_group_id(1) * n;
    __global const key_t *keys = source + row;
    const index_t first = min((index_t)get_group_id(0) * ${WG_SIZE * WORK_PER_ITEM}, n);
    const index_t last = min(first + ${WG_SIZE * WORK_PER_ITEM}, n);
% if NARROW:

    /* Two items find the places of the span's ends; all others lie between. */
    __local index_t bounds[2];
    const bool narrow = width >= ${WG_SIZE * WORK_PER_ITEM};
    if (narrow && get_local_id(0) < 2 && first < last) {
        const index_t i = get_local_id(0) == 0 ? first : last - 1;
        const index_t block = i & ~(width - 1);
        const index_t sibling = min(block ^ width, n);
        bounds[get_local_id(0)] = search_global(keys + sibling, keys[i], (block & width) != 0,
                                                0, min(width, n - sibling));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
% if BLOCKED:
    index_t last_block = n;
    index_t hint = 0;
% endif
    ${for_each_element("first", "last", WORK_PER_ITEM)} {
        const index_t block = i & ~(width - 1);
        const index_t sibling = min(block ^ width, n);
        const index_t length = min(width, n - sibling);
        const bool odd = (block & width) != 0;
        const key_t key = keys[i];
        __global const key_t *others = keys + sibling;
% if BLOCKED:
        hint = gallop_global(others, key, odd, block == last_block ? hint : 0, length);
        last_block = block;
        const index_t rank = hint;
% elif NARROW:
        const index_t rank = search_global(others, key, odd, narrow ? bounds[0] : 0,
                                           narrow ? bounds[1] : length);
% else:
        const index_t rank = search_global(others, key, odd, 0, length);
% endif
        const ulong place = row + (block & ~width) + (i - block) + rank;
        target[place] = key;
% if has_values:
        target_values[place] = (${VALUE_OUT_T})\
${"i" if VALUE_IN_T is None else "source_values[row + i]"};
% endif
    }
}
