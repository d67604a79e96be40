## The kernel that stores the results of transforms, and marks those that are doubtful: see
## fft.cl.mako.
##
##   store_blocks   b + i a  ->  what is valid of both blocks, and marks
##
## CHANNELS  values of a pixel
## WG_SIZE   work-items in a work-group
## NUMBERS   the declarations of the numbers that each kernel takes
## LANES     results beside each other that are judged together
## CONDITIONAL  whether a launch before may have called it off
<%namespace name="condition" file="/common/condition.mako"/>\
<%namespace name="numbers" file="fft_numbers.mako"/>\
<%namespace name="terms" file="terms.mako"/>\
<%def name="declare(CHANNELS, WG_SIZE, LANES, CONDITIONAL, NUMBERS)">\
<%
    TAPS = 8  # products that are added at a time
    tree = terms.module.tree
    product = lambda t: f"SIZE(INSIDE_PRODUCT(i + {t}))"
%>\
__kernel GROUP
void store_blocks(${condition.first(CONDITIONAL)}__global const sum_t *restrict pairs,
                  __global const element_t *restrict image,
                  const weights_t weights,
                  __global result_t *restrict result,
                  __global uchar *restrict marks,
                  __global const bits_t *restrict pixel_peak,
                  __global const bits_t *restrict spectrum_peak,
                  ${NUMBERS["store_blocks"]})
{
${condition.check(CONDITIONAL)}\
    const uint group = get_group_id(0);
    const int y = group % valid_y;
    const uint pair = group / valid_y;
    __global const sum_t *source = pairs + 2 * ((size_t)pair * rows + y) * columns;
    const int last_row = out_height + filter_height - 2, last_column = out_width + filter_width - 2;
    const int most = MOST_PRODUCTS;

    bits_t pair_peak = 0, filter_peak = 0;
    for EACH(i, 0, rows) {
        pair_peak = LARGER(pair_peak, pixel_peak[pair * rows + i]);
        filter_peak = LARGER(filter_peak, spectrum_peak[i]);
    }
    ${numbers.share_largest("pair_peak", WG_SIZE)}
    ${numbers.share_largest("filter_peak", WG_SIZE)}
    const bits_t bound = bound_of(pair_peak, filter_peak, share, (sum_t)rows * columns, hidden);
% for half, value in enumerate(("IM", "RE")):
    {
        const uint block = 2 * (first_pair + pair) + ${half};
        const int out_x = block % blocks_x * valid_x;
        const int out_y = block / blocks_x % blocks_y * valid_y + y;
        const uint plane = block / blocks_x / blocks_y;
        if (block < blocks && out_y < out_height) {
            __global result_t *target =
                result + plane % ${CHANNELS}
                + (((ulong)(plane / ${CHANNELS}) * out_height + out_y) * out_width + out_x)
                  * ${CHANNELS};
            const int count = min(valid_x, out_width - out_x);
            int good = 1;
            for EACH(x, 0, count) {
                const sum_t sum = ${value}(source, x);
                good &= GOOD(sum);
                store_pixel(sum, target + x * ${CHANNELS});
            }

            __global uchar *marked = MARKS_OF(block, y);
            for (int x = ${LANES} * get_local_id(0); x < count; x += ${LANES * WG_SIZE}) {
                if (good) {
                    marked[x / ${LANES}] = FINE;
                    continue;
                }
                /* Row by row from the middle on, add magnitudes of some of the products. */
                bool enough = false;
                if (bound < INFINITE) {
                    lanes_t sums = known_of(lanes_${value}(source, x), count - x, bound);
                    enough = all_good(sums, bound);
                    int added = 0, due = ${TAPS};
                    for (int k = 0; k < filter_height && added < most && !enough; ++k) {
                        const int j = filter_height / 2 + (k % 2 ? -(k + 1) / 2 : k / 2);
                        const row_t row = ROW_OF(block, y + j);
                        if (row.line == 0)
                            continue;
                        /* The taps for which all lanes have a pixel of the image. */
                        const int begin = x + row.begin;
                        const int high = min(filter_width, width - ${LANES - 1} - begin);
                        int i = max(k == 0 ? filter_width / 2 : 0, -begin);
% for together in (TAPS, 1):
                        for (; i + ${together} <= high && added < most && !enough; i += ${together}) {
                            sums += ${tree(product, 0, together)};
                            added += ${together};
                            if (added >= due) {
                                due *= 2;
                                enough = all_good(sums, bound);
                            }
                        }
% endfor
                    }
                    enough |= all_good(sums, bound);
                }
                marked[x / ${LANES}] = enough ? FINE : bound < INFINITE ? DOUBTFUL : DOUBTFUL_FACTORS;
            }
        }
    }
% endfor
}
</%def>\
