/*
 * An example of clkernels/sort/radix_gpu.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       sort n=1000000
 *     algorithm     radix
 *     configuration FORM=scan WG_SIZE=256 ITEM_KEYS=20 DIGIT_BITS=8 LOOKS=4 MAX_POLLS=4096
 *     device        GPU (plain-gpu of tools/rendered_kernels.py)
 *     launch        histograms, (50176,) items in groups of (256,)
 */
/*
 * Stable radix sort of rows by work-groups, least significant digits first: the form for GPUs.
 *
 *     histograms        all digits of all keys are counted in one read
 *     scan_histograms   a row per group: where the keys of each digit begin; which digits all keys
 *                       share, so that their passes do nothing; and so between which arrays the
 *                       others move keys. With LOOK_BACK the last group of `histograms` does that
 *     scatter           a pass, by tiles: keys are ranked in the group, brought in order in local
 *                       memory, and written in runs: the keys of one value of the digit after those
 *                       of earlier tiles with the same value
 *
 * How many these are is found by looking back (LOOK_BACK, see common/lookback.mako), so that a pass
 * reads and writes each key once. Else every pass has two launches before, which assume nothing
 * about other groups:
 *
 *     count_tiles       a tile per group: how many of its keys have each value
 *     scan_tiles        a value of the digit per group: sums over the tiles before
 *
 * Source: A. Adinets, D. Merrill, "Onesweep: a faster least significant digit radix sort for GPUs",
 * 2022; the other form after D. Merrill, A. Grimshaw, "Revisiting sorting for GPGPU stream
 * architectures", 2010 (reduce-then-scan).
 *
 * The host guarantees: n > 0; `histogram` has RADIX words for each digit of a row (twice as many with
 * WIDE) and one more for each row, all zero, and one launch at a time has it; the other arrays
 * between launches have what sort/radix_gpu.py says; there is a group for each tile of each row, in
 * dimension 0; with LOOK_BACK, groups see words that others have written with volatile stores (PTX)
 * or atomic operations.
 *
 * ELEMENT      what is sorted: see keys.mako
 * WIDE         whether a row may have 2^30 keys or more
 * WG_SIZE      work-items of a group, a multiple of 32, at least 2^DIGIT_BITS
 * ITEM_KEYS    keys of an item, at least 2: with one, and so without loops, PoCL 3.0 lets values
 *              past the end through their guard
 * DIGIT_BITS   bits of a digit
 * DIGITS       digits of a key
 * LOOK_BACK    None where a pass is three launches; else
 *   looks        tiles that one looks back at together
 *   max_polls    looks in vain at a tile, after which one counts it oneself
 * COPIES       counts of each digit in `histograms`, which neighbours use in turns
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
#define ITEM_KEYS 20
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
#define DIGITS 4
#define COPIES 1
#define COUNTS (DIGITS * RADIX * 1) /* words of a row's histogram */
/* What a pass does, in a word of pass_flags; 0 where all keys share its digit. */
enum { ACTIVE = 1, FIRST = 2, LAST = 4, TO_SORTED = 8 };

typedef uint index_t;

/* A word that groups of the same launch have added to. */
#define COUNTED(i) atomic_or(&histogram[i], 0)

/* Find where the keys of each digit of a row begin, and which passes do what; all items of the group
   come `here`, or none. PoCL 3.0 takes barriers in a loop better than in a condition. */
