/*
 * Filters of a padded array by a window of any shape: sums, means, minima, maxima and ranks.
 *
 *     padded   p p p p p p p      the window is a list of distances from its first place, so that a loop
 *              p[W]p W p p p      over them serves any number of dimensions, and footprints with holes
 *              p p W p p p p
 *
 * Ranks: the code of the result (see sort/keys.mako) is found bit by bit: a bit is set if no more values of
 * the window than the rank are below. If any value is NaN, so is the result.
 *
 * Source: own.
 *
 * The host guarantees: `padded` is what pad.cl.mako makes, with BLOCK * WIDTH more values; items are numbered
 * through the rows of the result, of `length` values, `chunks` a row, each of `SPAN` values; there may be
 * more of them.
 *
 * NUMBERS   see numbers.mako
 * CODES     None, or for ranks the element whose codes are in `padded`: see sort/keys.mako
 * NDIM      axes before the last one
 * BLOCK     vectors that an item reduces side by side
 * SPAN      values of an item
 * WG_SIZE   items of a group
 */
<%page args="NUMBERS, CODES, NDIM, BLOCK, SPAN, WG_SIZE"/>\
<%namespace name="numbers" file="numbers.mako"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
<%namespace name="types" file="/common/types.mako"/>\
<%
    width = NUMBERS.width

    def value(v, tap="distances[j]"):
        return numbers.module.at(NUMBERS, "global const", "sum", f"values + {tap} + {v * width}")
%>\
% if CODES:
${keys.declare(CODES)}\
${keys.inverse(CODES)}\
% endif
${numbers.declare(NUMBERS)}\

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void filter_window(
    __global const sum_t *restrict padded,
    __global const long *restrict distances,
% if NUMBERS.reduce == "sum":
    __global const sum_t *restrict weights,
    const int first_weight,
% elif NUMBERS.reduce == "rank":
    const int rank,
% endif
    __global result_t *result,
    __global const result_t *earlier,
    const int taps,
% for d in range(NDIM):
    const int n_${d},
    const long stride_${d},
% endfor
    const ulong rows,
    const int chunks,
    const long length)
{
    const ulong row = get_global_id(0) / chunks;
    if (row < rows) {
        const long first = (long)(get_global_id(0) - row * chunks) * ${SPAN}, last = min(first + ${SPAN}, length);
        ulong rest = row;
        __global const sum_t *source = padded;
% for d in reversed(range(NDIM)):
        source += (rest % n_${d}) * stride_${d};
        rest /= n_${d};
% endfor
        for (long x = first; x < last; x += ${BLOCK * width}) {
            __global const sum_t *values = source + x;
            const long target = row * length + x;
% if NUMBERS.reduce == "rank":
            sum_vec_t most = 0;
            sum_vec_t found = 0;
            for (int j = 0; j < taps; ++j) {
                const sum_vec_t v = ${value(0)};
                most = GREATER(most, v);
            }
            for (int bit = KEY_BITS - 1; bit >= 0; --bit) {
                const sum_vec_t higher = found | ((sum_t)1 << bit);
                sum_vec_t below = 0;
                for (int j = 0; j < taps; ++j)
                    below += ${"(sum_t)(values[distances[j]] < higher)" if width == 1 else f"as_{types.module.vector(NUMBERS.sum, width)}({value(0)} < higher) & (sum_t)1"};
                found = below <= (sum_t)rank ? higher : found;
            }
% if CODES.key in ("float", "double"):
            found = most == (sum_t)code((ukey_t)~(ukey_t)0) ? most : found;
% endif
            for (int l = 0; l < WIDTH && x + l < last; ++l)
                result[target + l] = as_${NUMBERS.result.replace("bool", "uchar")}(key_of((ukey_t)((__private sum_t *)&found)[l]));
% else:
% for v in range(BLOCK):
            sum_vec_t sum_${v} = ${"0" if NUMBERS.reduce == "sum" else value(v, "distances[0]")};
% endfor
            for (int j = ${0 if NUMBERS.reduce == "sum" else 1}; j < taps; ++j) {
                const long distance = distances[j];
% if NUMBERS.reduce == "sum":
                const sum_t weight = weights[first_weight + j];
% endif
% for v in range(BLOCK):
% if NUMBERS.reduce == "sum":
                sum_${v} += weight * ${value(v, "distance")};
% else:
                sum_${v} = REDUCE(sum_${v}, ${value(v, "distance")});
% endif
% endfor
            }
% for v in range(BLOCK):
            store(sum_${v}${" / (sum_t)taps" if NUMBERS.reduce == "mean" else ""}, result + target + ${v * width}, earlier + target + ${v * width}, last - x - ${v * width});
% endfor
% endif
        }
    }
}
