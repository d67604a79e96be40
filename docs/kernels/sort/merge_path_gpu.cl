/*
 * An example of clkernels/sort/merge_path_gpu.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       sort n=1000000
 *     algorithm     merge-path
 *     configuration WG_SIZE=256 ITEM_KEYS=17
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        sort_tiles, (58880,) items in groups of (256,)
 */
/*
 * Stable merge sort of rows by work-groups: the form for GPUs.
 *
 * sort_tiles    a group sorts a tile of a row, or several short rows, in registers and local memory
 * merge_tiles   a group merges what is under one tile of the result of two runs
 *
 * An item has ITEM_KEYS neighbours of a tile in registers. It sorts them by an odd-even transposition
 * network first; then items merge runs of 1, 2, 4, .. items in local memory, where each finds on its
 * diagonal what it has to take (common/merge_path.mako). Between runs of many tiles, groups find
 * their stretches in the same way, and items divide them in local memory:
 *
 *     run a    | . . a a a . . . |     run b    | . b b . . . |     of one group: TILE in all
 *                    \   \                         /  /
 *     local    | a  a  a | b  b |  -> diagonals, one an item -> ITEM_KEYS registers -> local -> result
 *
 * What is compared are codes (keys.mako). Where a key is more than its code, or values travel,
 * an element's slot goes with the code: its place in the tile, or in local memory. Keys and values
 * are fetched by it at the end of the launch, from memory that the cache has just seen.
 *
 * Source: O. Green, R. McColl, D. Bader, "GPU merge path: a GPU merging algorithm", ICS 2012; tiles
 * in registers after N. Satish et al., IPDPS 2009, and S. Baxter, "moderngpu", 2013.
 *
 * The host guarantees: n > 0; WG_SIZE is a power of two and ROW_ITEMS divides it; rows are no longer
 * than ROW_ITEMS * ITEM_KEYS where ROW_ITEMS < WG_SIZE; `source` and `target` do not overlap. Groups
 * are in dimension 0: of sort_tiles as many as cover all rows; of merge_tiles row after row.
 *
 * ELEMENT     what is sorted: see keys.mako. Positions in a row are in no array before sort_tiles
 * INDICES_OUT whether the target is the user's array of indices: positions as long, without keys
 * INDEX_T     unsigned type that counts the elements of a row
 * WG_SIZE     work-items in a work-group
 * ITEM_KEYS   keys of an item
 * ROW_ITEMS   items of a row in sort_tiles: a group has WG_SIZE / ROW_ITEMS rows, or a tile of one
 * PTX         whether the device takes inline PTX: its compiler unrolls what it is told to
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
/* The bits of a key of a code, of which all bits count. */
static inline ukey_t key_of(const ukey_t code)
{
    const ukey_t ordered = code;
    return ordered ^ ((ukey_t)1 << (KEY_BITS - 1));
}

typedef uint index_t;
#define ITEM_KEYS 17
#define TILE 4352
#define ROW_KEYS 4352
#define SAME(number) (number)
#define LAST_CODE ((ukey_t)~(ukey_t)0)

static inline index_t least_of_a(const index_t diagonal, const index_t b_count)
{
    return diagonal > b_count ? diagonal - b_count : 0;
}

static inline index_t most_of_a(const index_t diagonal, const index_t a_count)
{
    return diagonal < a_count ? diagonal : a_count;
}

/* How many of the first `diagonal` elements come from a; it is known to be from `low` to `high`. */
static inline uint rank_in_group(__local const ukey_t *a, __local const ukey_t *b,
                                 const uint diagonal, uint low, uint high)
{
    while (low < high) {
        const uint middle = low + (high - low) / 2;
        const bool before = SAME(b[diagonal - 1 - middle]) < SAME(a[middle]);
        high = before ? middle : high;
        low = before ? low : middle + 1;
    }
    return low;
}

/* Put into places[0] and places[1] how many of the first diagonal_0 and diagonal_1 elements come from
   a. Uniform: `a_count`, `b_count` and both diagonals. */
