## The passes of a step: twiddle factors, butterflies and the exchanges between them; and the twiddle
## factors between two steps of a transform. `step` is a LocalStep of local_schedule.py and
## `each` a Pass of schedule.py.
##
## With `few_twiddles`, about 2 sqrt(R) of the R - 1 factors of a butterfly are loaded: the powers
## below s and the multiples of s, about sqrt(R). The others are products, w^(q s + r) = w^(q s) w^r.
<%namespace name="codelets" file="butterflies.mako"/>\
<%namespace name="local" file="local_exchange.mako"/>\
<%def name="product(name, a, b)">\
            const complex_t ${name} = (complex_t)(${a}.x * ${b}.x - ${a}.y * ${b}.y, ${a}.x * ${b}.y + ${a}.y * ${b}.x);
</%def>\
<%def name="multiply(re, im, w)">\
            {
                const real_t product = ${re} * ${w}.x - ${im} * ${w}.y;
                ${im} = ${re} * ${w}.y + ${im} * ${w}.x;
                ${re} = product;
            }
</%def>\
<%def name="pass_twiddles(step, each)">\
<% R, S, spacing = each.radix, each.stride, step.twiddle_spacing(each.radix) %>\
            __global const complex_t *twiddles_of_j = twiddles + (${each.twiddle_offset} + j % ${S});
% for i in range(1, R):
% if i < spacing or i % spacing == 0:
            const complex_t w_${i} = twiddles_of_j[${(i - 1) * S}];
% else:
${product(f"w_{i}", f"w_{i // spacing * spacing}", f"w_{i % spacing}")}\
% endif
${multiply(f"re_{i}", f"im_{i}", f"w_{i}")}\
% endfor
</%def>\
<%def name="butterflies(step, each, real_t)">\
% for round in range(step.group.rounds(each)):
<%
    own_re, own_im = f"re_{each.index}_{round}", f"im_{each.index}_{round}"
    points = ", ".join(f"re_{i} = {own_re}_{i}, im_{i} = {own_im}_{i}" for i in range(each.radix))
%>\
${local.own(step.group, each, round)}\
            real_t ${points};
% if each.index:
${pass_twiddles(step, each)}\
% endif
${codelets.butterfly(each.radix, real_t)}\
% for i in range(each.radix):
            ${own_re}_${i} = re_${i};
            ${own_im}_${i} = im_${i};
% endfor
        }
% endfor
</%def>\
<%def name="all_passes(step, number, real_t, last)">\
<% passes = step.group.passes %>\
% for each in passes:

    /* Pass ${each.index}: radix ${each.radix}, runs of ${each.stride}. */
    {
${butterflies(step, each, real_t)}\
    }
% if each.index + 1 < len(passes):
${local.exchange(step.group, number, each, passes[each.index + 1], last and each.index + 2 == len(passes))}\
% endif
% endfor
</%def>\
<%def name="step_twiddle(step, name, power)">\
<% bits = step.step_twiddle_bits %>\
            const index_t power_${name} = ${power};
            const complex_t high_${name} = step_twiddles_high[power_${name} >> ${bits}];
            const complex_t low_${name} = step_twiddles_low[power_${name} & ${(1 << bits) - 1}];
${product(name, f"high_{name}", f"low_{name}")}\
</%def>\
## Multiply position p of lane c by the root to the power p * (c / step_twiddle_lanes).
<%def name="step_twiddles(step, each, round)">\
<% R, S, spacing = each.radix, each.stride, step.twiddle_spacing(each.radix) %>\
            const index_t k = (first_lane + lane_${each.index}) / step_twiddle_lanes;
% for i in range(1, spacing):
${step_twiddle(step, f"near_{i}", f"k * {i * S}")}\
% endfor
% for i in range(R):
% if i % spacing == 0:
${step_twiddle(step, f"w_{i}", f"k * (j + {i * S})")}\
% else:
${product(f"w_{i}", f"w_{i // spacing * spacing}", f"near_{i % spacing}")}\
% endif
${multiply(f"re_{each.index}_{round}_{i}", f"im_{each.index}_{round}_{i}", f"w_{i}")}\
% endfor
</%def>\
