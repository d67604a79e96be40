## Vectors of `width` lanes with real and imaginary parts apart, and complex numbers in memory, whose
## parts alternate:
##
##     memory      re im re im re im re im          re   re re re re
##                                           <->    im   im im im im
##
## Complex numbers are aligned to one real only, and a packed structure says so. The built-in vload and
## vstore say it too, but PoCL calls them as functions in large kernels, and not every width of them
## works.
##
##   types(..)      real_t, complex_t and vec_t
##   lane_moves(..) load_lanes and store_lanes: as in the drawing
##   transpose(..)  a square of numbers in registers
##
## real    OpenCL C type of a real number
## width   lanes: 2, 4, 8 or 16
## parts   "re" and "im" in the order in which they lie in memory, or are taken to: a transform
##         whose parts are swapped before and after it is the inverse
<%def name="types(real, width)">\
typedef ${real} real_t;
typedef ${real}2 complex_t;
typedef ${real}${width} vec_t;
</%def>\
<%def name="lane_moves(width, parts)">\
typedef struct __attribute__((packed)) {
    vec_t low, high;
} pairs_t;

/* Load complex numbers, one a lane. */
static inline void load_lanes(__global const complex_t *p, vec_t *re, vec_t *im)
{
    const vec_t low = ((__global const pairs_t *)p)->low;
    const vec_t high = ((__global const pairs_t *)p)->high;
    *${parts[0]} = (vec_t)(low.even, high.even);
    *${parts[1]} = (vec_t)(low.odd, high.odd);
}

static inline void store_lanes(const vec_t re, const vec_t im, __global complex_t *p)
{
<% pairs = [f"{part}.s{lane:x}" for lane in range(width) for part in parts] %>\
    ((__global pairs_t *)p)->low = (vec_t)(${", ".join(pairs[:width])});
    ((__global pairs_t *)p)->high = (vec_t)(${", ".join(pairs[width:])});
}
</%def>\
## Exchange blocks of half the square, then of a quarter, and so on: row a takes the left half of row b
## for its own right half. `names` are the rows' variables.
<%def name="transpose(names, width, indent='            ')">\
<%
    def lanes_of(a, b, distance, shift):
        """Return the lanes of one of two rows after the exchange."""
        lanes = (
            f"{a}.s{lane + shift:x}" if not lane & distance else f"{b}.s{lane - distance + shift:x}"
            for lane in range(width)
        )
        return ", ".join(lanes)
    distances = [width >> step for step in range(1, width.bit_length())]
%>\
% for distance in distances:
% for row in range(width):
% if not row & distance:
<% a, b = names[row], names[row + distance] %>\
${indent}{ const vec_t t = (vec_t)(${lanes_of(a, b, distance, 0)});
${indent}  ${b} = (vec_t)(${lanes_of(a, b, distance, distance)});
${indent}  ${a} = t; }
% endif
% endfor
% endfor
</%def>\
