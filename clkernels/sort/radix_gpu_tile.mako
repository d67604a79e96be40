## A tile of keys in the registers of a group's items, and one digit of it: counts and places. Shared by
## radix_gpu.cl.mako, radix_gpu_rows.cl.mako and sample_sort.cl.mako.
##
##     count_keys(..)   how many keys of the tile have each value of the digit: item d knows that of d
##     place_keys(..)   where each key goes in the tile, with its group's equal digits in order
##
##     key j of an item   warp * WARP * ITEM_KEYS + j * WARP + lane    of the tile (`number_of`)
##     its place          keys of the tile with lower digits + those with the same one before it
##
## Where a tile has fewer keys than room, the rest counts as keys of the largest digit; they come last
## and stay there.
##
## Source: see radix_gpu.cl.mako. The caller guarantees: all items of a group call both functions, one
## after the other, with the same `space`; ukey_t and `code` are those of keys.mako.
##
## WG_SIZE, ITEM_KEYS, DIGIT_BITS, PTX   see radix_gpu.cl.mako
## SOME   whether tiles differ in size: all functions take `items`, how many keys an item has of this one
<%namespace name="warps" file="/common/warps.mako"/>\
<%namespace name="scan" file="/common/scan.mako"/>\
<%namespace name="rank" file="/common/rank.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
<%def name="declare(WG_SIZE, ITEM_KEYS, DIGIT_BITS, PTX, SOME=False)">\
<%
    keys_of_item = "items" if SOME else "ITEM_KEYS"
    taken, given = (", const uint items", ", items") if SOME else ("", "")

    def each_key():
        return registers.first("j", "items", "ITEM_KEYS", PTX) if SOME else registers.each("j", "ITEM_KEYS", PTX)
%>\
#define WG_SIZE ${WG_SIZE}
#define ITEM_KEYS ${ITEM_KEYS}
#define TILE (WG_SIZE * ITEM_KEYS)
#define DIGIT_BITS ${DIGIT_BITS}
#define WARPS (WG_SIZE / WARP)

${warps.declare(PTX=PTX)}\

${scan.declare(WG_SIZE=WG_SIZE, PTX=PTX)}\

${rank.declare(DIGIT_BITS=DIGIT_BITS, PTX=PTX)}\

static inline uint number_of(const uint j${taken})
{
    return warp() * (WARP * ${keys_of_item}) + j * WARP + lane();
}

static inline uint digit_of(const ukey_t key, const uint shift)
{
    return (uint)(code(key) >> shift) & (RADIX - 1);
}

/* Words of local memory in which digits are counted and ranked. */
#define RANK_WORDS (WARPS * RADIX${"" if PTX else " * 2"})

/* Count the digits of all keys, warp by warp, in `space`, which has RANK_WORDS. Returns, for items
   below RADIX, how many keys have the item's digit. */
static inline uint count_keys(const ukey_t *keys, const uint valid, const uint shift, __local uint *space${taken})
{
    const uint item = (uint)get_local_id(0);
    volatile __local uint *counts = space + warp() * RADIX;
    for (uint i = item; i < RANK_WORDS; i += WG_SIZE)
        space[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
${each_key()}
        atomic_inc(&counts[number_of(j${given}) < valid ? digit_of(keys[j], shift) : RADIX - 1]);
    barrier(CLK_LOCAL_MEM_FENCE);
    uint total = 0;
    if (item < RADIX)
        for (uint w = 0; w < WARPS; ++w)
            total += space[w * RADIX + item];
    return total;
}

/* Find the places of counted keys. `before` is, for items below RADIX, the number of keys with lower
   digits. */
static inline void place_keys(const ukey_t *keys, uint *places, const uint valid, const uint shift,
                              const uint before, __local uint *space${taken})
{
    const uint item = (uint)get_local_id(0);
    __local uint *starts = space + warp() * RADIX, *masks = starts + ${"0" if PTX else "WARPS * RADIX"};
    if (item < RADIX) {
        uint sum = before;
        for (uint w = 0; w < WARPS; ++w) {
            const uint count = space[w * RADIX + item];
            space[w * RADIX + item] = sum;
            sum += count;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
${each_key()}
        places[j] = rank_in_warp(number_of(j${given}) < valid ? digit_of(keys[j], shift) : RADIX - 1, starts, masks);
    barrier(CLK_LOCAL_MEM_FENCE); /* the room is that of the exchange, too */
}
</%def>\
