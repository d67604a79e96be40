## Tasks of a launch whose groups are single items, on devices where those are threads: CPUs.
##
##   split(..)      one phase, of which each item does an equal share; there is nothing to wait for
##   phases(..)     phases that follow each other, all with the same body, which asks for `phase`
##   begin(), phase(..), end(..)
##                  the same where each phase has a body of its own
##
## Words of `counters`: in each phase one for each share of its tasks, and one that all items count in:
##
##     phase 0                               phase 1                      at the end
##     claimed of share 0 .. | finished      claimed of share 0 .. | -    left
##
## Items claim tasks one by one, so that none is idle while there is work. With a share for each item,
## where an item begins, it stays at neighbouring tasks, and at other counters than the others, as
## long as nothing is amiss. With one share all items claim from the same counter: with few tasks a
## phase that costs less than to look for some in every share.
##
## No item waits for another one. Who finds all tasks claimed and some not finished looks again for a
## while, and then leaves; who finishes the last task finds that all are, and goes on to the next
## phase. So a launch ends with the right result in whatever order groups run, also one after the
## other. The last item to leave makes the counters zero again. Where items do not see what others
## have written, each phase has a launch of its own (`from`, `to`).
##
## Source: R. D. Blumofe, C. E. Leiserson, "Scheduling multithreaded computations by work stealing",
## JACM 1999; with a counter for each share instead of a deque, as tasks are known beforehand. Cost:
## two atomic operations per task, and three per item and phase at least.
##
## The host guarantees: groups of one item; `counters`, volatile __global uint *, has
## phases * (shares + 1) + 1 words, zero before the first launch and after the last, and one launch at a
## time has them; items see what others have written before a fence and an atomic operation; fewer
## than 2^31 tasks a phase. index_t is an unsigned type that counts the tasks. For `phases` the kernel
## has `from` and `to`, the phases of this launch, and `last`, how many there are in all, as uint.
##
## The body of `split`, `phases` and `phase` does one `task` of `tasks`.
##
## tasks      OpenCL C: how many tasks there are
## number     of the phase
## shares     OpenCL C: how many shares there are
## max_polls  how often an item looks for others to finish; None where nothing after the phase needs it
## waits      OpenCL C: whether something does, where that is known only then
<%def name="split(tasks)">\
    const index_t tasks = ${tasks};
    const index_t begin = (index_t)((ulong)tasks * get_global_id(0) / get_global_size(0));
    const index_t end = (index_t)((ulong)tasks * (get_global_id(0) + 1) / get_global_size(0));
    for (index_t task = begin; task < end; ++task)
        ${caller.body()}\
</%def>\
<%def name="begin(shares='(uint)get_global_size(0)')">\
    const uint shares = ${shares};
    bool here = true;
</%def>\
<%def name="phase(number, tasks, max_polls, waits='true')">\
    if (here) {
        const index_t tasks = ${tasks};
        volatile __global uint *claimed = counters + ${number} * (shares + 1);
        volatile __global uint *finished = claimed + shares;
        /* Do the tasks of this item's share, then what is left of the others'. */
        for (uint other = 0; other < shares; ++other) {
            const uint share = ((uint)get_global_id(0) + other) % shares;
            const index_t begin = (index_t)((ulong)tasks * share / shares);
            const index_t end = (index_t)((ulong)tasks * (share + 1) / shares);
            for (;;) {
                const index_t task = begin + atomic_inc(&claimed[share]);
                if (task >= end)
                    break;
                ${caller.body()}\
                mem_fence(CLK_GLOBAL_MEM_FENCE); /* what was written is seen before it is counted */
                atomic_inc(finished);
            }
        }
% if max_polls is not None:
        /* Look for the others to finish, or leave: who finishes the last task goes on. */
        for (uint polls = 0; ${"" if waits == "true" else f"{waits} && "}here && atomic_or(finished, 0) != tasks; ++polls)
            here = polls < ${max_polls};
        mem_fence(CLK_GLOBAL_MEM_FENCE);
% endif
    }
</%def>\
<%def name="end(phases)">\
    /* The last to leave, when all is done, makes the counters ready for the next launch. */
    const uint words = ${phases} * (shares + 1);
    if (atomic_inc(&counters[words]) + 1 == get_global_size(0))
        for (uint t = 0; t <= words; ++t)
            atomic_xchg(&counters[t], 0);
</%def>\
<%def name="phases(tasks, shares, max_polls)">\
${begin(shares)}\
    for (uint phase = from; phase < to; ++phase) {
<%local:phase number="phase" tasks="${tasks}" max_polls="${max_polls}" waits="phase + 1 < to">\
${caller.body()}\
</%local:phase>\
    }
    if (to == last) {
${end("last")}\
    }
</%def>\
