/*
 * Sums of products in small windows, straight from the image: each value serves ROWS rows of results.
 *
 *     p p p        p          a full window of up to three dimensions, or a cross of windows along
 *     p p p      p p p        several axes, whose sums are added
 *     p p p        p
 *
 * On CPUs an item takes vectors along rows, and computes what lies near the ends of a row value by
 * value; on GPUs an item has one place of ROWS rows.
 *
 * Source: own.
 *
 * The host guarantees: image and result are contiguous, n_z x n_y x n_x x inner, and do not overlap; a plane has
 * fewer than 2^31 values. On GPUs `taps` has room for all weights. Items are numbered through `blocks` blocks of ROWS rows of all LAYERS of n_z planes, and on
 * GPUs through the values of a row first; there may be more of them. On CPUs an item has `span` blocks.
 * No mode is constant.
 *
 * NUMBERS   see numbers.mako
 * SIZES     of the window, along z, y and x
 * LEVELS    planes of the window: (z, taps), where a tap is (y, x, place of its weight)
 * DEPTH     how many planes have the taps of the one in LEVELS; their weights follow each other
 * LAYERS    planes of results that are computed side by side, no more than DEPTH
 * ROWS      rows of results that are computed side by side
 * BLOCK     vectors of a row that are computed side by side
 * SUB_GROUP items of a sub-group, 0: the compiler chooses
 * WG_SIZE   items of a group; with vectors it is 1
 */
<%page args="NUMBERS, SIZES, LEVELS, DEPTH, LAYERS, ROWS, BLOCK, SUB_GROUP, WG_SIZE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="numbers" file="numbers.mako"/>\
<%
    width, reach = NUMBERS.width, ROWS + SIZES[1] - 1
    alone = width > 1
    blocks = range(BLOCK if alone else 1)
    space, held = ("__global", "weights") if alone else ("__local", "taps")
    count = DEPTH * len(LEVELS[0][1]) if DEPTH > 1 else 1 + max(weight for _, taps in LEVELS for *_, weight in taps)

    def rows_of(taps, x):
        """Rows that taps of a column need, and for each the sums and the weights that it serves."""
        found = {}
        for y, at, weight in taps:
            for o in range(ROWS):
                if at == x:
                    found.setdefault(y + o, []).append((o, weight))
        return sorted(found.items())

    def vector(place, v):
        return "to_sum(" + numbers.module.at(NUMBERS, "global const", "element", f"{place} + {v * width}") + ")"
%>\
${numbers.declare(NUMBERS)}\
## Add the taps of a level to the sums of some layers, of which `w_0`, `w_1`, ... are the weights.
<%def name="add(kind, load, columns, vectors, taps, layers)">\
% for x in sorted({x for _, x, _ in taps}):
% for j, served in rows_of(taps, x):
                {
% for v in vectors:
                    const ${kind} p_${v} = ${load(f"level + row_{j} + {columns(x)}", v)};
% for layer in layers:
% for o, weight in served:
                    sum_${layer * ROWS + o}_${v} += w_${layer}[${weight}] * p_${v};
% endfor
% endfor
% endfor
                }
% endfor
% endfor
</%def>\
## Add up the taps of all levels; `kind` is the type of sums, `load(place, v)` a value of it.
<%def name="add_up(kind, load, columns, vectors)">\
% for v in vectors:
            ${kind} ${", ".join(f"sum_{o}_{v} = 0" for o in range(LAYERS * ROWS))};
% endfor
% if DEPTH == 1:
            ${space} const sum_t *w_0 = ${held};
% for z, taps in LEVELS:
            {
                __global const element_t *level = image + (long)extend(z + ${z} - before_z, n_z, mode_z) * area;
${add(kind, load, columns, vectors, taps, range(1))}\
            }
