## The passes of a step: twiddle factors, butterflies and the exchanges between them; and the twiddle
## factors between two steps of a transform.
##
##   declare(between)            functions, once per kernel file; `between`, whether a step has step twiddles
##   all_passes(step, last)      all passes of a step; `last`, whether nothing follows that exchanges points
##   step_twiddles(step, pass_)  w[i], by which point i of the pass is multiplied: of position p of lane c,
##                               the root to the power p * k, where k = c / step_twiddle_lanes
##
## About 2 sqrt(R) of the R - 1 factors of a butterfly are loaded: the powers
## below FEW and the multiples of FEW, about sqrt(R). The others are products, w^(q FEW + r) = w^(q FEW) w^r.
##
## step   LocalStep of local_schedule.py
## pass_  Pass of schedule.py
<%namespace name="local" file="local_exchange.mako"/>\
<%def name="declare(between)">\
% if between:
/* The root of a transform to a power, as the product of two from tables: of its high bits, and its low. */
INLINE complex_t step_twiddle(__global const complex_t *high, __global const complex_t *low,
                              const uint bits, const index_t power)
{
    return times(high[power >> bits], low[power & ((1 << bits) - 1)]);
}

% endif
</%def>\
<%def name="all_passes(step, last)">\
<% group, passes = step.group, step.group.passes %>\
% for pass_ in passes:

    /* Pass ${pass_.index}: radix ${pass_.radix}, stride ${pass_.stride}. */
    {
${local.pass_sizes(group, pass_)}\
#pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
${local.own(group, pass_)} {
                complex_t *x = x_${pass_.index}[round];
% if pass_.index:
                enum { FEW = ${step.twiddle_spacing(pass_.radix)} };
                __global const complex_t *twiddles_of_j = twiddles + (${pass_.twiddle_offset} + j % S);
                complex_t w[R];
#pragma unroll
                for (uint i = 1; i < R; ++i) {
                    w[i] = i < FEW || i % FEW == 0 ? twiddles_of_j[(i - 1) * S] : times(w[i / FEW * FEW], w[i % FEW]);
                    x[i] = times(x[i], w[i]);
                }
% endif
                butterfly_${pass_.radix}(x);
            }
        }
    }
% if pass_.index + 1 < len(passes):
${local.exchange(group, pass_, passes[pass_.index + 1], last and pass_.index + 2 == len(passes))}\
% endif
% endfor
</%def>\
<%def name="step_twiddles(step, pass_)">\
<% root = lambda power: f"step_twiddle(step_twiddles_high, step_twiddles_low, {step.step_twiddle_bits}, {power})" %>\
                enum { FEW = ${step.twiddle_spacing(pass_.radix)} };
                const index_t k = c / step_twiddle_lanes;
                complex_t near[FEW], w[R];
#pragma unroll
                for (uint i = 1; i < FEW; ++i)
                    near[i] = ${root("k * (i * S)")};
#pragma unroll
                for (uint i = 0; i < R; ++i)
                    w[i] = i % FEW == 0 ? ${root("k * (j + i * S)")} : times(w[i / FEW * FEW], near[i % FEW]);
</%def>\
