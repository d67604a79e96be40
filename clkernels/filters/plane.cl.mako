/*
 * Sums along two neighbouring axes in one launch, for CPUs: down the columns, then along the rows.
 *
 *     image      p p p p p p p p p        lines      s s s s s s s s s        result   r r r r r
 *                p p p p p p p p p                       |-----|
 *                    v v v            ->  ROWS rows of sums of columns,   ->  sums of these
 *                p p p p p p p p p        with those of columns beyond
 *                                         the edges at both ends
 *
 * Rows are read where they are, and each for ROWS rows of results. Nothing but the sums of ROWS rows is
 * kept, so no value is computed twice but at the borders of tiles along a row.
 *
 * Source: own.
 *
 * The host guarantees: image and result are contiguous, outer x h x w x inner, and do not overlap; dimension 0 of
 * the grid has a group for each part of the rows, which have at least BLOCK vectors, dimension 1 for
 * each `band` rows, dimension 2 for each plane. `lines` has room for ROWS lines, and one more for means, which are `pitch` values
 * apart: a part and what lies around it, and 2 BLOCK vectors more. `places` has room for size_y + ROWS
 * numbers. No mode is constant.
 *
 * NUMBERS   see numbers.mako
 * ROWS      rows of results that are computed side by side
 * BLOCK     vectors of a row that are computed side by side
 */
<%page args="NUMBERS, ROWS, BLOCK"/>\
<%namespace name="numbers" file="numbers.mako"/>\
<%!
    SHORT = 16  # windows of means along rows that are summed value by value
    SOME = 16  # rows that are summed before their sum is added
%>\
<%
    width, weighted = NUMBERS.width, NUMBERS.reduce == "sum"
    real = NUMBERS.sum in numbers.module.REALS
    # Means that are cut after each axis are divided twice.
    def of_column(sum_):
        if weighted:
            return sum_
        return f"{sum_} * scale" if real else f"mean_of({sum_}, size_y)"

    def of_row(sum_):
        if weighted:
            return sum_
        return f"{sum_} / whole" if real else f"mean_of({sum_}, size_x)"

    def local(pointer):
        return numbers.module.at(NUMBERS, "local", "sum", pointer)

    def image(place, v):
        return "to_sum(" + numbers.module.at(NUMBERS, "global const", "element", f"source + {place} + at + {v * width}") + ")"
%>\
${numbers.declare(NUMBERS)}\
## Add a row of the image, of which place `j` of the column is, to the sums of some rows of results.
<%def name="add(j, rows)">\
            {
% for v in range(BLOCK):
                const sum_vec_t p_${v} = ${image(f"places[{j}]", v)};
% endfor
% for o in rows:
                const sum_t w_${o} = column[${j} - ${o}];
% for v in range(BLOCK):
                sum_${o}_${v} += w_${o} * p_${v};
% endfor
% endfor
            }
