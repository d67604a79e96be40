/*
 * Stable sort of short rows in two launches, by regular samples: the form for GPUs whose launches take
 * longer than their work.
 *
 *     sort_tiles     a group sorts a tile in registers and local memory, by radix
 *     sort_buckets   a group makes a stretch of the result. It ranks the samples of all tiles of the row,
 *                    every `spacing`-th key of each. Those of two ranks enclose its bucket, also in each
 *                    tile. It collects what lies there, tile by tile, and sorts that in the same way
 *
 *     tiles      | a . . b . . c . |  | d . . e . . f . |      samples: a to f
 *                    [_______]              [_____]            one bucket: from b to f, without f
 *     samples    a d b e c f  ->  bucket 0: from a, 1: from b, ..
 *
 * A sample comes before another one also by its tile and its place, so that equal keys are divided, too.
 * As each tile has at most `spacing` keys in a bucket for each of its samples there, and as many more, no
 * bucket has more than (samples of a bucket + tiles) * `spacing` keys, whatever the keys are.
 *
 * Source: H. Shi, J. Schaeffer, "Parallel sorting by regular sampling", 1992; on GPUs F. Dehne, H. Zaboli,
 * "Deterministic sample sort for GPUs", 2010.
 *
 * The host guarantees: 0 < n; `tile` is at most WG_SIZE * ITEM_KEYS; a row has at most WG_SIZE tiles and
 * WG_SIZE * SAMPLE_ITEMS samples; the bound above is at most WG_SIZE * ITEM_KEYS; there is a group
 * for each tile, or bucket, of each row.
 *
 * ELEMENT       what is sorted: see keys.mako
 * WG_SIZE       work-items of a group, a multiple of 32, at least 2^DIGIT_BITS
 * ITEM_KEYS     most keys of an item
 * SAMPLE_ITEMS  most samples of an item, at most ITEM_KEYS
 * DIGIT_BITS    bits of a digit
 * ONE_LAUNCH    whether rows have one tile, which sort_tiles writes as the result; no sort_buckets then
 * ROOM          bytes of local memory in which digits are ranked and keys and values exchanged
 * PTX           whether the device takes inline PTX
 * SUB_GROUP     items of a sub-group, 0: the compiler chooses
 */
<%page args="ELEMENT, WG_SIZE, ITEM_KEYS, SAMPLE_ITEMS, DIGIT_BITS, ONE_LAUNCH, ROOM, PTX, SUB_GROUP"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="radix_gpu_tile" file="radix_gpu_tile.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
<% value_out_t = "long" if ELEMENT.indices else "value_t" %>\
% if PTX:
/* What several kernels call is part of each, as private arrays in memory are slow. */
#define inline inline __attribute__((always_inline))

% endif
${keys.declare(ELEMENT)}\
${radix_gpu_tile.declare(WG_SIZE=WG_SIZE, ITEM_KEYS=ITEM_KEYS, DIGIT_BITS=DIGIT_BITS, PTX=PTX, SOME=True)}\
<%def name="each(j, items)">\
${registers.first(j, items, "ITEM_KEYS", PTX)}\
</%def>\
## Put what items have in registers to their places, and take it back in order.
<%def name="exchange(type, name, values)">\
            __local ${type} *${name} = (__local ${type} *)room;
${each("j", "items")}
                ${name}[places[j]] = ${values}[j];
            barrier(CLK_LOCAL_MEM_FENCE);
${each("j", "items")}
                ${values}[j] = ${name}[number_of(j, items)];
            barrier(CLK_LOCAL_MEM_FENCE);
