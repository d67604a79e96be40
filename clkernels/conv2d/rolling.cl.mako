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
 * Source: own; the tile and its halo after V. Podlozhnyuk, "Image convolution with CUDA", NVIDIA 2007.
 *
 * The host guarantees: images and results are contiguous: batch, rows, pixels, channels, aligned to
 * one element; `result` overlaps no input; dimensions 0 and 1 of the grid count tiles along a row and
 * across rows, which are of equal size but for the last ones, and dimension 2 the images from
 * `first_image` on. `tile` has room for the rows of a tile and filter_height - 1 more, and for another
 * one with `row_taps`, each of `line` values, see below. The filter has at most MOST_TAPS weights, its
 * halo at most MOST_HALO values.
 *
 * With `row_taps` the filter is given as a column, `weights`, and as a row of so many weights; then
 * filter_width is 1. Rows are filtered as they are collected, each from a line of its own, and the rest
 * is a filter of one column.
 *
 * The size of the filter is not built in, so that all filters share a program: a row of weights is a
 * loop, and a jump skips the sums that fewer rows do not need. The commonest sizes have a form of
 * their own.
 *
 * PIXELS     types, boundary condition and filter: see pixels.mako
 * STRIP      channels, vector_width and piece, see register.cl.mako; rows is 1
 * FORMS      `Form` of opencl_lab/ops/conv2d/rolling.py: ways down the columns; the first that fits
 * MOST_HALO, MOST_TAPS  see above
 */
<%page args="PIXELS, STRIP, FORMS, MOST_HALO, MOST_TAPS"/>\
<%namespace name="pixels" file="pixels.mako"/>\
<%namespace name="register_types" file="register_types.mako"/>\
<%namespace name="vectors" file="register_vectors.mako"/>\
<%
    load, width = register_types.module.load, STRIP.vector_width
    own = ["__global const sum_t *restrict row_weights", "const int row_taps", "__local sum_t *tile"]


    def local(pointer):
        """A vector of the tile, which is aligned to one element only."""
        return f"((__local packed_t *)({pointer}))->v" if width > 1 else f"*({pointer})"
%>\
${pixels.declare(PIXELS=PIXELS)}\
${register_types.declare(PIXELS=PIXELS, STRIP=STRIP)}\
## Go down the columns in one form.
<%def name="columns(form)">\
<%
    rows = form.rows if form.exact else "filter_height"
%>\
        for (int x = 0; x < tile_width; x += ${form.vectors * width}) {
            const int at = max(0, min(x, tile_width - ${form.vectors * width})); /* the last may have been done before */
            __global result_t *place = target + (long)first_row * out_pitch + first_value + at;
% for j in range(form.rows):
% for v in range(form.vectors):
            vec_t sum_${j}_${v} = 0;
% endfor
% endfor
            for (int r = 0; r < tile_rows; ++r) {
                __local const sum_t *values = tile + r * line + at;
                __private const sum_t *w = turned;
% for tap in range(form.columns or 1):
                ${"" if form.columns else "for (int i = 0; i < filter_width; ++i) "}{
% for v in range(form.vectors):
                    const vec_t p_${v} = ${local(f"values + {v * width}")};
% endfor
                    ${"" if form.exact else "switch (filter_height) "}{
% for j in reversed(range(form.rows)):
% if not form.exact:
                    ${f"case {j + 1}" if j else "default"}:
% endif
% for v in range(form.vectors):
                        sum_${j}_${v} += w[${j}] * p_${v};
% endfor
% endfor
                    }
                    values += ${STRIP.channels};
                    w += ${rows};
                }
% endfor
                if (r >= ${rows} - 1) {
% if form.vectors == 1 and width > 1:
                    if (tile_width < ${width}) {
                        const vec_t sums = sum_0_0;
                        for (int l = 0; l < tile_width; ++l)
                            store_pixel(((__private const sum_t *)&sums)[l], place + l);
                        place += out_pitch;
                    } else {
${vectors.store_all(PIXELS, STRIP, form.vectors)}\
                    }
% else:
${vectors.store_all(PIXELS, STRIP, form.vectors)}\
% endif
                }
% for j in range(form.rows):
% for v in range(form.vectors):
                sum_${j}_${v} = ${f"sum_{j + 1}_{v}" if j + 1 < form.rows else 0};
% endfor
% endfor
            }
        }