static inline void scan_row(const size_t row, const index_t n, const bool here,
                            volatile __global uint *histogram,
                            __global index_t *restrict bases, __global uint *restrict pass_flags,
                            __local uint *space, __local uint *shared_by_all, __local ulong *sums)
{
    const uint item = (uint)get_local_id(0);
    if (item < DIGITS)
        shared_by_all[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 0; d < (here ? DIGITS : 0); ++d) {
        const size_t word = (row * DIGITS + d) * RADIX + item;
        index_t count = 0;
        if (item < RADIX) {
            count = COUNTED(word);
            histogram[word] = 0;
            if (count == n)
                shared_by_all[d] = 1;
        }
        const uint before = scan_group(count, space);
        if (item < RADIX)
            bases[word] = before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (here && item == 0) {
        uint left = 0;
        for (uint d = 0; d < DIGITS; ++d)
            left += !shared_by_all[d];
        /* Equal keys are copied by the first pass. */
        if (!left)
            shared_by_all[0] = 0, left = 1;
        uint first = FIRST;
        for (uint d = 0; d < DIGITS; ++d) {
            uint word = 0;
            if (!shared_by_all[d]) {
                word = ACTIVE | first | (left == 1 ? LAST : 0) | (left & 1 ? TO_SORTED : 0);
                first = 0;
                --left;
            }
            pass_flags[row * DIGITS + d] = word;
        }
    }
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void histograms(__global const ukey_t *restrict keys,
                volatile __global uint *histogram,
                const index_t n,
                const uint groups)
{
    __local uint counts[DIGITS * RADIX * COPIES];
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / groups;
    const uint group = (uint)get_group_id(0) % groups;
    for (uint i = item; i < DIGITS * RADIX * COPIES; i += WG_SIZE)
        counts[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    keys += row * n;
    /* Count all digits of the group's tiles. */
    volatile __local uint *mine = counts + item % COPIES;
    for (index_t begin = (index_t)group * TILE; begin < n; begin += (index_t)groups * TILE) {
        ukey_t codes[ITEM_KEYS];
        if (n - begin >= TILE) {
            for (uint j = 0; j < ITEM_KEYS; ++j)
                codes[j] = code(keys[begin + j * WG_SIZE + item]);
            for (uint j = 0; j < ITEM_KEYS; ++j) {
                const ukey_t one = codes[j];
                atomic_inc(&mine[(0 * RADIX + ((uint)(one >> 0) & (RADIX - 1))) * COPIES]);
                atomic_inc(&mine[(1 * RADIX + ((uint)(one >> 8) & (RADIX - 1))) * COPIES]);
                atomic_inc(&mine[(2 * RADIX + ((uint)(one >> 16) & (RADIX - 1))) * COPIES]);
                atomic_inc(&mine[(3 * RADIX + ((uint)(one >> 24) & (RADIX - 1))) * COPIES]);
            }
        } else
            for (uint j = 0; begin + j * WG_SIZE + item < n; ++j) {
                const ukey_t one = code(keys[begin + j * WG_SIZE + item]);
                atomic_inc(&mine[(0 * RADIX + ((uint)(one >> 0) & (RADIX - 1))) * COPIES]);
                atomic_inc(&mine[(1 * RADIX + ((uint)(one >> 8) & (RADIX - 1))) * COPIES]);
                atomic_inc(&mine[(2 * RADIX + ((uint)(one >> 16) & (RADIX - 1))) * COPIES]);
                atomic_inc(&mine[(3 * RADIX + ((uint)(one >> 24) & (RADIX - 1))) * COPIES]);
            }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    /* Add the group's counts to those of the row. */
    for (uint i = item; i < DIGITS * RADIX; i += WG_SIZE) {
        uint count = 0;
        for (uint c = 0; c < COPIES; ++c)
            count += counts[i * COPIES + c];
        if (count) {
            const size_t word = row * DIGITS * RADIX + i;
            atomic_add(&histogram[word], count);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void scan_histograms(volatile __global uint *histogram,
                     __global index_t *restrict bases,
                     __global uint *restrict pass_flags,
                     const index_t n)
{
    __local uint space[SCAN_WORDS];
    __local uint shared_by_all[DIGITS];
    __local ulong sums[RADIX];
    scan_row(get_group_id(0), n, true, histogram, bases, pass_flags, space, shared_by_all, sums);
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
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

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
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
        if (item == WG_SIZE - 1)
            total = before + count;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += total;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void scatter(__global const ukey_t *keys,
             __global ukey_t *sorted,
             __global ukey_t *spare,
             __global const uint *restrict pass_flags,
             __global const index_t *restrict table,
             const index_t n,
             const uint tiles,
             const uint pass)
{
    __local ulong room[2560] __attribute__((aligned(16)));
    __local uint sums[SCAN_WORDS];
    __local index_t offsets[RADIX];
    const uint item = (uint)get_local_id(0), shift = pass * DIGIT_BITS;
    const uint ticket = (uint)get_group_id(0);
    const size_t row = ticket / tiles;
    const uint tile = ticket % tiles, flags = pass_flags[row * DIGITS + pass];
    const index_t begin = (index_t)tile * TILE;
    const uint valid = n - begin < TILE ? (uint)(n - begin) : TILE;
    if (flags) {
        __global const ukey_t *source = (flags & FIRST ? keys : flags & TO_SORTED ? spare : sorted) + row * n;
        __global ukey_t *target = (flags & TO_SORTED ? sorted : spare) + row * n;

        /* Load the tile. */
        ukey_t own[ITEM_KEYS];
        uint places[ITEM_KEYS];
        for (uint j = 0; j < ITEM_KEYS; ++j)
            own[j] = number_of(j) < valid ? source[begin + number_of(j)] : 0;

        /* Count; what fills the last tile is no key of the last digit. */
        const uint total = count_keys(own, valid, shift, (__local uint *)room);
        const uint here = item == RADIX - 1 ? total - (TILE - valid) : total;

        /* Rank, and bring keys in order. */
        const uint before = scan_group(total, sums);
        place_keys(own, places, valid, shift, before, (__local uint *)room);
        __local ukey_t *exchange = (__local ukey_t *)room;
        for (uint j = 0; j < ITEM_KEYS; ++j)
            exchange[places[j]] = own[j];

        /* Find where the digit's keys go, less their places in the tile. */
        if (item < RADIX) {
            offsets[item] = table[(row * RADIX + item) * tiles + tile] - before;
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Store keys. */
        uint digits[ITEM_KEYS];
        for (uint k = 0; k < ITEM_KEYS; ++k) {
            const uint i = k * WG_SIZE + item;
            if (i < valid) {
                const ukey_t key = exchange[i];
                digits[k] = digit_of(key, shift);
                target[offsets[digits[k]] + i] = key;
            }
        }
    }
}
