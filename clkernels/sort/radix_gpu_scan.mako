## Where the keys of a tile go, in two launches that assume nothing about other groups: see
## radix_gpu.cl.mako, of which all names in OpenCL C are.
##
##     count_tiles   a group per tile     table[row][value][tile] = its keys with this value of the digit
##     scan_tiles    a group per value    of these, sums over the tiles before, from where its keys begin
##
## Source: D. Merrill, A. Grimshaw, 2010, see there. The host guarantees: groups are in dimension 0, row
## after row; `table` has RADIX * tiles words a row.
##
## WG_SIZE   work-items of a group
<%namespace name="broadcast" file="/common/broadcast.mako"/>\
<%def name="declare(WG_SIZE)">\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void count_tiles(__global const ukey_t *keys,
                 __global const ukey_t *sorted,
                 __global const ukey_t *spare,
                 __global const uint *restrict pass_flags,
                 __global index_t *restrict table,
                 const index_t n,
                 const uint tiles,
                 const uint pass)
{
    __local uint counts[RADIX];
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / tiles;
    const uint tile = (uint)(get_group_id(0) % tiles);
    const uint flags = pass_flags[row * DIGITS + pass];
    __global const ukey_t *source = (flags & FIRST ? keys : flags & TO_SORTED ? spare : sorted) + row * n;
    if (item < RADIX)
        counts[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (flags)
        for (uint j = 0; j < ITEM_KEYS; ++j) {
            const index_t i = (index_t)tile * TILE + j * WG_SIZE + item;
            if (i < n)
                atomic_inc(&counts[digit_of(source[i], pass * DIGIT_BITS)]);
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (flags && item < RADIX)
        table[(row * RADIX + item) * tiles + tile] = counts[item];
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void scan_tiles(__global const index_t *restrict bases,
                __global const uint *restrict pass_flags,
                __global index_t *restrict table,
                const uint tiles,
                const uint pass)
{
    __local uint space[SCAN_WORDS];
    __local uint total;
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / RADIX;
    const uint digit = (uint)(get_group_id(0) % RADIX);
    const bool active = pass_flags[row * DIGITS + pass] != 0;
    index_t sum = active ? bases[(row * DIGITS + pass) * RADIX + digit] : 0;
    __global index_t *counts = table + (row * RADIX + digit) * tiles;
    for (uint begin = 0; begin < tiles; begin += WG_SIZE) {
        const uint tile = begin + item;
        const uint count = active && tile < tiles ? (uint)counts[tile] : 0;
        const uint before = scan_group(count, space);
        if (active && tile < tiles)
            counts[tile] = sum + before;
        ${broadcast.send("total", "before + count", "WG_SIZE - 1")}
        sum += total;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
</%def>\
