## One pass over one digit: see radix_gpu.cl.mako, of which all names in OpenCL C are. A group moves a tile:
##
##     load        keys to registers, in runs of a warp          (radix_gpu_tile.mako)
##     count       its keys of each digit; with LOOK_BACK announces these numbers
##     rank        where each key goes in the tile, and puts it there in local memory: digits in order
##     offset      where each digit's keys go in the row: with LOOK_BACK what earlier tiles have
##                 announced (common/lookback.mako), else what scan_tiles has found
##     store       keys of a digit are neighbours now, and are written as such; values likewise
##
##     tile        2 0 1 0 2 | in order   0 0 1 2 2 | row   ..0 0.. ..1.. ..2 2..
##     place i     0 1 2 3 4 |            0 1 2 3 4 | offsets[digit] + i
##
##     offsets[d]  where keys with d begin in the row (bases) + those of earlier tiles (look-back)
##                 - where they begin in this tile
##
## Passes take turns between two arrays, so that the last one ends in the user's: `pass_flags` says of
## each whether it does anything, is the FIRST or LAST that does, and where it goes (TO_SORTED). Items
## 0 to RADIX - 1 each have to do with one value of the digit.
##
## With TOP there is `scatter_again`, too: the passes over all digits, for rows that are UNFINISHED. As they
## mostly do nothing, they have few groups, which take tiles until none is left.
##
## ELEMENT, LOOK_BACK, TOP, WG_SIZE, ROOM, PTX, SUB_GROUP   see radix_gpu.cl.mako
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="lookback" file="/common/lookback.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
<%def name="declare(ELEMENT, LOOK_BACK, TOP, WG_SIZE, ROOM, PTX, SUB_GROUP)">\
% if LOOK_BACK:
/* Count the keys of a tile that have a digit: what it would have announced. */
static uint count_tile(__global const ukey_t *source, const index_t n, const uint tile, const uint digit,
                       const uint shift)
{
    const index_t begin = (index_t)tile * TILE, end = n - begin < TILE ? n : begin + TILE;
    uint count = 0;
    for (index_t i = begin; i < end; ++i)
        count += digit_of(source[i], shift) == digit;
    return count;
}

% endif
% for again in ((False, True) if TOP else (False,)):
__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void ${"scatter_again" if again else "scatter"}(__global const ukey_t *keys,
            __global ukey_t *sorted,
            __global ukey_t *spare,
% if ELEMENT.value:
% if not ELEMENT.indices:
            __global const value_t *values,
% endif
            __global out_value_t *sorted_values,
            __global value_t *spare_values,
% if ELEMENT.indices:
            __global value_t *middle_values,
% endif
% endif
            __global const uint *restrict pass_flags,
% if LOOK_BACK:
            __global const index_t *restrict bases,
            volatile __global status_t *status,
            volatile __global uint *tickets,
% else:
            __global const index_t *restrict table,
% endif
            const index_t n,
            const uint tiles,
            const uint pass${"," if again else ")"}
% if again:
            const uint rows)
