## Items of a group in warps of 32 neighbours, which NVIDIA's devices run together. Without inline PTX
## there is nothing here that a kernel could rely on but `warp` and `lane`.
##
##   WARP         items of a warp
##   lane()       an item's place in its warp
##   ballot(bit)  a word of the warp: for each item, whether its `bit` is not zero
##   warp_sync()  what items of a warp have written to local memory is there for the others
##   warp_sum(n)  the sum of `n` over the items of the warp up to this one
##
## Source: NVIDIA, "Parallel thread execution ISA" (vote.sync, shfl.sync, bar.warp.sync). The caller
## guarantees: all items of a warp call the last three. Cost: an instruction each, and five shuffles
## of warp_sum.
##
## PTX   whether the device takes inline PTX
<%def name="declare(PTX)">\
#define WARP 32

static inline uint lane(void)
{
    return (uint)get_local_id(0) & (WARP - 1);
}

static inline uint warp(void)
{
    return (uint)get_local_id(0) / WARP;
}

% if PTX:
static inline uint ballot(const uint bit)
{
    uint word;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                 : "=r"(word) : "r"(bit));
    return word;
}

static inline void warp_sync(void)
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* The sum of `value` over the items of the warp up to this one. */
static inline uint warp_sum(uint value)
{
    for (uint distance = 1; distance < WARP; distance *= 2) {
        uint other;
        asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, 0xffffffff;" : "=r"(other) : "r"(value), "r"(distance));
        if (lane() >= distance)
            value += other;
    }
    return value;
}
% endif
</%def>\