</%def>\

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv2d_rolling(
    ${pixels.parameters(own, sized=True)})
{
    const int pitch = width * ${STRIP.channels};
    const int out_pitch = out_width * ${STRIP.channels};
    const ulong which = first_image + get_group_id(2);
    __global const element_t *source = image + which * height * pitch;
    __global result_t *target = result + which * out_height * out_pitch;
    const int tile_width = (out_pitch + (int)get_num_groups(0) - 1) / (int)get_num_groups(0);
    const int tile_height = (out_height + (int)get_num_groups(1) - 1) / (int)get_num_groups(1);
    const int halo = (max(row_taps, filter_width) - 1) * ${STRIP.channels};
    const int line = (max(tile_width, ${width}) + halo + ${width - 1}) / ${width} * ${width};
    const int first_row = (int)get_group_id(1) * tile_height;
    const int first_value = min((int)get_group_id(0) * tile_width, out_pitch - tile_width);
    const int tile_rows = min(tile_height, out_height - first_row) + filter_height - 1;

    /* Find which values of a line are the row itself, and from where the others come. */
    const int length = tile_width + halo;
    const int begin = first_value + offset_x * ${STRIP.channels};
    const int low = clamp(-begin, 0, length);
    const int high = clamp(pitch - begin, low, length);
    int places[${2 * MOST_HALO}];
    for (int i = 0; i < length - (high - low); ++i) {
        const int place = first_value + (i < low ? i : i + high - low);
        const int x = extend(place / ${STRIP.channels} + offset_x, width);
        places[i] = x < 0 ? -1 : x * ${STRIP.channels} + place % ${STRIP.channels};
    }

    /* Collect the rows of the tile. */
    for (int r = 0; r < tile_rows; ++r) {
        __local sum_t *values = tile + (row_taps ? tile_rows : r) * line;
% if width > 1:
        /* What a narrow row has no results for is zero: subnormal numbers would take long. */
        for (int k = length; tile_width < ${width} && k < line; ++k)
            values[k] = 0;
% endif
        const int y = extend(first_row + r + offset_y, height);
        if (y < 0) {
            for (int k = 0; k < length; ++k)
                values[k] = cval;
        } else {
            __global const element_t *from = source + (long)y * pitch;
            int k = low;
% if STRIP.vector_width > 1:
            for (; k + ${width} <= high; k += ${width})
                ${local("values + k")} = ${load(PIXELS, STRIP, "from + begin + k")};
% endif
            for (; k < high; ++k)
                values[k] = load_pixel(from + begin + k);
            for (k = 0; k < low; ++k)
                values[k] = places[k] < 0 ? cval : load_pixel(from + places[k]);
            for (int i = low; i < length - (high - low); ++i)
                values[i + high - low] = places[i] < 0 ? cval : load_pixel(from + places[i]);
        }
        for (int x = 0; row_taps && x < tile_width; x += ${width}) {
            const int at = max(0, min(x, tile_width - ${width}));
            vec_t sum = 0;
            for (int i = 0; i < row_taps; ++i)
                sum += row_weights[${"row_taps - 1 - i" if PIXELS.flip else "i"}] * ${local(f"values + at + i * {STRIP.channels}")};
            ${local("tile + r * line + at")} = sum;
        }
    }

    /* Order the weights as the sums need them. */
    sum_t turned[${MOST_TAPS}];
    for (int i = 0; i < filter_width; ++i)
        for (int j = 0; j < filter_height; ++j)
            turned[i * filter_height + j] = weights[
                ${"j * filter_width + filter_width - 1 - i" if PIXELS.flip else "(filter_height - 1 - j) * filter_width + i"}];

% for form in FORMS:
<%
    fits = [f"filter_height {'==' if form.exact else '<='} {form.rows}"]
    fits += [f"filter_width == {form.columns}"] * bool(form.columns)
    fits += [f"tile_width >= {form.vectors * width}"] * (form.vectors > 1)
%>\
    ${"" if loop.first else "else "}if (${" && ".join(fits)}) {
${columns(form)}\
    }
% endfor
}