% endif
{
    __local ulong room[${-(-ROOM // 8)}] __attribute__((aligned(16)));
    __local uint sums[SCAN_WORDS];
    __local index_t offsets[RADIX];
    const uint item = (uint)get_local_id(0)${"" if TOP else ", shift = pass * DIGIT_BITS"};
% if LOOK_BACK:
    __local uint taken;
% endif
% if TOP and not again:
    if (get_num_groups(0) == tiles && !pass_flags[pass]) { /* a single row, which does not have this pass */
        if (item < RADIX)
            status[((~pass & 1) * tiles + get_group_id(0)) * RADIX + item] = 0;
        return;
    }
% endif
% if again:
    if (!pass_flags[rows * ROW_FLAGS])
        return;
    for (size_t turn = 0; turn < (size_t)rows * tiles; turn += get_num_groups(0)) {
    barrier(CLK_LOCAL_MEM_FENCE); /* all know the last ticket */
% endif
% if LOOK_BACK:
    const uint ticket = take_ticket(tickets + pass, &taken);
% if not again:
    const size_t rows = get_num_groups(0) / tiles;
% endif
% else:
    const uint ticket = (uint)get_group_id(0);
% endif
% if again:
    const bool there = ticket < (size_t)rows * tiles;
    const size_t row = there ? ticket / tiles : 0;
% else:
    const size_t row = ticket / tiles;
% endif
% if TOP:
    __global const uint *words = pass_flags + row * ROW_FLAGS;
    const uint tile = ticket % tiles;
    const uint flags = ${"there && words[PASSES] & UNFINISHED ? words[pass] : 0" if again else "words[pass]"};
    const uint digit = flags >> DIGIT_AT, shift = digit * DIGIT_BITS;
% else:
    const uint tile = ticket % tiles, flags = pass_flags[row * DIGITS + pass];
% endif
    const index_t begin = (index_t)tile * TILE;
    const uint valid = n - begin < TILE ? (uint)(n - begin) : TILE;
% if LOOK_BACK:
    /* Two passes take turns with two halves of `status`: this one clears that of the next. */
    volatile __global status_t *mine = status + ((pass & 1) * rows * tiles + row * tiles) * RADIX;
    volatile __global status_t *next = status + ((~pass & 1) * rows * tiles + row * tiles) * RADIX;
    if (${"there && " if again else ""}item < RADIX)
        next[(size_t)tile * RADIX + item] = 0;
% endif
    if (flags) {
        __global const ukey_t *source = (flags & FIRST ? keys : flags & TO_SORTED ? spare : sorted) + row * n;
        __global ukey_t *target = (flags & TO_SORTED ? sorted : spare) + row * n;

        /* Load the tile. */
        ukey_t own[ITEM_KEYS];
        uint places[ITEM_KEYS];
${registers.each("j", "ITEM_KEYS", PTX)}
            own[j] = number_of(j) < valid ? source[begin + number_of(j)] : 0;

        /* Count; what fills the last tile is no key of the last digit. */
        const uint total = count_keys(own, valid, shift, (__local uint *)room);
        const uint here = item == RADIX - 1 ? total - (TILE - valid) : total;
% if LOOK_BACK:
        if (item < RADIX) {
            if (tile == 0)
                announce_all(&mine[item], here);
            else
                announce(&mine[(size_t)tile * RADIX + item], here);
        }
% endif

        /* Rank, and bring keys in order. */
        const uint before = scan_group(total, sums);
        place_keys(own, places, valid, shift, before, (__local uint *)room);
        __local ukey_t *exchange = (__local ukey_t *)room;
        ${registers.write("exchange", "places", "own", "ITEM_KEYS", PTX)}\
% if ELEMENT.value:

        /* Load values, which come from memory while this looks back. */
        value_t moved[ITEM_KEYS];
${registers.each("j", "ITEM_KEYS", PTX)} {
            const index_t i = begin + number_of(j);
% if ELEMENT.indices:
            moved[j] = (value_t)i;
            if (number_of(j) < valid && !(flags & FIRST))
                moved[j] = (flags & TO_SORTED ? spare_values : middle_values)[row * n + i];
% else:
            if (number_of(j) < valid)
                moved[j] = (flags & FIRST ? values : flags & TO_SORTED ? spare_values : sorted_values)[row * n + i];
% endif
        }
% endif

        /* Find where the digit's keys go, less their places in the tile. */
        if (item < RADIX) {
% if LOOK_BACK:
            status_t sum = 0;
            ${lookback.look_back("sum", "mine + item", "RADIX", "tile", "count_tile(source, n, t, item, shift)",
                                 LOOK_BACK.looks, LOOK_BACK.max_polls)}\
            if (tile > 0)
                announce_all(&mine[(size_t)tile * RADIX + item], sum + here);
            offsets[item] = bases[(row * DIGITS + ${"digit" if TOP else "pass"}) * RADIX + item] + (index_t)sum - before;
% else:
            offsets[item] = table[(row * RADIX + item) * tiles + tile] - before;
% endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Store keys. */
        uint digits[ITEM_KEYS];
${registers.each("k", "ITEM_KEYS", PTX)} {
            const uint i = k * WG_SIZE + item;
            if (i < valid) {
                const ukey_t key = exchange[i];
                digits[k] = digit_of(key, shift);
                target[offsets[digits[k]] + i] = key;
            }
        }
% if ELEMENT.value:

        /* Store values, which take the same way. */
        barrier(CLK_LOCAL_MEM_FENCE);
        __local value_t *exchanged = (__local value_t *)room;
        ${registers.write("exchanged", "places", "moved", "ITEM_KEYS", PTX)}\
        barrier(CLK_LOCAL_MEM_FENCE);
${registers.each("k", "ITEM_KEYS", PTX)} {
            const uint i = k * WG_SIZE + item;
            if (i < valid) {
                const size_t place = row * n + offsets[digits[k]] + i;
% if ELEMENT.indices:
                if (flags & LAST)
                    sorted_values[place] = (long)exchanged[i];
                else
                    (flags & TO_SORTED ? middle_values : spare_values)[place] = exchanged[i];
% else:
                (flags & TO_SORTED ? sorted_values : spare_values)[place] = exchanged[i];
% endif
            }
        }
% endif
    }
% if again:
    }
% endif
}
% if TOP and not again:

% endif
% endfor
</%def>\
