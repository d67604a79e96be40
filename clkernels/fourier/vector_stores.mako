## Stores of the vector form, which a step chooses by name (VectorStep.store_fragment): the way back of
## vector_loads.mako. The arguments mean what they do there and in vector_passes.mako.
##
##   vector              as many neighbours in memory as a vector has lanes
##   overlapping_vector  the same, but in the last block only the lanes that are its own: those
##                       from `fresh` on, as it begins where the block before has not ended
##   partial_vector      fewer neighbours
##   rows                from array 0, transposed, but for rows before `fresh`
##   short_rows          the same number by number
##
##     blocks       |  0 ..  3  |  4 ..  7  |
##     the last one             |      6 .. 9 |    of 10 lanes: fresh is 2
<%namespace name="vectors" file="vectors.mako"/>\
<%def name="vector(step, i, address, plus_lanes, parts)">\
            store_lanes(re_${i}, im_${i}, ${address});
</%def>\
<%def name="overlapping_vector(step, i, address, plus_lanes, parts)">\
            if (fresh == 0) {
                store_lanes(re_${i}, im_${i}, ${address});
            } else {
% for l in range(step.vectors.width):
                if (${l}${plus_lanes} >= fresh)
                    ${number(f"_{i}", l, l, f"({address})", parts)}\
% endfor
            }
</%def>\
<%def name="partial_vector(step, i, address, plus_lanes, parts)">\
% for l in range(step.vectors.active_lanes):
            ${number(f"_{i}", l, l, f"({address})", parts)}\
% endfor
</%def>\
<%def name="rows(step, plus_lanes, array, work, parts)">\
<% n, V = step.n, step.vectors.width %>\
        for (uint p = 0; p < ${n}; p += ${V}) {
            const uint at = ${"p" if n % V == 0 else f"min(p, (uint){n - V})"};
            __${work} const vec_t *work_at = ${array} + 2 * at;
            vec_t ${", ".join(f"re_{l}, im_{l}" for l in range(V))};
% for l in range(V):
            re_${l} = work_at[${2 * l}]${scaled(step)};
            im_${l} = work_at[${2 * l + 1}]${scaled(step)};
% endfor
${vectors.transpose([f"re_{l}" for l in range(V)], V)}\
${vectors.transpose([f"im_{l}" for l in range(V)], V)}\
% for l in range(V):
${own_row(step, f"{l}{plus_lanes}")}\
            store_lanes(re_${l}, im_${l}, to + (${l}${plus_lanes}) * target_lane + at);
% endfor
        }
</%def>\
<%def name="short_rows(step, plus_lanes, array, work, parts)">\
        for (uint p = 0; p < ${step.n}; ++p) {
            const vec_t re = ${array}[2 * p]${scaled(step)};
            const vec_t im = ${array}[2 * p + 1]${scaled(step)};
% for l in range(step.vectors.active_lanes):
${own_row(step, f"{l}{plus_lanes}")}\
            ${number("", l, f"({l}{plus_lanes}) * target_lane + p", "to", parts)}\
% endfor
        }
</%def>\
<%def name="number(of, lane, place, address, parts)">\
vstore2((complex_t)(${parts[0]}${of}.s${f"{lane:x}"}, ${parts[1]}${of}.s${f"{lane:x}"}), ${place}, (__global real_t *)${address});
</%def>\
<%def name="own_row(step, row)">\
% if step.vectors.tail == "overlapping":
            if (${row} >= fresh)
    \
% endif
</%def>\
<%def name="scaled(step)">${" * scale" if step.scaled else ""}</%def>\
