## Vectors of complex numbers with their components apart, and complex numbers in memory, whose
## components alternate:
##
##     memory      re im re im re im re im          re   re re re re
##                                           <->    im   im im im im
##
## Complex numbers are aligned to one real only, and a packed structure says so. The built-in vload and
## vstore say it too, but PoCL calls them as functions in large kernels, and not every width of them
## works.
##
##   declare(element, width, inverse)
##
## In OpenCL C: V, vec_t and points_t; transpose(x); and between neighbours in memory and lanes, or
## between numbers at a distance and the first lanes:
##
##   load_lanes(p)   store_lanes(x, p)   store_fresh_lanes(x, p, lane, fresh)
##   gather_lanes(p, distance, count)    scatter_lanes(x, p, distance, lane, fresh, count)
##
## Of a block of transforms, lanes before `fresh` belong to the block before: the last one begins
## earlier where it would not be full. `lane` is the number of a vector's first lane in its block.
##
##     blocks       |  0 ..  3  |  4 ..  7  |
##     the last one             |      6 .. 9 |    of 10 lanes: fresh is 2
##
## element  Element of core/kernels.py
## width    lanes of a vector: 2, 4, 8 or 16
## inverse  whether components are swapped as they are loaded and stored: a transform between two such
##          swaps is the inverse
<%namespace name="complex_numbers" file="complex.mako"/>\
<%!
    def exchanged(a, b, distance, shift, width):
        """Return the lanes of one of two rows after they have exchanged blocks of `distance` lanes."""
        lanes = (
            f"{a}.s{lane + shift:x}" if not lane & distance else f"{b}.s{lane - distance + shift:x}"
            for lane in range(width)
        )
        return f"(vec_t)({', '.join(lanes)})"
%>\
<%def name="declare(element, width, inverse)">\
<%
    first, second = ("im", "re") if inverse else ("re", "im")  # in memory
    lanes = [f"s{lane:x}" for lane in range(width)]
    pairs = [f"x.{component}.{lane}" for lane in lanes for component in (first, second)]
    distances = [width >> shift for shift in range(1, width.bit_length())]
%>\
#define V ${width} /* lanes of a vector */
typedef ${element.real}${width} vec_t;

${complex_numbers.declare_points()}\

/* Complex numbers in memory, as many as a vector has lanes. */
typedef struct __attribute__((packed)) {
    vec_t low, high;
} pairs_t;

INLINE points_t load_lanes(__global const complex_t *p)
{
    const vec_t low = ((__global const pairs_t *)p)->low;
    const vec_t high = ((__global const pairs_t *)p)->high;
    points_t x;
    x.${first} = (vec_t)(low.even, high.even);
    x.${second} = (vec_t)(low.odd, high.odd);
    return x;
}

INLINE void store_lanes(const points_t x, __global complex_t *p)
{
    ((__global pairs_t *)p)->low = (vec_t)(${", ".join(pairs[:width])});
    ((__global pairs_t *)p)->high = (vec_t)(${", ".join(pairs[width:])});
}

INLINE void store_fresh_lanes(const points_t x, __global complex_t *p, const uint lane, const uint fresh)
{
    if (fresh == 0) {
        store_lanes(x, p);
    } else {
% for l, name in enumerate(lanes):
        if (lane + ${l} >= fresh)
            vstore2((complex_t)(x.${first}.${name}, x.${second}.${name}), ${l}, (__global real_t *)p);
% endfor
    }
}

/* The lanes that are left are zero. */
INLINE points_t gather_lanes(__global const complex_t *p, const index_t distance, const uint count)
{
    __global const real_t *reals = (__global const real_t *)p;
    points_t x = {0, 0};
% for l, name in enumerate(lanes):
    if (${l} < count) {
        x.${first}.${name} = reals[2 * (${l} * distance)];
        x.${second}.${name} = reals[2 * (${l} * distance) + 1];
    }
% endfor
    return x;
}

INLINE void scatter_lanes(const points_t x, __global complex_t *p, const index_t distance, const uint lane,
                          const uint fresh, const uint count)
{
% for l, name in enumerate(lanes):
    if (${l} < count && lane + ${l} >= fresh)
        vstore2((complex_t)(x.${first}.${name}, x.${second}.${name}), ${l} * distance, (__global real_t *)p);
% endfor
}

/* Two rows exchange blocks of so many lanes: those of b on the left become those of a on the right. */
% for distance in distances:
INLINE void exchange_${distance}(points_t *a, points_t *b)
{
    const points_t left = {${exchanged("a->re", "b->re", distance, 0, width)},
                           ${exchanged("a->im", "b->im", distance, 0, width)}};
    const points_t right = {${exchanged("a->re", "b->re", distance, distance, width)},
                            ${exchanged("a->im", "b->im", distance, distance, width)}};
    *a = left;
    *b = right;
}

% endfor
/* Transpose a square of V x V numbers: exchange blocks of half of it, then of a quarter, and so on. */
INLINE void transpose(points_t *x)
{
% for distance in distances:
% for row in range(width):
% if not row & distance:
    exchange_${distance}(&x[${row}], &x[${row + distance}]);
% endif
% endfor
% endfor
}
</%def>\
