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
<%page args="SOURCE_T, TARGET_T, REAL_T, FORM, COMPLEX, CONJUGATE, NDIM, SHIFTED, FILLED, UNIT,
             INDEX_T, WG_SIZE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
${extensions.enable(fp64='double' in TARGET_T or 'double' in SOURCE_T)}\
<%
    sign = "-" if CONJUGATE else ""
    if FORM == "word":
        value = "source[from]"
    elif FORM == "complex":
        value = f"({TARGET_T})(({REAL_T})source[from].x, {sign}({REAL_T})source[from].y)"
    else:
        real = f"({REAL_T})" + ("vload_half(from, source)" if FORM == "half" else "source[from]")
        value = f"({TARGET_T})({real}, {sign}({REAL_T})0)" if COMPLEX else real
%>\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void copy_strided(__global const ${SOURCE_T} *restrict source,
                  __global ${TARGET_T} *restrict target,
                  const ${INDEX_T} count,
                  const long source_offset,
                  const long target_offset\
% for d in range(NDIM):
,
                  const ${INDEX_T} shape_${d},
                  const long source_stride_${d},
                  const long target_stride_${d}\
% if SHIFTED:
,
                  const ${INDEX_T} shift_${d}\
% endif
% if FILLED:
,
                  const ${INDEX_T} extent_${d}\
% endif
% endfor
)
{
    const ${INDEX_T} index = (${INDEX_T})get_global_id(0);
    if (index < count) {
        ${INDEX_T} rest = index;
        long from = source_offset;
        long to = target_offset;
% if FILLED:
        bool inside = true;
% endif
% for d in reversed(range(NDIM)):
        {
% if d:
            const ${INDEX_T} i = rest % shape_${d};
            rest /= shape_${d};
% else:
            const ${INDEX_T} i = rest;
% endif
            to += (long)i${"" if UNIT and d == NDIM - 1 else f" * target_stride_{d}"};
% if SHIFTED:
            const ${INDEX_T} j = i < shift_${d} ? i + (shape_${d} - shift_${d}) : i - shift_${d};
% else:
            const ${INDEX_T} j = i;
% endif
% if FILLED:
            inside = inside && j < extent_${d};
% endif
            from += (long)j${"" if UNIT and d == NDIM - 1 else f" * source_stride_{d}"};
        }
% endfor
% if FILLED:
        if (inside) target[to] = ${value};
        else target[to] = (${TARGET_T})(0);
% else:
        target[to] = ${value};
% endif
    }
}
