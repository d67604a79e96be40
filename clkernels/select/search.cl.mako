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
<%page args="ELEMENT, RIGHT, SORTER, WIDE, WG_SIZE, VALUES"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
${keys.declare(ELEMENT)}\
typedef ${"ulong" if WIDE else "uint"} index_t;
#define WG_SIZE ${WG_SIZE}
#define VALUES ${VALUES}
#define BEFORE(key, value) (code(key) ${"<=" if RIGHT else "<"} (value))
% if SORTER:
#define KEY(i) keys[at_most(sorter[i], n - 1)]

static inline index_t at_most(const long place, const index_t last)
{
    return (ulong)place < last ? (index_t)place : last;
}
% else:
#define KEY(i) keys[i]
% endif

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void search(__global const ukey_t *restrict keys,
            __global const ukey_t *restrict values,
% if SORTER:
            __global const long *restrict sorter,
% endif
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
