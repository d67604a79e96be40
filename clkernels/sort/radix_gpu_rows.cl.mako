/*
 * Stable radix sort of rows that fit in a work-group, one launch: keys stay in registers, and go
 * through local memory once a digit. Digits that all keys of a row share are left out.
 *
 * Source: own; see radix_gpu_tile.mako.
 *
 * The host guarantees: 0 < n <= WG_SIZE * ITEM_KEYS; there is a group for each row.
 *
 * KEY_T, DESCENDING, VALUE_T, BITS   see keys.mako
 * INDICES      whether values are positions in the row, and keys are not wanted
 * WG_SIZE      work-items of a group, a multiple of 32, at least 2^DIGIT_BITS
 * ITEM_KEYS    keys of an item
 * DIGIT_BITS   bits of a digit
 * PTX          whether the device takes inline PTX
 */
<%page args="KEY_T, DESCENDING, VALUE_T, BITS, INDICES, WG_SIZE, ITEM_KEYS, DIGIT_BITS, PTX"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
<%include file="/prelude.cl.mako"/>\
<%include file="keys.mako" args="KEY_T=KEY_T, DESCENDING=DESCENDING, VALUE_T=VALUE_T, BITS=BITS"/>\
<%include file="radix_gpu_tile.mako" args="WG_SIZE=WG_SIZE, ITEM_KEYS=ITEM_KEYS, DIGIT_BITS=DIGIT_BITS, PTX=PTX"/>\
<%
    size = {"uchar": 1, "char": 1, "ushort": 2, "short": 2, "half": 2, "ulong": 8, "long": 8, "double": 8}.get(KEY_T, 4)
    value_size = {None: 0, "uchar": 1, "ushort": 2, "uint": 4, "ulong": 8, "ulong2": 16}[VALUE_T]
    rank_words = WG_SIZE // 32 * (1 << DIGIT_BITS) * (1 if PTX else 2)
    room = max(4 * rank_words, WG_SIZE * ITEM_KEYS * max(size, value_size))
%>\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void sort_rows(__global const ukey_t *restrict keys,
% if VALUE_T is not None and not INDICES:
               __global const value_t *restrict values,
% endif
% if not INDICES:
               __global ukey_t *restrict sorted,
% endif
% if VALUE_T is not None:
               __global ${"long" if INDICES else "value_t"} *restrict sorted_values,
% endif
               const uint n)
{
    __local ulong room[${-(-room // 8)}] __attribute__((aligned(16)));
    __local uint sums[SCAN_WORDS];
    __local uint differ[2];
    const uint item = (uint)get_local_id(0);
    const size_t at = get_group_id(0) * (size_t)n;
    ukey_t own[ITEM_KEYS];
    uint places[ITEM_KEYS];
% if VALUE_T is not None:
    value_t moved[ITEM_KEYS];
% endif
    if (item < 2)
        differ[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const ukey_t one = code(keys[at]);
    ulong differing = 0;
${registers.each("j", "ITEM_KEYS", PTX)} {
        const uint i = number_of(j);
        own[j] = i < n ? keys[at + i] : 0;
        differing |= i < n ? (ulong)(code(own[j]) ^ one) : 0;
% if INDICES:
        moved[j] = (value_t)i;
% elif VALUE_T is not None:
        if (i < n)
            moved[j] = values[at + i];
% endif
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
            ${registers.exchange("ukey_t", "exchange", "room", "own", "places", "number_of", "ITEM_KEYS", PTX)}\
% if VALUE_T is not None:
            ${registers.exchange("value_t", "exchanged", "room", "moved", "places", "number_of", "ITEM_KEYS", PTX)}\
% endif
        }
${registers.each("j", "ITEM_KEYS", PTX)} {
        const uint i = number_of(j);
        if (i < n) {
% if not INDICES:
            sorted[at + i] = own[j];
% endif
% if VALUE_T is not None:
            sorted_values[at + i] = ${"(long)" if INDICES else ""}moved[j];
% endif
        }
    }
}