</%def>\
## A function that sorts what a group has in registers. `alike` is a word of local memory.
<%def name="sort(name, value_t)">\
static inline void ${name}(ukey_t *own, ${f"{value_t} *moved, " if value_t else ""}const uint items, const uint valid,
                           __local ulong *room, __local uint *sums, volatile __local uint *alike)
{
    const uint item = (uint)get_local_id(0);
    uint places[ITEM_KEYS];
    if (item == 0)
        *alike = 0;
    for (uint shift = 0; shift < CODE_BITS; shift += DIGIT_BITS) {
        const uint total = count_keys(own, valid, shift, (__local uint *)room, items);
        /* What fills the last run counts as keys of the last digit. */
        const uint here = item == RADIX - 1 ? total - (items * WG_SIZE - valid) : total;
        if (item < RADIX && here == valid)
            *alike = shift + 1; /* no other digit writes the same */
        const uint before = scan_group(total, sums);
        if (*alike != shift + 1) {
            place_keys(own, places, valid, shift, before, (__local uint *)room, items);
            ${exchange("ukey_t", "exchange", "own")}\
% if value_t:
            ${exchange(value_t, "exchanged", "moved")}\
% endif
        } else
            barrier(CLK_LOCAL_MEM_FENCE); /* others may still read */
    }
}
</%def>\

${sort("sort_group", ELEMENT.value and "value_t")}\

