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
 * With TOP, groups keep every `block`-th key in local memory, and begin there; so each makes many
 * searches, and there are no more groups than the device runs at once:
 *
 *     keys     |.......|.......|.......|...|      the last key of each whole block is a guide
 *     guides           g       g       g          as many as are before the value are blocks before it
 *
 * Keys are in the order of a sort: any NaN behind all numbers, -0.0 and 0.0 are equal. Source: own;
 * looks without branches after P.-V. Khuong, P. Morin, "Array layouts for comparison-based
 * searching", JEA 2017.
 *
 * With a sorter the keys are in any order, and it holds their places in order. It is a user's: a place
 * that is none is taken for the last one, so that nothing is read beyond the keys.
 *
 * The host guarantees: an item for every VALUES values, the last of which may be missing, or with TOP
 * any number of groups; 0 < block <= n, and no more than TOP whole blocks.
 *
 * ELEMENT   what a key is: see sort/keys.mako
 * RIGHT     whether values go behind equal keys
 * SORTER    whether there is a sorter
 * WIDE      whether there may be 2^31 keys or more
 * WG_SIZE   work-items of a group
 * VALUES    values that an item searches for at once
 * TOP       keys in local memory, or 0
 */
<%page args="ELEMENT, RIGHT, SORTER, WIDE, WG_SIZE, VALUES, TOP"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
${keys.declare(ELEMENT)}\
typedef ${"ulong" if WIDE else "uint"} index_t;
#define WG_SIZE ${WG_SIZE}
#define VALUES ${VALUES}
#define TOP ${TOP}
#define IS_BEFORE(code, value) ((code) ${"<=" if RIGHT else "<"} (value))
#define BEFORE(key, value) IS_BEFORE(code(key), value)
% if SORTER:
#define KEY(i) keys[at_most(sorter[i], n - 1)]

static inline index_t at_most(const long place, const index_t last)
{
    return (ulong)place < last ? (index_t)place : last;
}
% else:
#define KEY(i) keys[i]
% endif

/* Go on by as many as are before each value of `left` at `start` + .. in order, but at most left - 1. */
<%def name="narrow(looked_at, left)">\
for (index_t left = ${left}; left > 1;) {
            const index_t half_ = left / 2;
            for (uint j = 0; j < VALUES; ++j)
                at[j] += ${looked_at("at[j] + half_ - 1")} ? half_ : 0;
            left -= half_;
        }\
</%def>\
<%
    def is_before_key(i):
        return f"BEFORE(KEY({i}), wanted[j])"

    def is_before_guide(i):
        return f"IS_BEFORE(guides[{i}], wanted[j])"
%>\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void search(__global const ukey_t *restrict keys,
            __global const ukey_t *restrict values,
% if SORTER:
            __global const long *restrict sorter,
% endif
            __global long *restrict places,
            const index_t n,
% if TOP:
            const index_t block,
% endif
            const ulong m)
{
% if TOP:
    __local ukey_t guides[TOP];
    const index_t blocks = n / block;
    for (uint g = (uint)get_local_id(0); g < blocks; g += WG_SIZE)
        guides[g] = code(KEY((g + 1) * block - 1));
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
    ulong begin = get_group_id(0) * (ulong)(WG_SIZE * VALUES);
% if TOP:
    for (; begin < m; begin += get_num_groups(0) * (ulong)(WG_SIZE * VALUES))
% endif
    {
        const ulong first = begin + get_local_id(0);
        index_t at[VALUES];
        ukey_t wanted[VALUES];
        for (uint j = 0; j < VALUES; ++j) {
            const ulong i = first + j * WG_SIZE;
            wanted[j] = code(values[LESSER(i, m - 1)]);
            at[j] = 0;
        }
% if TOP:
        ${narrow(is_before_guide, "blocks")}
        /* All keys of earlier blocks are before the value; the last keys may be less than a block. */
        for (uint j = 0; j < VALUES; ++j) {
            at[j] += ${is_before_guide("at[j]")};
            at[j] = LESSER(at[j] * block, n - block);
        }
        ${narrow(is_before_key, "block")}
% else:
        ${narrow(is_before_key, "n")}
% endif
        for (uint j = 0; j < VALUES; ++j) {
            const ulong i = first + j * WG_SIZE;
            if (i < m)
                places[i] = (long)(at[j] + (n && ${is_before_key("at[j]")} ? 1 : 0));
        }
    }
}
