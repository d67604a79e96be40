/*
 * A small kernel for each building block of clkernels/common, see tests/test_common_kernels.py.
 *
 * WG_SIZE     work-items of a group, a multiple of 32
 * ITEM_KEYS   values of an item
 * DIGIT_BITS  bits of a digit that is ranked
 * WIDE        whether counts have 64 bits
 * PTX         whether the device takes inline PTX
 * LOOKS       tiles that one looks back at together
 * SHARES      OpenCL C: how many shares tasks are divided into
 */
<%page args="WG_SIZE, ITEM_KEYS, DIGIT_BITS, WIDE, PTX, LOOKS, SHARES"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="warps" file="/common/warps.mako"/>\
<%namespace name="scan" file="/common/scan.mako"/>\
<%namespace name="rank" file="/common/rank.mako"/>\
<%namespace name="slices" file="/common/slices.mako"/>\
<%namespace name="tickets" file="/common/tickets.mako"/>\
<%namespace name="lookback" file="/common/lookback.mako"/>\
<%namespace name="arrival" file="/common/arrival.mako"/>\
<%namespace name="broadcast" file="/common/broadcast.mako"/>\
<%namespace name="counts" file="/common/counts.mako"/>\
<%namespace name="paths" file="/common/merge_path.mako"/>\
<%namespace name="stealing" file="/common/work_stealing.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
${fence.declare(PTX=PTX)}\
${warps.declare(PTX=PTX)}\
${scan.declare(WG_SIZE=WG_SIZE, PTX=PTX)}\
${rank.declare(DIGIT_BITS=DIGIT_BITS, PTX=PTX)}\
${slices.declare(WIDE=WIDE, WG_SIZE=WG_SIZE)}\
${tickets.declare()}\
${lookback.declare(WIDE=WIDE, PTX=PTX)}\
#define TILE ${WG_SIZE * ITEM_KEYS}
#define GROUP __kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
#define SAME(number) (number)

static inline uint number_of(const uint j)
{
    return j * ${WG_SIZE} + (uint)get_local_id(0);
}

