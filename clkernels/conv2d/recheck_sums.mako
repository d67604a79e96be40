## The kernel that sums doubtful results directly, as conv2d_register does: see fft.cl.mako.
##
##   sum_doubtful   image, weights and marks  ->  results that are marked
##
## It leaves out the products of pixels that are zero. An item owns ROWS rows of LANES results and
## collects the pixels under them for some taps at a time.
##
## PIXELS    types and whether the filter is turned: see pixels.mako
## CHANNELS  values of a pixel
## WG_SIZE   work-items in a work-group
## NUMBERS   the declarations of the numbers that each kernel takes
## LANES     results beside each other that are summed together
## ROWS      rows of results that an item sums together
## CONDITIONAL  whether a launch before may have called it off
<%namespace name="condition" file="/common/condition.mako"/>\
<%namespace name="terms" file="terms.mako"/>\
<%def name="declare(PIXELS, CHANNELS, WG_SIZE, LANES, ROWS, CONDITIONAL, NUMBERS)">\
<%
    UNROLL = 4  # taps of a row that are written out
    PIECES = 4 if LANES > 1 else 0  # vectors of taps whose pixels are collected at a time
    lane = terms.module.lane


    def collected(pointer):
        """Pixels that are collected under the results, for one tap."""
        return "strip" if LANES == 1 else f"((__private const packed_t *)({pointer}))->v"
%>\
## Add the products of the pixels that are collected to the results of rows `chosen`.
<%def name="products(chosen)">\
                    int i = 0;
% for together in (UNROLL, 1) if LANES > 1 else (1,):
                    for (; i + ${together} <= taps; i += ${together}) {
% for t in range(together):
                        {
                            const lanes_t p = ${collected(f"strip + i + {t}")};
% for o in chosen:
                            sum_${o} += w_${o}[${"-" if PIXELS.flip else ""}(i + ${t})] * p;
% endfor
                        }
% endfor
                    }
% endfor
</%def>\
__kernel GROUP
void sum_doubtful(${condition.first(CONDITIONAL)}__global const element_t *restrict image,
                  const weights_t weights,
                  __global result_t *restrict result,
                  __global const uchar *restrict marks,
                  ${NUMBERS["sum_doubtful"]})
{
${condition.check(CONDITIONAL)}\
    const int tiles = (valid_y + ${ROWS - 1}) / ${ROWS};
    const uint block = get_group_id(0) / tiles;
    const int y = get_group_id(0) % tiles * ${ROWS};
    const int out_x = block % blocks_x * valid_x;
    const int out_y = block / blocks_x % blocks_y * valid_y;
    const uint plane = block / blocks_x / blocks_y;
    const int last_row = out_height + filter_height - 2, last_column = out_width + filter_width - 2;
    const int count = min(valid_x, out_width - out_x);
    const int rows = min(${ROWS}, min(valid_y, out_height - out_y) - y);
    __global result_t *target =
        result + plane % ${CHANNELS}
        + (((ulong)(plane / ${CHANNELS}) * out_height + out_y + y) * out_width + out_x)
          * ${CHANNELS};

    for (int x = ${LANES} * get_local_id(0); x < count; x += ${LANES * WG_SIZE}) {
        uchar mark = FINE;
        for (int o = 0; o < rows; ++o)
            mark |= MARKS_OF(block, y + o)[x / ${LANES}];
        if (mark == FINE)
            continue;
% for o in range(ROWS):
        lanes_t sum_${o} = 0;
% endfor
        for (int r = 0; r < filter_height + rows - 1; ++r) {
            const row_t row = ROW_OF(block, y + r);
            for (int first = 0; first < filter_width; first += ${max(1, PIECES * LANES)}) {
                const int taps = min(${max(1, PIECES * LANES)}, filter_width - first);
% if LANES == 1:
                const sum_t strip = value_at(row, x + first, width, cval);
                const bool dark = strip == 0;
% else:
                /* Collect the pixels under the results, for these taps. */
                sum_t strip[${(PIECES + 1) * LANES}];
                const int vectors = (taps + ${2 * LANES - 2}) / ${LANES};
                const int from = x + first, past = from + vectors * ${LANES};
                lane_bits_t any = 0;
                if (row.line != 0 && from + row.begin >= 0 && past + row.begin <= width
                    && past <= row.last + 1) {
                    for (int v = 0; v < vectors; ++v) {
                        const lanes_t some = pixels_inside(row, from + v * ${LANES});
                        ((__private packed_t *)(strip + v * ${LANES}))->v = some;
                        any |= LANE_MAGNITUDES(some);
                    }
                } else {
                    bits_t bits = 0;
                    for (int k = 0; k < vectors * ${LANES}; ++k) {
                        strip[k] = value_at(row, from + k, width, cval);
                        bits |= MAGNITUDE(strip[k]);
                    }
                    any = bits;
                }
                const bool dark = !any_of(any);
% endif
                if (dark && !(mark & DOUBTFUL_FACTORS))
                    continue;
% for o in range(ROWS):
                const weights_t w_${o} = weights + AT(r - ${o}, first);
% endfor
                if (r >= ${ROWS - 1} && r < filter_height) {
${products(range(ROWS))}\
                } else {
% for o in range(ROWS):
                    if (r >= ${o} && r < filter_height + ${o}) {
${products([o])}\
                    }
% endfor
                }
            }
        }
% for o in range(ROWS):
% for l in range(LANES):
        if (${o} < rows && x + ${l} < count)
            store_pixel(${lane(f"sum_{o}", LANES, l)}, \
target + (${o} * (long)out_width + x + ${l}) * ${CHANNELS});
% endfor
% endfor
    }
}
</%def>\
