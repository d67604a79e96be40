/*
 * Of sorted keys the first of each run of equal ones, and how long the run is.
 *
 *     keys         2 2 2 5 7 7
 *     heads        1 0 0 1 1 0      keys that differ from the one before
 *     values       2 5 7            place of a head: heads before it
 *     starts       0 3 4            lengths: what is between two of them
 *     order        1 4 5 0 2 3      where keys were before they were sorted, stably
 *     first_places 1 0 2            the order at heads
 *     inverse      1 0 2 2 0 0      which of the values a key is, where it was before
 *
 *     count_heads  a slice a group: how many heads it has; not launched for a single slice
 *     write_heads  values, starts, places and inverse; where a slice begins is the sum of the slices
 *                  before
 *     write_counts lengths, with as many items as the device runs, as the host does not know yet
 *                  how many there are
 *
 * Keys are equal that are so in a sort: -0.0 and 0.0, and all NaN unless they count apart. Source: own.
 *
 * The host guarantees: n > 0; a group for each slice in the first two, any number of them in the last;
 * `values`, `starts` and `first_places` have room for n; `order` holds each number below n once.
 *
 * ELEMENT      what a key is: see sort/keys.mako
 * WIDE         whether there may be 2^31 keys or more
 * WG_SIZE      work-items of a group, a power of two
 * ITEM_KEYS    neighbours that an item looks at together
 * COUNTS       whether lengths are wanted
 * FIRST        whether it is wanted where values come first
 * INVERSE      whether it is wanted which value each key became
 * EQUAL_NAN    whether all NaN, or all NaT, are one key
 * PTX          whether the device takes inline PTX
 */
<%page args="ELEMENT, WIDE, WG_SIZE, ITEM_KEYS, COUNTS, FIRST, INVERSE, EQUAL_NAN, PTX"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
<%namespace name="warps" file="/common/warps.mako"/>\
<%namespace name="scan" file="/common/scan.mako"/>\
<%namespace name="slices" file="/common/slices.mako"/>\
<%namespace name="broadcast" file="/common/broadcast.mako"/>\
${keys.declare(ELEMENT)}\
${keys.distinct(ELEMENT, EQUAL_NAN)}\
${warps.declare(PTX=PTX)}\
${scan.declare(WG_SIZE=WG_SIZE, PTX=PTX)}\
${slices.declare(WIDE=WIDE, WG_SIZE=WG_SIZE)}\
#define WG_SIZE ${WG_SIZE}
#define ITEM_KEYS ${ITEM_KEYS}
#define TILE (WG_SIZE * ITEM_KEYS)

/* How many keys of the item's neighbours are heads; `here` are there. */
static inline uint heads_of(__global const ukey_t *keys, const index_t first, const uint here)
{
    uint heads = here && first == 0;
    if (first && here == ITEM_KEYS)
        for (uint j = 0; j < ITEM_KEYS; ++j)
            heads += DISTINCT(code(keys[first + j]), code(keys[first + j - 1]));
    else
        for (uint j = first == 0; j < here; ++j)
            heads += DISTINCT(code(keys[first + j]), code(keys[first + j - 1]));
    return heads;
}

static inline uint keys_here(const index_t first, const index_t end)
{
    return first < end ? (uint)LESSER(end - first, (index_t)ITEM_KEYS) : 0;
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void count_heads(__global const ukey_t *restrict keys,
                 __global uint *restrict table,
                 const index_t n,
                 const uint slices)
{
    __local index_t space[SPACE];
    const uint item = (uint)get_local_id(0), slice = (uint)get_group_id(0);
    const index_t end = slice_begin(n, slice + 1, slices, TILE);
    index_t heads = 0;
    for (index_t tile = slice_begin(n, slice, slices, TILE); tile < end; tile += TILE) {
        const index_t first = tile + item * ITEM_KEYS;
        heads += heads_of(keys, first, keys_here(first, end));
    }
    const index_t before = scan_index(heads, space);
    if (item == WG_SIZE - 1)
        table[slice] = (uint)(before + heads);
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void write_heads(__global const ukey_t *restrict keys,
                 __global const uint *restrict table,
% if FIRST or INVERSE:
                 __global const long *restrict order,
% endif
                 __global ukey_t *restrict values,
% if FIRST:
                 __global long *restrict first_places,
% endif
% if INVERSE:
                 __global long *restrict inverse,
% endif
% if COUNTS:
                 __global index_t *restrict starts,
% endif
                 __global long *restrict found,
                 const index_t n,
                 const uint slices)
{
    __local index_t space[SPACE];
    __local uint sums[SCAN_WORDS];
    __local uint total;
    const uint item = (uint)get_local_id(0), slice = (uint)get_group_id(0);
    const index_t end = slice_begin(n, slice + 1, slices, TILE);
    index_t done = sum_before(table, slice, space);
    for (index_t tile = slice_begin(n, slice, slices, TILE); tile < end; tile += TILE) {
        const index_t first = tile + item * ITEM_KEYS;
        const uint here = keys_here(first, end);
        const uint heads = heads_of(keys, first, here);
        const uint before = scan_group(heads, sums);
        ${broadcast.send("total", "before + heads", "WG_SIZE - 1")}
        index_t to = done + before;
        done += total;
        barrier(CLK_LOCAL_MEM_FENCE);
        ${"" if INVERSE else "if (heads)"}
            for (uint j = 0; j < here; ++j) {
                const index_t i = first + j;
                if (i == 0 || DISTINCT(code(keys[i]), code(keys[i - 1]))) {
                    values[to] = keys[i];
% if COUNTS:
                    starts[to] = i;
% endif
% if FIRST:
                    first_places[to] = order[i];
% endif
                    ++to;
                }
% if INVERSE:
                inverse[order[i]] = (long)to - 1;
% endif
            }
    }
    if (slice + 1 == slices && item == 0)
        found[0] = (long)done;
}
% if COUNTS:

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void write_counts(__global const index_t *restrict starts,
                  __global const long *restrict found,
                  __global long *restrict counts,
                  const index_t n)
{
    const index_t m = (index_t)found[0], each = (m + get_num_groups(0) - 1) / get_num_groups(0);
    const index_t begin = LESSER(each * get_group_id(0), m), end = LESSER(begin + each, m);
    for (index_t j = begin + get_local_id(0); j < end; j += WG_SIZE)
        counts[j] = (long)((j + 1 < m ? starts[j + 1] : n) - starts[j]);
}
% endif