/* scan.mako, broadcast.mako; twice, as the same local memory serves again after a barrier. */
GROUP void scan_items(__global const uint *values, __global uint *before, __global uint *totals)
{
    __local uint space[SCAN_WORDS];
    __local uint total;
    const uint item = (uint)get_local_id(0);
    const size_t i = get_global_id(0), n = get_global_size(0);
    for (uint round = 0; round < 2; ++round) {
        const uint value = values[round * n + i];
        const uint sum = scan_group(value, space);
        ${broadcast.send("total", "sum + value", WG_SIZE - 1)}
        before[round * n + i] = sum;
        totals[round * n + i] = total;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* slices.mako: a slice per group. */
GROUP void sum_slices(__global const uint *words, __global ulong *sums, __global ulong *begins,
                     __global const uint *values, __global ulong *scanned, const ulong count)
{
    __local index_t space[SPACE];
    const uint slice = (uint)get_group_id(0), slices = (uint)get_num_groups(0);
    sums[get_global_id(0)] = sum_before(words, slice, space);
    scanned[get_global_id(0)] = scan_index((index_t)values[get_global_id(0)]${" << 8" if WIDE else ""}, space);
    if (get_local_id(0) == 0)
        begins[slice] = slice_begin((index_t)count, slice, slices, TILE);
}

/* rank.mako, warps.mako: among equal digits of a warp. */
GROUP void rank_digits(__global const uint *digits, __global uint *ranks)
{
    __local uint numbers[${WG_SIZE // 32} * RADIX], masks[${WG_SIZE // 32} * RADIX];
    for (uint i = (uint)get_local_id(0); i < ${WG_SIZE // 32} * RADIX; i += ${WG_SIZE})
        numbers[i] = masks[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const size_t first = get_group_id(0) * TILE + warp() * (WARP * ${ITEM_KEYS}) + lane();
    for (uint j = 0; j < ${ITEM_KEYS}; ++j)
        ranks[first + j * WARP] = rank_in_warp(digits[first + j * WARP], numbers + warp() * RADIX, masks + warp() * RADIX);
}

/* registers.mako: a permutation of a tile. */
GROUP void exchange_values(__global const uint *places, __global const ulong *values,
                           __global ulong *permuted)
{
    __local ulong memory[TILE];
    const size_t first = get_group_id(0) * TILE;
    uint own_places[${ITEM_KEYS}];
    ulong own[${ITEM_KEYS}];
    ${registers.each("j", ITEM_KEYS, PTX)} {
        own_places[j] = places[first + number_of(j)];
        own[j] = values[first + number_of(j)];
    }
    ${registers.exchange("ulong", "exchanged", "memory", "own", "own_places", "number_of", ITEM_KEYS, PTX)}\
    ${registers.each("j", ITEM_KEYS, PTX)}
        permuted[first + number_of(j)] = own[j];
}

/* counts.mako, arrival.mako: the last group writes the counts of all, and clears them. */
GROUP void add_counts(__global const uint *values, volatile __global uint *added,
                      volatile __global uint *arrived, __global ulong *sums)
{
    __local uint before_me;
    const uint item = (uint)get_local_id(0);
    {
        ${counts.add("added", "item", "values[get_global_id(0)]", WIDE)}\
    }
    ${arrival.arrive("arrived[0]", "before_me")}
    if (before_me + 1 == get_num_groups(0)) {
        sums[item] = ${counts.value("added", "item", WIDE)};
        ${counts.clear("added", "item", WIDE)}
        if (item == 0)
            arrived[0] = 0;
    }
}

/* tickets.mako, lookback.mako: sums over the tiles before, with a word for each item. */
GROUP void look_back_at_tiles(__global const uint *values, volatile __global status_t *words,
                              volatile __global uint *counter, __global uint *tickets,
                              __global ulong *before)
{
    __local uint taken;
    const uint item = (uint)get_local_id(0), tile = take_ticket(counter, &taken);
    const uint value = values[tile * ${WG_SIZE} + item];
    volatile __global status_t *mine = words + item;
    if (tile == 0)
        announce_all(&mine[0], value);
    else
        announce(&mine[tile * ${WG_SIZE}], value);
    status_t sum = 0;
    ${lookback.look_back("sum", "mine", WG_SIZE, "tile", f"values[t * {WG_SIZE} + item]", LOOKS, MAX_POLLS=4096)}\
    if (tile > 0)
        announce_all(&mine[tile * ${WG_SIZE}], sum + value);
    before[tile * ${WG_SIZE} + item] = sum;
    if (item == 0)
        tickets[get_group_id(0)] = tile;
}

${paths.ends("uint")}
${paths.search("rank_in_tile", "__local", "uint", "uint", "SAME")}
${paths.search_all("ranks_of_tile", "__global", "uint", "uint", "SAME", WG_SIZE)}
/* merge_path.mako: a tile of two merged runs per group, and where its elements were. */
GROUP void merge_runs(__global const uint *a, __global const uint *b, __global uint *merged,
                      __global uint *from, const uint a_count, const uint b_count)
{
    __local uint tile[TILE + 1], found[2];
    const uint item = (uint)get_local_id(0), begin = (uint)get_group_id(0) * TILE;
    const uint count = min((uint)TILE, a_count + b_count - begin);
    uint places[2], codes[${ITEM_KEYS}];
    ushort slots[${ITEM_KEYS}];
    ranks_of_tile(a, a_count, b, b_count, begin, begin + count, found, places);
    const uint own_a = places[1] - places[0];
    for (uint i = item; i < TILE; i += ${WG_SIZE})
        tile[i] = i < own_a ? a[places[0] + i] : i < count ? b[begin - places[0] + i - own_a] : 0xffffffff;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint own = item * ${ITEM_KEYS};
    const uint left = rank_in_tile(tile, tile + own_a, own, least_of_a(own, TILE - own_a), most_of_a(own, own_a));
    ${paths.take("tile", "left", "own_a", "own_a + own - left", "TILE", "uint", "codes", "slots", ITEM_KEYS, PTX)}
    for (uint j = 0; j < ${ITEM_KEYS}; ++j)
        if (own + j < count) {
            merged[begin + own + j] = codes[j];
            from[begin + own + j] = slots[j] < own_a ? places[0] + slots[j]
                                                     : a_count + begin - places[0] + slots[j] - own_a;
        }
}

/* work_stealing.mako: squares, and then sums of neighbours, which other items may have squared. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void sum_squares(__global const uint *values, __global uint *squares, __global uint *sums,
                 const uint n, const uint from, const uint to, const uint last,
                 volatile __global uint *counters)
{
    <%stealing:phases shares="${SHARES}" tasks="phase ? n / 7 + 1 : n / 5 + 1" max_polls="1u << 20">
        const uint begin = (uint)((ulong)n * task / tasks), end = (uint)((ulong)n * (task + 1) / tasks);
        for (uint i = begin; i < end; ++i)
            if (phase == 0)
                squares[i] = values[i] * values[i];
            else
                sums[i] = squares[i] + squares[n - 1 - i];
    </%stealing:phases>
}
