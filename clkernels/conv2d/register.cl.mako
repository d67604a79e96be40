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
 *   WINDOW = 0   each tap reads its vectors anew, unaligned, from the first cache: a CPU does
 *                so twice a cycle. The vectors of an item lie WG_X vectors apart, so that
 *                items beside each other read and write memory beside each other.
 *   WINDOW = 1   the VECTOR_WIDTH + KW - 1 values under a vector are read once and stay in
 *                registers for all taps, as a GPU likes it. Where rows are multiples of ALIGN
 *                elements they are read and written in pieces of so many. If the buffers, of
 *                all things, are not aligned to that, all items take the path of the edges.
 *
 * An item whose windows lie inside the image takes a path without any condition. Only items
 * at an edge collect values one by one, each from where the boundary condition says; there is
 * no padded copy of the image.
 *
 * Source: register blocking as in V. Volkov, "Better performance at lower occupancy", GTC
 * 2010; F. Iandola et al., "Communication-minimizing 2D convolution in GPU registers", ICIP
 * 2013.
 *
 * The host guarantees: images and results are contiguous: batch, rows, pixels, channels,
 * aligned to one element; dimension 0 of the grid covers the values of a row, dimension 1 the
 * rows, in whole work-groups, and dimension 2 the images from `first_image` on; `result`
 * overlaps no input. Where ALIGN > 1 the rows of images and results are multiples of it.
 *
 * ELEMENT_T, RESULT_T, SUM_T, BOUNDARY, FAR, SATURATE, CONSTANT_WEIGHTS: see pixels.cl.mako
 * FLIP          whether the filter is turned by 180 degrees
 * CHANNELS      values of a pixel
 * KH, KW        rows and columns of the filter
 * WG_X, WG_Y    items of a work-group along a row and across rows
 * VECTOR_WIDTH  values of a row in a vector
 * VECTORS       vectors of an item beside each other
 * ROWS          rows of results that an item computes together
 * STEPS         whether an item computes `steps_x` blocks along a row and `steps_y` across rows,
 *               one after the other; else one
 * UNROLL        taps of a row that are written out; longer rows loop over so many
 * WINDOW        see above
 * ALIGN, SHIFT  pieces of aligned access with WINDOW, and where in a piece a window begins
 */
