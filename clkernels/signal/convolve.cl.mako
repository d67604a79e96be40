/*
 * Convolution of two strided arrays by its definition, along some axes; a product along the others.
 *
 * Each work-item makes one element of the result. Its index in C order is split into one index a
 * dimension, last dimension fastest:
 *
 *     convolved axis    result[i] = sum over k of a[i + start - k] * b[k]
 *     other axis        result[i] = a[i] * b[i]; a stride of 0 repeats an array of length 1
 *
 *     a         3 1 4            start 0, a result of 4:    3*2   1*2+3*5   4*2+1*5   4*5
 *     b         2 5
 *
 * Source: none; it is the definition.
 *
 * The host guarantees that both views lie inside their buffers. Strides and offsets count elements
 * and may be negative, as where a correlation reverses b.
 *
 * A_T, B_T     OpenCL C types of the elements of both
 * A_COMPLEX, B_COMPLEX   whether they are complex
 * RESULT_T     that of the result, which is complex if one of them is
 * SUM_T        real type in which sums are made; unsigned for integers, which wrap around
 * CONJUGATE    whether b is conjugated
 * TRUTH        whether the result is whether the sum is not zero
 * CONVOLVED    for each dimension, at least one, whether it is convolved
 * INDEX_T      unsigned type that counts the results
 * WG_SIZE      work-items in a work-group
 */
<%page args="A_T, B_T, A_COMPLEX, B_COMPLEX, RESULT_T, SUM_T, CONJUGATE, TRUTH, CONVOLVED, INDEX_T,
             WG_SIZE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
${extensions.enable(fp64=SUM_T == "double" or "double" in A_T + B_T)}\
<%
    COMPLEX = A_COMPLEX or B_COMPLEX
    SUM = SUM_T + "2" if COMPLEX else SUM_T
    loops = [d for d, convolved in enumerate(CONVOLVED) if convolved]
    minus = "-" if CONJUGATE else ""
%>\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void convolve(__global const ${A_T} *restrict a,
              __global const ${B_T} *restrict b,
              __global ${RESULT_T} *restrict result,
              const ${INDEX_T} count,
              const long from_a,
              const long from_b\
% for d, convolved in enumerate(CONVOLVED):
,
              const ${INDEX_T} shape_${d},
              const long a_stride_${d},
              const long b_stride_${d}\
% if convolved:
,
              const long start_${d},
              const long a_size_${d},
              const long b_size_${d}\
% endif
% endfor
)
{
    const ${INDEX_T} index = (${INDEX_T})get_global_id(0);
    if (index >= count) return;
    ${INDEX_T} rest = index;
    long a_all = from_a, b_all = from_b;
% for d in reversed(range(len(CONVOLVED))):
% if d:
    const long i_${d} = rest % shape_${d};
    rest /= shape_${d};
% else:
    const long i_${d} = rest;
% endif
% if CONVOLVED[d]:
    const long place_${d} = i_${d} + start_${d};
    const long first_${d} = max(place_${d} - a_size_${d} + 1, 0L);
    const long last_${d} = min(place_${d}, b_size_${d} - 1);
    a_all += place_${d} * a_stride_${d};
% else:
    a_all += i_${d} * a_stride_${d};
    b_all += i_${d} * b_stride_${d};
% endif
% endfor
    ${SUM} sum = 0;
<% before = "all" %>\
% for d in loops:
    for (long k_${d} = first_${d}; k_${d} <= last_${d}; k_${d}++) {
        const long a_${d} = a_${before} - k_${d} * a_stride_${d};
        const long b_${d} = b_${before} + k_${d} * b_stride_${d};
<% before = str(d) %>\
% endfor
% if A_COMPLEX:
    const ${SUM} x = (${SUM})(a[a_${before}].x, a[a_${before}].y);
% else:
    const ${SUM_T} x = (${SUM_T})a[a_${before}];
% endif
% if B_COMPLEX:
    const ${SUM} y = (${SUM})(b[b_${before}].x, ${minus}b[b_${before}].y);
% else:
    const ${SUM_T} y = (${SUM_T})b[b_${before}];
% endif
% if A_COMPLEX and B_COMPLEX:
    sum += (${SUM})(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
% else:
    sum += x * y;
% endif
% for d in loops:
    }
% endfor
% if TRUTH:
    result[index] = sum != 0;
% elif COMPLEX:
    result[index] = sum;
% else:
    result[index] = (${RESULT_T})sum;
% endif
}
