/*
 * An example of clkernels/common/widen.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       dft n=1000 dtype=float16
 *     algorithm     direct-naive
 *     configuration WG_SIZE=64
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        widen, (256,) items in groups of (256,)
 */
/*
 * Converts half precision to float as it is read, eight numbers an item: vload_half is core
 * OpenCL C and needs no arithmetic in halfs of the device.
 *
 *     source  h h h h h h h h | h h h h h h h h | h h h
 *     target  f f f f f f f f | f f f f f f f f | f f f      one item each
 *
 * The host guarantees: the arrays do not overlap; there is an item for every eight numbers,
 * the last of which may be missing.
 *
 * WG_SIZE  work-items in a work-group
 */
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void widen(__global const half *restrict source,
           __global float *restrict target,
           const ulong count)
{
    const ulong first = 8 * (ulong)get_global_id(0);
    if (first + 8 <= count) {
        vstore8(vload_half8(0, source + first), 0, target + first);
    } else {
        for (ulong i = first; i < count; ++i)
            target[i] = vload_half(i, source);
    }
}
