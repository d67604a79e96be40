/*
 * Filters of a padded array by a window of any shape: sums, means, minima, maxima and ranks.
 *
 *     padded   p p p p p p p      the window is a list of distances from its first place, so that a loop
 *              p[W]p W p p p      over them serves any number of dimensions, and footprints with holes
 *              p p W p p p p
 *
 * Ranks: the values of a small window are sorted by a network, of which only what the wanted rank needs is
 * left. For larger ones the code of the result (see sort/keys.mako) is found bit by bit: a bit is set if no
 * more values of the window than the rank are below. If any value is NaN, so is the result.
 *
 * Source: own; networks after K. E. Batcher, "Sorting networks and their applications", AFIPS 1968.
 *
 * The host guarantees: `padded` is what pad.cl.mako makes, with BLOCK * WIDTH more values; items are numbered
 * through the rows of the result, of `length` values, `chunks` a row, each of `SPAN` values; there may be
 * more of them.
 *
 * NUMBERS   see numbers.mako
 * CODES     None, or for ranks found bit by bit the element whose codes are in `padded`: see sort/keys.mako
 * NETWORK   None, or (taps, rank): sort so many values by a network
 * NDIM      axes before the last one
 * BLOCK     vectors that an item reduces side by side
 * SPAN      values of an item
 * WG_SIZE   items of a group
 */
<%page args="NUMBERS, CODES, NETWORK, NDIM, BLOCK, SPAN, WG_SIZE"/>\
<%namespace name="numbers" file="numbers.mako"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
<%namespace name="types" file="/common/types.mako"/>\
<%
    width, real = NUMBERS.width, NUMBERS.sum in ("float", "double")
    mask = types.module.vector(types.module.signed(NUMBERS.sum), width) if width > 1 else "int"

    def value(v, tap="distances[j]"):
        return numbers.module.at(NUMBERS, "global const", "sum", f"values + {tap} + {v * width}")

    def network(count, rank):
        """Batcher's odd-even merge sort, without what the value of one rank does not need."""
        steps, p = [], 1
        while p < count:
            k = p
            while k:
                for j in range(k % p, count - k, 2 * k):
                    for i in range(min(k, count - j - k)):
                        if (i + j) // (2 * p) == (i + j + k) // (2 * p):
                            steps.append((i + j, i + j + k))
                k //= 2
            p *= 2
        needed, kept = {rank}, []
        for low, high in reversed(steps):
            if {low, high} & needed:
                kept.append((low, high, low in needed, high in needed))
                needed |= {low, high}
        return kept[::-1]
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
% if NETWORK:
% for j in range(NETWORK[0]):
            sum_vec_t v_${j} = ${value(0, f"distances[{j}]")};
% endfor
% if real:
            const ${mask} nan_ = ${" | ".join(f"(v_{j} != v_{j})" for j in range(NETWORK[0]))};
% endif
% for low, high, keep_low, keep_high in network(*NETWORK):
            {
                const sum_vec_t a = v_${low}, b = v_${high};
% if keep_low:
                v_${low} = a < b ? a : b;
% endif
% if keep_high:
                v_${high} = a < b ? b : a;
% endif
            }
% endfor
            const sum_vec_t found = ${f"nan_ ? (sum_vec_t)NAN : v_{NETWORK[1]}" if real else f"v_{NETWORK[1]}"};
            store(found, result + target, earlier + target, last - x);
% else:
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
% endif
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
