/*
 * An example of clkernels/select/unique.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       unique n=50000
 *     algorithm     radix
 *     configuration FORM=onesweep WG_SIZE=384 ITEM_KEYS=8 DIGIT_BITS=8 LOOKS=4 MAX_POLLS=4096
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        count_heads, (12544,) items in groups of (256,)
 */
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
 *     count_heads  a slice a group: how many heads it has
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
#define DISTINCT(a, b) ((a) != (b))
#define WARP 32

static inline uint lane(void)
{
    return (uint)get_local_id(0) & (WARP - 1);
}

static inline uint warp(void)
{
    return (uint)get_local_id(0) / WARP;
}

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
#define SCAN_WORDS 32

static inline uint scan_group(const uint value, __local uint *space)
{
    const uint sum = warp_sum(value);
    if (lane() == WARP - 1)
        space[warp()] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (warp() == 0) {
        const uint one = lane() < 8 ? space[lane()] : 0;
        space[lane()] = warp_sum(one) - one;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return space[warp()] + sum - value;
}
typedef uint index_t;
#define SPACE 512

static inline index_t slice_begin(const index_t count, const uint slice, const uint slices, const uint tile)
{
    const index_t tiles = count / tile + (count % tile != 0);
    const index_t each = tiles / slices + (tiles % slices != 0);
    const ulong begin = (ulong)each * tile * slice;
    return begin < count ? (index_t)begin : count;
}

static inline index_t scan_index(const index_t value, __local index_t *space)
{
    const uint item = (uint)get_local_id(0);
    index_t sum = value;
    uint half_ = 0;
    for (uint distance = 1; distance < 256; distance *= 2) {
        space[half_ + item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item >= distance)
            sum += space[half_ + item - distance];
        half_ = 256 - half_;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum - value;
}

static inline index_t sum_before(__global const uint *words, const uint slice, __local index_t *space)
{
    const uint item = (uint)get_local_id(0);
    index_t own = 0;
    for (uint first = 0; first < slice; first += 256) {
        const uint p = first + item;
        own += p < slice ? words[p] : 0;
    }
    const index_t before = scan_index(own, space);
    if (item == 255)
        space[0] = before + own;
    barrier(CLK_LOCAL_MEM_FENCE);
    const index_t sum = space[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}
#define WG_SIZE 256
#define ITEM_KEYS 4
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

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
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

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void write_heads(__global const ukey_t *restrict keys,
                 __global const uint *restrict table,
                 __global ukey_t *restrict values,
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
        if (item == WG_SIZE - 1)
            total = before + heads;
        barrier(CLK_LOCAL_MEM_FENCE);
        index_t to = done + before;
        done += total;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (heads)
            for (uint j = 0; j < here; ++j) {
                const index_t i = first + j;
                if (i == 0 || DISTINCT(code(keys[i]), code(keys[i - 1]))) {
                    values[to] = keys[i];
                    ++to;
                }
            }
    }
    if (slice + 1 == slices && item == 0)
        found[0] = (long)done;
}
