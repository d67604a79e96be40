/*
 * 2D convolution by tiles in local memory.
 *
 *          WG_X values        halo
 *      +------------------+---------+
 *      | x  x  x  x  x  x |         |     A work-group owns WG_Y * WORK_PER_ITEM rows of WG_X
 *      | x  x  x  x  x  x |         |     values:
 *      | x  x  x  x  x  x |         |
 *      +------------------+         |
 *      |                            |       load the tile and its halo, values beyond an edge
 *      |                            |         included, converted to the type of the sums
 *      +----------------------------+       barrier: the tile is complete
 *                                           add the products; nothing asks where a pixel is
 *
 * The filter lies in constant memory, or in global memory where it is too large for that.
 * Item (x, y) owns rows y, y + WG_Y, y + 2 WG_Y, ...
 *
 * Source: V. Podlozhnyuk, "Image convolution with CUDA", NVIDIA 2007.
 *
 * All items load equally many values, some of them past the halo, so that no barrier follows
 * a condition or a loop that depends on the item (PoCL's issue 1435).
 *
 * The host guarantees: images and results are contiguous: batch, rows, pixels, channels;
 * dimension 0 of the grid covers the values of a row, dimension 1 the rows, in whole
 * work-groups, and dimension 2 the images from `first_image` on; `result` overlaps no input.
 * `tile` has room for `trips` values of each item, which cover `line` values of each row of
 * the tile and its halo.
 *
 * PIXELS         types, boundary condition and filter: see pixels.mako
 * WG_X           values of a row in a work-group, and its items
 * WG_Y           items of a work-group across rows
 * WORK_PER_ITEM  rows of an item
 */
<%page args="PIXELS, WG_X, WG_Y, WORK_PER_ITEM"/>\
<%namespace name="pixels" file="pixels.mako"/>\
<%
    tap = "filter_height * filter_width - 1 - tap" if PIXELS.flip else "tap"
%>\
${pixels.declare(PIXELS=PIXELS)}\

__kernel __attribute__((reqd_work_group_size(${WG_X}, ${WG_Y}, 1)))
void conv2d_tiled(
    ${pixels.parameters(["const int channels", "__local sum_t *tile", "const int line", "const int trips"], sized=True)})
{
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int item = y * ${WG_X} + x;
    const int first_value = get_group_id(0) * ${WG_X};
    const int first_row = get_group_id(1) * ${WG_Y * WORK_PER_ITEM};
    const int last_value = (out_width + filter_width - 1) * channels - 1;
    const int last_row = out_height + filter_height - 2;
    const ulong which = first_image + get_global_id(2);
    __global const element_t *source = image + which * height * width * channels;
% for r in range(WORK_PER_ITEM):
    sum_t sum_${r} = 0;
% endfor

    /* Load the tile and its halo. */
    for (int trip = 0; trip < trips; ++trip) {
        const int k = item + trip * ${WG_X * WG_Y};
        const int place = min(first_value + k % line, last_value);
        const int row = extend(min(first_row + k / line, last_row) + offset_y, height);
        const int column = extend(place / channels + offset_x, width);
        const long from = ((long)row * width + column) * channels + place % channels;
        tile[k] = row < 0 || column < 0 ? cval : load_pixel(source + from);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Add the products. */
    for (int j = 0; j < filter_height; ++j) {
        for (int i = 0; i < filter_width; ++i) {
            const int tap = j * filter_width + i;
            const sum_t w = weights[${tap}];
            __local const sum_t *p = tile + (y + j) * line + x + i * channels;
% for r in range(WORK_PER_ITEM):
            sum_${r} += w * p[${r * WG_Y} * line];
% endfor
        }
    }

    /* Store the values that exist. */
    const int out_pitch = out_width * channels;
    const int value = first_value + x;
% for r in range(WORK_PER_ITEM):
    if (value < out_pitch && first_row + y + ${r * WG_Y} < out_height)
        store_pixel(sum_${r}, result + (which * out_height + first_row + y + ${r * WG_Y})
                                       * out_pitch + value);
% endfor
}
