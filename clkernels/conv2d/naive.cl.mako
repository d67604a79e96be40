/*
 * 2D convolution, one work-item for one value of the result.
 *
 *          x + offset_x
 *           v
 *      +----+----------+------+
 *      |    | w  w  w  |      |  y + offset_y     The item at (x, y) walks over the filter and
 *      |    | w  w  w  |      |                   asks for every pixel where it lies: inside the
 *      |    | w  w  w  |      |                   image, or beyond an edge, where the boundary
 *      |    +----------+      |                   condition says what to read instead.
 *      |                      |                   Nothing is shared.
 *      +----------------------+
 *
 * Source: the definition; the baseline that the other kernels are measured against.
 *
 * The host guarantees: images and results are contiguous: batch, rows, pixels, channels;
 * dimension 0 of the grid covers the values of a row, dimension 1 the rows, in whole
 * work-groups, and dimension 2 the images from `first_image` on; `result` overlaps no input.
 *
 * PIXELS    types, boundary condition and filter: see pixels.mako
 * WG_X      values of a row in a work-group
 * WG_Y      rows of a work-group
 */
<%page args="PIXELS, WG_X, WG_Y"/>\
<%namespace name="pixels" file="pixels.mako"/>\
<%
    tap = "filter_height * filter_width - 1 - tap" if PIXELS.flip else "tap"
%>\
${pixels.declare(PIXELS=PIXELS)}\

__kernel __attribute__((reqd_work_group_size(${WG_X}, ${WG_Y}, 1)))
void conv2d_naive(
    ${pixels.parameters(["const int channels"], sized=True)})
{
    const int place = get_global_id(0);
    const int y = get_global_id(1);
    const ulong which = first_image + get_global_id(2);
    if (place < out_width * channels && y < out_height) {
        const int x = place / channels;
        const int channel = place % channels;
        __global const element_t *source = image + which * height * width * channels + channel;
        ${"wide_t sum = {0, 0}" if PIXELS.long_sums else "sum_t sum = 0"};
        for (int j = 0; j < filter_height; ++j) {
            const int row = extend(y + j + offset_y, height);
            for (int i = 0; i < filter_width; ++i) {
                const int column = extend(x + i + offset_x, width);
                const bool inside = row >= 0 && column >= 0;
                const sum_t value =
                    inside ? load_pixel(source + ((long)row * width + column) * channels) : cval;
                const int tap = j * filter_width + i;
% if PIXELS.long_sums:
                sum = plus_product(sum, weights[${tap}], value);
% else:
                sum += weights[${tap}]
                       * value;
% endif
            }
        }
        store_pixel(sum, result + (which * out_height + y) * out_width * channels + place);
    }
}
