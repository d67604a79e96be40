/*
 * Sums along two neighbouring axes in one launch, for GPUs: down the columns, then along the rows.
 *
 *     image      p p p p p p p p p        lines      s s s s s s s s s        result   r r r r r r r
 *                p p p p p p p p p                   s s s s s s s s s                 r r r r r r r
 *                : : : : : : : : :  ->    sums of columns, with those of    ->  sums of rows of these,
 *                p p p p p p p p p        columns beyond the edges              four by an item
 *
 * An item keeps ROWS + STEP - 1 values of its column in registers, and each of them serves ROWS sums.
 * With several TERMS, each has weights of its own for the same windows: their results, or the squares of
 * these, are added. Without rows (ALONE) the sums of columns are the results.
 *
 * Source: own.
 *
 * The host guarantees: image and result are contiguous, outer x h x w x inner, and do not overlap; the grid has
 * a group for each of `parts` parts of the rows, of `part` places, for each of `bands` bands of rows, of `band`
 * ones, for each plane. `lines` has TERMS * ROWS lines of `pitch` values, a multiple of 4: a part
 * and what lies around it, and 8 places more. `taps` has room for the weights of columns and rows of each term,
 * each rounded up to a multiple of 8, `rows` for size_y + ROWS numbers. No mode is constant. If inner is 1, part is a multiple of 4.
 *
 * NUMBERS   see numbers.mako
 * TERMS     pairs of filters
 * SQUARES   whether their squares are added
 * ALONE     whether there is no filter of rows; inner is 1 then
 * ADJACENT  whether inner is 1
 * ROWS      sums of a column that an item makes side by side
 * SUB_GROUP items of a sub-group, 0: the compiler chooses
 * WG_SIZE   items of a group
 */
<%page args="NUMBERS, TERMS, SQUARES, ALONE, ADJACENT, ROWS, SUB_GROUP, WG_SIZE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="numbers" file="numbers.mako"/>\
<%namespace name="types" file="/common/types.mako"/>\
<%
    weighted = NUMBERS.reduce == "sum"
    STEP = 8
    FOUR = 4

    def times(weight):
        return f"{weight} * " if weighted else ""
%>\
${numbers.declare(NUMBERS)}\
typedef ${NUMBERS.sum}4 four_t;
% if NUMBERS.result != "bool":
typedef ${NUMBERS.result}4 result_four_t;
% endif

## Add some of four taps of term `t` from tap j on, of which `now` has the values.
<%def name="along(t, count)">\
<% sure = count == FOUR %>\
% if ADJACENT:
                    next = fours[j / 4 + 1];
% else:
                    __local const sum_t *more = values + (j + 4) * inner;
                    next.s0 = more[0];
                    next.s1 = more[inner];
                    next.s2 = more[2 * inner];
                    next.s3 = more[3 * inner];
% endif
% if weighted:
                    const four_t weight = taps[(${t} * of_a_term + columns_of_taps + j) / 4];
% endif
                    sum += ${times("weight.s0")}now;
% for s, shifted in enumerate(("now.s123, next.s0", "now.s23, next.s01", "now.s3, next.s012"), 1):
% if sure:
                    sum += ${times(f"weight.s{s}")}(four_t)(${shifted});
% elif s < count:
                    if (j + ${s} < size_x)
                        sum += ${times(f"weight.s{s}")}(four_t)(${shifted});
% endif
% endfor
</%def>\

