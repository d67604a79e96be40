/*
 * An example of clkernels/sort/odd_even_merge.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       sort n=1000000
 *     algorithm     odd-even-merge
 *     configuration WG_SIZE=512 TILE=2048 WORK_PER_ITEM=4 BLOCKED=True NARROW=False
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        sort_tile, (250368,) items in groups of (512,)
 */
/*
 * Stable merge sort of rows by odd-even merging with binary search.
 *
 * Blocks of `width` elements are sorted; one pass merges each even block with
 * the odd block to its right. An element needs no other thread to find its
 * place: it keeps its rank inside its own block and adds the number of
 * elements of the sibling block that go before it.
 *
 *        even block (sorted)        odd block (sorted)
 *      | 1   4   4   9         |  2   4   7   8         |   width = 4
 *        |                        |
 *        rank 0 + strictly        rank 0 + not after
 *        before in odd: 0         in even: 1
 *        v                        v
 *      | 1   2   4   4   4   7   8   9                  |   width = 8
 *
 * The even block counts strictly smaller elements and the odd block counts
 * smaller or equal ones, so no two elements get the same place and equal keys
 * keep their order. Source: N. Satish, M. Harris, M. Garland, "Designing
 * efficient sorting algorithms for manycore GPUs", IPDPS 2009, section V
 * (merging by ranks); the passes ping-pong between two buffers.
 *
 * sort_tile     first passes, inside one work-group: TILE elements in local memory
 * merge_pass    one pass over global memory
 *
 * An item owns elements of its work-group's span either a work-group apart, and
 * searches for the place of each, or one after the other (BLOCKED). A BLOCKED
 * item searches once a pair of blocks, for where its first output comes from,
 * and merges from there; where it owns the whole pair it need not search at all.
 * In the other form, the places of the first and the last element of the span
 * bound all others (NARROW).
 *
 * The host guarantees: n > 0; as many work-groups as cover a row, row after row, in
 * dimension 0, as others may be short; `width` is a power of two, at least TILE in
 * merge_pass; `source` and `target` do not overlap.
 *
 * ELEMENT        what is sorted: see keys.mako. Keys are compared as they are; only times in ascending
 *                order as unsigned numbers above NaT
 * POSITIONS_IN   whether values are positions that no array holds yet
 * INDICES_OUT    whether values in the target are long
 * INDEX_T        unsigned type that counts the elements of a row
 * WG_SIZE        work-items in a work-group
 * TILE           elements sorted in local memory, a power of two; 0: no sort_tile
 * WORK_PER_ITEM  elements an item owns in merge_pass
 * BLOCKED        whether an item's elements are consecutive
 * NARROW         whether merge_pass bounds the searches of a work-group first
 */
typedef int key_t;
typedef uint index_t;

/* Whether key a goes before key b. */
static inline bool before(const key_t a, const key_t b)
{
    return a < b;
}

/*
 * Count how many of the first `rank` elements of the merged blocks a and b come from a.
 * Source: C. Siebert, J. L. Traeff, "Perfectly load-balanced, stable,
 * synchronization-free parallel merge", 2013 (co-ranks).
 */
