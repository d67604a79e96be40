/*
 * An example of clkernels/doctor/local_memory.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    WG_SIZE=64, WORDS=8192, PASSED=True
 */
/*
 * Probe: a work-group that uses WORDS words of local memory at once.
 *
 * Source: own.
 *
 *   tile  | w0 | w1 | ...                    | each word a hash of (position, seed + group)
 *   item l writes l, l + WG_SIZE, ...  and reads the same steps half a tile further
 *
 * The host guarantees: sums holds one element for each item.
 *
 *   WG_SIZE  work-items in a work-group
 *   WORDS    32-bit words of local memory
 *   PASSED   whether the host passes it, as the largest type of OpenCL
 */
uint hash(uint v) {
    v = (v ^ (v >> 16)) * 0x7feb352du;
    v = (v ^ (v >> 15)) * 0x846ca68bu;
    return v ^ (v >> 16);
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void fill_and_sum(__global uint *restrict sums, const uint seed, __local ulong16 *passed) {
    __local uint *tile = (__local uint *)passed;
    const uint l = (uint)get_local_id(0), key = seed + (uint)get_group_id(0);
    for (uint i = l; i < 8192; i += 64) tile[i] = hash(i ^ key);
    barrier(CLK_LOCAL_MEM_FENCE);
    uint sum = 0;
    for (uint i = l; i < 8192; i += 64)
        sum += tile[(i + 4096) % 8192] * (i | 1);
    sums[get_global_id(0)] = sum;
}
