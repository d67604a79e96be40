/*
 * An example of clkernels/doctor/progress.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    PTX=False
 */
#define DEVICE_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
/*
 * Probe: do work-groups of one launch progress independently of each other, and see what
 * others have written?
 *
 * Source: own; `chain` is the waiting pattern of a scan with decoupled look-back
 * (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016).
 *
 *   chain       ticket 0 -> 1 -> 2 -> ...   each group waits for one that started before it
 *   rendezvous  all groups wait until all groups have arrived
 *   publish     each group writes cells; who sees that all have, reads them all
 *
 * Every wait ends after `patience` polls, and the first group to lose patience
 * releases all others through `gave_up`: no outcome hangs the device.
 *
 * The host guarantees: x, sums and ready hold one element for each group; ready,
 * counter and gave_up are zero at the start. `publish` has groups of one item; x and cells hold
 * `size` words for each, and cells and counts (finished, saw, wrong) are zero at the start.
 *
 * PTX   whether the device takes inline PTX
 */
#define READ(p) atomic_or((p), 0u)

__kernel void chain(__global const uint *restrict x, volatile __global uint *sums,
                    volatile __global uint *ready, volatile __global uint *counter,
                    volatile __global uint *gave_up, const uint patience) {
    if (get_local_id(0) == 0) {
        const uint ticket = atomic_inc(counter);
        uint sum = 0;
        if (ticket > 0) {
            uint polls = 0;
            while (READ(&ready[ticket - 1]) == 0 && READ(gave_up) == 0)
                if (++polls == patience) atomic_xchg(gave_up, 1u);
            DEVICE_FENCE();
            sum = sums[ticket - 1];
        }
        sums[ticket] = sum + x[ticket];
        // The sum must be seen before the flag that announces it.
        DEVICE_FENCE();
        atomic_xchg(&ready[ticket], 1u);
    }
}

__kernel void rendezvous(volatile __global uint *counter, volatile __global uint *gave_up,
                         const uint patience) {
    if (get_local_id(0) == 0) {
        const uint groups = (uint)get_num_groups(0);
        uint polls = 0;
        atomic_inc(counter);
        while (READ(counter) != groups && READ(gave_up) == 0)
            if (++polls == patience) atomic_xchg(gave_up, 1u);
    }
}

__kernel void publish(__global const uint *restrict x, __global uint *cells, __global uint *sink,
                      volatile __global uint *counts, const uint size, const uint patience) {
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    /* What is read now is old, and may stay in a near memory. */
    uint before = 0;
    for (uint i = 0; i < groups * size; ++i) before += cells[i];
    sink[group] = before;
    for (uint i = 0; i < size; ++i) cells[group * size + i] = x[group * size + i] + 1;
    DEVICE_FENCE();
    atomic_inc(&counts[0]);
    for (uint polls = 0; polls < patience && READ(&counts[0]) != groups; ++polls);
    if (READ(&counts[0]) == groups) {
        DEVICE_FENCE();
        uint wrong = 0;
        for (uint i = 0; i < groups * size; ++i) wrong += cells[i] != x[i] + 1;
        atomic_inc(&counts[1]);
        atomic_add(&counts[2], wrong);
    }
}