% endfor
% else:
<% taps = LEVELS[0][1] %>\
## The first levels are those of the first layers, and the last ones those of the last layers.
% for begin, end, layers in [(k, k + 1, range(k + 1)) for k in range(LAYERS - 1)] + [(LAYERS - 1, DEPTH, range(LAYERS))] + [(DEPTH + k, DEPTH + k + 1, range(k + 1, LAYERS)) for k in range(LAYERS - 1)]:
            for (int k = ${begin}; k < ${end}; ++k) {
                __global const element_t *level = image + (long)extend(z + k - before_z, n_z, mode_z) * area;
% for layer in layers:
                ${space} const sum_t *w_${layer} = ${held} + (k - ${layer}) * ${len(taps)};
% endfor
${add(kind, load, columns, vectors, taps, layers)}\
            }
% endfor
% endif
</%def>\
<%def name="rows(h)">\
            const int z = (int)(${h} / blocks) * ${LAYERS}, y = (int)(${h} % blocks) * ${ROWS};
% for j in range(reach):
            const int row_${j} = extend(y + ${j} - before_y, n_y, mode_y) * length;
% endfor
            const long target = (long)z * area + (long)y * length;
</%def>\

__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void filter_near(
    __global const element_t *restrict image,
    __global const sum_t *restrict weights,
% if not alone:
    __local sum_t *taps,
% endif
    __global result_t *result,
    const int blocks,
    const int span,
    const int n_z,
    const int before_z,
    const int mode_z,
    const int n_y,
    const int before_y,
    const int mode_y,
    const int n_x,
    const int before_x,
    const int mode_x,
    const int inner)
{
    const int length = n_x * inner;
    const long area = (long)n_y * length, all = (long)((n_z + ${LAYERS - 1}) / ${LAYERS}) * blocks;
% if alone:
    const long begin = (long)get_global_id(0) * span, end = min(begin + span, all);
    for (long b = begin; b < end; ++b) {
${rows("b")}\
        const int low = min(before_x * inner, length);
        int high = max(low, length - (${SIZES[2] - 1} - before_x) * inner);
        if (high - low < ${BLOCK * width})
            high = low;
        for (int k = low; k < high; k += ${BLOCK * width}) {
            const int x = min(k, high - ${BLOCK * width});
${add_up("sum_vec_t", vector, lambda x: f"x + ({x} - before_x) * inner", blocks)}\
% for o in range(ROWS):
            if (y + ${o} < n_y) {
% for v in blocks:
                store(sum_${o}_${v}, result + target + ${o} * length + x + ${v * width}, result, WIDTH);
% endfor
            }
% endfor
        }
        for (int x = 0; x < length; ++x) {
            if (x == low)
                x = high;
            if (x >= length)
                break;
            const int place = x / inner, c = x % inner;
% for x in range(SIZES[2]):
            const int at_${x} = extend(place + ${x} - before_x, n_x, mode_x) * inner + c;
% endfor
${add_up("sum_t", lambda place, v: f"(sum_t)*({place})", lambda x: f"at_{x}", range(1))}\
% for o in range(ROWS):
            if (y + ${o} < n_y)
                store((sum_vec_t)sum_${o}_0, result + target + ${o} * length + x, result, 1);
% endfor
        }
    }
% else:
    for (int j = get_local_id(0); j < ${count}; j += ${WG_SIZE})
        taps[j] = weights[j];
    barrier(CLK_LOCAL_MEM_FENCE);
    const long item = get_global_id(0), b = item / length;
    if (b < all) {
${rows("b")}\
            const int x = (int)(item - b * length), place = x / inner, c = x % inner;
% for x in range(SIZES[2]):
            const int at_${x} = extend(place + ${x} - before_x, n_x, mode_x) * inner + c;
% endfor
${add_up("sum_t", lambda place, v: f"(sum_t)*({place})", lambda x: f"at_{x}", blocks)}\
% for layer in range(LAYERS):
% for o in range(ROWS):
            if (z + ${layer} < n_z && y + ${o} < n_y)
                store(sum_${layer * ROWS + o}_0, result + target + ${layer} * area + ${o} * length + x, result, 1);
% endfor
% endfor
    }
% endif
}
