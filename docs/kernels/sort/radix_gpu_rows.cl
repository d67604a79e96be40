/*
 * An example of clkernels/sort/radix_gpu_rows.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       sort n=1000
 *     algorithm     radix
 *     configuration FORM=scan WG_SIZE=256 ITEM_KEYS=4 DIGIT_BITS=8 LOOKS=4 MAX_POLLS=4096
 *     device        GPU (plain-gpu of tools/rendered_kernels.py)
 *     launch        sort_rows, (256,) items in groups of (256,)
 */
/*
 * Stable radix sort of rows that fit in a work-group, one launch: keys stay in registers, and go
 * through local memory once a digit. Digits that all keys of a row share are left out.
 *
 * Source: own; see radix_gpu_tile.mako.
 *
 * The host guarantees: 0 < n <= WG_SIZE * ITEM_KEYS; there is a group for each row.
 *
 * ELEMENT      what is sorted: see keys.mako
 * WG_SIZE      work-items of a group, a multiple of 32, at least 2^DIGIT_BITS
 * ITEM_KEYS    keys of an item
 * DIGIT_BITS   bits of a digit
 * ROOM         bytes of local memory in which digits are ranked and keys and values exchanged
 * PTX          whether the device takes inline PTX
 */
/* `min` and `max` are calls of functions on PoCL 3.0, and loops with calls get no vectors. */
#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) > (b) ? (a) : (b))

typedef uint ukey_t;
#define KEY_BITS 32
#define CODE_BITS 32 /* of a code; all above are zero */

static inline ukey_t code(const ukey_t bits)
{
    const ukey_t result = bits ^ ((ukey_t)0x80000000U);
    return result;
}

typedef ukey_t elem_t;
#define KEY_OF(e) (e)
#define WG_SIZE 256
#define ITEM_KEYS 4
#define TILE (WG_SIZE * ITEM_KEYS)
#define DIGIT_BITS 8
#define WARPS (WG_SIZE / WARP)

#define WARP 32

static inline uint lane(void)
{
    return (uint)get_local_id(0) & (WARP - 1);
}

static inline uint warp(void)
{
    return (uint)get_local_id(0) / WARP;
}

#define SCAN_WORDS 512

static inline uint scan_group(const uint value, __local uint *space)
{
    const uint item = (uint)get_local_id(0);
    uint sum = value, half_ = 0;
    for (uint distance = 1; distance < 256; distance *= 2) {
        space[half_ + item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item >= distance)
            sum += space[half_ + item - distance];
        half_ = 256 - half_;
    }
    return sum - value;
}

#define RADIX 256

static inline uint rank_in_warp(const uint digit, __local uint *counts, __local uint *masks)
{
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
}

static inline uint number_of(const uint j)
{
    return warp() * (WARP * ITEM_KEYS) + j * WARP + lane();
}

static inline uint digit_of(const ukey_t key, const uint shift)
{
    return (uint)(code(key) >> shift) & (RADIX - 1);
}

/* Words of local memory in which digits are counted and ranked. */
#define RANK_WORDS (WARPS * RADIX * 2)

/* Count the digits of all keys, warp by warp, in `space`, which has RANK_WORDS. Returns, for items
   below RADIX, how many keys have the item's digit. */
static inline uint count_keys(const ukey_t *keys, const uint valid, const uint shift, __local uint *space)
{
    const uint item = (uint)get_local_id(0);
    volatile __local uint *counts = space + warp() * RADIX;
    for (uint i = item; i < RANK_WORDS; i += WG_SIZE)
        space[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint j = 0; j < ITEM_KEYS; ++j)
        atomic_inc(&counts[number_of(j) < valid ? digit_of(keys[j], shift) : RADIX - 1]);
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
                              const uint before, __local uint *space)
{
    const uint item = (uint)get_local_id(0);
    __local uint *starts = space + warp() * RADIX, *masks = starts + WARPS * RADIX;
    if (item < RADIX) {
        uint sum = before;
        for (uint w = 0; w < WARPS; ++w) {
            const uint count = space[w * RADIX + item];
            space[w * RADIX + item] = sum;
            sum += count;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint j = 0; j < ITEM_KEYS; ++j)
        places[j] = rank_in_warp(number_of(j) < valid ? digit_of(keys[j], shift) : RADIX - 1, starts, masks);
    barrier(CLK_LOCAL_MEM_FENCE); /* the room is that of the exchange, too */
}
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void sort_rows(__global const ukey_t *restrict keys,
               __global ukey_t *restrict sorted,
               const uint n)
{
    __local ulong room[2048] __attribute__((aligned(16)));
    __local uint sums[SCAN_WORDS];
    __local uint differ[2];
    const uint item = (uint)get_local_id(0);
    const size_t at = get_group_id(0) * (size_t)n;
    ukey_t own[ITEM_KEYS];
    uint places[ITEM_KEYS];
    if (item < 2)
        differ[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const ukey_t one = code(keys[at]);
    ulong differing = 0;
    for (uint j = 0; j < ITEM_KEYS; ++j) {
        const uint i = number_of(j);
        own[j] = i < n ? keys[at + i] : 0;
        differing |= i < n ? (ulong)(code(own[j]) ^ one) : 0;
    }
    if ((uint)differing)
        atomic_or(&differ[0], (uint)differing);
    if ((uint)(differing >> 32))
        atomic_or(&differ[1], (uint)(differing >> 32));
    barrier(CLK_LOCAL_MEM_FENCE);
    differing = (ulong)differ[1] << 32 | differ[0];
    for (uint shift = 0; shift < CODE_BITS; shift += DIGIT_BITS)
        if (differing >> shift & (RADIX - 1)) {
            const uint total = count_keys(own, n, shift, (__local uint *)room);
            const uint before = scan_group(total, sums);
            place_keys(own, places, n, shift, before, (__local uint *)room);
            __local ukey_t *exchange = (__local ukey_t *)room;
            for (uint j = 0; j < ITEM_KEYS; ++j)
                exchange[places[j]] = own[j];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint j = 0; j < ITEM_KEYS; ++j)
                own[j] = exchange[number_of(j)];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    for (uint j = 0; j < ITEM_KEYS; ++j) {
        const uint i = number_of(j);
        if (i < n) {
            sorted[at + i] = own[j];
        }
    }
}
