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
 * With STEP, another launch has put the codes of every STEP-th key beside each other: looks of most
 * searches, which would be far apart, are near each other there. Guides are of these `entries` then, and the
 * search ends among STEP keys:
 *
 *     keys     |. . . .|. . . .|. . . .|. .|
 *     entries        e       e       e            the last key of each whole step
 *
 * Keys are in the order of a sort: any NaN behind all numbers, -0.0 and 0.0 are equal. Source: own;
 * looks without branches after P.-V. Khuong, P. Morin, "Array layouts for comparison-based
 * searching", JEA 2017.
 *
 * With a sorter the keys are in any order, and it holds their places in order. It is a user's: a place
 * that is none is taken for the last one, so that nothing is read beyond the keys.
 *
 * The host guarantees: an item for every VALUES values, the last of which may be missing, or with TOP
 * any number of groups; 0 < block <= `length`, which is n, or with STEP n / STEP, and no more than
 * TOP whole blocks of `length`; an item for each entry.
 *
 * ELEMENT   what a key is: see sort/keys.mako
 * RIGHT     whether values go behind equal keys
 * SORTER    whether there is a sorter
 * WIDE      whether there may be 2^31 keys or more
 * WG_SIZE   work-items of a group
 * VALUES    values that an item searches for at once
 * TOP       keys in local memory, or 0
 * STEP      keys for each entry, or 0: there are none; not without TOP
 */
<%page args="ELEMENT, RIGHT, SORTER, WIDE, WG_SIZE, VALUES, TOP, STEP"/>\
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

    def is_before_entry(i):
        return f"IS_BEFORE(entries[{i}], wanted[j])"
%>\
## Go on from as many parts as are before each value, but one, to the part where the value goes: all keys
## of earlier parts are before it. What is left behind whole parts may be less than one.
<%def name="enter(looked_at, part, length)">\
for (uint j = 0; j < VALUES; ++j) {
            at[j] += ${looked_at("at[j]")};
            at[j] = LESSER(at[j] * ${part}, ${length} - ${part});
        }\
</%def>\
% if STEP:
#define STEP ${STEP}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void collect(__global const ukey_t *restrict keys,
% if SORTER:
             __global const long *restrict sorter,
% endif
             __global ukey_t *restrict entries,
             const index_t n)
{
    const index_t i = (index_t)get_global_id(0);
    if (i < n / STEP)
        entries[i] = code(KEY((i + 1) * STEP - 1));
}

% endif
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void search(__global const ukey_t *restrict keys,
            __global const ukey_t *restrict values,
% if SORTER:
            __global const long *restrict sorter,
% endif
% if STEP:
            __global const ukey_t *restrict entries,
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
    const index_t length = ${"n / STEP" if STEP else "n"}, blocks = length / block;
    for (uint g = (uint)get_local_id(0); g < blocks; g += WG_SIZE)
        guides[g] = ${"entries[(g + 1) * block - 1]" if STEP else "code(KEY((g + 1) * block - 1))"};
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
        ${enter(is_before_guide, "block", "length")}
% if STEP:
        ${narrow(is_before_entry, "block")}
        ${enter(is_before_entry, "STEP", "n")}
        ${narrow(is_before_key, "STEP")}
% else:
        ${narrow(is_before_key, "block")}
% endif
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