static inline void ranks_of_group(__global const ukey_t *a, const index_t a_count,
                                  __global const ukey_t *b, const index_t b_count,
                                  const index_t diagonal_0, const index_t diagonal_1,
                                  __local uint *found, index_t *places)
{
    const uint half_ = get_local_id(0) / 128, item = get_local_id(0) % 128;
    index_t low[2], high[2];
    low[0] = least_of_a(diagonal_0, b_count);
    low[1] = least_of_a(diagonal_1, b_count);
    high[0] = most_of_a(diagonal_0, a_count);
    high[1] = most_of_a(diagonal_1, a_count);
    const index_t diagonal = half_ ? diagonal_1 : diagonal_0;
    while (low[0] < high[0] || low[1] < high[1]) {
        if (item == 0)
            found[half_] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        /* Items try the ends of equal intervals, from the first on; all of them if they are few. */
        const index_t from = half_ ? low[1] : low[0], to = half_ ? high[1] : high[0];
        const index_t span = (to - from) / 128 + 1;
        const index_t end = from + span * item + (span - 1);
        if (end < to && !(code(b[diagonal - 1 - end]) < code(a[end])))
            atomic_max(&found[half_], item + 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < 2; ++k) {
            const index_t size = (high[k] - low[k]) / 128 + 1;
            const index_t next = low[k] + size * found[k];
            high[k] = next + size - 1 < high[k] ? next + size - 1 : high[k];
            low[k] = next;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    places[0] = low[0];
    places[1] = low[1];
}

/* Sort an item's codes. Neighbours change places only if they must, so that the sort is stable. */
static inline void sort_item(ukey_t *codes, ushort *slots)
{
    #pragma unroll
    for (uint round = 0; round < ITEM_KEYS; ++round) {
        #pragma unroll
        for (uint j = round & 1; j + 1 < ITEM_KEYS; j += 2) {
            const ukey_t one = codes[j], other = codes[j + 1];
            const bool swap = other < one;
            codes[j] = swap ? other : one;
            codes[j + 1] = swap ? one : other;
        }
    }
}

/* Put what items have in registers into local memory, in order. */
static inline void stage(const ukey_t *codes, const ushort *slots, __local ukey_t *staged,
                         __local ushort *staged_slots)
{
    const uint first = (uint)get_local_id(0) * ITEM_KEYS;
    barrier(CLK_LOCAL_MEM_FENCE); /* others may still read */
    #pragma unroll
    for (uint j = 0; j < ITEM_KEYS; ++j) {
        staged[first + j] = codes[j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void sort_tiles(__global const ukey_t *restrict source,
                __global ukey_t *restrict target,
                const index_t n,
                const ulong rows)
{
    __local ukey_t staged[TILE + 1];
    __local ushort staged_slots[1];
    const uint item = (uint)get_local_id(0);
    ukey_t codes[ITEM_KEYS];
    ushort slots[1];
    const ulong tiles = (n - 1) / ROW_KEYS + 1;
    const ulong first_row = get_group_id(0) / tiles;
    const index_t begin = (index_t)(get_group_id(0) % tiles) * ROW_KEYS;
    const ulong first = first_row * n + begin;
    const uint count = (uint)min((ulong)ROW_KEYS, (ulong)(n - begin)); /* in this tile of a row */
    const uint own_rows = (uint)min(1ul, rows - first_row);

    /* Load, coalesced; what a row does not have goes last. */
    for (uint i = item; i < TILE; i += 256) {
        const uint row = i / ROW_KEYS, place = i % ROW_KEYS;
        staged[i] = row < own_rows && place < count ? code(source[first + (ulong)row * n + place]) : LAST_CODE;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (uint j = 0; j < ITEM_KEYS; ++j) {
        codes[j] = staged[item * ITEM_KEYS + j];
    }
    sort_item(codes, slots);

    /* Merge runs of `width` items. */
    for (uint width = 1; width < 256; width *= 2) {
        stage(codes, slots, staged, staged_slots);
        const uint pair = (item & ~(2 * width - 1)) * ITEM_KEYS, keys = width * ITEM_KEYS;
        const uint diagonal = item * ITEM_KEYS - pair;
        const uint from_a = rank_in_group(staged + pair, staged + pair + keys, diagonal,
                                          diagonal > keys ? diagonal - keys : 0,
                                          LESSER(diagonal, keys));
        {
            uint a_ = pair + from_a, b_ = pair + keys + diagonal - from_a;
            const uint a_last = pair + keys, b_last = pair + 2 * keys;
            ukey_t left = staged[a_], right = staged[b_];
            #pragma unroll
            for (uint j = 0; j < ITEM_KEYS; ++j) {
                const bool from_b = a_ >= a_last || (b_ < b_last && right < left);
                codes[j] = from_b ? right : left;
                const uint next = from_b ? ++b_ : ++a_;
                const ukey_t one = staged[next];
                left = from_b ? left : one;
                right = from_b ? one : right;
            }
        }
    }
    stage(codes, slots, staged, staged_slots);

    /* Store, coalesced. */
    for (uint i = item; i < TILE; i += 256) {
        const uint row = i / ROW_KEYS, place = i % ROW_KEYS;
        const ulong at = first + (ulong)row * n;
        if (row < own_rows && place < count) {
            target[at + place] = key_of(staged[i]);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void merge_tiles(__global const ukey_t *restrict source,
                 __global ukey_t *restrict target,
                 const index_t n,
                 const uint width)
{
    __local ukey_t staged[TILE + 1];
    __local ushort staged_slots[1];
    __local uint found[2];
    const uint item = (uint)get_local_id(0);
    const ulong tiles = (n - 1) / TILE + 1;
    const ulong row = get_group_id(0) / tiles * n, tile = get_group_id(0) % tiles;
    ukey_t codes[ITEM_KEYS];
    ushort slots[1];

    /* Find the stretch of each run; `width` counts tiles. */
    const ulong pair = tile & ~(2ul * width - 1);
    const index_t begin = (index_t)(pair * TILE), diagonal = (index_t)((tile - pair) * TILE);
    const index_t a_count = (index_t)min((ulong)width * TILE, (ulong)(n - begin));
    const index_t b_count = (index_t)min((ulong)width * TILE, (ulong)(n - begin - a_count));
    __global const ukey_t *a = source + row + begin, *b = a + a_count;
    const uint count = (uint)min((ulong)TILE, (ulong)(a_count + b_count - diagonal));
    index_t places[2];
    ranks_of_group(a, a_count, b, b_count, diagonal, diagonal + count, found, places);
    const uint from_a = (uint)(places[1] - places[0]);
    const size_t a_at = row + begin + places[0];
    const size_t b_at = row + begin + a_count + (diagonal - places[0]) - from_a;

    /* Load both, one after the other. */
    for (uint i = item; i < TILE; i += 256)
        staged[i] = i < count ? code(source[(i < from_a ? a_at : b_at) + i]) : LAST_CODE;
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Merge in registers. What lies beyond the row goes last. */
    const uint own = item * ITEM_KEYS, from_b = TILE - from_a;
    const uint left_a = rank_in_group(staged, staged + from_a, own, own > from_b ? own - from_b : 0,
                                      LESSER(own, from_a));
    {
        uint a_ = left_a, b_ = from_a + own - left_a;
        const uint a_last = from_a, b_last = TILE;
        ukey_t left = staged[a_], right = staged[b_];
        #pragma unroll
        for (uint j = 0; j < ITEM_KEYS; ++j) {
            const bool from_b = a_ >= a_last || (b_ < b_last && right < left);
            codes[j] = from_b ? right : left;
            const uint next = from_b ? ++b_ : ++a_;
            const ukey_t one = staged[next];
            left = from_b ? left : one;
            right = from_b ? one : right;
        }
    }

    stage(codes, slots, staged, staged_slots);

    /* Store, coalesced. */
    for (uint i = item; i < count; i += 256) {
        const size_t at = row + begin + diagonal + i;
        target[at] = key_of(staged[i]);
    }
}
