/*
 * An example of clkernels/conv2d/register.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       conv2d size=1000 ksize=3
 *     algorithm     register
 *     configuration WG_X=64 WG_Y=1 VECTOR_WIDTH=4 VECTORS=1 ROWS=2 STEPS_X=1 STEPS_Y=1 UNROLL=16
 *                   WINDOW=True CONSTANT_WEIGHTS=True
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        conv2d_register, (256, 500, 1) items in groups of (64, 1, 1)
 */
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
 *                          of `align` elements they are read and written in pieces of so many,
 *                          unless the buffers, of all things, are not aligned to that: then all
 *                          items take the path of the edges.
 *
 * An item whose windows lie inside the image takes a path without any condition. Only items
 * at an edge collect values one by one, each from where the boundary condition says; there is
 * no padded copy of the image (register_edge.mako).
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
 * CONDITIONAL  whether a launch before this one may have called it off
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
typedef float4 vec_t;
typedef struct { vec_t v; } __attribute__((packed, aligned(sizeof(sum_t)))) packed_t;
typedef struct {
    float4 v;
} __attribute__((packed, aligned(sizeof(element_t)))) packed_piece_t;
typedef struct {
    float4 v;
} __attribute__((packed, aligned(sizeof(result_t)))) packed_result_t;

/* Find where 6 values of a row lie: number `first` of those that windows see and the
   next, none past `last`. Return the bounds of those which are the row itself; for all others
   `places` receives an index into the row, or -1 for cval. */
static inline int2 find(__private int *places, const int first, const int last,
                        const int offset_x, const int width)
{
    const int begin = first + offset_x * 1;
    const int low = clamp(-begin, 0, 6);
    const int high = clamp(width * 1 - begin, low, 6);
    for (int i = 0; i < 6 - (high - low); ++i) {
        const int k = i < low ? i : i + high - low;
        const int place = min(first + k, last);
        const int x = extend(place / 1 + offset_x, width);
        places[k] = x < 0 ? -1 : x * 1 + place % 1;
    }
    return (int2)(low, high);
}

