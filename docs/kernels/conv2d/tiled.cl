/*
 * An example of clkernels/conv2d/tiled.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       conv2d size=1000 ksize=5
 *     algorithm     tiled
 *     configuration WG_X=32 WG_Y=8 CONSTANT_WEIGHTS=True WORK_PER_ITEM=4
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        conv2d_tiled, (1024, 256, 1) items in groups of (32, 8, 1)
 */
/*
 * 2D convolution by tiles in local memory.
 *
 *          WG_X values        halo
 *      +------------------+---------+
 *      | x  x  x  x  x  x |         |     A work-group owns WG_Y * WORK_PER_ITEM rows of WG_X
 *      | x  x  x  x  x  x |         |     values. For a section of the filter at a time, all of it
 *      | x  x  x  x  x  x |         |     if it fits:
 *      +------------------+         |
 *      |                            |       load the tile and its halo, values beyond an edge
 *      |                            |         included, converted to the type of the sums
 *      +----------------------------+       barrier: the tile is complete
 *                                           add the products; nothing asks where a pixel is
 *                                           barrier: the tile may be overwritten
 *
 * The filter lies in constant memory, or in global memory where it is too large for that.
 * Where a whole tile would not fit into local memory the filter is cut into sections, so that
 * filters of any size work. Item (x, y) owns rows y, y + WG_Y, y + 2 WG_Y, ...
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
 * the tile and its halo, for sections of section_height x section_width weights.
 *
 * PIXELS         types, boundary condition and filter: see pixels.mako
 * WG_X           values of a row in a work-group, and its items
 * WG_Y           items of a work-group across rows
 * WORK_PER_ITEM  rows of an item
 */
typedef float element_t;
typedef float result_t;
typedef float sum_t;
typedef __constant sum_t *weights_t;

static inline sum_t load_pixel(__global const element_t *p)
{
    return *p;
}

/* Round to the nearest, ties to even. Integers keep their low bits (none of them set for an
   infinity or NaN), or stop at the limits. In plain operators, of which compilers make vectors
   where rint and saturating conversions are calls. */
static inline result_t to_result(const sum_t sum)
{
    return (result_t)sum;
}

static inline void store_pixel(const sum_t sum, __global result_t *p)
{
    *p = to_result(sum);
}

/* Return the coordinate in an image of n pixels whose value continues it at i; -1: cval. */
static inline int extend(const int i, const int n)
{
    return i >= 0 && i < n ? i : -1;
}

__kernel __attribute__((reqd_work_group_size(32, 8, 1)))
void conv2d_tiled(__global const element_t *restrict image,
                  const weights_t weights,
                  __global result_t *restrict result,
                  const int height,
                  const int width,
                  const int channels,
                  __local sum_t *tile,
                  const int line,
                  const int trips,
                  const int section_height,
                  const int section_width,
                  const int out_height,
                  const int out_width,
                  const int offset_y,
                  const int offset_x,
                  const int filter_height,
                  const int filter_width,
                  const ulong first_image,
                  const sum_t cval)
{
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int item = y * 32 + x;
    const int first_value = get_group_id(0) * 32;
    const int first_row = get_group_id(1) * 32;
    const int last_value = (out_width + filter_width - 1) * channels - 1;
    const int last_row = out_height + filter_height - 2;
    const ulong which = first_image + get_global_id(2);
    __global const element_t *source = image + which * height * width * channels;
    sum_t sum_0 = 0;
    sum_t sum_1 = 0;
    sum_t sum_2 = 0;
    sum_t sum_3 = 0;

    for (int j0 = 0; j0 < filter_height; j0 += section_height) {
        for (int i0 = 0; i0 < filter_width; i0 += section_width) {
            /* Load the tile and its halo. */
            for (int trip = 0; trip < trips; ++trip) {
                const int k = item + trip * 256;
                const int place = min(first_value + i0 * channels + k % line, last_value);
                const int row =
                    extend(min(first_row + j0 + k / line, last_row) + offset_y, height);
                const int column = extend(place / channels + offset_x, width);
                const long from = ((long)row * width + column) * channels + place % channels;
                tile[k] = row < 0 || column < 0 ? cval : load_pixel(source + from);
            }
            barrier(CLK_LOCAL_MEM_FENCE);

            /* Add the products. */
            const int rows = min(section_height, filter_height - j0);
            const int columns = min(section_width, filter_width - i0);
            for (int j = 0; j < rows; ++j) {
                for (int i = 0; i < columns; ++i) {
                    const int tap = (j0 + j) * filter_width + i0 + i;
                    const sum_t w =
                        weights[tap];
                    __local const sum_t *p = tile + (y + j) * line + x + i * channels;
                    sum_0 += w * p[0 * line];
                    sum_1 += w * p[8 * line];
                    sum_2 += w * p[16 * line];
                    sum_3 += w * p[24 * line];
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

    /* Store the values that exist. */
    const int out_pitch = out_width * channels;
    const int value = first_value + x;
    if (value < out_pitch && first_row + y + 0 < out_height)
        store_pixel(sum_0, result + (which * out_height + first_row + y + 0)
                    * out_pitch + value);
    if (value < out_pitch && first_row + y + 8 < out_height)
        store_pixel(sum_1, result + (which * out_height + first_row + y + 8)
                    * out_pitch + value);
    if (value < out_pitch && first_row + y + 16 < out_height)
        store_pixel(sum_2, result + (which * out_height + first_row + y + 16)
                    * out_pitch + value);
    if (value < out_pitch && first_row + y + 24 < out_height)
        store_pixel(sum_3, result + (which * out_height + first_row + y + 24)
                    * out_pitch + value);
}