__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(WG_SIZE, 1, 1)))
void sort_tiles(__global const ukey_t *restrict keys,
% if ELEMENT.value and not ELEMENT.indices:
                __global const value_t *restrict values,
% endif
% if not (ELEMENT.indices and ONE_LAUNCH):
                __global ukey_t *restrict target,
% endif
% if ELEMENT.value:
                __global ${value_out_t if ONE_LAUNCH else "value_t"} *restrict target_values,
% endif
                const uint n,
                const uint tile)
{
    __local ulong room[${-(-ROOM // 8)}] __attribute__((aligned(16)));
    __local uint sums[SCAN_WORDS], alike;
    const uint tiles = (n - 1) / tile + 1, begin = (uint)(get_group_id(0) % tiles) * tile;
    const size_t at = get_group_id(0) / tiles * n + begin;
    const uint valid = LESSER(tile, n - begin), items = (valid - 1) / WG_SIZE + 1;
    ukey_t own[ITEM_KEYS];
% if ELEMENT.value:
    value_t moved[ITEM_KEYS];
% endif
${each("j", "items")} {
        const uint i = number_of(j, items);
        own[j] = i < valid ? keys[at + i] : 0;
% if ELEMENT.indices:
        moved[j] = (value_t)(begin + i);
% elif ELEMENT.value:
        if (i < valid)
            moved[j] = values[at + i];
% endif
    }
    sort_group(own, ${"moved, " if ELEMENT.value else ""}items, valid, room, sums, &alike);
${each("j", "items")} {
        const uint i = number_of(j, items);
        if (i < valid) {
% if not (ELEMENT.indices and ONE_LAUNCH):
            target[at + i] = own[j];
% endif
% if ELEMENT.value:
            target_values[at + i] = moved[j];
% endif
        }
    }
}
% if not ONE_LAUNCH:

/* A sample by which buckets are divided: its code, and where it is in which tile. */
typedef struct {
    ukey_t code;
    uint tile, place;
} splitter_t;

/* How many keys of a sorted tile of `length` are before a splitter; `samples` are the codes of the tile's. */
static inline uint keys_before(const splitter_t end, const uint number, __global const ukey_t *tile,
                               const uint length, __local const ukey_t *samples, const uint spacing)
{
    if (number == end.tile)
        return end.place;
    /* Equal keys of earlier tiles come before it. */
    const ukey_t equal = number < end.tile;
    uint low = 0, high = (length - 1) / spacing + 1;
    while (low < high) {
        const uint middle = (low + high) / 2;
        const bool before = samples[middle] < end.code || (equal && samples[middle] == end.code);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    high = LESSER(low * spacing, length);
    low = low ? (low - 1) * spacing + 1 : 0;
    while (low < high) {
        const uint middle = (low + high) / 2;
        const ukey_t one = code(tile[middle]);
        const bool before = one < end.code || (equal && one == end.code);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

${sort("sort_samples", "uint")}\

__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(WG_SIZE, 1, 1)))
void sort_buckets(__global const ukey_t *restrict source,
% if ELEMENT.value:
                  __global const value_t *restrict source_values,
% endif
% if not ELEMENT.indices:
                  __global ukey_t *restrict sorted,
% endif
% if ELEMENT.value:
                  __global ${value_out_t} *restrict sorted_values,
% endif
                  const uint n,
                  const uint tile,
                  const uint spacing,
                  const uint bucket_samples)
{
    __local ulong room[${-(-ROOM // 8)}] __attribute__((aligned(16)));
    __local uint sums[SCAN_WORDS], alike;
    __local ukey_t samples[WG_SIZE * ${SAMPLE_ITEMS}];
    __local splitter_t ends[2];
    __local uint starts[WG_SIZE], offsets[WG_SIZE], counts[2];
    const uint item = (uint)get_local_id(0);
    const uint tiles = (n - 1) / tile + 1, tile_samples = (tile - 1) / spacing + 1;
    const uint all = (tiles - 1) * tile_samples + (n - 1 - (tiles - 1) * tile) / spacing + 1;
    const uint buckets = (all - 1) / bucket_samples + 1;
    const uint first = (uint)(get_group_id(0) % buckets) * bucket_samples;
    const size_t row = get_group_id(0) / buckets * n;
    ukey_t own[ITEM_KEYS];
% if ELEMENT.value:
    value_t moved[ITEM_KEYS];
% endif
    source += row;

    /* Rank all samples; find those between which the bucket lies. */
    {
        uint numbers[ITEM_KEYS];
        const uint items = LESSER((all - 1) / WG_SIZE + 1, ${SAMPLE_ITEMS}); /* at most: compilers leave out the rest */
${each("j", "items")} {
            const uint i = number_of(j, items);
            numbers[j] = i;
            own[j] = 0;
            if (i < all) {
                own[j] = source[i / tile_samples * tile + i % tile_samples * spacing];
                samples[i] = code(own[j]);
            }
        }
        sort_samples(own, numbers, items, all, room, sums, &alike);
${each("j", "items")} {
            const uint rank = number_of(j, items) - first;
            if ((rank == 0 || rank == bucket_samples) && rank + first < all) {
                __local splitter_t *end = &ends[rank != 0];
                end->code = code(own[j]);
                end->tile = numbers[j] / tile_samples;
                end->place = numbers[j] % tile_samples * spacing;
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Find where it lies in each tile, and in the row. */
    uint from = 0, to = 0;
    if (item < tiles) {
        const uint begin = item * tile, length = LESSER(tile, n - begin);
        __local const ukey_t *known = samples + item * tile_samples;
        from = keys_before(ends[0], item, source + begin, length, known, spacing);
        to = length;
        if (first + bucket_samples < all)
            to = keys_before(ends[1], item, source + begin, length, known, spacing);
    }
    const uint start = scan_group(to - from, sums);
    starts[item] = start;
    offsets[item] = item * tile + from - start;
    if (item == WG_SIZE - 1)
        counts[0] = start + to - from;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint earlier = scan_group(from, sums);
    if (item == WG_SIZE - 1)
        counts[1] = earlier + from;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint valid = counts[0], items = (valid - 1) / WG_SIZE + 1;

    /* Collect, tile by tile. */
${each("j", "items")} {
        const uint i = number_of(j, items);
        own[j] = 0;
        if (i < valid) {
            uint low = 1, high = tiles;
            while (low < high) { /* the last tile that starts at i or before has it */
                const uint middle = (low + high) / 2;
                const bool before = starts[middle] <= i;
                low = before ? middle + 1 : low;
                high = before ? high : middle;
            }
            const uint at = offsets[low - 1] + i;
            own[j] = source[at];
% if ELEMENT.value:
            moved[j] = source_values[row + at];
% endif
        }
    }
    sort_group(own, ${"moved, " if ELEMENT.value else ""}items, valid, room, sums, &alike);
    const size_t target = row + counts[1];
${each("j", "items")} {
        const uint i = number_of(j, items);
        if (i < valid) {
% if not ELEMENT.indices:
            sorted[target + i] = own[j];
% endif
% if ELEMENT.value:
            sorted_values[target + i] = moved[j];
% endif
        }
    }
}
% endif
