## One of two ways of conv2d_register along a row: each tap reads its vectors anew, unaligned, from
## the first cache. See register.cl.mako, which says what PIXELS (P) and STRIP (S) hold.
##
##      tap 0   p p p p p p p p                  8 values as one vector
##      tap 1     p p p p p p p p                the same memory, one value further
##
## Sums are vectors, sum_O_V. An item at an edge has them in private memory, in `values`, so that
## loops over its rows need not be written out: as variables they were stored under 160 conditions.
<%namespace name="terms" file="terms.mako"/>\
<%namespace name="own" file="register_terms.mako"/>\
<%!
    def value(row, v, S):
        """Where the sums of a vector are at an edge."""
        return f"values[({row}) * {S.vectors} + {v}]"
%>\
<%def name="declare_sums(S)">\
% for o in range(S.rows):
% for v in range(S.vectors):
        vec_t sum_${o}_${v} = 0;
% endfor
% endfor
        sum_t values[${S.rows * S.vectors}][${S.vector_width}];  // the sums at an edge
</%def>\
## Add `count` taps of a row of the image, from tap `first` on, to the sums of `pairs`: rows of
## results, and the row of the filter that each of them needs.
<%def name="taps(P, S, first, count, pairs)">\
% for i in range(count):
            {
% for v in range(S.vectors):
<%
    pointer = f"line + ({first} + {i}) * {S.channels} + {v * S.apart}"
%>\
                const vec_t p_${v} = ${own.module.load(P, S, pointer)};
% endfor
% for o, j in pairs:
                {
                    const sum_t w = ${own.module.weight(P, S, j, f"{first} + {i}")};
% for v in range(S.vectors):
                    sum_${o}_${v} += w * p_${v};
% endfor
                }
% endfor
            }
% endfor
</%def>\
<%def name="clear_edge_sums(S)">\
            for (int o = 0; o < ${S.rows * S.vectors}; ++o)
                ${own.module.packed(S, "values[o]")} = 0;
</%def>\
## Add the products of `count` taps of the collected values of row r of the image, from `first` on.
<%def name="edge_taps(P, S)">\
<%
    taps_y = S.taps[0]
%>\
% if taps_y >= S.rows:
                    if (r >= ${S.rows - 1} && r < ${taps_y}) {
${collected(P, S, range(S.rows), 0)}\
                    } else
% endif
                    for (int o = max(0, r - ${taps_y - 1}); o < min(${S.rows}, r + 1); ++o) {
${collected(P, S, [0], "o")}\
                    }
</%def>\
## Add the collected values to the rows `chosen` of results, counted from `o` on.
<%def name="collected(P, S, chosen, o)">\
<%
    packed, collected_at, weight = own.module.packed, own.module.collected_at, own.module.weight
    sums = [(c, v, packed(S, value(f"{o} + {c}", v, S))) for c in chosen for v in range(S.vectors)]
%>\
% for c, v, kept in sums:
                        vec_t sum_${c}_${v} = ${kept};
% endfor
                        for (int i = 0; i < count; ++i) {
% for v in range(S.vectors):
                            const vec_t p_${v} = ${packed(S, f"{collected_at(S, v)} + i * {S.channels}")};
% endfor
% for c in chosen:
                            {
                                const sum_t w = ${weight(P, S, f"r - {o} - {c}", "first + i")};
% for v in range(S.vectors):
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
<%def name="store_all(P, S)">\
<%
    lane = terms.module.lane
    result_vec_t = terms.module.vec(P.result_t, S.vector_width)
    whole = P.result_t != "half" and S.vector_width > 1
%>\
% for o in range(S.rows):
% for v in range(S.vectors):
<%
    sums = [lane(f"sum_{o}_{v}", S.vector_width, l) for l in range(S.vector_width)]
    converted = f"({result_vec_t})({', '.join(f'to_result({one})' for one in sums)})"
    results = f"sum_{o}_{v}" if P.result_t == P.sum_t else converted
%>\
% if whole:
            ((__global packed_result_t *)(place + ${v * S.apart}))->v = ${results};
% else:
% for l, one in enumerate(sums):
            store_pixel(${one}, place + ${v * S.apart + l});
% endfor
% endif
% endfor
            place += out_pitch;
% endfor
</%def>\
## Store those that lie inside the result.
<%def name="store_some(S)">\
            for (int o = 0; o < min(${S.rows}, out_height - row); ++o, place += out_pitch)
                for (int v = 0; v < ${S.vectors}; ++v)
                    for (int l = 0; l < min(${S.vector_width}, \
out_pitch - column - v * ${S.apart}); ++l)
                        store_pixel(values[o * ${S.vectors} + v][l], place + v * ${S.apart} + l);
</%def>\
