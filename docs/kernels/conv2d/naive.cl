/*
 * An example of clkernels/conv2d/naive.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       conv2d size=1000 ksize=5
 *     algorithm     naive
 *     configuration WG_X=64 WG_Y=4 CONSTANT_WEIGHTS=False
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        conv2d_naive, (1024, 1000, 1) items in groups of (64, 4, 1)
 */
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
typedef float element_t;
typedef float result_t;
typedef float sum_t;
typedef __global const sum_t *weights_t;

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

__kernel __attribute__((reqd_work_group_size(64, 4, 1)))
void conv2d_naive(__global const element_t *restrict image,
                  const weights_t weights,
                  __global result_t *restrict result,
                  const int height,
                  const int width,
                  const int channels,
                  const int out_height,
                  const int out_width,
                  const int offset_y,
                  const int offset_x,
                  const int filter_height,
                  const int filter_width,
                  const ulong first_image,
                  const sum_t cval)
{
    const int place = get_global_id(0);
    const int y = get_global_id(1);
    const ulong which = first_image + get_global_id(2);
    if (place < out_width * channels && y < out_height) {
        const int x = place / channels;
        const int channel = place % channels;
        __global const element_t *source = image + which * height * width * channels + channel;
        sum_t sum = 0;
        for (int j = 0; j < filter_height; ++j) {
            const int row = extend(y + j + offset_y, height);
            for (int i = 0; i < filter_width; ++i) {
                const int column = extend(x + i + offset_x, width);
                const bool inside = row >= 0 && column >= 0;
                const sum_t value =
                    inside ? load_pixel(source + ((long)row * width + column) * channels) : cval;
                const int tap = j * filter_width + i;
                sum += weights[tap]
                       * value;
            }
        }
        store_pixel(sum, result + (which * out_height + y) * out_width * channels + place);
    }
}
