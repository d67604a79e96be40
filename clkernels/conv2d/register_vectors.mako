## One of two ways of conv2d_register along a row: each tap reads its vectors anew, unaligned, from
## the first cache. See register.cl.mako, which says what PIXELS and STRIP hold.
##
##      tap 0   p p p p p p p p                  8 values as one vector
##      tap 1     p p p p p p p p                the same memory, one value further
##
## Sums are vectors, sum_O_V. An item at an edge has them in private memory, in `values`, so that
## loops over its rows need not be written out: as variables they were stored under 160 conditions.
<%namespace name="terms" file="terms.mako"/>\
<%namespace name="own" file="register_types.mako"/>\
<%!
    def value(row, v, STRIP):
        """Where the sums of a vector are at an edge."""
        return f"values[({row}) * {STRIP.vectors} + {v}]"
%>\
<%def name="declare_sums(STRIP)">\
% for o in range(STRIP.rows):
% for v in range(STRIP.vectors):
        vec_t sum_${o}_${v} = 0;
% endfor
% endfor
        sum_t values[${STRIP.rows * STRIP.vectors}][${STRIP.vector_width}];  // the sums at an edge
</%def>\
## Add `count` taps of a row of the image, from tap `first` on, to the sums of `pairs`: rows of
## results, and the row of the filter that each of them needs.
<%def name="taps(PIXELS, STRIP, first, count, pairs)">\
% for i in range(count):
            {
% for v in range(STRIP.vectors):
<%
    pointer = f"line + ({first} + {i}) * {STRIP.channels} + {v * STRIP.apart}"
%>\
                const vec_t p_${v} = ${own.module.load(PIXELS, STRIP, pointer)};
% endfor
% for o, j in pairs:
                {
                    const sum_t w = ${own.module.weight(PIXELS, STRIP, j, f"{first} + {i}")};
% for v in range(STRIP.vectors):
                    sum_${o}_${v} += w * p_${v};
% endfor
                }
% endfor
            }
% endfor
</%def>\
<%def name="clear_edge_sums(STRIP)">\
            for (int o = 0; o < ${STRIP.rows * STRIP.vectors}; ++o)
                ${own.module.packed(STRIP, "values[o]")} = 0;
</%def>\
## Add the products of `count` taps of the collected values of row r of the image, from `first` on.
<%def name="edge_taps(PIXELS, STRIP)">\
<%
    taps_y, _ = own.module.taps(STRIP)
%>\
% if STRIP.sized or taps_y >= STRIP.rows:
                    if (r >= ${STRIP.rows - 1} && r < ${taps_y}) {
${collected(PIXELS, STRIP, range(STRIP.rows), 0)}\
                    } else
% endif
                    for (int o = max(0, r + 1 - ${taps_y}); o < min(${STRIP.rows}, r + 1); ++o) {
${collected(PIXELS, STRIP, [0], "o")}\
                    }
</%def>\
## Add the collected values to the rows `chosen` of results, counted from `o` on.
<%def name="collected(PIXELS, STRIP, chosen, o)">\
<%
    packed, collected_at, weight = own.module.packed, own.module.collected_at, own.module.weight
    sums = [(c, v, packed(STRIP, value(f"{o} + {c}", v, STRIP))) for c in chosen for v in range(STRIP.vectors)]
%>\
% for c, v, kept in sums:
                        vec_t sum_${c}_${v} = ${kept};
% endfor
                        for (int i = 0; i < count; ++i) {
% for v in range(STRIP.vectors):
                            const vec_t p_${v} = ${packed(STRIP, f"{collected_at(STRIP, v)} + i * {STRIP.channels}")};
% endfor
% for c in chosen:
                            {
                                const sum_t w = ${weight(PIXELS, STRIP, f"r - {o} - {c}", "first + i")};
% for v in range(STRIP.vectors):
                                sum_${c}_${v} += w * p_${v};
% endfor
                            }
% endfor
                        }
% for c, v, kept in sums:
                        ${kept} = sum_${c}_${v};
% endfor
</%def>\
## Store all results of an item.
<%def name="store_all(PIXELS, STRIP, count=0)">\
<%
    lane = terms.module.lane
    result_vec_t = terms.module.vec(PIXELS.result_t, STRIP.vector_width)
    whole = PIXELS.result_t != "half" and STRIP.vector_width > 1
%>\
% for o in range(STRIP.rows):
% for v in range(count or STRIP.vectors):
<%
    sums = [lane(f"sum_{o}_{v}", STRIP.vector_width, l) for l in range(STRIP.vector_width)]
    converted = f"({result_vec_t})({', '.join(f'to_result({one})' for one in sums)})"
    results = f"sum_{o}_{v}" if PIXELS.result_t == PIXELS.sum_t else converted
%>\
% if whole:
            ((__global packed_result_t *)(place + ${v * STRIP.apart}))->v = ${results};
% else:
% for l, one in enumerate(sums):
            store_pixel(${one}, place + ${v * STRIP.apart + l});
% endfor
% endif
% endfor
            place += out_pitch;
% endfor
</%def>\
## Store those that lie inside the result.
<%def name="store_some(STRIP)">\
            for (int o = 0; o < min(${STRIP.rows}, out_height - row); ++o, place += out_pitch)
                for (int v = 0; v < ${STRIP.vectors}; ++v)
                    for (int l = 0; l < min(${STRIP.vector_width}, \
out_pitch - column - v * ${STRIP.apart}); ++l)
                        store_pixel(values[o * ${STRIP.vectors} + v][l], place + v * ${STRIP.apart} + l);
</%def>\
