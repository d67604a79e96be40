/*
 * 2D convolution with strips of the result in the registers of each work-item.
 *
 * An item owns ROWS rows of VECTORS vectors. It walks down the rows of the image that these
 * need, ROWS + KH - 1 of them, and adds each to all the results that it belongs to. Here
 * ROWS = 3, KH = 3, and what row r of the image is multiplied by for each row o of results:
 *
 *      r   image                        o = 0   o = 1   o = 2
 *      0   [ p p p p p p p p p p ]       w0
 *      1   [ p p p p p p p p p p ]       w1      w0
 *      2   [ p p p p p p p p p p ]       w2      w1      w0     <- as often as KH >= ROWS
 *      3   [ p p p p p p p p p p ]               w2      w1
 *      4   [ p p p p p p p p p p ]                       w2
 *                | x x x x |
 *                  result: VECTOR_WIDTH values
 *
 * So a pixel is read once for ROWS rows. Along a row there are two ways:
 *
 *   register_vectors.mako  each tap reads its vectors anew, unaligned, from the first cache: a
 *                          CPU does so twice per cycle. The vectors of an item lie WG_X vectors
 *                          apart, so that items beside each other read and write memory beside
 *                          each other.
 *   register_window.mako   the VECTOR_WIDTH + KW - 1 values under a vector are read once and stay
 *                          in registers for all taps, as a GPU likes it. Where rows are multiples
 *                          of `align` elements they are read and written in pieces of so many.
 *                          Buffers that are not aligned to such a piece are rare: for them all
 *                          items take the path of the edges.
 *
 * An item whose windows lie inside the image takes a path without any condition. Only items
 * at an edge collect values one by one, each from where the boundary condition says; there is
 * no padded copy of the image (register_types.mako).
 *
 * Source: register blocking as in V. Volkov, "Better performance at lower occupancy", GTC
 * 2010; F. Iandola et al., "Communication-minimizing 2D convolution in GPU registers", ICIP
 * 2013.
 *
 * The host guarantees: images and results are contiguous: batch, rows, pixels, channels,
 * aligned to one element; dimension 0 of the grid covers the values of a row, dimension 1 the
 * rows, in whole work-groups, and dimension 2 the images from `first_image` on; `result`
 * overlaps no input. Where align > 1 the rows of images and results are multiples of it.
 *
 * PIXELS   types, boundary condition and filter: see pixels.mako
 * STRIP    the geometry of an item and its group, by these fields:
 *   taps          rows and columns of the filter, KH and KW above
 *   sized         whether these are arguments instead; KH is at least `rows` then
 *   channels      values of a pixel
 *   wg_x, wg_y    items of a work-group along a row and across rows
 *   vector_width  values of a row in a vector
 *   vectors       vectors of an item beside each other, `apart` values from one to the next
 *   rows          rows of results that an item computes together
 *   several       whether an item computes `steps_x` blocks along a row and `steps_y` across rows,
 *                 one after the other; else one
 *   unroll        taps of a row that are written out; longer rows loop over so many
 *   window        which of the two ways an item goes along a row
 *   align, shift  pieces of aligned access in a window, and where in a piece it begins
 *   piece         values that one call converts
 *   strips, collected  how many strips of a row an item collects at an edge, and values of each
 * SUB_GROUP    items of a sub-group, 0: the compiler chooses
 * CONDITIONAL  whether a launch before this one may have called it off
 */
<%page args="PIXELS, STRIP, SUB_GROUP, CONDITIONAL=False"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="condition" file="/common/condition.mako"/>\
<%namespace name="pixels" file="pixels.mako"/>\
<%namespace name="register_types" file="register_types.mako"/>\
<%namespace name="window" file="register_window.mako"/>\
<%namespace name="vectors" file="register_vectors.mako"/>\
<%namespace name="terms" file="terms.mako"/>\
<%
    way = window if STRIP.window else vectors
    taps_y, taps_x = register_types.module.taps(STRIP)
%>\
${pixels.declare(PIXELS=PIXELS)}\
${register_types.declare(PIXELS=PIXELS, STRIP=STRIP)}\
${register_types.declare_edge(PIXELS=PIXELS, STRIP=STRIP)}\
## Add a row of the image, at `line`, to the sums of `pairs`: rows of results, and the row of the
## filter that each of them needs.
<%def name="image_row(pairs)">\
<%
    rest = 0 if STRIP.sized else taps_x % STRIP.unroll
%>\
% if STRIP.sized:
            for (int i = 0; i < filter_width; ++i) {
${way.taps(PIXELS, STRIP, "i", 1, pairs)}\
            }
% elif taps_x <= STRIP.unroll:
${way.taps(PIXELS, STRIP, "0", taps_x, pairs)}\
% else:
            for (int first = 0; first < ${taps_x - rest}; first += ${STRIP.unroll}) {
${way.taps(PIXELS, STRIP, "first", STRIP.unroll, pairs)}\
            }
% if rest:
${way.taps(PIXELS, STRIP, str(taps_x - rest), rest, pairs)}\
% endif
% endif
            line += pitch;
