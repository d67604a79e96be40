/*
 * An example of clkernels/doctor/peak_matrix.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    UNITS=warp, TYPE=double
 */
#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
/*
 * Probe: the peak of products by matrix units.
 *
 *   UNITS "warp"        8 chains of 16 x 8 sums a warp: each += ones * ones, from registers
 *   UNITS "warpgroup"   64 x 256 sums a warpgroup: += ones * ones, from tiles in local memory
 *
 *   sums = 0 -> + K -> + K -> ...    K = 16 for half, 8 for others; 4 steps a round
 *
 * Source: own. All sums of an item must be the number of steps times K, exactly.
 *
 * The host guarantees: groups of 128 items, a number in `out` for each item, fewer than
 * 2**23 / K steps; for wgmma the program is loaded again.
 *
 *   UNITS  "warp" or "warpgroup"
 *   TYPE   half, float (as TF32) or double; not double for warpgroups
 */
#define multiply(d, a, b) \
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
    : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]))
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void multiply_tiles(__global double *out, const uint rounds)
{
    double sum[8][4];
    #pragma unroll
    for (uint c = 0; c < 8; c++)
        #pragma unroll
        for (uint e = 0; e < 4; e++)
            sum[c][e] = 0;
    double a[4] = {1.0, 1.0, 1.0, 1.0}, b[2] = {1.0, 1.0};
    for (uint round = 0; round < rounds; round++) {
        multiply(sum[0], a, b);
        multiply(sum[1], a, b);
        multiply(sum[2], a, b);
        multiply(sum[3], a, b);
        multiply(sum[4], a, b);
        multiply(sum[5], a, b);
        multiply(sum[6], a, b);
        multiply(sum[7], a, b);
        multiply(sum[0], a, b);
        multiply(sum[1], a, b);
        multiply(sum[2], a, b);
        multiply(sum[3], a, b);
        multiply(sum[4], a, b);
        multiply(sum[5], a, b);
        multiply(sum[6], a, b);
        multiply(sum[7], a, b);
        multiply(sum[0], a, b);
        multiply(sum[1], a, b);
        multiply(sum[2], a, b);
        multiply(sum[3], a, b);
        multiply(sum[4], a, b);
        multiply(sum[5], a, b);
        multiply(sum[6], a, b);
        multiply(sum[7], a, b);
        multiply(sum[0], a, b);
        multiply(sum[1], a, b);
        multiply(sum[2], a, b);
        multiply(sum[3], a, b);
        multiply(sum[4], a, b);
        multiply(sum[5], a, b);
        multiply(sum[6], a, b);
        multiply(sum[7], a, b);
    }
    bool same = true;
    #pragma unroll
    for (uint c = 0; c < 8; c++)
        #pragma unroll
        for (uint e = 0; e < 4; e++)
            same &= sum[c][e] == sum[0][0];
    out[get_global_id(0)] = same ? sum[0][0] : -1;
}
