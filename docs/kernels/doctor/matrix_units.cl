/*
 * An example of clkernels/doctor/matrix_units.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    UNITS=warp, TYPE=double
 */
#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
/*
 * Probe: one product by matrix units, of a warp or of a warpgroup.
 *
 *   UNITS "warp"        16 x 8 sums += 16 x 8 by 8 x 8, fragments in registers (mma.sync)
 *   UNITS "warpgroup"   64 x 8 sums += 64 x 32 by 32 x 8, tiles in local memory (wgmma)
 *
 *       k ->              the tiles of the warpgroup: rows of 32 numbers,
 *   a  [rows][k]          16-byte chunk c of row r at place c ^ (r % 8)
 *   b  [columns][k]
 *   out [rows][columns]
 *
 * Source: own; PTX ISA 9.0, sections on mma and wgmma. With small whole numbers all sums are exact.
 *
 * The host guarantees: one group of 32 or of 128 items; for wgmma the program is loaded again.
 *
 *   UNITS  "warp" or "warpgroup"
 *   TYPE   float (as TF32) or double; float for warpgroups
 */
#define multiply(d, a, b) \
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
    : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]))
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void multiply_tiles(__global const double *a, __global const double *b, __global double *out)
{
    const uint r = get_local_id(0) / 4, c = get_local_id(0) % 4;
    double left[4], right[2];
    double sum[4] = {0, 0, 0, 0};
    for (uint e = 0; e < 4; e++)
        left[e] = as_double(a[(r + e % 2 * 8) * 8 + c + e / 2 * 4]);
    for (uint e = 0; e < 2; e++)
        right[e] = as_double(b[r * 8 + c + 4 * e]);
    multiply(sum, left, right);
    for (uint e = 0; e < 4; e++)
        out[(r + e / 2 * 8) * 8 + 2 * c + e % 2] = sum[e];
}
