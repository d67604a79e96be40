## How a step stores its result: a fragment for each `LocalStep.store_fragment`, chosen by its name. A row
## begins at `to`, and position j is at `to_j`; complex_t x is stored `offset` positions later.
<%namespace name="local" file="local_exchange.mako"/>\
<%def name="fragment(step, offset, inverse)">\
<% store = {"complex": store_complex, "unaligned": store_unaligned, "c2r-full": store_real}[step.store_fragment] %>\
${store(offset, inverse)}\
</%def>\
<%def name="type_of(step)">${"real_t" if step.store_fragment == "c2r-full" else "complex_t"}</%def>\
<%def name="row_of(step)">\
        __global ${type_of(step)} *to = ${"(__global real_t *)" if step.store_fragment == "c2r-full" else ""}target
            + (target_offset + b * target_batch + o * target_outer + c * target_lane);
</%def>\
<%def name="position_of(step)">\
            __global ${type_of(step)} *to_j = to + j * target_position;
</%def>\
<%def name="store_complex(offset, inverse)">\
                to_j[${offset} * target_position] = ${"x.yx" if inverse else "x"};
</%def>\
## To memory that is aligned to one real number and not to two.
<%def name="store_unaligned(offset, inverse)">\
                vstore2(${"x.yx" if inverse else "x"}, ${offset} * target_position, (__global real_t *)to_j);
</%def>\
<%def name="store_real(offset, inverse)">\
                to_j[${offset} * target_position] = x.${"y" if inverse else "x"};
</%def>\
## A whole section instead of a fragment, as opposite frequencies have to meet first: of frequencies k
## and n - k of the packed signal, those of the signal itself, see real.cl.mako.
<%def name="packed_spectrum(step, number)">\

    /* Of frequencies k and N - k, make those of the signal that was packed, and store them. */
    {
<% group = step.group %>\
${local.meet_opposites(group, number)}\
        const index_t c = first_lane + lane_${group.schedule.last.index};
        __global complex_t *to = target + (target_offset + c * target_lane);
% for round in range(group.opposite_rounds):
        if (${"c < lanes && " if step.partial_group else ""}${local.opposite(group, round)}) {
            const uint k = j_${group.schedule.last.index} + ${round * group.items};
            const complex_t w = real_twiddles[k];
            const complex_t even = (complex_t)(re_a_${round} + re_b_${round}, im_a_${round} - im_b_${round});
            const complex_t x = (complex_t)(re_a_${round} - re_b_${round}, im_a_${round} + im_b_${round});
            const complex_t odd = (complex_t)(x.x * w.y + x.y * w.x, x.y * w.y - x.x * w.x);
            const complex_t opposite = even - odd;
${store_at(step, "k", "(even + odd)")}\
            if (2 * k != ${group.n}) {
${store_at(step, f"{group.n} - k", "(complex_t)(opposite.x, -opposite.y)")}\
            }
        }
% endfor
    }
</%def>\
<%def name="store_at(step, at, x)">\
            to[${at}] = ${x}${" * scale" if step.scaled else ""};
</%def>\
