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
 * SUB_GROUP    items of a sub-group where a tile is in registers, 0: the compiler chooses
 */
<%page args="ELEMENT, WG_SIZE, ITEM_KEYS, DIGIT_BITS, ROOM, PTX, SUB_GROUP"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="radix_gpu_tile" file="radix_gpu_tile.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
${keys.declare(ELEMENT)}\
${radix_gpu_tile.declare(WG_SIZE=WG_SIZE, ITEM_KEYS=ITEM_KEYS, DIGIT_BITS=DIGIT_BITS, PTX=PTX)}\
__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void sort_rows(__global const ukey_t *restrict keys,
% if ELEMENT.value and not ELEMENT.indices:
               __global const value_t *restrict values,
% endif
% if not ELEMENT.indices:
               __global ukey_t *restrict sorted,
% endif
% if ELEMENT.value:
               __global ${"long" if ELEMENT.indices else "value_t"} *restrict sorted_values,
% endif
               const uint n)
{
    __local ulong room[${-(-ROOM // 8)}] __attribute__((aligned(16)));
    __local uint sums[SCAN_WORDS];
    __local uint differ[2];
    const uint item = (uint)get_local_id(0);
    const size_t at = get_group_id(0) * (size_t)n;
    ukey_t own[ITEM_KEYS];
    uint places[ITEM_KEYS];
% if ELEMENT.value:
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
% if ELEMENT.indices:
        moved[j] = (value_t)i;
% elif ELEMENT.value:
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
% if ELEMENT.value:
            ${registers.exchange("value_t", "exchanged", "room", "moved", "places", "number_of", "ITEM_KEYS", PTX)}\
% endif
        }
${registers.each("j", "ITEM_KEYS", PTX)} {
        const uint i = number_of(j);
        if (i < n) {
% if not ELEMENT.indices:
            sorted[at + i] = own[j];
% endif
% if ELEMENT.value:
            sorted_values[at + i] = ${"(long)" if ELEMENT.indices else ""}moved[j];
% endif
        }
    }
}
