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
<%page args="PIXELS, STRIP, SEPARABLE"/>\
<%namespace name="pixels" file="pixels.mako"/>\
<%namespace name="register_types" file="register_types.mako"/>\
<%namespace name="vectors" file="register_vectors.mako"/>\
<%
    load, weight = register_types.module.load, register_types.module.weight
    taps_y, taps_x = STRIP.taps
    # Taps along a row that the way down has left to do.
    left = 1 if SEPARABLE else taps_x
    halo = (taps_x - 1) * STRIP.channels
    own = ["__global const sum_t *restrict row_weights"] * SEPARABLE + ["__local sum_t *tile"]
    own += [f"const int {size}" for size in ("line", "tile_height", "tile_width")]


    def local(pointer):
        """A vector of the tile, which is aligned to one element only."""
        return f"((__local packed_t *)({pointer}))->v" if STRIP.vector_width > 1 else f"*({pointer})"
%>\
${pixels.declare(PIXELS=PIXELS)}\
${register_types.declare(PIXELS=PIXELS, STRIP=STRIP)}\

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv2d_rolling(
    ${pixels.parameters(own)})
{
    const int pitch = width * ${STRIP.channels};
    const int out_pitch = out_width * ${STRIP.channels};
    const ulong which = first_image + get_group_id(2);
    __global const element_t *source = image + which * height * pitch;
    __global result_t *target = result + which * out_height * out_pitch;
    const int first_row = (int)get_group_id(1) * tile_height;
    const int first_value = min((int)get_group_id(0) * tile_width, out_pitch - tile_width);
    const int rows = min(tile_height, out_height - first_row) + ${taps_y - 1};

    /* Find which values of a line are the row itself, and from where the others come. */
    const int length = tile_width + ${halo};
    const int begin = first_value + offset_x * ${STRIP.channels};
    const int low = clamp(-begin, 0, length);
    const int high = clamp(pitch - begin, low, length);
    int places[${max(2 * halo, 1)}];
    for (int i = 0; i < length - (high - low); ++i) {
        const int place = first_value + (i < low ? i : i + high - low);
        const int x = extend(place / ${STRIP.channels} + offset_x, width);
        places[i] = x < 0 ? -1 : x * ${STRIP.channels} + place % ${STRIP.channels};
    }

    /* Collect the rows of the tile. */
% if SEPARABLE:
    __local sum_t *values = tile + rows * line;
% endif
    for (int r = 0; r < rows; ++r) {
% if not SEPARABLE:
        __local sum_t *values = tile + r * line;
% endif
        const int y = extend(first_row + r + offset_y, height);
        if (y < 0) {
            for (int k = 0; k < length; ++k)
                values[k] = cval;
        } else {
            __global const element_t *from = source + (long)y * pitch;
            int k = low;
% if STRIP.vector_width > 1:
            for (; k + ${STRIP.vector_width} <= high; k += ${STRIP.vector_width})
                ${local("values + k")} = ${load(PIXELS, STRIP, "from + begin + k")};
% endif
            for (; k < high; ++k)
                values[k] = load_pixel(from + begin + k);
            for (k = 0; k < low; ++k)
                values[k] = places[k] < 0 ? cval : load_pixel(from + places[k]);
            for (int i = low; i < length - (high - low); ++i)
                values[i + high - low] = places[i] < 0 ? cval : load_pixel(from + places[i]);
        }
% if SEPARABLE:
        for (int x = 0; x < tile_width; x += ${STRIP.vector_width}) {
            const int at = min(x, tile_width - ${STRIP.vector_width});
            vec_t sum = 0;
% for i in range(taps_x):
            sum += row_weights[${taps_x - 1 - i if PIXELS.flip else i}] * ${local(f"values + at + {i * STRIP.channels}")};
% endfor
            ${local("tile + r * line + at")} = sum;
        }
% endif
    }

    /* Go down the columns; the last ones may have been done before. */
    for (int x = 0; x < tile_width; x += ${STRIP.width}) {
        const int at = min(x, tile_width - ${STRIP.width});
        __global result_t *place = target + (long)first_row * out_pitch + first_value + at;
% for j in range(taps_y):
% for v in range(STRIP.vectors):
        vec_t sum_${j}_${v} = 0;
% endfor
% endfor
        for (int r = 0; r < rows; ++r) {
% for i in range(left):
            {
% for v in range(STRIP.vectors):
                const vec_t p_${v} =
                    ${local(f"tile + r * line + at + {i * STRIP.channels + v * STRIP.vector_width}")};
% endfor
% for j in range(taps_y):
                {
                    const sum_t w = ${f"weights[{j if PIXELS.flip else taps_y - 1 - j}]" if SEPARABLE else weight(PIXELS, STRIP, taps_y - 1 - j, i)};
% for v in range(STRIP.vectors):
                    sum_${j}_${v} += w * p_${v};
% endfor
                }
% endfor
            }
% endfor
            if (r >= ${taps_y - 1}) {
${vectors.store_all(PIXELS, STRIP)}\
            }
% for j in range(taps_y):
% for v in range(STRIP.vectors):
            sum_${j}_${v} = ${f"sum_{j + 1}_{v}" if j + 1 < taps_y else 0};
% endfor
% endfor
        }
    }
}