__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void filter_sheet(
    __global const element_t *restrict image,
% if weighted:
    __global const sum_t *restrict weights,
% for t in range(TERMS):
    const int first_column_${t},
    const int first_row_${t},
% endfor
% endif
    __global result_t *result,
    __global const result_t *earlier,
    __local four_t *lines,
    __local four_t *taps,
    __local int *rows,
    const int pitch,
    const int parts,
    const int part,
    const int bands,
    const int band,
    const int h,
    const int w,
    const int inner,
    const int size_y,
    const int before_y,
    const int mode_y,
    const int size_x,
    const int before_x,
    const int mode_x)
{
    __local sum_t *line_values = (__local sum_t *)lines;
    const int item = get_local_id(0);
    const long length = (long)w * inner;
    const int first_x = (int)(get_group_id(0) % parts) * part;
    const int others = (int)(get_group_id(0) / parts);
    const int first = others % bands * band, last = min(first + band, h);
    const long plane = (long)(others / bands) * h * length;
    const int places = min(part, w - first_x);
    const int all = (places + size_x - 1) * inner;
    __global const element_t *source = image + plane;
% if weighted:
    __local sum_t *tap_values = (__local sum_t *)taps;
    const int columns_of_taps = (size_y + 7) & ~7, of_a_term = columns_of_taps + ((size_x + 7) & ~7);
% for t in range(TERMS):
    for (int j = item; j < size_y; j += ${WG_SIZE})
        tap_values[${t} * of_a_term + j] = weights[first_column_${t} + j];
% if not ALONE:
    for (int j = item; j < size_x; j += ${WG_SIZE})
        tap_values[${t} * of_a_term + columns_of_taps + j] = weights[first_row_${t} + j];
% endif
% endfor
% endif
    for (int y = first; y < last; y += ${ROWS}) {
        for (int j = item; j < size_y + ${ROWS - 1}; j += ${WG_SIZE})
            rows[j] = extend(y - before_y + j, h, mode_y);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = item; k < all; k += ${WG_SIZE}) {
% if ADJACENT:
            __global const element_t *top = source + extend(first_x - before_x + k, w, mode_x);
% else:
            const int place = k / inner;
            __global const element_t *top = source + (long)extend(first_x - before_x + place, w, mode_x) * inner + (k - place * inner);
% endif
#define ROW(j) (sum_t)top[rows[j] * length]
% for t in range(TERMS):
            sum_t ${", ".join(f"sum_{t}_{o} = 0" for o in range(ROWS))};
% endfor
            sum_t ${", ".join(f"p_{i}" for i in range(ROWS + STEP - 1))};
% for i in range(ROWS - 1):
            p_${i} = ROW(${i});
% endfor
            int j = 0;
            for (; j + ${STEP} <= size_y; j += ${STEP}) {
% for i in range(ROWS - 1, ROWS + STEP - 1):
                p_${i} = ROW(j + ${i});
% endfor
% for t in range(TERMS):
% for four in range(STEP // FOUR):
                {
% if weighted:
                    const four_t weight = taps[(${t} * of_a_term + j) / 4 + ${four}];
% endif
% for s in range(FOUR):
% for o in range(ROWS):
                    sum_${t}_${o} += ${times(f"weight.s{s}")}p_${o + FOUR * four + s};
% endfor
% endfor
                }
% endfor
% endfor
% for i in range(ROWS - 1):
                p_${i} = p_${i + STEP};
% endfor
            }
% for s in range(STEP - 1):
            if (j + ${s} < size_y) {
                p_${ROWS - 1 + s} = ROW(j + ${ROWS - 1 + s});
% for t in range(TERMS):
% if weighted:
                const sum_t weight_${t} = tap_values[${t} * of_a_term + j + ${s}];
% endif
% for o in range(ROWS):
                sum_${t}_${o} += ${times(f"weight_{t}")}p_${o + s};
% endfor
% endfor
            }
% endfor
#undef ROW
% if not weighted:
% for o in range(ROWS):
            sum_0_${o} = mean_of(sum_0_${o}, size_y);
% endfor
% endif
% if ALONE:
% for o in range(ROWS):
            {
                const long target = plane + (y + ${o}) * length + first_x + k;
                store(sum_0_${o}, result + target, earlier + target, last - y - ${o});
            }
% endfor
% else:
% for t in range(TERMS):
% for o in range(ROWS):
            line_values[${t * ROWS + o} * pitch + k] = sum_${t}_${o};
% endfor
% endfor
% endif
        }
% if not ALONE:
        barrier(CLK_LOCAL_MEM_FENCE);
        const int many = (places + 3) / 4 * inner;
        const float one = 1.0f / many;
        for (int i = item; i < ${ROWS} * many; i += ${WG_SIZE}) {
            const int o = (int)((i + 0.5f) * one), rest = i - o * many;
% if ADJACENT:
            const int x = 4 * rest, c = 0;
% else:
            const int x = rest / inner * 4, c = rest % inner;
% endif
            four_t total = 0;
% for t in range(TERMS):
            {
                four_t sum = 0;
% if ADJACENT:
                __local const four_t *fours = lines + ((${t * ROWS} + o) * pitch + x) / 4;
                four_t now = fours[0], next = 0;
% else:
                __local const sum_t *values = line_values + (${t * ROWS} + o) * pitch + x * inner + c;
                four_t now = (four_t)(values[0], values[inner], values[2 * inner], values[3 * inner]), next = 0;
% endif
                int j = 0;
                for (; j + 4 <= size_x; j += 4) {
${along(t, 4)}\
                    now = next;
                }
                if (j < size_x) {
${along(t, 3)}\
                }
                total += ${"sum * sum" if SQUARES else "sum"};
            }
% endfor
% if not weighted:
% for s in range(FOUR):
            total.s${s} = mean_of(total.s${s}, size_x);
% endfor
% endif
            if (y + o < last) {
                const long target = plane + (y + o) * length + (long)(first_x + x) * inner + c;
                const int count = places - x;
% if ADJACENT and NUMBERS.result != "bool":
                result_four_t r;
% for s in range(FOUR):
                if (${s} < count)
                    r.s${s} = finish(total.s${s}, earlier + target + ${s}, 1);
% endfor
                if (count >= 4 && !((ulong)(result + target) & (sizeof(result_four_t) - 1))) {
                    *(__global result_four_t *)(result + target) = r;
                } else {
% for s in range(FOUR):
                    if (${s} < count)
                        result[target + ${s}] = r.s${s};
% endfor
                }
% else:
% for s in range(FOUR):
                store(total.s${s}, result + target + ${s} * inner, earlier + target + ${s} * inner, count - ${s});
% endfor
% endif
            }
        }
% endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
