## One of two ways of conv2d_register along a row: the values under a vector are read once and stay
## in registers for all taps. See register.cl.mako, which says what PIXELS and STRIP hold.
##
##      read   p_0  p_1  p_2  p_3  p_4  p_5          vector_width + taps - 1 values
##             \_______________/
##               tap 0 \_______________/             each tap has its own ones of them
##                      tap 1
##
## Sums are single variables, sum_O_V_L. Where rows are multiples of `align` elements they are read
## and written in pieces of so many, of which the first begins `shift` values before the window.
<%namespace name="terms" file="terms.mako"/>\
<%namespace name="own" file="register_types.mako"/>\
<%!
    def lanes(STRIP):
        return range(STRIP.vector_width)


    def each_sum(STRIP):
        """Row, vector and lane of each sum of an item."""
        return [(o, v, l) for o in range(STRIP.rows) for v in range(STRIP.vectors) for l in lanes(STRIP)]
%>\
<%def name="declare_sums(STRIP)">\
% for o, v, l in each_sum(STRIP):
        sum_t sum_${o}_${v}_${l} = 0;
% endfor
</%def>\
## Add `count` taps of a row of the image, from tap `first` on, to the sums of `pairs`: rows of
## results, and the row of the filter that each of them needs.
<%def name="taps(PIXELS, STRIP, first, count, pairs)">\
<%
    width = STRIP.vector_width + (count - 1) * STRIP.channels
%>\
% for v in range(STRIP.vectors):
            {
${values(PIXELS, STRIP, f"line + ({first}) * {STRIP.channels} + {v * STRIP.apart}", width)}\
% for i in range(count):
% for o, j in pairs:
                {
                    const sum_t w = ${own.module.weight(PIXELS, STRIP, j, f"{first} + {i}")};
% for l in lanes(STRIP):
                    sum_${o}_${v}_${l} += w * p_${l + i * STRIP.channels};
% endfor
                }
% endfor
% endfor
            }
% endfor
</%def>\
## Read `width` values from `begin` on.
<%def name="values(PIXELS, STRIP, begin, width)">\
<%
    vec, lane = terms.module.vec, terms.module.lane
    align, shift = STRIP.align, STRIP.shift
%>\
% if align > 1:
% for k in range(-(-(shift + width) // align)):
                const ${vec(PIXELS.element_t, align)} piece_${k} =
                    *(__global const ${vec(PIXELS.element_t, align)} *)(${begin} + ${k * align - shift});
% endfor
% for k in range(width):
<%
    piece, place = divmod(k + shift, align)
%>\
                const sum_t p_${k} = ${lane(f"piece_{piece}", align, place)};
% endfor
% else:
% for k in range(width):
                const sum_t p_${k} = load_pixel(${begin} + ${k});
% endfor
% endif
</%def>\
<%def name="clear_edge_sums(STRIP)"></%def>\
## Add the products of `count` taps of the collected values of row r of the image, from `first` on.
<%def name="edge_taps(PIXELS, STRIP)">\
<%
    taps_y, rows = STRIP.taps[0], range(STRIP.rows)
%>\
                    if (r >= ${STRIP.rows - 1} && r < ${taps_y}) {
                        for (int i = 0; i < count; ++i) {
${collected(PIXELS, STRIP, rows)}\
                        }
                    } else {
% for o in rows:
                        if (r >= ${o} && r < ${o + taps_y}) {
                            for (int i = 0; i < count; ++i) {
${collected(PIXELS, STRIP, [o])}\
                            }
                        }
% endfor
                    }
</%def>\
## Add tap `first + i` of the collected values to the rows `chosen` of results, lane by lane.
<%def name="collected(PIXELS, STRIP, chosen)">\
<%
    collected_at = own.module.collected_at
%>\
% for v in range(STRIP.vectors):
                            __private const sum_t *p_${v} = ${collected_at(STRIP, v)} + i * ${STRIP.channels};
% endfor
% for o in chosen:
                            {
                                const sum_t w = ${own.module.weight(PIXELS, STRIP, f"r - {o}", "first + i")};
% for v in range(STRIP.vectors):
% for l in lanes(STRIP):
                                sum_${o}_${v}_${l} += w * p_${v}[${l}];
% endfor
% endfor
                            }
% endfor
</%def>\
## Store all results of an item, in pieces of `align`.
<%def name="store_pieces(PIXELS, STRIP)">\
<%
    piece_t = terms.module.vec(PIXELS.result_t, STRIP.align)
    results = lambda o, v, l: (f"to_result(sum_{o}_{v}_{l + k})" for k in range(STRIP.align))
%>\
% for o in range(STRIP.rows):
% for v in range(STRIP.vectors):
% for l in range(0, STRIP.vector_width, STRIP.align):
            *(__global ${piece_t} *)(place + ${v * STRIP.apart + l}) =
                (${piece_t})(${", ".join(results(o, v, l))});
% endfor
% endfor
            place += out_pitch;
% endfor
</%def>\
## Store all results of an item.
<%def name="store_all(PIXELS, STRIP)">\
% for o in range(STRIP.rows):
% for v in range(STRIP.vectors):
% for l in lanes(STRIP):
            store_pixel(sum_${o}_${v}_${l}, place + ${v * STRIP.apart + l});
% endfor
% endfor
            place += out_pitch;
% endfor
</%def>\
## Store those that lie inside the result.
<%def name="store_some(STRIP)">\
% for o in range(STRIP.rows):
            if (row + ${o} < out_height) {
% for v in range(STRIP.vectors):
% for l in lanes(STRIP):
                if (column + ${v * STRIP.apart + l} < out_pitch)
                    store_pixel(sum_${o}_${v}_${l}, place + ${v * STRIP.apart + l});
% endfor
% endfor
            }
            place += out_pitch;
% endfor
</%def>\
