/*
 * An example of clkernels/common/copy.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       300 x 200 numbers of float16 to float32
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        copy_strided, (60160,) items in groups of (256,)
 */
/*
 * Copy between two strided views, which may convert, conjugate, roll and fill with zeros.
 *
 * Each work-item makes one element of the target. Its index in C order is split
 * into one index a dimension, last dimension fastest:
 *
 *     index = (i0 * shape1 + i1) * shape2 + i2 ...
 *     target[target_offset + sum i_d * target_stride_d]
 *         = source[source_offset + sum j_d * source_stride_d]
 *
 *     j_d = (i_d - shift_d) mod shape_d, and zero where j_d >= extent_d
 *
 *     source                 3 1 4            extent 3
 *     shape 5                3 1 4 0 0
 *     shape 5, shift 2       0 0 3 1 4
 *
 * Source: none; each item moves one number.
 *
 * The host guarantees that both views lie inside their buffers, that the target's
 * elements do not overlap, that source and target do not, and 0 <= shift_d < shape_d.
 * Strides and offsets count elements and strides may be negative or zero.
 *
 * SOURCE_T   OpenCL C type of an element of the source
 * TARGET_T   OpenCL C type of an element of the target
 * REAL_T     that of its components, where numbers are converted
 * FORM       what the source holds: word (moved as it is), real, half or complex
 * COMPLEX    whether the target is complex
 * CONJUGATE  whether the imaginary part changes its sign
 * NDIM       dimensions of the views, at least 1
 * SHIFTED    whether there are shifts
 * FILLED     whether there are extents
 * UNIT       whether both strides of the last dimension are 1
 * INDEX_T    unsigned type that counts the elements
 * WG_SIZE    work-items in a work-group
 */
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void copy_strided(__global const half *restrict source,
                  __global float *restrict target,
                  const uint count,
                  const long source_offset,
                  const long target_offset,
                  const uint shape_0,
                  const long source_stride_0,
                  const long target_stride_0,
                  const uint shape_1,
                  const long source_stride_1,
                  const long target_stride_1)
{
    const uint index = (uint)get_global_id(0);
    if (index < count) {
        uint rest = index;
        long from = source_offset;
        long to = target_offset;
        {
            const uint i = rest % shape_1;
            rest /= shape_1;
            to += (long)i * target_stride_1;
            const uint j = i;
            from += (long)j * source_stride_1;
        }
        {
            const uint i = rest;
            to += (long)i * target_stride_0;
            const uint j = i;
            from += (long)j * source_stride_0;
        }
        target[to] = (float)vload_half(from, source);
    }
}
