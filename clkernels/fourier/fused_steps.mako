## Two steps of a transform in one launch, whose groups take tickets. The second step follows so close
## behind the first that it reads from the device's cache:
##
##     ticket                    0 ..
##     step 0 of transforms     0 .. L-1 | L   | L+1 | ..                        L = look_ahead
##     step 1 of transforms              | 0   | 1   | ..  | the last L
##
## Its groups wait until `counters` says that those of the first step have finished with the
## transform. These have lower tickets, so that they have started before. The last group of a
## transform, and the one with the last ticket, make the counters zero again.
##
## The host guarantees: there are more than L transforms, one after the other; `counters` has a
## word for each and one more, all zero, and one launch at a time has it; groups that have started
## make progress, and see what others have written before a fence and an atomic operation.
##
## `tiles` has the groups of a transform in both steps, and `arguments` what their functions take.
<%def name="run(tiles, look_ahead, arguments)">\
<%
    ones, twos = tiles
    both = ones + twos
%>\
    __local uint taken;
    if (get_local_id(0) == 0)
        taken = atomic_inc(&counters[transforms]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint ticket = taken;
    const uint both = ${look_ahead * ones}, second_alone = both + (transforms - ${look_ahead}) * ${both};
    bool first = true;
    uint transform = ticket / ${ones}, tile = ticket % ${ones};
    if (ticket >= second_alone) {
        first = false;
        transform = transforms - ${look_ahead} + (ticket - second_alone) / ${twos};
        tile = (ticket - second_alone) % ${twos};
    } else if (ticket >= both) {
        /* The groups of two transforms take turns, as evenly as their numbers allow. */
        const uint turn = (ticket - both) % ${both};
        const uint before = turn * ${ones} / ${both};
        first = (turn + 1) * ${ones} / ${both} > before;
        transform = (ticket - both) / ${both} + (first ? ${look_ahead} : 0);
        tile = first ? before : turn - before;
    }
    if (first) {
        step_0((index_t)transform * ${ones} + tile, space, ${arguments[0]});
    } else {
        if (get_local_id(0) == 0) {
            while (atomic_or(&counters[transform], 0) < ${ones});
            DEVICE_FENCE();
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        step_1((index_t)transform * ${twos} + tile, space, ${arguments[1]});
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        DEVICE_FENCE();
        if (atomic_inc(&counters[transform]) == ${both - 1})
            atomic_xchg(&counters[transform], 0);
        if (ticket + 1 == transforms * ${both})
            atomic_xchg(&counters[transforms], 0);
    }
</%def>\
