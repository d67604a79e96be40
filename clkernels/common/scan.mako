## Exclusive prefix sums over the items of a group.
##
##     item          0   1   2   3   4         the last item's result and its own value
##     value         3   1   0   2   5         are the sum of all: broadcast.mako tells it
##     scan_group    0   3   4   4   6
##
##   scan_group(value, space)   the sum of the values of the items before this one
##   add_up(wg_size)            the loop of the form without PTX, of any type (slices.mako)
##
## The caller guarantees: each item of the group calls it; `space` has SCAN_WORDS words of local
## memory, which may be used again after the next barrier. Cost: with inline PTX ten shuffles and two
## barriers, else log2 of WG_SIZE rounds, of two accesses to local memory and a barrier.
##
## With inline PTX the items of a warp add up by shuffles, and a warp adds up those of the warps.
## Else the sums of 1, 2, 4, .. items meet in local memory: W. D. Hillis, G. L. Steele, "Data parallel
## algorithms", CACM 1986. Needs warps.mako.
##
## WG_SIZE   items of a group; with inline PTX a multiple of 32 and at most 1024
## PTX       whether the device takes inline PTX
## Adds to `sum` what items before this one have there; `half_`, zero before, says which half of
## `space`, of twice the group's items, is written next.
<%def name="add_up(wg_size)">\
for (uint distance = 1; distance < ${wg_size}; distance *= 2) {
        space[half_ + item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item >= distance)
            sum += space[half_ + item - distance];
        half_ = ${wg_size} - half_;
    }
</%def>\
<%def name="declare(WG_SIZE, PTX)">\
% if PTX:
#define SCAN_WORDS 32

static inline uint scan_group(const uint value, __local uint *space)
{
    const uint sum = warp_sum(value);
    if (lane() == WARP - 1)
        space[warp()] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (warp() == 0) {
        const uint one = lane() < ${WG_SIZE // 32} ? space[lane()] : 0;
        space[lane()] = warp_sum(one) - one;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return space[warp()] + sum - value;
}
% else:
#define SCAN_WORDS ${2 * WG_SIZE}

static inline uint scan_group(const uint value, __local uint *space)
{
    const uint item = (uint)get_local_id(0);
    uint sum = value, half_ = 0;
    ${add_up(WG_SIZE)}\
    return sum - value;
}
% endif
</%def>\
