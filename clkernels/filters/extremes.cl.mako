/*
 * Minima and maxima along two neighbouring axes in one launch: down the columns, then along the rows.
 *
 *     image      p p p p p p p p p        lines      m m m m m m m m m        result   r r r r r
 *                p p p p p p p p p                       |-----|
 *                    v v v            ->  ROWS rows of minima of columns,  ->  minima of these
 *                p p p p p p p p p        with those of columns beyond
 *                                         the edges at both ends
 *
 * The columns of ROWS rows have all but 2 (ROWS - 1) values in common, which are reduced once. Windows along
 * a row grow by doubling, and the last two overlap: W(k) at a place reduces k values, W(2k) = W(k) here and
 * k places on.
 *
 * Source: own; windows that grow after J. Gil, R. Kimmel, "Efficient dilation, erosion, opening, and
 * closing algorithms", IEEE TPAMI 2002, and others.
 *
 * The host guarantees: image and result are contiguous, outer x h x w x inner, and do not overlap; w * inner <
 * 2^30; dimension 0 of the grid has a group for each part of a row, dimension 1 for each `band` rows,
 * dimension 2 for each plane (or fewer). `lines` has room for ROWS lines, which are `pitch` values apart: a
 * part, what lies around it, and 2 BLOCK vectors more; for groups of several items, for twice as many.
 * `places` has room for size_y + ROWS numbers. A window has its own place.
 *
 * NUMBERS   see numbers.mako
 * ROWS      rows of results that are computed side by side
 * BLOCK     vectors of a row that are computed side by side
 * WG_SIZE   items of a group; with vectors it is 1
 */
<%page args="NUMBERS, ROWS, BLOCK, WG_SIZE"/>\
<%namespace name="numbers" file="numbers.mako"/>\
<%
    width, alone = NUMBERS.width, WG_SIZE == 1
    step = BLOCK * width

    def local(pointer):
        return numbers.module.at(NUMBERS, "local", "sum", pointer)
%>\
${numbers.declare(NUMBERS)}\
% if alone:
#define MEET
% else:
#define MEET barrier(CLK_LOCAL_MEM_FENCE)
% endif

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void filter_extremes(
    __global const element_t *restrict image,
    __global result_t *restrict result,
    __local sum_t *lines,
    __local long *places,
    const int pitch,
    const ulong outer,
    const int h,
    const int w,
    const int inner,
    const int band,
    const int size_y,
    const int before_y,
    const int mode_y,
    const int size_x,
    const int before_x,
    const int mode_x,
    const sum_t cval_0,
    const sum_t cval_1)
{
    const int length = w * inner;
    const long parts = get_num_groups(0), part = get_group_id(0);
    const int first_x = (int)(w * part / parts);
    const int wide = ((int)(w * (part + 1) / parts) - first_x) * inner;
    const int all = wide + (size_x - 1) * inner;
    const int first = (int)get_group_id(1) * band, last = min(first + band, h);
    /* A window that reaches beyond an edge has the value there, too: so that may be continued by it. */
    const bool fixed = mode_y == 0;
    for (ulong plane = get_group_id(2); plane < outer; plane += get_num_groups(2)) {
        __global const element_t *source = image + plane * h * length;
        for (int y = first; y < last; y += ${ROWS}) {
            for (int j = get_local_id(0); j < size_y + ${ROWS - 1}; j += ${WG_SIZE})
                places[j] = (long)extend(y + j - before_y, h, fixed ? 1 : mode_y) * length;
            MEET;
% if alone:
            const int begin = (first_x - before_x) * inner;
            const int low = max(0, -begin), high = min(all, length - begin);
            const bool whole = high - low >= ${step};
            for (int k = low; whole && k < high; k += ${step}) {
                const int to = min(k, high - ${step}), at = begin + to;
${down(BLOCK)}\
            }
% endif
            for (int k = ${"0" if alone else "get_local_id(0)"}; k < all; k += ${WG_SIZE}) {
% if alone:
                if (whole && k == low)
                    k = high;
                if (k >= all)
                    break;
% endif
                const int place = extend(first_x - before_x + k / inner, w, mode_x);
                const int at = place * inner + k % inner;
                if (place < 0) {
                    for (int o = 0; o < ${ROWS}; ++o)
                        lines[o * pitch + k] = ${numbers.module.cval(NUMBERS, "k")};
                    continue;
                }
% if alone:
                const bool known = whole && at - begin >= low && at - begin < high;
                for (int o = 0; o < ${ROWS}; ++o) {
                    if (known) {
                        lines[o * pitch + k] = lines[o * pitch + at - begin];
                        continue;
                    }
                    sum_t found = (sum_t)source[places[o] + at];
                    for (int j = 1; j < size_y; ++j) {
                        const sum_t v = (sum_t)source[places[o + j] + at];
                        found = REDUCE(found, v);
                    }
                    const int top = y + o - before_y;
                    lines[o * pitch + k] = fixed && (top < 0 || top + size_y > h) ? REDUCE(found, cval_0) : found;
                }
% else:
                const int to = k;
${down(1)}\
% endif
            }
            MEET;
% if alone:
            for (int o = 0; o < min(${ROWS}, last - y); ++o) {
                __local sum_t *line = lines + o * pitch;
                __global result_t *target = result + (plane * h + y + o) * length + (long)first_x * inner;
                int k = 1;
                for (; 2 * k <= size_x; k *= 2)
                    for (int x = 0; x < all - (2 * k - 1) * inner; x += ${step}) {
% for v in range(BLOCK):
                        const sum_vec_t value_${v} = ${local(f"line + x + {v * width}")}, other_${v} = ${local(f"line + x + k * inner + {v * width}")};
% endfor
% for v in range(BLOCK):
                        ${local(f"line + x + {v * width}")} = REDUCE(value_${v}, other_${v});
% endfor
                    }
                for (int x = 0; x < wide; x += WIDTH) {
                    const sum_vec_t value = ${local("line + x")}, other = ${local("line + x + (size_x - k) * inner")};
                    store(REDUCE(value, other), target + x, target + x, wide - x);
                }
            }
% else:
            __local sum_t *from = lines, *to = lines + ${ROWS} * pitch;
            int k = 1;
            for (; 2 * k <= size_x; k *= 2) {
                for (int x = get_local_id(0); x < ${ROWS} * pitch - k * inner; x += ${WG_SIZE})
                    to[x] = REDUCE(from[x], from[x + k * inner]);
                __local sum_t *swapped = from;
                from = to;
                to = swapped;
                MEET;
            }
            for (int x = get_local_id(0); x < wide; x += ${WG_SIZE}) {
                const long target = (plane * h + y) * length + (long)first_x * inner + x;
                __local const sum_t *ends = from + (size_x - k) * inner;
% for o in range(ROWS):
                if (y + ${o} < last)
                    result[target + ${o}L * length] = to_result(REDUCE(from[${o} * pitch + x], ends[${o} * pitch + x]));
% endfor
            }
            MEET;
% endif
        }
    }
}
## Reduce `count` vectors of columns from place `at` of each row on, to the lines at place `to`.
<%def name="down(count)">\
<%
    def read(j, v):
        return "to_sum(" + numbers.module.at(NUMBERS, "global const", "element", f"source + places[{j}] + at + {v * width}") + ")"

    def reduce(name, other):
        return f"{name} = REDUCE({name}, {other});"