<%page args="ELEMENT_T, RESULT_T, SUM_T, BOUNDARY, FAR, SATURATE, CONSTANT_WEIGHTS, FLIP, CHANNELS,
             KH, KW, WG_X, WG_Y, VECTOR_WIDTH, VECTORS, ROWS, STEPS, UNROLL, WINDOW, ALIGN,
             SHIFT"/>\
<%include file="/conv2d/pixels.cl.mako" args="ELEMENT_T=ELEMENT_T, RESULT_T=RESULT_T,
    SUM_T=SUM_T, BOUNDARY=BOUNDARY, FAR=FAR, SATURATE=SATURATE, CONSTANT_WEIGHTS=CONSTANT_WEIGHTS"/>\
<%
    vectors, lanes, rows = range(VECTORS), range(VECTOR_WIDTH), range(ROWS)
    apart = WG_X * VECTOR_WIDTH  # from one vector of an item to the next
    at_once = min(KW, UNROLL)
    # Vectors beside each other share what is collected at an edge.
    strips, beside = (1, VECTORS) if WG_X == 1 else (VECTORS, 1)
    strip = beside * VECTOR_WIDTH + (at_once - 1) * CHANNELS
    # Values converted by one call: PoCL 3.0 takes no vectors of 64 bytes in calls.
    PIECE = min(VECTOR_WIDTH, 4 if SUM_T in ("long", "double") else 8)


    def vec(type_name, width):
        return type_name if width == 1 else f"{type_name}{width}"


    def lane(name, width, l):
        return name if width == 1 else f"{name}.s{l:x}"


    def literal(values):
        return values[0] if len(values) == 1 else f"(vec_t)({', '.join(values)})"


    def load(pointer):
        """The vector at `pointer`, which is aligned to one element only."""
        if ELEMENT_T == SUM_T and VECTOR_WIDTH > 1:
            return f"((__global const packed_t *)({pointer}))->v"
        if ELEMENT_T == "half" or VECTOR_WIDTH == 1:
            return literal([f"load_pixel({pointer} + {l})" for l in lanes])
        whole = vec("int" if SUM_T == "uint" else SUM_T, PIECE)
        pieces = [f"convert_{whole}(((__global const packed_piece_t *)({pointer} + {k}))->v)"
                  for k in range(0, VECTOR_WIDTH, PIECE)]
        return literal([f"as_{vec(SUM_T, PIECE)}({piece})" for piece in pieces])


    def packed(pointer):
        """A vector of private memory, which is aligned to one element only."""
        return f"((__private packed_t *)({pointer}))->v" if VECTOR_WIDTH > 1 else f"*({pointer})"


    def collected_at(v):
        """Where the values that are collected for a vector begin."""
        return f"strip[0] + {v * VECTOR_WIDTH}" if strips == 1 else f"strip[{v}]"


    def value(number):
        """A vector of sums in memory."""
        return packed(f"values[{number}]")


    def weight(j, i):
        return f"weights[({KH - 1} - ({j})) * {KW} + {KW - 1} - ({i})]" if FLIP else (
            f"weights[({j}) * {KW} + {i}]")


    def sums(o, v):
        """The variables that hold a vector of sums."""
        return [f"sum_{o}_{v}_{l}" for l in lanes] if WINDOW else [f"sum_{o}_{v}"]


    def sum_lanes(o, v):
        """Expressions for the values of a vector of sums."""
        return sums(o, v) if WINDOW else [lane(f"sum_{o}_{v}", VECTOR_WIDTH, l) for l in lanes]


    def results(o, v):
        """A vector of sums as results."""
        if RESULT_T == SUM_T:
            return f"sum_{o}_{v}"
        each = ", ".join(f"to_result({value})" for value in sum_lanes(o, v))
        return f"({vec(RESULT_T, VECTOR_WIDTH)})({each})"
%>\
typedef ${vec(SUM_T, VECTOR_WIDTH)} vec_t;
% if VECTOR_WIDTH > 1:
/* Vectors in memory that are aligned to one element only. */
typedef struct { vec_t v; } __attribute__((packed, aligned(sizeof(sum_t)))) packed_t;
% if ELEMENT_T != "half":
typedef struct {
    ${vec(ELEMENT_T, PIECE)} v;
} __attribute__((packed, aligned(sizeof(element_t)))) packed_piece_t;
% endif
% if RESULT_T != "half":
typedef struct {
    ${vec(RESULT_T, VECTOR_WIDTH)} v;
} __attribute__((packed, aligned(sizeof(result_t)))) packed_result_t;
% endif
% endif

