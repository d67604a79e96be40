/*
 * An example of clkernels/doctor/peak_arithmetic.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    REAL_T=float, VECTOR_WIDTH=4, CHAINS=4, UNROLL=2, WG_SIZE=64
 */
/*
 * Probe: the peak of multiply-add arithmetic.
 *
 * Source: own. A multiply-add waits for the one before it in its chain, so that it takes
 * several independent chains, all in registers, to keep the pipelines of a core full.
 *
 *   chain 0     x0 -> x0*scale + shift -> ...          CHAINS vectors an item; all of them
 *   chain 1     x1 -> x1*scale + shift -> ...          make `rounds` * UNROLL steps
 *   ...                                                sums[item] = x0 + x1 + ...
 *
 * Plain operators, which compilers contract: built-ins on wide vectors crash some drivers.
 * With scale = shift = 1 a chain counts its own steps exactly, as long as they are fewer than
 * 2**23, so that the result shows whether all of them were made.
 *
 * The host guarantees: start holds CHAINS vectors, sums one for each item.
 *
 *   REAL_T        float or double
 *   VECTOR_WIDTH  numbers in a vector
 *   CHAINS        independent vectors of an item
 *   UNROLL        steps of each chain in one round
 *   WG_SIZE       work-items in a work-group
 */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void multiply_add(__global const float4 *restrict start, __global float4 *restrict sums,
                  const float scale, const float shift, const uint rounds) {
    // Items differ, or a compiler could do the work of all of them once.
    const float own = (float)(get_global_id(0) & 15);
    float4 x0 = start[0] + own;
    float4 x1 = start[1] + own;
    float4 x2 = start[2] + own;
    float4 x3 = start[3] + own;
    for (uint round = 0; round < rounds; round++) {
        x0 = x0 * scale + shift;
        x1 = x1 * scale + shift;
        x2 = x2 * scale + shift;
        x3 = x3 * scale + shift;
        x0 = x0 * scale + shift;
        x1 = x1 * scale + shift;
        x2 = x2 * scale + shift;
        x3 = x3 * scale + shift;
    }
    sums[get_global_id(0)] = x0 + x1 + x2 + x3;
}
