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
## `tiles` says how many groups a transform takes in the first and in the second step, and `arguments`
## what the functions of the steps take.
<%def name="run(tiles, look_ahead, arguments)">\
<%
    tiles_0, tiles_1 = tiles
    tiles_of_both = tiles_0 + tiles_1
%>\
    __local uint taken;
    if (get_local_id(0) == 0)
        taken = atomic_inc(&counters[transforms]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint ticket = taken;
    const uint both = ${look_ahead * tiles_0}, second_alone = both + (transforms - ${look_ahead}) * ${tiles_of_both};
    bool first = true;
    uint transform = ticket / ${tiles_0}, tile = ticket % ${tiles_0};
    if (ticket >= second_alone) {
        first = false;
        transform = transforms - ${look_ahead} + (ticket - second_alone) / ${tiles_1};
        tile = (ticket - second_alone) % ${tiles_1};
    } else if (ticket >= both) {
        /* The groups of two transforms take turns, as evenly as their numbers allow. */
        const uint turn = (ticket - both) % ${tiles_of_both};
        const uint before = turn * ${tiles_0} / ${tiles_of_both};
        first = (turn + 1) * ${tiles_0} / ${tiles_of_both} > before;
        transform = (ticket - both) / ${tiles_of_both} + (first ? ${look_ahead} : 0);
        tile = first ? before : turn - before;
    }
    if (first) {
        step_0((index_t)transform * ${tiles_0} + tile, space, ${arguments[0]});
    } else {
        if (get_local_id(0) == 0) {
            while (atomic_or(&counters[transform], 0) < ${tiles_0});
            DEVICE_FENCE();
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        step_1((index_t)transform * ${tiles_1} + tile, space, ${arguments[1]});
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        DEVICE_FENCE();
        if (atomic_inc(&counters[transform]) == ${tiles_of_both - 1})
            atomic_xchg(&counters[transform], 0);
        if (ticket + 1 == transforms * ${tiles_of_both})
            atomic_xchg(&counters[transforms], 0);
    }
</%def>\
