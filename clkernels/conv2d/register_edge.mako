## How conv2d_register collects the values of a row for an item at an edge of the image, each from
## where the boundary condition says: see register.cl.mako, which says what PIXELS and STRIP hold.
##
##      first                                    STRIP.collected values from there on
##      v
##      cval  cval | p  p  p  p  p  p | cval     `find` tells which of them are the row itself,
##                 ^ bounds.x         ^ bounds.y   and from where the others come
##
<%namespace name="own" file="register_types.mako"/>\
<%def name="declare(PIXELS, STRIP)">\
<%
    load = own.module.load
%>\

/* Find where ${STRIP.collected} values of a row lie: number `first` of those that windows see and the
   next, none past `last`. Return the bounds of those which are the row itself; for all others
   `places` receives an index into the row, or -1 for cval. */
static inline int2 find(__private int *places, const int first, const int last,
                        const int offset_x, const int width)
{
    const int begin = first + offset_x * ${STRIP.channels};
    const int low = clamp(-begin, 0, ${STRIP.collected});
    const int high = clamp(width * ${STRIP.channels} - begin, low, ${STRIP.collected});
    for (int i = 0; i < ${STRIP.collected} - (high - low); ++i) {
        const int k = i < low ? i : i + high - low;
        const int place = min(first + k, last);
        const int x = extend(place / ${STRIP.channels} + offset_x, width);
        places[k] = x < 0 ? -1 : x * ${STRIP.channels} + place % ${STRIP.channels};
    }
    return (int2)(low, high);
}

/* Collect the values of a row that `find` has found. */
static inline void collect(__private sum_t *strip, __private const int *places, const int2 bounds,
                           __global const element_t *line, const int begin, const sum_t cval)
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
    for (int k = bounds.y; k < ${STRIP.collected}; ++k)
        strip[k] = places[k] < 0 ? cval : load_pixel(line + places[k]);
}
</%def>\
