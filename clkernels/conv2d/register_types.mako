## Types of conv2d_register, and pieces of its OpenCL C as text: see register.cl.mako, which says what
## PIXELS and STRIP hold. Vectors lie in memory that is aligned to one element only.
##
##   vec_t            a vector of sums
##   packed_t         one of these, or of elements of the same type
##   packed_piece_t   elements that are converted together
##   packed_result_t  a vector of results
##
##   sum_O_V, sum_O_V_L  the sums of row O and vector V of an item: as a vector, or lane by lane
##   values[N][L]        the same in private memory, for an item at an edge that computes vectors
##   strip[..][K]        values of a row of the image that are collected at an edge
<%namespace name="terms" file="terms.mako"/>\
<%!
    def listed(values):
        """A vector of sums from its values, or one value alone."""
        return values[0] if len(values) == 1 else f"(vec_t)({', '.join(values)})"


    def load(PIXELS, STRIP, pointer):
        """The vector at `pointer`, which is aligned to one element only."""
        if PIXELS.element_t == PIXELS.sum_t and STRIP.vector_width > 1:
            return f"((__global const packed_t *)({pointer}))->v"
        if PIXELS.element_t in ("half", "bool") or STRIP.vector_width == 1:
            return listed([f"load_pixel({pointer} + {l})" for l in range(STRIP.vector_width)])
        width = "" if STRIP.piece == 1 else STRIP.piece
        whole = f"{PIXELS.sum_t.removeprefix('u')}{width}"
        pieces = [f"convert_{whole}(((__global const packed_piece_t *)({pointer} + {k}))->v)"
                  for k in range(0, STRIP.vector_width, STRIP.piece)]
        return listed([f"as_{PIXELS.sum_t}{width}({piece})" for piece in pieces])


    def packed(STRIP, pointer):
        """A vector of private memory, which is aligned to one element only."""
        return f"((__private packed_t *)({pointer}))->v" if STRIP.vector_width > 1 else f"*({pointer})"


    def collected_at(STRIP, v):
        """Where the values that are collected for a vector begin."""
        return f"strip[0] + {v * STRIP.vector_width}" if STRIP.strips == 1 else f"strip[{v}]"


    def taps(STRIP):
        """The rows and columns of the filter: numbers, or arguments."""
        return ("filter_height", "filter_width") if STRIP.sized else STRIP.taps


    def collected(STRIP):
        """How many values of a row are collected: fewer for the last taps of a filter of any size."""
        return "collected" if STRIP.sized else STRIP.collected


    def counted(STRIP, declared=""):
        """The argument, or parameter, that says so."""
        return f", {declared}collected" if STRIP.sized else ""


    def weight(PIXELS, STRIP, j, i):
        """Weight (j, i) of the filter, which lies in memory as the user gave it."""
        rows, columns = taps(STRIP)
        if PIXELS.flip:
            return f"weights[({rows} - 1 - ({j})) * {columns} + {columns} - 1 - ({i})]"
        return f"weights[({j}) * {columns} + {i}]"
%>\
<%def name="declare(PIXELS, STRIP)">\
<%
    vec = terms.module.vec
%>\
typedef ${vec(PIXELS.sum_t, STRIP.vector_width)} vec_t;
% if STRIP.vector_width > 1:
typedef struct { vec_t v; } __attribute__((packed, aligned(sizeof(sum_t)))) packed_t;
% if PIXELS.element_t not in ("half", "bool"):
typedef struct {
    ${vec(PIXELS.element_t, STRIP.piece)} v;
} __attribute__((packed, aligned(sizeof(element_t)))) packed_piece_t;
% endif
% if PIXELS.result_t != "half":
typedef struct {
    ${vec(PIXELS.result_t, STRIP.vector_width)} v;
} __attribute__((packed, aligned(sizeof(result_t)))) packed_result_t;
% endif
% endif
</%def>\
## How conv2d_register collects the values of a row for an item at an edge of the image, each from
## where the boundary condition says:
##
##      first                                    STRIP.collected values from there on
##      v
##      cval  cval | p  p  p  p  p  p | cval     `find` tells which of them are the row itself,
##                 ^ bounds.x         ^ bounds.y   and from where the others come
##
<%def name="declare_edge(PIXELS, STRIP)">\

/* Find where ${collected(STRIP)} values of a row lie: number `first` of those that windows see and the
   next, none past `last`. Return the bounds of those which are the row itself; for all others
   `places` receives an index into the row, or -1 for cval. */
static inline int2 find(__private int *places, const int first, const int last,
                        const int offset_x, const int width${counted(STRIP, "const int ")})
{
    const int begin = first + offset_x * ${STRIP.channels};
    const int low = clamp(-begin, 0, ${collected(STRIP)});
    const int high = clamp(width * ${STRIP.channels} - begin, low, ${collected(STRIP)});
    for (int i = 0; i < ${collected(STRIP)} - (high - low); ++i) {
        const int k = i < low ? i : i + high - low;
        const int place = min(first + k, last);
        const int x = extend(place / ${STRIP.channels} + offset_x, width);
        places[k] = x < 0 ? -1 : x * ${STRIP.channels} + place % ${STRIP.channels};
    }
    return (int2)(low, high);
}

/* Collect the values of a row that `find` has found. */
static inline void collect(__private sum_t *strip, __private const int *places, const int2 bounds,
                           __global const element_t *line, const int begin, const sum_t cval${counted(STRIP, "const int ")})
{
% if STRIP.vector_width > 1:
    if (bounds.y - bounds.x >= ${STRIP.vector_width}) {
        int k = bounds.x;
        for (; k + ${STRIP.vector_width} <= bounds.y; k += ${STRIP.vector_width})
            ((__private packed_t *)(strip + k))->v = ${load(PIXELS, STRIP, "line + begin + k")};
        k = bounds.y - ${STRIP.vector_width};
        ((__private packed_t *)(strip + k))->v = ${load(PIXELS, STRIP, "line + begin + k")};
    } else
% endif
        for (int k = bounds.x; k < bounds.y; ++k)
            strip[k] = load_pixel(line + begin + k);
    for (int k = 0; k < bounds.x; ++k)
        strip[k] = places[k] < 0 ? cval : load_pixel(line + places[k]);
    for (int k = bounds.y; k < ${collected(STRIP)}; ++k)
        strip[k] = places[k] < 0 ? cval : load_pixel(line + places[k]);
}
</%def>\