</%def>\
## Add all rows of the image that an item needs: no condition anywhere.
<%def name="inside_taps()">\
            __global const element_t *line =
                source + (long)(row + offset_y) * pitch + column + offset_x * ${STRIP.channels};
% for r in STRIP.first_rows:
${image_row(STRIP.pairs(r))}\
% endfor
% if STRIP.loops:
            for (int r = ${STRIP.rows - 1}; r < ${taps_y}; ++r) {
${image_row([(o, f"r - {o}") for o in range(STRIP.rows)])}\
            }
% endif
% for r in STRIP.last_rows:
${image_row(STRIP.last_pairs(r))}\
% endfor
</%def>\
## Collect the values of each row from wherever they are, then add their products.
<%def name="outside_taps()">\
            const int last_row = out_height + ${taps_y} - 2;
            const int last_value = (out_width + ${taps_x} - 1) * ${STRIP.channels} - 1;
            for (int first = 0; first < ${taps_x}; first += ${STRIP.written_out}) {
                const int count = min(${STRIP.written_out}, ${taps_x} - first);
% if STRIP.sized:
                const int collected = ${STRIP.collected} - (${STRIP.written_out} - count) * ${STRIP.channels};
% endif
                const int seen = column + first * ${STRIP.channels};
                sum_t strip[${STRIP.strips}][${STRIP.collected}];
                int places[${STRIP.strips}][${STRIP.collected}];
% for v in range(STRIP.strips):
                const int2 bounds_${v} =
                    find(places[${v}], seen + ${v * STRIP.apart}, last_value, offset_x, width${register_types.module.counted(STRIP)});
% endfor
                for (int r = 0; r < ${STRIP.rows - 1} + ${taps_y}; ++r) {
                    const int from = extend(min(row + r, last_row) + offset_y, height);
                    if (from < 0) {
                        for (int k = 0; k < ${register_types.module.collected(STRIP)}; ++k) {
% for v in range(STRIP.strips):
                            strip[${v}][k] = cval;
% endfor
                        }
                    } else {
                        __global const element_t *line = source + (long)from * pitch;
% for v in range(STRIP.strips):
                        collect(strip[${v}], places[${v}], bounds_${v}, line,
                                seen + ${v * STRIP.apart} + offset_x * ${STRIP.channels}, cval${register_types.module.counted(STRIP)});
% endfor
                    }
${way.edge_taps(PIXELS, STRIP)}\
                }
            }
</%def>\

__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(${STRIP.wg_x}, ${STRIP.wg_y}, 1)))
void conv2d_register(
    ${condition.first(CONDITIONAL)}${pixels.parameters(["const int steps_x", "const int steps_y"], sized=STRIP.sized)})
{
${condition.check(CONDITIONAL)}\
    const int pitch = width * ${STRIP.channels};
    const int out_pitch = out_width * ${STRIP.channels};
    const ulong which = first_image + get_global_id(2);
    __global const element_t *source = image + which * height * pitch;
    __global result_t *target = result + which * out_height * out_pitch;
% if STRIP.align > 1:
    const bool aligned = (size_t)image % sizeof(${terms.module.vec(PIXELS.element_t, STRIP.align)}) == 0
                         && (size_t)result % sizeof(${terms.module.vec(PIXELS.result_t, STRIP.align)}) == 0;
% endif

    for (int y = 0; y < ${"steps_y" if STRIP.several else 1}; ++y)
    for (int x = 0; x < ${"steps_x" if STRIP.several else 1}; ++x) {
        const int row = (((int)get_group_id(1) * ${"steps_y" if STRIP.several else 1} + y) * ${STRIP.wg_y}
                         + (int)get_local_id(1)) * ${STRIP.rows};
        const int column = (((int)get_group_id(0) * ${"steps_x" if STRIP.several else 1} + x)
                            * ${STRIP.vectors * STRIP.wg_x} + (int)get_local_id(0)) * ${STRIP.vector_width};
        if (row >= out_height || column >= out_pitch)
            continue;
        const int last = column + ${STRIP.width - 1};
        const int begin = column + offset_x * ${STRIP.channels};
        const int end = last + (offset_x + ${taps_x} - 1) * ${STRIP.channels};
        const bool inside = row + offset_y >= 0 && row + offset_y + ${STRIP.rows - 2} + ${taps_y} < height
                            && row + ${STRIP.rows} <= out_height
                            && begin >= 0 && end < pitch && last < out_pitch;
${way.declare_sums(STRIP)}\

        /* Add the products. */
        if (${"inside && aligned" if STRIP.align > 1 else "inside"}) {
${inside_taps()}\
        } else {
${way.clear_edge_sums(STRIP)}\
${outside_taps()}\
        }

        /* Store what lies inside the result. */
        __global result_t *place = target + (long)row * out_pitch + column;
% if STRIP.align > 1:
        if (inside && aligned) {
${way.store_pieces(PIXELS, STRIP)}\
        } else if (inside) {
% else:
        if (inside) {
% endif
${way.store_all(PIXELS, STRIP)}\
        } else {
${way.store_some(STRIP)}\
        }
    }
}
