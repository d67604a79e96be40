## Phases of tasks that follow each other within one launch: for devices whose groups are threads
## of their own, CPUs, and which have groups of one item.
##
##     phase 0            phase 1             at the end
##     claimed | finished  claimed | finished  left        words of `counters`
##
## Items claim tasks one by one, so that none is idle while there is work. None waits for an item
## that may not have started: who finds all tasks claimed and some not finished looks again for a
## while, and then leaves; who finishes the last task finds that all are, and goes on. So a launch
## ends with the right result in whatever order groups run, also one after the other. Where items
## do not see what others have written, each phase has a launch of its own (`from`, `to`).
##
## Source: own. Cost: two atomic operations per task, and three per item and phase at least.
##
## A kernel has `run`, whose body does one `task` of one `phase`, and is given
##
##   counters   volatile __global uint *, two words for each phase and one more: all zero before the
##              first launch and after the last; one launch at a time has them
##   from, to   uint: which phases this launch does
##   last       uint: how many phases there are in all
##
## tasks       OpenCL C: how many tasks a `phase` has, a uint
## max_polls   how often an item looks for others to finish
<%def name="run(tasks, max_polls)">\
    bool here = true;
    for (uint phase = from; here && phase < to; ++phase) {
        const uint tasks = ${tasks};
        volatile __global uint *claimed = counters + 2 * phase;
        volatile __global uint *finished = claimed + 1;
        for (;;) {
            const uint task = atomic_inc(claimed);
            if (task >= tasks)
                break;
            ${caller.body()}\
            mem_fence(CLK_GLOBAL_MEM_FENCE); /* what was written is seen before it is counted */
            atomic_inc(finished);
        }
        for (uint polls = 0; here && phase + 1 < to && atomic_or(finished, 0) != tasks; ++polls)
            here = polls < ${max_polls};
        mem_fence(CLK_GLOBAL_MEM_FENCE);
    }
    /* The last item to leave, when all is done, makes the counters ready for the next launch. */
    if (to == last && atomic_inc(&counters[2 * last]) + 1 == get_global_size(0))
        for (uint t = 0; t <= 2 * last; ++t)
            atomic_xchg(&counters[t], 0);
</%def>\
