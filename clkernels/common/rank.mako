## Ranks of digits in a group: how many equal digits come before one.
##
## Keys lie in the registers of items in runs of a warp: key j of an item is number
## warp * 32 * ITEM_KEYS + j * 32 + lane of its tile, so that memory is read in whole lines.
##
##   rank_in_warp(digit, counts, masks)   for j = 0, 1, ..: the rank of this item's digit among those of
##                                        its warp so far, of which `counts` has the numbers: RADIX
##                                        words a warp, zero at first
##
## With inline PTX, eight ballots say which items of a warp have the same digit. Else each sets its
## bit in a word of local memory that the digit has: RADIX words a warp, zero at first and in the end;
## all items of a group wait for each other then. Needs warps.mako.
##
## Source: the first is how A. Adinets, D. Merrill, "Onesweep", 2022, rank ("warp-level multi-split",
## S. Ashkiani et al., "GPU multisplit", PPoPP 2016); the second is own. The caller guarantees: all
## items of a group (with inline PTX: of a warp) call it, with digits below RADIX. Cost of a key with
## inline PTX: DIGIT_BITS ballots, a read of local memory and a write per value; else four accesses
## and three barriers.
##
## DIGIT_BITS   bits of a digit
## PTX          whether the device takes inline PTX
<%def name="declare(DIGIT_BITS, PTX)">\
#define RADIX ${1 << DIGIT_BITS}

static inline uint rank_in_warp(const uint digit, __local uint *counts, __local uint *masks)
{
% if PTX:
    uint peers = 0xffffffff;
% for b in range(DIGIT_BITS):
    {
        const uint votes = ballot(digit & ${1 << b});
        peers &= digit & ${1 << b} ? votes : ~votes;
    }
% endfor
    const uint before = popcount(peers & ((1u << lane()) - 1));
    const uint rank = counts[digit] + before;
    warp_sync();
    if (!before)
        counts[digit] = rank + popcount(peers);
    warp_sync();
    return rank;
% else:
    atomic_or(&masks[digit], 1u << lane());
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint peers = masks[digit];
    const uint before = popcount(peers & ((1u << lane()) - 1));
    const uint rank = counts[digit] + before;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!before) {
        counts[digit] = rank + popcount(peers);
        masks[digit] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return rank;
% endif
}
</%def>\
