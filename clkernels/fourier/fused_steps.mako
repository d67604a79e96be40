## Two steps of a transform in one launch, whose groups take tickets. The second step follows so close
## behind the first that it reads from the device's cache what the first has written:
##
##     ticket                   0 ..       both ..             second_alone ..
##     step 0 of transforms     0 .. L-1 | L   | L+1 | .. |                    L = look_ahead
##     step 1 of transforms              | 0   | 1   | .. | the last L
##
## A group of the second step waits until `counters` says that the groups of the first step have
## finished with its transform. Those have lower tickets, so that they have started before. The last
## group of a transform makes its counter zero again, and the group with the last ticket the one that
## tickets are drawn from.
##
## The host guarantees: there are more than L transforms, one after the other; `counters` has a
## word for each and one more, all zero, and one launch at a time has it; groups that have started
## make progress, and see what others have written before a fence and an atomic operation.
##
## tiles       groups that a transform takes in the first and in the second step
## look_ahead  L above
## arguments   what the functions of the steps take, in OpenCL C
<%def name="run(tiles, look_ahead, arguments)">\
    enum { TILES_0 = ${tiles[0]}, TILES_1 = ${tiles[1]}, TILES = TILES_0 + TILES_1, LOOK_AHEAD = ${look_ahead} };
    __local uint taken;
    if (get_local_id(0) == 0)
        taken = atomic_inc(&counters[transforms]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint ticket = taken;
    const uint both = LOOK_AHEAD * TILES_0, second_alone = both + (transforms - LOOK_AHEAD) * TILES;
    bool first = true;
    uint transform = ticket / TILES_0, tile = ticket % TILES_0;
    if (ticket >= second_alone) {
        first = false;
        transform = transforms - LOOK_AHEAD + (ticket - second_alone) / TILES_1;
        tile = (ticket - second_alone) % TILES_1;
    } else if (ticket >= both) {
        /* The groups of two transforms take turns, as evenly as their numbers allow. */
        const uint turn = (ticket - both) % TILES;
        const uint before = turn * TILES_0 / TILES;
        first = (turn + 1) * TILES_0 / TILES > before;
        transform = (ticket - both) / TILES + (first ? LOOK_AHEAD : 0);
        tile = first ? before : turn - before;
    }
    if (first) {
        step_0((index_t)transform * TILES_0 + tile, space, ${arguments[0]});
    } else {
        if (get_local_id(0) == 0) {
            while (atomic_or(&counters[transform], 0) < TILES_0);
            DEVICE_FENCE();
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        step_1((index_t)transform * TILES_1 + tile, space, ${arguments[1]});
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        DEVICE_FENCE();
        if (atomic_inc(&counters[transform]) == TILES - 1)
            atomic_xchg(&counters[transform], 0);
        if (ticket + 1 == transforms * TILES)
            atomic_xchg(&counters[transforms], 0);
    }
</%def>\
