## Sums over the items of a group, as in prefix sums.
##
## scan_group(value, space) returns the sum of the values of the items before this one. Each item of
## the group calls it; `space` has SCAN_WORDS words of local memory, which may be used again after
## the next barrier.
##
## With inline PTX the items of a warp add up by shuffles, and a warp adds up those of the warps.
## Else the sums of 1, 2, 4, .. items meet in local memory: W. D. Hillis, G. L. Steele, "Data parallel
## algorithms", CACM 1986. Needs warps.mako.
##
## WG_SIZE   items of a group, a multiple of 32 and at most 1024 with inline PTX
## PTX       whether the device takes inline PTX
<%page args="WG_SIZE, PTX"/>\
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
    for (uint step = 1; step < ${WG_SIZE}; step *= 2) {
        space[half_ + item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item >= step)
            sum += space[half_ + item - step];
        half_ = ${WG_SIZE} - half_;
    }
    return sum - value;
}
% endif