static inline index_t corank_local(__local const key_t *a, const index_t a_length,
                                   __local const key_t *b, const index_t b_length,
                                   const index_t rank)
{
    index_t low = max(rank, b_length) - b_length;
    index_t high = min(rank, a_length);
    while (low < high) {
        const index_t middle = low + (high - low) / 2;
        if (before(b[rank - 1 - middle], a[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

__kernel __attribute__((reqd_work_group_size(512, 1, 1)))
void sort_tile(__global const key_t *restrict source,
               __global key_t *restrict target,
               const index_t n)
{
    __local key_t keys[2 * 2048];
    const index_t groups = (n - 1) / 2048 + 1;
    const index_t start = (index_t)(get_group_id(0) % groups) * 2048;
    const ulong row = (ulong)(get_group_id(0) / groups) * n;
    const index_t count = min((index_t)2048, n - start);

    /* Load the tile, coalesced. */
    for (index_t i = get_local_id(0); i < count; i += 512) {
        keys[i] = source[row + start + i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const index_t begin = min((index_t)get_local_id(0) * 4, count);
    const index_t end = min(begin + 4, count);

    /* Merge pairs of blocks; the halves of the local arrays take turns. */
    index_t from = 0;
    for (index_t width = 1; width < 2048; width *= 2) {
        const index_t to = 2048 - from;
        for (index_t pair = begin & ~(2 * width - 1); pair < end; pair += 2 * width) {
            const index_t first_output = max(begin, pair);
            const index_t last_output = min(end, pair + 2 * width);
            const index_t b_start = min(pair + width, count);
            const index_t a_length = b_start - pair;
            const index_t b_length = min(width, count - b_start);
            index_t a = corank_local((keys + from) + pair, a_length, (keys + from) + b_start, b_length,
                                     first_output - pair);
            index_t b = b_start + (first_output - pair - a);
            const index_t a_end = pair + a_length;
            const index_t b_end = b_start + b_length;
            a += pair;
            index_t output = first_output;
            for (; output < last_output && a < a_end && b < b_end; ++output) {
                const key_t left = (keys + from)[a];
                const key_t right = (keys + from)[b];
                const bool take_right = before(right, left);
                (keys + to)[output] = take_right ? right : left;
                b += take_right;
                a += !take_right;
            }
            for (; output < last_output; ++output) {
                const index_t rest = a < a_end ? a++ : b++;
                (keys + to)[output] = (keys + from)[rest];
            }
        }

        barrier(CLK_LOCAL_MEM_FENCE);
        from = to;
    }

    /* Store the sorted tile. */
    for (index_t i = get_local_id(0); i < count; i += 512) {
        target[row + start + i] = keys[from + i];
    }
}

/*
 * Count how many of the first `rank` elements of the merged blocks a and b come from a.
 * Source: C. Siebert, J. L. Traeff, "Perfectly load-balanced, stable,
 * synchronization-free parallel merge", 2013 (co-ranks).
 */
static inline index_t corank_global(__global const key_t *a, const index_t a_length,
                                    __global const key_t *b, const index_t b_length,
                                    const index_t rank)
{
    index_t low = max(rank, b_length) - b_length;
    index_t high = min(rank, a_length);
    while (low < high) {
        const index_t middle = low + (high - low) / 2;
        if (before(b[rank - 1 - middle], a[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

__kernel __attribute__((reqd_work_group_size(512, 1, 1)))
void merge_pass(__global const key_t *restrict source,
                __global key_t *restrict target,
                const index_t n,
                const index_t width)
{
    const index_t groups = (n - 1) / 2048 + 1;
    const ulong row = (ulong)(get_group_id(0) / groups) * n;
    __global const key_t *keys = source + row;
    const index_t first = (index_t)(get_group_id(0) % groups) * 2048;
    const index_t last = min(first + 2048, n);
    const index_t begin = min(first + (index_t)get_local_id(0) * 4, last);
    const index_t end = min(begin + 4, last);
    for (index_t pair = begin & ~(2 * width - 1); pair < end; pair += 2 * width) {
        const index_t first_output = max(begin, pair);
        const index_t last_output = min(end, pair + 2 * width);
        const index_t b_start = min(pair + width, n);
        const index_t a_length = b_start - pair;
        const index_t b_length = min(width, n - b_start);
        index_t a = corank_global(keys + pair, a_length, keys + b_start, b_length,
                                  first_output - pair);
        index_t b = b_start + (first_output - pair - a);
        const index_t a_end = pair + a_length;
        const index_t b_end = b_start + b_length;
        a += pair;
        index_t output = first_output;
        for (; output < last_output && a < a_end && b < b_end; ++output) {
            const key_t left = keys[a];
            const key_t right = keys[b];
            const bool take_right = before(right, left);
            (target + row)[output] = take_right ? right : left;
            b += take_right;
            a += !take_right;
        }
        for (; output < last_output; ++output) {
            const index_t rest = a < a_end ? a++ : b++;
            (target + row)[output] = keys[rest];
        }
    }
}
