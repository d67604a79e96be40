/*
 * Copy between two strided views of the same shape.
 *
 * Each work-item moves one element. Its index in C order is split into one
 * index a dimension, last dimension fastest:
 *
 *     index = (i0 * shape1 + i1) * shape2 + i2 ...
 *     target[target_offset + sum i_d * target_stride_d]
 *         = source[source_offset + sum i_d * source_stride_d]
 *
 * The host guarantees that both views lie inside their buffers and that the
 * target's elements do not overlap. Strides and offsets count elements and
 * strides may be negative or zero.
 *
 * ELEMENT_T  OpenCL C type of the size of one element
 * NDIM       dimensions of the views, at least 1
 * WG_SIZE    work-items in a work-group
 */
<%page args="ELEMENT_T, NDIM, WG_SIZE"/>\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void copy_strided(__global const ${ELEMENT_T} *restrict source,
                  __global ${ELEMENT_T} *restrict target,
                  const ulong count,
                  const long source_offset,
                  const long target_offset\
% for d in range(NDIM):
,
                  const ulong shape_${d},
                  const long source_stride_${d},
                  const long target_stride_${d}\
% endfor
)
{
    const ulong index = get_global_id(0);
    if (index < count) {
        ulong rest = index;
        long from = source_offset;
        long to = target_offset;
% for d in reversed(range(NDIM)):
        {
            const long i = (long)(rest % shape_${d});
            rest /= shape_${d};
            from += i * source_stride_${d};
            to += i * target_stride_${d};
        }
% endfor
        target[to] = source[from];
    }
}
