## Tasks of a launch whose groups are single items, on devices where those are threads: CPUs.
##
##   split(..)             each item does an equal share of one phase; there is nothing to wait for
##   begin(), phase(..), end(..)
##                         phases that follow each other in one launch, each item first at its own
##                         share and then at those of others
##
## Words of `counters`: in each phase one for each share, and one that all items count in:
##
##     phase 0                               phase 1                      at the end
##     claimed of share 0 .. | finished      claimed of share 0 .. | -    left
##
## Items claim tasks one by one, so that none is idle while there is work. Shares keep an item at
## neighbouring tasks, and at other counters than the others, as long as nothing is amiss.
##
## No item waits for another one. Who finds all tasks claimed and some not finished looks again for a
## while, and then leaves; who finishes the last task finds that all are, and goes on to the next
## phase. So a launch ends with the right result in whatever order groups run, also one after the
## other. The last item to leave makes the counters zero again.
##
## Source: R. D. Blumofe, C. E. Leiserson, "Scheduling multithreaded computations by work stealing",
## JACM 1999; with a counter for each share instead of a deque, as tasks are known beforehand.
##
## The host guarantees: groups of one item; `counters`, volatile __global uint *, has
## phases * (items + 1) + 1 words, zero before the first launch and after the last, and one launch at a
## time has them; items see what others have written before a fence and an atomic operation; fewer
## than 2^31 tasks a phase. index_t is an unsigned type that counts the tasks.
##
## The body of `split` and of `phase` does one `task`.
##
## tasks     OpenCL C: how many tasks there are
## number    of the phase
## patience  how often an item looks for others to finish; None where nothing after the phase needs it
## waits     OpenCL C: whether something does, where that is known only then
<%def name="split(tasks)">\
    const index_t tasks = ${tasks};
    const index_t begin = (index_t)((ulong)tasks * get_global_id(0) / get_global_size(0));
    const index_t end = (index_t)((ulong)tasks * (get_global_id(0) + 1) / get_global_size(0));
    for (index_t task = begin; task < end; ++task)
        ${caller.body()}\
</%def>\
<%def name="begin()">\
    const uint items = (uint)get_global_size(0);
    bool here = true;
</%def>\
<%def name="phase(number, tasks, patience, waits='true')">\
    if (here) {
        const index_t tasks = ${tasks};
        volatile __global uint *claimed = counters + ${number} * (items + 1);
        volatile __global uint *finished = claimed + items;
        /* Do the tasks of this item's share, then what is left of the others'. */
        for (uint other = 0; other < items; ++other) {
            const uint share = ((uint)get_global_id(0) + other) % items;
            const index_t begin = (index_t)((ulong)tasks * share / items);
            const index_t end = (index_t)((ulong)tasks * (share + 1) / items);
            for (;;) {
                const index_t task = begin + atomic_inc(&claimed[share]);
                if (task >= end)
                    break;
                ${caller.body()}\
                mem_fence(CLK_GLOBAL_MEM_FENCE); /* what was written is seen before it is counted */
                atomic_inc(finished);
            }
        }
% if patience is not None:
        /* Look for the others to finish, or leave: who finishes the last task goes on. */
        for (uint polls = 0; ${"" if waits == "true" else f"{waits} && "}here && atomic_or(finished, 0) != tasks; ++polls)
            here = polls < ${patience};
        mem_fence(CLK_GLOBAL_MEM_FENCE);
% endif
    }
</%def>\
<%def name="end(phases)">\
    /* The last to leave, when all is done, makes the counters ready for the next launch. */
    const uint words = ${phases} * (items + 1);
    if (atomic_inc(&counters[words]) + 1 == items)
        for (uint t = 0; t <= words; ++t)
            atomic_xchg(&counters[t], 0);
</%def>\