## Add `count` taps of a row of the image, from tap `first` on, to the sums of `pairs`: rows of
## results, and the row of the filter that each of them needs.
<%def name="taps(first, count, pairs, align)">\
% if WINDOW:
% for v in vectors:
            {
<%
    width = VECTOR_WIDTH + (count - 1) * CHANNELS
    begin = f"line + ({first}) * {CHANNELS} + {v * apart}"
    shift = SHIFT if align > 1 else 0
%>\
% if align > 1:
% for k in range(-(-(shift + width) // align)):
                const ${vec(ELEMENT_T, align)} piece_${k} =
                    *(__global const ${vec(ELEMENT_T, align)} *)(${begin} + ${k * align - shift});
% endfor
% for k in range(width):
                const sum_t p_${k} = ${lane(f"piece_{(k + shift) // align}", align,
                                            (k + shift) % align)};
% endfor
% else:
% for k in range(width):
                const sum_t p_${k} = load_pixel(${begin} + ${k});
% endfor
% endif
% for i in range(count):
% for o, j in pairs:
                {
                    const sum_t w = ${weight(j, f"{first} + {i}")};
% for l in lanes:
                    sum_${o}_${v}_${l} += w * p_${l + i * CHANNELS};
% endfor
                }
% endfor
% endfor
            }
% endfor
% else:
% for i in range(count):
            {
% for v in vectors:
                const vec_t p_${v} = ${load(f"line + ({first} + {i}) * {CHANNELS} + {v * apart}")};
% endfor
% for o, j in pairs:
                {
                    const sum_t w = ${weight(j, f"{first} + {i}")};
% for v in vectors:
                    sum_${o}_${v} += w * p_${v};
% endfor
                }
% endfor
            }
% endfor
% endif
</%def>\
## Add a whole row of the image.
<%def name="row_of(pairs, align)">\
% if KW <= UNROLL:
${taps("0", KW, pairs, align)}\
% else:
            for (int first = 0; first < ${KW // UNROLL * UNROLL}; first += ${UNROLL}) {
${taps("first", UNROLL, pairs, align)}\
            }
% if KW % UNROLL:
${taps(str(KW // UNROLL * UNROLL), KW % UNROLL, pairs, align)}\
% endif
% endif
            line += pitch;
</%def>\
## Add tap `first + i` of the collected values to the rows `chosen` of results, lane by lane.
<%def name="collected(chosen)">\
% for v in vectors:
                            __private const sum_t *p_${v} = ${collected_at(v)} + i * ${CHANNELS};
% endfor
% for o in chosen:
                            {
                                const sum_t w = ${weight(f"r - {o}", "first + i")};
% for v in vectors:
% for l in lanes:
                                sum_${o}_${v}_${l} += w * p_${v}[${l}];
% endfor
% endfor
                            }
% endfor
</%def>\
## Add the collected values to rows of results from `o` on, the sums of which are in memory.
<%def name="collected_vectors(chosen, o)">\
% for c in chosen:
% for v in vectors:
                        vec_t sum_${c}_${v} = ${value(f"({o} + {c}) * {VECTORS} + {v}")};
% endfor
% endfor
                        for (int i = 0; i < count; ++i) {
% for v in vectors:
                            const vec_t p_${v} = ${packed(f"{collected_at(v)} + i * {CHANNELS}")};
% endfor
% for c in chosen:
                            {
                                const sum_t w = ${weight(f"r - {o} - {c}", "first + i")};
% for v in vectors:
                                sum_${c}_${v} += w * p_${v};
% endfor
                            }
% endfor
                        }
% for c in chosen:
% for v in vectors:
                        ${value(f"({o} + {c}) * {VECTORS} + {v}")} = sum_${c}_${v};
% endfor
% endfor
</%def>\
## Add all rows: no condition anywhere.
<%def name="interior(align)">\
<%
    together = KH >= ROWS and KH > 3
    head = ROWS - 1 if together else KH + ROWS - 1
%>\
            __global const element_t *line =
                source + (long)(row + offset_y) * pitch + column + offset_x * ${CHANNELS};
% for r in range(head):
${row_of([(o, r - o) for o in rows if 0 <= r - o < KH], align)}\
% endfor
% if together:
            for (int r = ${ROWS - 1}; r < ${KH}; ++r) {
${row_of([(o, f"r - {o}") for o in rows], align)}\
            }
% for r in range(KH, KH + ROWS - 1):
${row_of([(o, r - o) for o in rows if 0 <= r - o < KH], align)}\
% endfor
% endif
</%def>\

/* Find where the values lie that ${strip} places of a window's row continue: number `first` of
   those that windows see and the next, none past `last`. Return the bounds of those which are
   the row itself; for all others `places` receives an index into the row, or -1 for cval. */
static inline int2 find(__private int *places, const int first, const int last,
                        const int offset_x, const int width)
{
    const int begin = first + offset_x * ${CHANNELS};
    const int low = clamp(-begin, 0, ${strip});
    const int high = clamp(width * ${CHANNELS} - begin, low, ${strip});
    for (int i = 0; i < ${strip} - (high - low); ++i) {
        const int k = i < low ? i : i + high - low;
        const int place = min(first + k, last);
        const int x = extend(place / ${CHANNELS} + offset_x, width);
        places[k] = x < 0 ? -1 : x * ${CHANNELS} + place % ${CHANNELS};
    }
    return (int2)(low, high);
}

/* Collect the values of a row that `find` has found. */
static inline void collect(__private sum_t *strip, __private const int *places, const int2 bounds,
                           __global const element_t *line, const int begin, const sum_t cval)
{
% if VECTOR_WIDTH > 1:
    if (bounds.y - bounds.x >= ${VECTOR_WIDTH}) {
        int k = bounds.x;
        for (; k + ${VECTOR_WIDTH} <= bounds.y; k += ${VECTOR_WIDTH})
            ((__private packed_t *)(strip + k))->v = ${load("line + begin + k")};
        k = bounds.y - ${VECTOR_WIDTH};
        ((__private packed_t *)(strip + k))->v = ${load("line + begin + k")};
    } else
% endif
        for (int k = bounds.x; k < bounds.y; ++k)
            strip[k] = load_pixel(line + begin + k);
    for (int k = 0; k < bounds.x; ++k)
        strip[k] = places[k] < 0 ? cval : load_pixel(line + places[k]);
    for (int k = bounds.y; k < ${strip}; ++k)
        strip[k] = places[k] < 0 ? cval : load_pixel(line + places[k]);
}

__kernel __attribute__((reqd_work_group_size(${WG_X}, ${WG_Y}, 1)))
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
    const int pitch = width * ${CHANNELS};
    const int out_pitch = out_width * ${CHANNELS};
    const ulong which = first_image + get_global_id(2);
    __global const element_t *source = image + which * height * pitch;
    __global result_t *target = result + which * out_height * out_pitch;
% if ALIGN > 1:
    const bool aligned = (size_t)image % sizeof(${vec(ELEMENT_T, ALIGN)}) == 0
                         && (size_t)result % sizeof(${vec(RESULT_T, ALIGN)}) == 0;
% endif

    for (int y = 0; y < ${"steps_y" if STEPS else 1}; ++y)
    for (int x = 0; x < ${"steps_x" if STEPS else 1}; ++x) {
        const int row = (((int)get_group_id(1) * ${"steps_y" if STEPS else 1} + y) * ${WG_Y}
                         + (int)get_local_id(1)) * ${ROWS};
        const int column = (((int)get_group_id(0) * ${"steps_x" if STEPS else 1} + x)
                            * ${VECTORS * WG_X} + (int)get_local_id(0)) * ${VECTOR_WIDTH};
        if (row >= out_height || column >= out_pitch)
            continue;
        const int last = column + ${(VECTORS - 1) * apart + VECTOR_WIDTH - 1};
        const int begin = column + offset_x * ${CHANNELS};
        const int end = last + (offset_x + ${KW - 1}) * ${CHANNELS};
        const bool inside = row + offset_y >= 0 && row + offset_y + ${ROWS + KH - 2} < height
                            && row + ${ROWS} <= out_height
                            && begin >= 0 && end < pitch && last < out_pitch;
% for o in rows:
% for v in vectors:
% for name in sums(o, v):
        ${"sum_t" if WINDOW else "vec_t"} ${name} = 0;
% endfor
% endfor
% endfor

% if not WINDOW:
        sum_t values[${ROWS * VECTORS}][${VECTOR_WIDTH}];  // the sums at an edge
% endif
        /* Add the products. */
% if ALIGN > 1:
        if (inside && aligned) {
% else:
        if (inside) {
% endif
${interior(ALIGN)}\
        } else {
% if not WINDOW:
            for (int o = 0; o < ${ROWS * VECTORS}; ++o)
                ${value("o")} = 0;
% endif
            /* Collect the values of a row from wherever they are, then add their products. */
            const int last_row = out_height + ${KH - 2};
            const int last_value = (out_width + ${KW - 1}) * ${CHANNELS} - 1;
            for (int first = 0; first < ${KW}; first += ${at_once}) {
                const int count = min(${at_once}, ${KW} - first);
                const int seen = column + first * ${CHANNELS};
                sum_t strip[${strips}][${strip}];
                int places[${strips}][${strip}];
% for v in range(strips):
                const int2 bounds_${v} =
                    find(places[${v}], seen + ${v * apart}, last_value, offset_x, width);
% endfor
                for (int r = 0; r < ${ROWS + KH - 1}; ++r) {
                    const int from = extend(min(row + r, last_row) + offset_y, height);
                    if (from < 0) {
                        for (int k = 0; k < ${strip}; ++k) {
% for v in range(strips):
                            strip[${v}][k] = cval;
% endfor
                        }
                    } else {
                        __global const element_t *line = source + (long)from * pitch;
% for v in range(strips):
                        collect(strip[${v}], places[${v}], bounds_${v}, line,
                                seen + ${v * apart} + offset_x * ${CHANNELS}, cval);
% endfor
                    }
% if not WINDOW:
% if KH >= ROWS:
                    if (r >= ${ROWS - 1} && r < ${KH}) {
${collected_vectors(rows, 0)}\
                    } else
% endif
                    for (int o = max(0, r - ${KH - 1}); o < min(${ROWS}, r + 1); ++o) {
${collected_vectors([0], "o")}\
                    }
% else:
                    if (r >= ${ROWS - 1} && r < ${KH}) {
                        for (int i = 0; i < count; ++i) {
${collected(rows)}\
                        }
                    } else {
% for o in rows:
                        if (r >= ${o} && r < ${o + KH}) {
                            for (int i = 0; i < count; ++i) {
${collected([o])}\
                            }
                        }
% endfor
                    }
% endif
                }
            }
        }

        /* Store what lies inside the result. */
        __global result_t *place = target + (long)row * out_pitch + column;
% if ALIGN > 1:
        if (inside && aligned) {
% for o in rows:
% for v in vectors:
% for l in range(0, VECTOR_WIDTH, ALIGN):
            *(__global ${vec(RESULT_T, ALIGN)} *)(place + ${v * apart + l}) =
                (${vec(RESULT_T, ALIGN)})(${", ".join(
                    f"to_result({value})" for value in sum_lanes(o, v)[l:l + ALIGN])});
% endfor
% endfor
            place += out_pitch;
% endfor
        } else if (inside) {
% else:
        if (inside) {
% endif
% for o in rows:
% for v in vectors:
% if RESULT_T != "half" and VECTOR_WIDTH > 1 and not WINDOW:
            ((__global packed_result_t *)(place + ${v * apart}))->v = ${results(o, v)};
% else:
% for l in lanes:
            store_pixel(${sum_lanes(o, v)[l]}, place + ${v * apart + l});
% endfor
% endif
% endfor
            place += out_pitch;
% endfor
        } else {
% if not WINDOW:
            for (int o = 0; o < min(${ROWS}, out_height - row); ++o, place += out_pitch)
                for (int v = 0; v < ${VECTORS}; ++v)
                    for (int l = 0; l < min(${VECTOR_WIDTH}, out_pitch - column - v * ${apart}); ++l)
                        store_pixel(values[o * ${VECTORS} + v][l], place + v * ${apart} + l);
% else:
% for o in rows:
            if (row + ${o} < out_height) {
% for v in vectors:
% for l in lanes:
                if (column + ${v * apart + l} < out_pitch)
                    store_pixel(${sum_lanes(o, v)[l]}, place + ${v * apart + l});
% endfor
% endfor
            }
            place += out_pitch;
% endfor
% endif
        }
    }
}