%>\
% for o in range(ROWS):
                sum_vec_t ${", ".join(f"least_{o}_{v}" for v in range(count))};
% endfor
                if (size_y >= ${ROWS}) {
<% end = ROWS - 1 %>\
% for v in range(count):
                    least_${end}_${v} = ${read(end, v)};
% endfor
                    for (int j = ${ROWS}; j < size_y; ++j) {
% for v in range(count):
                        const sum_vec_t value_${v} = ${read("j", v)};
% endfor
% for v in range(count):
                        ${reduce(f"least_{end}_{v}", f"value_{v}")}
% endfor
                    }
% for v in range(count):
                    {
                        sum_vec_t ahead = ${read(end - 1, v)};
% for o in reversed(range(end)):
                        least_${o}_${v} = REDUCE(least_${end}_${v}, ahead);
% if o:
                        {
                            const sum_vec_t value = ${read(o - 1, v)};
                            ${reduce("ahead", "value")}
                        }
% endif
% endfor
                        sum_vec_t behind = ${read("size_y", v)};
% for o in range(1, ROWS):
                        ${reduce(f"least_{o}_{v}", "behind")}
% if o < end:
                        {
                            const sum_vec_t value = ${read(f"size_y + {o}", v)};
                            ${reduce("behind", "value")}
                        }
% endif
% endfor
                    }
% endfor
                } else {
% for o in range(ROWS):
% for v in range(count):
                    least_${o}_${v} = ${read(o, v)};
% endfor
                    for (int j = 1; j < size_y; ++j) {
% for v in range(count):
                        const sum_vec_t value_${v} = ${read(f"j + {o}", v)};
                        ${reduce(f"least_{o}_{v}", f"value_{v}")}
% endfor
                    }
% endfor
                }
                if (fixed) {
                    const sum_vec_t value = cval_0;
% for o in range(ROWS):
                    if (y + ${o} < before_y || y + ${o} - before_y + size_y > h) {
% for v in range(count):
                        ${reduce(f"least_{o}_{v}", "value")}
% endfor
                    }
% endfor
                }
% for o in range(ROWS):
% for v in range(count):
                ${local(f"lines + {o} * pitch + to + {v * width}")} = least_${o}_${v};
% endfor
% endfor
</%def>\
