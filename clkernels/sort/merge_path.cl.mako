/*
 * Stable merge sort of rows by work-groups, for GPUs.
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
 * Runs of any lengths (RUNS), as several devices have made them, are merged in the same way.
 *
 * Source: O. Green, R. McColl, D. Bader, "GPU merge path: a GPU merging algorithm", ICS 2012; tiles
 * in registers after N. Satish et al., IPDPS 2009, and S. Baxter, "moderngpu", 2013.
 *
 * The host guarantees: n > 0; WG_SIZE is a power of two and ROW_ITEMS divides it; rows are no longer
 * than ROW_ITEMS * ITEM_KEYS where ROW_ITEMS < WG_SIZE; `source` and `target` do not overlap. Groups
 * are in dimension 0: of sort_tiles as many as cover all rows; of merge_tiles row after row. With RUNS
 * there is one row; `ends` says where its runs end, the last one at n; and there are n / TILE groups
 * and one more for each pair of runs.
 *
 * ELEMENT     what is sorted: see keys.mako. Positions in a row are in no array before sort_tiles
 * INDICES_OUT whether the target is the user's array of indices: positions as long, without keys
 * INDEX_T     unsigned type that counts the elements of a row
 * WG_SIZE     work-items in a work-group
 * ITEM_KEYS   keys of an item
 * ROW_ITEMS   items of a row in sort_tiles: a group has WG_SIZE / ROW_ITEMS rows, or a tile of one
 * RUNS        whether merge_tiles merges given runs, and there is no sort_tiles
 * MERGES      whether there is merge_tiles: rows have several tiles, or there are given runs
 * PTX         whether the device takes inline PTX: its compiler unrolls what it is told to
 */
<%page args="ELEMENT, INDICES_OUT, INDEX_T, WG_SIZE, ITEM_KEYS, ROW_ITEMS, RUNS, MERGES, PTX"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
<%namespace name="paths" file="/common/merge_path.mako"/>\
${keys.declare(ELEMENT)}\
<%
    inexact = keys.module.fraction_of(ELEMENT)  # codes of different keys may be equal
    slots = bool(ELEMENT.value or inexact)
    value_out_t = "long" if INDICES_OUT else "value_t"
%>\
% if not inexact:
${keys.inverse(ELEMENT)}\
% endif
typedef ${INDEX_T} index_t;
#define ITEM_KEYS ${ITEM_KEYS}
#define TILE ${WG_SIZE * ITEM_KEYS}
#define ROW_KEYS ${ROW_ITEMS * ITEM_KEYS}
#define SAME(number) (number)
#define LAST_CODE ((ukey_t)~(ukey_t)0)

${paths.search("rank_in_group", "__local", "ukey_t", "uint", "SAME")}
% if MERGES:
${paths.ends("index_t")}
${paths.search_all("ranks_of_group", "__global", "ukey_t", "index_t", "code", WG_SIZE)}
% endif
% if not RUNS:
/* Sort an item's codes. Neighbours change places only if they must, so that the sort is stable. */
static inline void sort_item(ukey_t *codes, ushort *slots)
{
${registers.unrolled(PTX)}\
    for (uint round = 0; round < ITEM_KEYS; ++round) {
${registers.unrolled(PTX)}\
        for (uint j = round & 1; j + 1 < ITEM_KEYS; j += 2) {
            const ukey_t one = codes[j], other = codes[j + 1];
            const bool swap = other < one;
            codes[j] = swap ? other : one;
            codes[j + 1] = swap ? one : other;
% if slots:
            const ushort slot = slots[j];
            slots[j] = swap ? slots[j + 1] : slot;
            slots[j + 1] = swap ? slot : slots[j + 1];
% endif
        }
    }
}