/* Collect the values of a row that `find` has found. */
static inline void collect(__private sum_t *strip, __private const int *places, const int2 bounds,
                           __global const element_t *line, const int begin, const sum_t cval)
{
    if (bounds.y - bounds.x >= 4) {
        int k = bounds.x;
        for (; k + 4 <= bounds.y; k += 4)
            ((__private packed_t *)(strip + k))->v = ((__global const packed_t *)(line + begin + k))->v;
        k = bounds.y - 4;
        ((__private packed_t *)(strip + k))->v = ((__global const packed_t *)(line + begin + k))->v;
    } else
        for (int k = bounds.x; k < bounds.y; ++k)
            strip[k] = load_pixel(line + begin + k);
    for (int k = 0; k < bounds.x; ++k)
        strip[k] = places[k] < 0 ? cval : load_pixel(line + places[k]);
    for (int k = bounds.y; k < 6; ++k)
        strip[k] = places[k] < 0 ? cval : load_pixel(line + places[k]);
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void conv2d_register(__global const element_t *restrict image,
                     const weights_t weights,
                     __global result_t *restrict result,
                     const int height,
                     const int width,
                     const int steps_x,
                     const int steps_y,
                     const int out_height,
                     const int out_width,
                     const int offset_y,
                     const int offset_x,
                     const ulong first_image,
                     const sum_t cval)
{
    const int pitch = width * 1;
    const int out_pitch = out_width * 1;
    const ulong which = first_image + get_global_id(2);
    __global const element_t *source = image + which * height * pitch;
    __global result_t *target = result + which * out_height * out_pitch;
    const bool aligned = (size_t)image % sizeof(float4) == 0
                         && (size_t)result % sizeof(float4) == 0;

    for (int y = 0; y < 1; ++y)
        for (int x = 0; x < 1; ++x) {
            const int row = (((int)get_group_id(1) * 1 + y) * 1
                             + (int)get_local_id(1)) * 2;
            const int column = (((int)get_group_id(0) * 1 + x)
                                * 64 + (int)get_local_id(0)) * 4;
            if (row >= out_height || column >= out_pitch)
                continue;
            const int last = column + 3;
            const int begin = column + offset_x * 1;
            const int end = last + (offset_x + 2) * 1;
            const bool inside = row + offset_y >= 0 && row + offset_y + 3 < height
                                && row + 2 <= out_height
                                && begin >= 0 && end < pitch && last < out_pitch;
            sum_t sum_0_0_0 = 0;
            sum_t sum_0_0_1 = 0;
            sum_t sum_0_0_2 = 0;
            sum_t sum_0_0_3 = 0;
            sum_t sum_1_0_0 = 0;
            sum_t sum_1_0_1 = 0;
            sum_t sum_1_0_2 = 0;
            sum_t sum_1_0_3 = 0;

            /* Add the products. */
            if (inside && aligned) {
                __global const element_t *line =
                    source + (long)(row + offset_y) * pitch + column + offset_x * 1;
                {
                    const float4 piece_0 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + -3);
                    const float4 piece_1 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + 1);
                    const float4 piece_2 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + 5);
                    const sum_t p_0 = piece_0.s3;
                    const sum_t p_1 = piece_1.s0;
                    const sum_t p_2 = piece_1.s1;
                    const sum_t p_3 = piece_1.s2;
                    const sum_t p_4 = piece_1.s3;
                    const sum_t p_5 = piece_2.s0;
                    {
                        const sum_t w = weights[(0) * 3 + 0 + 0];
                        sum_0_0_0 += w * p_0;
                        sum_0_0_1 += w * p_1;
                        sum_0_0_2 += w * p_2;
                        sum_0_0_3 += w * p_3;
                    }
                    {
                        const sum_t w = weights[(0) * 3 + 0 + 1];
                        sum_0_0_0 += w * p_1;
                        sum_0_0_1 += w * p_2;
                        sum_0_0_2 += w * p_3;
                        sum_0_0_3 += w * p_4;
                    }
                    {
                        const sum_t w = weights[(0) * 3 + 0 + 2];
                        sum_0_0_0 += w * p_2;
                        sum_0_0_1 += w * p_3;
                        sum_0_0_2 += w * p_4;
                        sum_0_0_3 += w * p_5;
                    }
                }
                line += pitch;
                {
                    const float4 piece_0 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + -3);
                    const float4 piece_1 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + 1);
                    const float4 piece_2 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + 5);
                    const sum_t p_0 = piece_0.s3;
                    const sum_t p_1 = piece_1.s0;
                    const sum_t p_2 = piece_1.s1;
                    const sum_t p_3 = piece_1.s2;
                    const sum_t p_4 = piece_1.s3;
                    const sum_t p_5 = piece_2.s0;
                    {
                        const sum_t w = weights[(1) * 3 + 0 + 0];
                        sum_0_0_0 += w * p_0;
                        sum_0_0_1 += w * p_1;
                        sum_0_0_2 += w * p_2;
                        sum_0_0_3 += w * p_3;
                    }
                    {
                        const sum_t w = weights[(0) * 3 + 0 + 0];
                        sum_1_0_0 += w * p_0;
                        sum_1_0_1 += w * p_1;
                        sum_1_0_2 += w * p_2;
                        sum_1_0_3 += w * p_3;
                    }
                    {
                        const sum_t w = weights[(1) * 3 + 0 + 1];
                        sum_0_0_0 += w * p_1;
                        sum_0_0_1 += w * p_2;
                        sum_0_0_2 += w * p_3;
                        sum_0_0_3 += w * p_4;
                    }
                    {
                        const sum_t w = weights[(0) * 3 + 0 + 1];
                        sum_1_0_0 += w * p_1;
                        sum_1_0_1 += w * p_2;
                        sum_1_0_2 += w * p_3;
                        sum_1_0_3 += w * p_4;
                    }
                    {
                        const sum_t w = weights[(1) * 3 + 0 + 2];
                        sum_0_0_0 += w * p_2;
                        sum_0_0_1 += w * p_3;
                        sum_0_0_2 += w * p_4;
                        sum_0_0_3 += w * p_5;
                    }
                    {
                        const sum_t w = weights[(0) * 3 + 0 + 2];
                        sum_1_0_0 += w * p_2;
                        sum_1_0_1 += w * p_3;
                        sum_1_0_2 += w * p_4;
                        sum_1_0_3 += w * p_5;
                    }
                }
                line += pitch;
                {
                    const float4 piece_0 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + -3);
                    const float4 piece_1 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + 1);
                    const float4 piece_2 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + 5);
                    const sum_t p_0 = piece_0.s3;
                    const sum_t p_1 = piece_1.s0;
                    const sum_t p_2 = piece_1.s1;
                    const sum_t p_3 = piece_1.s2;
                    const sum_t p_4 = piece_1.s3;
                    const sum_t p_5 = piece_2.s0;
                    {
                        const sum_t w = weights[(2) * 3 + 0 + 0];
                        sum_0_0_0 += w * p_0;
                        sum_0_0_1 += w * p_1;
                        sum_0_0_2 += w * p_2;
                        sum_0_0_3 += w * p_3;
                    }
                    {
                        const sum_t w = weights[(1) * 3 + 0 + 0];
                        sum_1_0_0 += w * p_0;
                        sum_1_0_1 += w * p_1;
                        sum_1_0_2 += w * p_2;
                        sum_1_0_3 += w * p_3;
                    }
                    {
                        const sum_t w = weights[(2) * 3 + 0 + 1];
                        sum_0_0_0 += w * p_1;
                        sum_0_0_1 += w * p_2;
                        sum_0_0_2 += w * p_3;
                        sum_0_0_3 += w * p_4;
                    }
                    {
                        const sum_t w = weights[(1) * 3 + 0 + 1];
                        sum_1_0_0 += w * p_1;
                        sum_1_0_1 += w * p_2;
                        sum_1_0_2 += w * p_3;
                        sum_1_0_3 += w * p_4;
                    }
                    {
                        const sum_t w = weights[(2) * 3 + 0 + 2];
                        sum_0_0_0 += w * p_2;
                        sum_0_0_1 += w * p_3;
                        sum_0_0_2 += w * p_4;
                        sum_0_0_3 += w * p_5;
                    }
                    {
                        const sum_t w = weights[(1) * 3 + 0 + 2];
                        sum_1_0_0 += w * p_2;
                        sum_1_0_1 += w * p_3;
                        sum_1_0_2 += w * p_4;
                        sum_1_0_3 += w * p_5;
                    }
                }
                line += pitch;
                {
                    const float4 piece_0 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + -3);
                    const float4 piece_1 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + 1);
                    const float4 piece_2 =
                        *(__global const float4 *)(line + (0) * 1 + 0 + 5);
                    const sum_t p_0 = piece_0.s3;
                    const sum_t p_1 = piece_1.s0;
                    const sum_t p_2 = piece_1.s1;
                    const sum_t p_3 = piece_1.s2;
                    const sum_t p_4 = piece_1.s3;
                    const sum_t p_5 = piece_2.s0;
                    {
                        const sum_t w = weights[(2) * 3 + 0 + 0];
                        sum_1_0_0 += w * p_0;
                        sum_1_0_1 += w * p_1;
                        sum_1_0_2 += w * p_2;
                        sum_1_0_3 += w * p_3;
                    }
                    {
                        const sum_t w = weights[(2) * 3 + 0 + 1];
                        sum_1_0_0 += w * p_1;
                        sum_1_0_1 += w * p_2;
                        sum_1_0_2 += w * p_3;
                        sum_1_0_3 += w * p_4;
                    }
                    {
                        const sum_t w = weights[(2) * 3 + 0 + 2];
                        sum_1_0_0 += w * p_2;
                        sum_1_0_1 += w * p_3;
                        sum_1_0_2 += w * p_4;
                        sum_1_0_3 += w * p_5;
                    }
                }
                line += pitch;
            } else {
                const int last_row = out_height + 1;
                const int last_value = (out_width + 2) * 1 - 1;
                for (int first = 0; first < 3; first += 3) {
                    const int count = min(3, 3 - first);
                    const int seen = column + first * 1;
                    sum_t strip[1][6];
                    int places[1][6];
                    const int2 bounds_0 =
                        find(places[0], seen + 0, last_value, offset_x, width);
                    for (int r = 0; r < 4; ++r) {
                        const int from = extend(min(row + r, last_row) + offset_y, height);
                        if (from < 0) {
                            for (int k = 0; k < 6; ++k) {
                                strip[0][k] = cval;
                            }
                        } else {
                            __global const element_t *line = source + (long)from * pitch;
                            collect(strip[0], places[0], bounds_0, line,
                                    seen + 0 + offset_x * 1, cval);
                        }
                        if (r >= 1 && r < 3) {
                            for (int i = 0; i < count; ++i) {
                                __private const sum_t *p_0 = strip[0] + 0 + i * 1;
                                {
                                    const sum_t w = weights[(r - 0) * 3 + first + i];
                                    sum_0_0_0 += w * p_0[0];
                                    sum_0_0_1 += w * p_0[1];
                                    sum_0_0_2 += w * p_0[2];
                                    sum_0_0_3 += w * p_0[3];
                                }
                                {
                                    const sum_t w = weights[(r - 1) * 3 + first + i];
                                    sum_1_0_0 += w * p_0[0];
                                    sum_1_0_1 += w * p_0[1];
                                    sum_1_0_2 += w * p_0[2];
                                    sum_1_0_3 += w * p_0[3];
                                }
                            }
                        } else {
                            if (r >= 0 && r < 3) {
                                for (int i = 0; i < count; ++i) {
                                    __private const sum_t *p_0 = strip[0] + 0 + i * 1;
                                    {
                                        const sum_t w = weights[(r - 0) * 3 + first + i];
                                        sum_0_0_0 += w * p_0[0];
                                        sum_0_0_1 += w * p_0[1];
                                        sum_0_0_2 += w * p_0[2];
                                        sum_0_0_3 += w * p_0[3];
                                    }
                                }
                            }
                            if (r >= 1 && r < 4) {
                                for (int i = 0; i < count; ++i) {
                                    __private const sum_t *p_0 = strip[0] + 0 + i * 1;
                                    {
                                        const sum_t w = weights[(r - 1) * 3 + first + i];
                                        sum_1_0_0 += w * p_0[0];
                                        sum_1_0_1 += w * p_0[1];
                                        sum_1_0_2 += w * p_0[2];
                                        sum_1_0_3 += w * p_0[3];
                                    }
                                }
                            }
                        }
                    }
                }
            }

            /* Store what lies inside the result. */
            __global result_t *place = target + (long)row * out_pitch + column;
            if (inside && aligned) {
                *(__global float4 *)(place + 0) =
                    (float4)(to_result(sum_0_0_0), to_result(sum_0_0_1), to_result(sum_0_0_2), to_result(sum_0_0_3));
                place += out_pitch;
                *(__global float4 *)(place + 0) =
                    (float4)(to_result(sum_1_0_0), to_result(sum_1_0_1), to_result(sum_1_0_2), to_result(sum_1_0_3));
                place += out_pitch;
            } else if (inside) {
                store_pixel(sum_0_0_0, place + 0);
                store_pixel(sum_0_0_1, place + 1);
                store_pixel(sum_0_0_2, place + 2);
                store_pixel(sum_0_0_3, place + 3);
                place += out_pitch;
                store_pixel(sum_1_0_0, place + 0);
                store_pixel(sum_1_0_1, place + 1);
                store_pixel(sum_1_0_2, place + 2);
                store_pixel(sum_1_0_3, place + 3);
                place += out_pitch;
            } else {
                if (row + 0 < out_height) {
                    if (column + 0 < out_pitch)
                        store_pixel(sum_0_0_0, place + 0);
                    if (column + 1 < out_pitch)
                        store_pixel(sum_0_0_1, place + 1);
                    if (column + 2 < out_pitch)
                        store_pixel(sum_0_0_2, place + 2);
                    if (column + 3 < out_pitch)
                        store_pixel(sum_0_0_3, place + 3);
                }
                place += out_pitch;
                if (row + 1 < out_height) {
                    if (column + 0 < out_pitch)
                        store_pixel(sum_1_0_0, place + 0);
                    if (column + 1 < out_pitch)
                        store_pixel(sum_1_0_1, place + 1);
                    if (column + 2 < out_pitch)
                        store_pixel(sum_1_0_2, place + 2);
                    if (column + 3 < out_pitch)
                        store_pixel(sum_1_0_3, place + 3);
                }
                place += out_pitch;
            }
        }
}
