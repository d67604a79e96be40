## Vectors of VECTOR_WIDTH lanes with real and imaginary parts apart, and complex numbers
## in memory, whose parts alternate and which are aligned to one real only: a packed structure
## says so. The built-in vload and vstore say it too, but PoCL calls them as functions in large
## kernels, and not every width of them works. SWAP exchanges the parts: a transform between two
## exchanges is the inverse.
<%def name="types(real, width)">\
typedef ${real} real_t;
typedef ${real}2 complex_t;
typedef ${real}${width} vec_t;
</%def>\
<%def name="lane_moves(width, swap)">\
typedef struct __attribute__((packed)) {
    vec_t low, high;
} pairs_t;

/* Load complex numbers, one a lane. */
static inline void load_lanes(__global const complex_t *p, vec_t *re, vec_t *im)
{
    const vec_t low = ((__global const pairs_t *)p)->low;
    const vec_t high = ((__global const pairs_t *)p)->high;
    *${"im" if swap else "re"} = (vec_t)(low.even, high.even);
    *${"re" if swap else "im"} = (vec_t)(low.odd, high.odd);
}

static inline void store_lanes(const vec_t re, const vec_t im, __global complex_t *p)
{
<%
    first, second = ("im", "re") if swap else ("re", "im")
    pairs = [f"{part}.s{lane:x}" for lane in range(width) for part in (first, second)]
%>\
    ((__global pairs_t *)p)->low = (vec_t)(${", ".join(pairs[:width])});
    ((__global pairs_t *)p)->high = (vec_t)(${", ".join(pairs[width:])});
}
</%def>\
<%def name="transpose(names, width, indent)">\
<%
    def stage(distance):
        lines = []
        for row in range(width):
            if row & distance:
                continue
            a, b = names[row], names[row + distance]
            low = [f"{a}.s{l:x}" if not l & distance else f"{b}.s{l - distance:x}" for l in range(width)]
            high = [f"{a}.s{l + distance:x}" if not l & distance else f"{b}.s{l:x}" for l in range(width)]
            lines.append(f"{{ const vec_t t = (vec_t)({', '.join(low)});")
            lines.append(f"  {b} = (vec_t)({', '.join(high)});")
            lines.append(f"  {a} = t; }}")
        return lines
    distances = [width >> step for step in range(1, width.bit_length())]
%>\
% for distance in distances:
% for line in stage(distance):
${indent}${line}
% endfor
% endfor
</%def>\