% endif
/* Put what items have in registers into local memory, in order. */
static inline void stage(const ukey_t *codes, const ushort *slots, __local ukey_t *staged,
                            __local ushort *staged_slots)
{
    const uint first = (uint)get_local_id(0) * ITEM_KEYS;
    barrier(CLK_LOCAL_MEM_FENCE); /* others may still read */
${registers.each("j", "ITEM_KEYS", PTX)} {
        staged[first + j] = codes[j];
% if slots:
        staged_slots[first + j] = slots[j];
% endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

% if not RUNS:
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void sort_tiles(__global const ukey_t *restrict source,
% if not INDICES_OUT:
                __global ukey_t *restrict target,
% endif
% if ELEMENT.value and not ELEMENT.indices:
                __global const value_t *restrict source_values,
% endif
% if ELEMENT.value:
                __global ${value_out_t} *restrict target_values,
% endif
                const index_t n,
                const ulong rows)
{
    __local ukey_t staged[TILE + 1];
    __local ushort staged_slots[${"TILE" if slots else 1}];
    const uint item = (uint)get_local_id(0);
    ukey_t codes[ITEM_KEYS];
    ushort slots[${"ITEM_KEYS" if slots else 1}];
% if ROW_ITEMS < WG_SIZE:
    const ulong first_row = get_group_id(0) * (ulong)${WG_SIZE // ROW_ITEMS};
    const index_t begin = 0;
% else:
    const ulong tiles = (n - 1) / ROW_KEYS + 1;
    const ulong first_row = get_group_id(0) / tiles;
    const index_t begin = (index_t)(get_group_id(0) % tiles) * ROW_KEYS;
% endif
    const ulong first = first_row * n + begin;
    const uint count = (uint)min((ulong)ROW_KEYS, (ulong)(n - begin)); /* in this tile of a row */
    const uint own_rows = (uint)min(${WG_SIZE // ROW_ITEMS}ul, rows - first_row);

    /* Load, coalesced; what a row does not have goes last. */
    for (uint i = item; i < TILE; i += ${WG_SIZE}) {
        const uint row = i / ROW_KEYS, place = i % ROW_KEYS;
        staged[i] = row < own_rows && place < count ? code(source[first + (ulong)row * n + place]) : LAST_CODE;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
${registers.each("j", "ITEM_KEYS", PTX)} {
        codes[j] = staged[item * ITEM_KEYS + j];
% if slots:
        slots[j] = (ushort)(item % ${ROW_ITEMS} * ITEM_KEYS + j);
% endif
    }
    sort_item(codes, slots);

    /* Merge runs of `width` items. */
    for (uint width = 1; width < ${ROW_ITEMS}; width *= 2) {
        stage(codes, slots, staged, staged_slots);
        const uint pair = (item & ~(2 * width - 1)) * ITEM_KEYS, keys = width * ITEM_KEYS;
        const uint diagonal = item * ITEM_KEYS - pair;
        const uint from_a = rank_in_group(staged + pair, staged + pair + keys, diagonal,
                                          diagonal > keys ? diagonal - keys : 0,
                                          LESSER(diagonal, keys));
        ${paths.take("staged", "pair + from_a", "pair + keys", "pair + keys + diagonal - from_a",
                     "pair + 2 * keys", "ukey_t", "codes", "slots" if slots else None,
                     "ITEM_KEYS", PTX)}
% if slots:
${registers.each("j", "ITEM_KEYS", PTX)}
            slots[j] = staged_slots[slots[j]];
% endif
    }
    stage(codes, slots, staged, staged_slots);

    /* Store, coalesced. */
    for (uint i = item; i < TILE; i += ${WG_SIZE}) {
        const uint row = i / ROW_KEYS, place = i % ROW_KEYS;
        const ulong at = first + (ulong)row * n;
        if (row < own_rows && place < count) {
% if not INDICES_OUT:
            target[at + place] = ${"source[at + staged_slots[i]]" if inexact else "key_of(staged[i])"};
% endif
% if ELEMENT.indices:
            target_values[at + place] = (${value_out_t})begin + staged_slots[i];
% elif ELEMENT.value:
            target_values[at + place] = source_values[at + staged_slots[i]];
% endif
        }
    }
}
% endif

% if MERGES:
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void merge_tiles(__global const ukey_t *restrict source,
% if not INDICES_OUT:
                 __global ukey_t *restrict target,
% endif
% if ELEMENT.value:
                 __global const value_t *restrict source_values,
                 __global ${value_out_t} *restrict target_values,
% endif
% if RUNS:
                 __global const long *restrict ends,
                 const uint runs,
% endif
                 const index_t n,
                 const uint width)
{
    __local ukey_t staged[TILE + 1];
    __local ushort staged_slots[${"TILE" if slots else 1}];
    __local uint found[2];
    const uint item = (uint)get_local_id(0);
    ukey_t codes[ITEM_KEYS];
    ushort slots[${"ITEM_KEYS" if slots else 1}];

% if RUNS:
    /* Find the pair of runs, each of which was merged from `width`. A group may have nothing to do. */
    const ulong row = 0;
    ulong tile = get_group_id(0), tiles = 0;
    index_t begin, middle, end = 0;
    uint run = 0;
    do {
        tile -= tiles;
        begin = end;
        middle = (index_t)ends[min(run + width, runs) - 1];
        end = (index_t)ends[min(run + 2 * width, runs) - 1];
        tiles = ((ulong)(end - begin) + TILE - 1) / TILE;
        run += 2 * width;
    } while (tile >= tiles && run < runs);
    const index_t diagonal = (index_t)min(tile * TILE, (ulong)(end - begin));
    const index_t a_count = middle - begin, b_count = end - middle;
% else:
    /* Find the stretch of each run; `width` counts tiles. */
    const ulong tiles = (n - 1) / TILE + 1;
    const ulong row = get_group_id(0) / tiles * n, tile = get_group_id(0) % tiles;
    const ulong pair = tile & ~(2ul * width - 1);
    const index_t begin = (index_t)(pair * TILE), diagonal = (index_t)((tile - pair) * TILE);
    const index_t a_count = (index_t)min((ulong)width * TILE, (ulong)(n - begin));
    const index_t b_count = (index_t)min((ulong)width * TILE, (ulong)(n - begin - a_count));
% endif
    __global const ukey_t *a = source + row + begin, *b = a + a_count;
    const uint count = (uint)min((ulong)TILE, (ulong)(a_count + b_count - diagonal));
    index_t places[2];
    ranks_of_group(a, a_count, b, b_count, diagonal, diagonal + count, found, places);
    const uint from_a = (uint)(places[1] - places[0]);
    const size_t a_at = row + begin + places[0];
    const size_t b_at = row + begin + a_count + (diagonal - places[0]) - from_a;

    /* Load both, one after the other. */
    for (uint i = item; i < TILE; i += ${WG_SIZE})
        staged[i] = i < count ? code(source[(i < from_a ? a_at : b_at) + i]) : LAST_CODE;
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Merge in registers. What lies beyond the row goes last. */
    const uint own = item * ITEM_KEYS, from_b = TILE - from_a;
    const uint left_a = rank_in_group(staged, staged + from_a, own, own > from_b ? own - from_b : 0,
                                      LESSER(own, from_a));
    ${paths.take("staged", "left_a", "from_a", "from_a + own - left_a", "TILE", "ukey_t", "codes",
                 "slots" if slots else None, "ITEM_KEYS", PTX)}
    stage(codes, slots, staged, staged_slots);

    /* Store, coalesced. */
    for (uint i = item; i < count; i += ${WG_SIZE}) {
        const size_t at = row + begin + diagonal + i;
% if slots:
        const size_t from = (staged_slots[i] < from_a ? a_at : b_at) + staged_slots[i];
% endif
% if not INDICES_OUT:
        target[at] = ${"source[from]" if inexact else "key_of(staged[i])"};
% endif
% if ELEMENT.value:
        target_values[at] = (${value_out_t})source_values[from];
% endif
    }
}
% endif
