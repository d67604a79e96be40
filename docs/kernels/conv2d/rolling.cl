/*
 * An example of clkernels/conv2d/rolling.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       conv2d size=300 ksize=3
 *     algorithm     rolling
 *     configuration VECTOR_WIDTH=8 VECTORS=2 TILE_BYTES=131072
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        conv2d_rolling, (1, 3, 1) items in groups of (1, 1, 1)
 */
/*
 * 2D convolution on one thread: a tile and its halo in the cache, and sums that roll down its columns.
 *
 * A group of one item collects the rows that its tile needs, each with its halo, converted to the type
 * of the sums. Values beyond an edge are put there as well, so that nothing below asks where a pixel
 * is. Then it goes down the tile, some vectors of a row at a time. A row adds to KH rows of results;
 * the first of them is complete then, and the others move up. Here KH = 3, and what each row of the
 * tile is multiplied by:
 *
 *      row of the tile          sum_0    sum_1    sum_2
 *      [ p p p p p p p p ]       w2       w1       w0      sum_0 is stored, unless it began above
 *            v                    <--------<--------<-- 0
 *      [ p p p p p p p p ]       w2       w1       w0
 *
 * So each row is read once for all results that need it, and the vectors beside each other give the
 * processor sums that do not wait for each other.
 *
 * SEPARABLE  the rows are filtered as they are collected, each from a line of its own, and the rest is
 *            a filter of one column.
 *
 * Source: own; the tile and its halo after V. Podlozhnyuk, "Image convolution with CUDA", NVIDIA 2007.
 *
 * The host guarantees: images and results are contiguous: batch, rows, pixels, channels, aligned to
 * one element; `result` overlaps no input; dimensions 0 and 1 of the grid count tiles along a row and
 * across rows, and dimension 2 the images from `first_image` on. A row of results has at least
 * tile_width values, and tile_width at least those of the vectors beside each other. `tile` has room
 * for tile_height + KH - 1 lines of `line` values, and for one more if SEPARABLE; `line` is at least
 * tile_width and the halo.
 *
 * PIXELS     types, boundary condition and filter: see pixels.mako
 * STRIP      taps, channels, vector_width, vectors and piece, see register.cl.mako; rows is 1
 * SEPARABLE  whether the filter is given as a column, `weights`, and a row
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
typedef float8 vec_t;
typedef struct { vec_t v; } __attribute__((packed, aligned(sizeof(sum_t)))) packed_t;
typedef struct {
    float8 v;
} __attribute__((packed, aligned(sizeof(element_t)))) packed_piece_t;
typedef struct {
    float8 v;
} __attribute__((packed, aligned(sizeof(result_t)))) packed_result_t;

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv2d_rolling(__global const element_t *restrict image,
                    const weights_t weights,
                    __global result_t *restrict result,
                    const int height,
                    const int width,
                    __local sum_t *tile,
                    const int line,
                    const int tile_height,
                    const int tile_width,
                    const int out_height,
                    const int out_width,
                    const int offset_y,
                    const int offset_x,
                    const ulong first_image,
                    const sum_t cval)
{
    const int pitch = width * 1;
    const int out_pitch = out_width * 1;
    const ulong which = first_image + get_group_id(2);
    __global const element_t *source = image + which * height * pitch;
    __global result_t *target = result + which * out_height * out_pitch;
    const int first_row = (int)get_group_id(1) * tile_height;
    const int first_value = min((int)get_group_id(0) * tile_width, out_pitch - tile_width);
    const int rows = min(tile_height, out_height - first_row) + 2;

    /* Find which values of a line are the row itself, and from where the others come. */
    const int length = tile_width + 2;
    const int begin = first_value + offset_x * 1;
    const int low = clamp(-begin, 0, length);
    const int high = clamp(pitch - begin, low, length);
    int places[4];
    for (int i = 0; i < length - (high - low); ++i) {
        const int place = first_value + (i < low ? i : i + high - low);
        const int x = extend(place / 1 + offset_x, width);
        places[i] = x < 0 ? -1 : x * 1 + place % 1;
    }

    /* Collect the rows of the tile. */
    for (int r = 0; r < rows; ++r) {
        __local sum_t *values = tile + r * line;
        const int y = extend(first_row + r + offset_y, height);
        if (y < 0) {
            for (int k = 0; k < length; ++k)
                values[k] = cval;
        } else {
            __global const element_t *from = source + (long)y * pitch;
            int k = low;
            for (; k + 8 <= high; k += 8)
                ((__local packed_t *)(values + k))->v = ((__global const packed_t *)(from + begin + k))->v;
            for (; k < high; ++k)
                values[k] = load_pixel(from + begin + k);
            for (k = 0; k < low; ++k)
                values[k] = places[k] < 0 ? cval : load_pixel(from + places[k]);
            for (int i = low; i < length - (high - low); ++i)
                values[i + high - low] = places[i] < 0 ? cval : load_pixel(from + places[i]);
        }
    }

    /* Go down the columns; the last ones may have been done before. */
    for (int x = 0; x < tile_width; x += 16) {
        const int at = min(x, tile_width - 16);
        __global result_t *place = target + (long)first_row * out_pitch + first_value + at;
        vec_t sum_0_0 = 0;
        vec_t sum_0_1 = 0;
        vec_t sum_1_0 = 0;
        vec_t sum_1_1 = 0;
        vec_t sum_2_0 = 0;
        vec_t sum_2_1 = 0;
        for (int r = 0; r < rows; ++r) {
            {
                const vec_t p_0 =
                    ((__local packed_t *)(tile + r * line + at + 0))->v;
                const vec_t p_1 =
                    ((__local packed_t *)(tile + r * line + at + 8))->v;
                {
                    const sum_t w = weights[(2) * 3 + 0];
                    sum_0_0 += w * p_0;
                    sum_0_1 += w * p_1;
                }
                {
                    const sum_t w = weights[(1) * 3 + 0];
                    sum_1_0 += w * p_0;
                    sum_1_1 += w * p_1;
                }
                {
                    const sum_t w = weights[(0) * 3 + 0];
                    sum_2_0 += w * p_0;
                    sum_2_1 += w * p_1;
                }
            }
            {
                const vec_t p_0 =
                    ((__local packed_t *)(tile + r * line + at + 1))->v;
                const vec_t p_1 =
                    ((__local packed_t *)(tile + r * line + at + 9))->v;
                {
                    const sum_t w = weights[(2) * 3 + 1];
                    sum_0_0 += w * p_0;
                    sum_0_1 += w * p_1;
                }
                {
                    const sum_t w = weights[(1) * 3 + 1];
                    sum_1_0 += w * p_0;
                    sum_1_1 += w * p_1;
                }
                {
                    const sum_t w = weights[(0) * 3 + 1];
                    sum_2_0 += w * p_0;
                    sum_2_1 += w * p_1;
                }
            }
            {
                const vec_t p_0 =
                    ((__local packed_t *)(tile + r * line + at + 2))->v;
                const vec_t p_1 =
                    ((__local packed_t *)(tile + r * line + at + 10))->v;
                {
                    const sum_t w = weights[(2) * 3 + 2];
                    sum_0_0 += w * p_0;
                    sum_0_1 += w * p_1;
                }
                {
                    const sum_t w = weights[(1) * 3 + 2];
                    sum_1_0 += w * p_0;
                    sum_1_1 += w * p_1;
                }
                {
                    const sum_t w = weights[(0) * 3 + 2];
                    sum_2_0 += w * p_0;
                    sum_2_1 += w * p_1;
                }
            }
            if (r >= 2) {
                ((__global packed_result_t *)(place + 0))->v = sum_0_0;
                ((__global packed_result_t *)(place + 8))->v = sum_0_1;
                place += out_pitch;
            }
            sum_0_0 = sum_1_0;
            sum_0_1 = sum_1_1;
            sum_1_0 = sum_2_0;
            sum_1_1 = sum_2_1;
            sum_2_0 = 0;
            sum_2_1 = 0;
        }
    }
}
