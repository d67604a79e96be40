## Two steps in one launch, part after part: a part is a transform, or a strip of neighbouring columns.
## Groups have tickets. The second step follows so close behind the first that it reads from the device's
## cache what the first has written:
##
##     ticket                   0 ..       both ..             second_alone ..
##     step 0 of parts          0 .. L-1 | L   | L+1 | .. |                    L = look_ahead
##     step 1 of parts                   | 0   | 1   | .. | the last L
##
## A group of the second step waits until `counters` says that the groups of the first step have finished
## with its part. Those have lower tickets, so that they have started before: NVIDIA's GPUs start groups in
## the order of their numbers, which are the tickets there; groups of other devices draw tickets. A group
## that has read it max_polls times does the first step of its part by itself: that costs time, and writes
## the same numbers as the groups whose work it is. The last group of a part makes its counter zero
## again, and the group with the last ticket the one that tickets are drawn from.
##
## The host guarantees: the second step does not write what the first one reads; there are at least L parts; `counters` has a word for each and one more, all zero, and
## one launch at a time has it; groups see what others have written before a fence and an atomic operation.
## Groups that have started should make progress.
##
## tiles       `Tiles` of the first and of the second step: the groups that do a part
## look_ahead  L above
## max_polls   how often a group reads the counter before it does the first step itself
## arguments   what the functions of the steps take, in OpenCL C
## PTX         whether the device takes inline PTX: volatile words are not kept near a processor there
<%def name="group(s, tiles, tile)">\
<% strip, pitch = tiles[s].strip, tiles[s].pitch %>\
${f"part * {strip} + {tile}" if strip == tiles[s].groups else f"{tile} / {strip} * {pitch} + part * {strip} + {tile} % {strip}"}\
</%def>\
<%def name="run(tiles, look_ahead, max_polls, arguments, PTX)">\
<% finished = "counters[part]" if PTX else "atomic_or(&counters[part], 0)" %>\
    enum { TILES_0 = ${tiles[0].groups}, TILES_1 = ${tiles[1].groups}, TILES = TILES_0 + TILES_1, LOOK_AHEAD = ${look_ahead} };
    __local uint waited_for;
% if PTX:
    const uint ticket = (uint)get_group_id(0);
% else:
    __local uint taken;
    if (get_local_id(0) == 0)
        taken = atomic_inc(&counters[parts]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint ticket = taken;
% endif
    const uint both = LOOK_AHEAD * TILES_0, second_alone = both + (parts - LOOK_AHEAD) * TILES;
    bool first = true;
    uint part = ticket / TILES_0, tile = ticket % TILES_0;
    if (ticket >= second_alone) {
        first = false;
        part = parts - LOOK_AHEAD + (ticket - second_alone) / TILES_1;
        tile = (ticket - second_alone) % TILES_1;
    } else if (ticket >= both) {
        /* The groups of two parts take turns, as evenly as their numbers allow. */
        const uint turn = (ticket - both) % TILES;
        const uint before = turn * TILES_0 / TILES;
        first = (turn + 1) * TILES_0 / TILES > before;
        part = (ticket - both) / TILES + (first ? LOOK_AHEAD : 0);
        tile = first ? before : turn - before;
    }
    /* Tiles of the first step that are this group's to do: its own, none, or all. */
    uint tile_0 = first ? tile : TILES_0;
    const uint end_0 = first ? tile + 1 : TILES_0;
    if (!first) {
        if (get_local_id(0) == 0) {
            uint polls = 0;
            while (polls < ${max_polls} && ${finished} % (TILES_0 + 1) < TILES_0)
                ++polls;
            waited_for = polls < ${max_polls} ? TILES_0 : 0;
            DEVICE_FENCE();
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        tile_0 = waited_for;
    }
    for (; tile_0 < end_0; ++tile_0) {
        step_0((index_t)(${group(0, tiles, "tile_0")}), space, ${arguments[0]});
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    if (!first)
        step_1((index_t)(${group(1, tiles, "tile")}), space, ${arguments[1]});
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        DEVICE_FENCE();
        /* Remainder: groups of the first step that have finished; quotient: those of the second. */
        const uint own = first ? 1 : TILES_0 + 1;
        if (atomic_add(&counters[part], own) + own == TILES_0 + TILES_1 * (TILES_0 + 1))
            atomic_xchg(&counters[part], 0);
% if not PTX:
        if (ticket + 1 == parts * TILES)
            atomic_xchg(&counters[parts], 0);
% endif
    }
</%def>\
