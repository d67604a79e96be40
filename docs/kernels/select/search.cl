/*
 * An example of clkernels/select/search.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       searchsorted n=100000 m=1000
 *     algorithm     binary-search
 *     configuration WG_SIZE=256 VALUES=1
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        search, (1024,) items in groups of (256,)
 */
/*
 * Where values would go among sorted keys: a binary search for each value.
 *
 *     keys     |------------- n -------------|
 *     look 1   |----- half -----|------------|     is the last key of the half before the value?
 *     look 2                    |-----|------|     then the search goes on behind it
 *
 * All searches take the same number of looks, so that an item makes VALUES of them at once: each
 * look waits for memory, and they wait together. Values of neighbours are neighbours.
 *
 * Keys are in the order of a sort: any NaN behind all numbers, -0.0 and 0.0 are equal. Source: own;
 * looks without branches after P.-V. Khuong, P. Morin, "Array layouts for comparison-based
 * searching", JEA 2017.
 *
 * With a sorter the keys are in any order, and it holds their places in order. It is a user's: a place
 * that is none is taken for the last one, so that nothing is read beyond the keys.
 *
 * The host guarantees: an item for every VALUES values, the last of which may be missing.
 *
 * ELEMENT   what a key is: see sort/keys.mako
 * RIGHT     whether values go behind equal keys
 * SORTER    whether there is a sorter
 * WIDE      whether there may be 2^31 keys or more
 * WG_SIZE   work-items of a group
 * VALUES    values of an item
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
typedef uint index_t;
#define WG_SIZE 256
#define VALUES 1
#define BEFORE(key, value) (code(key) < (value))
#define KEY(i) keys[i]

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void search(__global const ukey_t *restrict keys,
            __global const ukey_t *restrict values,
            __global long *restrict places,
            const index_t n,
            const ulong m)
{
    const ulong first = get_group_id(0) * (ulong)(WG_SIZE * VALUES) + get_local_id(0);
    index_t at[VALUES];
    ukey_t wanted[VALUES];
    for (uint j = 0; j < VALUES; ++j) {
        const ulong i = first + j * WG_SIZE;
        wanted[j] = code(values[i < m ? i : m - 1]);
        at[j] = 0;
    }
    for (index_t left = n; left > 1;) {
        const index_t half_ = left / 2;
        for (uint j = 0; j < VALUES; ++j)
            at[j] += BEFORE(KEY(at[j] + half_ - 1), wanted[j]) ? half_ : 0;
        left -= half_;
    }
    for (uint j = 0; j < VALUES; ++j) {
        const ulong i = first + j * WG_SIZE;
        if (i < m)
            places[i] = (long)(at[j] + (n && BEFORE(KEY(at[j]), wanted[j]) ? 1 : 0));
    }
}