</%def>\

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void filter_plane(
    __global const element_t *restrict image,
% if weighted:
    __global const sum_t *restrict weights,
    const int first_column,
    const int first_row,
% endif
    __global result_t *result,
    __global const result_t *earlier,
    __local sum_t *restrict lines,
    __local long *restrict places,
    const int pitch,
    const int h,
    const int w,
    const int inner,
    const int band,
    const int size_y,
    const int before_y,
    const int mode_y,
    const int size_x,
    const int before_x,
    const int mode_x)
{
    const long length = (long)w * inner;
    const int parts = (int)get_num_groups(0), part = (int)get_group_id(0);
    const int first_x = (int)((long)w * part / parts);
    const int wide = ((int)((long)w * (part + 1) / parts) - first_x) * inner;
    const int first = (int)get_group_id(1) * band, last = min(first + band, h);
    const long plane = (long)get_group_id(2) * h * length;
    const long begin = (long)(first_x - before_x) * inner; /* where lines begin */
    const int all = wide + (size_x - 1) * inner;
    const int low = (int)max(0L, -begin), high = (int)min((long)all, length - begin);
    __global const element_t *source = image + plane;
% if weighted:
    __global const sum_t *column = weights + first_column;
% else:
% if real:
    /* A power of two, so that a sum of sums is no larger than a sum. */
    const sum_t scale = (sum_t)1 / (1 << (32 - (int)clz(size_y - 1)));
    const sum_t whole = (sum_t)size_x * size_y * scale;
% endif
    /* Long windows along rows are sums of `count` sums of `step` values each, and of some more values. */
    const int step = size_x < ${SHORT} ? 1 : (int)sqrt((float)size_x), count = size_x / step;
    __local sum_t *sums = lines + ${ROWS} * pitch;
% endif
    for (int y = first; y < last; y += ${ROWS}) {
        for (int j = 0; j < size_y + ${ROWS - 1}; ++j)
            places[j] = extend(y + j - before_y, h, mode_y) * length;
        for (int x = low; x < high; x += ${BLOCK * width}) {
            const int to = min(x, high - ${BLOCK * width});
            const long at = begin + to;
% for o in range(ROWS):
% for v in range(BLOCK):
            sum_vec_t sum_${o}_${v} = 0;
% endfor
% endfor
            if (size_y >= ${ROWS}) {
% if weighted:
% for j in range(ROWS - 1):
${add(j, range(j + 1))}\
% endfor
                for (int j = ${ROWS - 1}; j < size_y; ++j)
${add("j", range(ROWS))}\
                const int end = size_y;
% for j in range(ROWS - 1):
${add(f"(end + {j})", range(j + 1, ROWS))}\
% endfor
% else:
% for v in range(BLOCK):
                sum_vec_t all_${v} = 0, run_${v} = 0;
% endfor
## What all sums have, some rows at a time; what the first ones have besides, and then the last ones.
                for (int j = ${ROWS - 1}; j < size_y;) {
% for v in range(BLOCK):
                    sum_vec_t some_${v} = 0;
% endfor
                    for (const int end = min(j + ${SOME}, size_y); j < end; ++j) {
% for v in range(BLOCK):
                        some_${v} += ${image("places[j]", v)};
% endfor
                    }
% for v in range(BLOCK):
                    all_${v} += some_${v};
% endfor
                }
% for o in reversed(range(ROWS)):
% for v in range(BLOCK):
% if o < ROWS - 1:
                run_${v} += ${image(f"places[{o}]", v)};
% endif
                sum_${o}_${v} = all_${v} + run_${v};
% endfor
% endfor
% for v in range(BLOCK):
                run_${v} = 0;
% endfor
% for o in range(1, ROWS):
% for v in range(BLOCK):
                run_${v} += ${image(f"places[size_y + {o - 1}]", v)};
                sum_${o}_${v} += run_${v};
% endfor
% endfor
% endif
            } else {
                for (int j = 0; j < size_y; ++j) {
% if weighted:
                    const sum_t weight = column[j];
% endif
% for o in range(ROWS):
% for v in range(BLOCK):
                    sum_${o}_${v} += ${"weight * " if weighted else ""}${image(f"places[j + {o}]", v)};
% endfor
% endfor
                }
            }
% for o in range(ROWS):
% for v in range(BLOCK):
            ${local(f"lines + {o} * pitch + to + {v * width}")} = ${of_column(f"sum_{o}_{v}")};
% endfor
% endfor
        }
        for (int k = 0; k < all; ++k) {
            if (k == low)
                k = high;
            if (k >= all)
                break;
            const long place = (long)extend(first_x - before_x + k / inner, w, mode_x) * inner + k % inner;
            const bool near = place - begin >= low && place - begin < high;
            for (int o = 0; o < ${ROWS}; ++o) {
                sum_t sum = near ? lines[o * pitch + (int)(place - begin)] : 0;
                for (int j = 0; !near && j < size_y; ++j)
                    sum += ${"column[j] * " if weighted else ""}(sum_t)source[places[o + j] + place];
% if not weighted:
                if (!near)
                    sum = ${of_column("sum") if real else "sum / size_y"};
% endif
                lines[o * pitch + k] = sum;
            }
        }
        for (int o = 0; o < min(${ROWS}, last - y); ++o) {
            const long target = plane + (y + o) * length + (long)first_x * inner;
% if not weighted:
            for (int x = 0; step > 1 && x < all - (step - 1) * inner; x += ${BLOCK * width}) {
                __local const sum_t *values = lines + o * pitch + x;
% for v in range(BLOCK):
                sum_vec_t sum_${v} = 0;
% endfor
                for (int i = 0; i < step; ++i) {
% for v in range(BLOCK):
                    sum_${v} += ${local(f"values + i * inner + {v * width}")};
% endfor
                }
% for v in range(BLOCK):
                ${local(f"sums + x + {v * width}")} = sum_${v};
% endfor
            }
% endif
            for (int x = 0; x < wide; x += ${2 * BLOCK * width}) {
                __local const sum_t *values = lines + o * pitch + x;
% for v in range(2 * BLOCK):
                sum_vec_t sum_${v} = 0;
% endfor
% if weighted:
                for (int i = 0; i < size_x; ++i) {
                    const sum_t weight = weights[first_row + i];
% for v in range(2 * BLOCK):
                    sum_${v} += weight * ${local(f"values + {v * width}")};
% endfor
                    values += inner;
                }
% else:
                __local const sum_t *some = step > 1 ? sums + x : values;
                for (int i = 0; i < count; ++i) {
% for v in range(2 * BLOCK):
                    sum_${v} += ${local(f"some + {v * width}")};
% endfor
                    some += step * inner;
                }
                for (int i = count * step; i < size_x; ++i) {
% for v in range(2 * BLOCK):
                    sum_${v} += ${local(f"values + i * inner + {v * width}")};
% endfor
                }
% endif
% for v in range(2 * BLOCK):
                store(${of_row(f"sum_{v}")}, result + target + x + ${v * width}, earlier + target + x + ${v * width}, wide - x - ${v * width});
% endfor
            }
        }
    }
}
