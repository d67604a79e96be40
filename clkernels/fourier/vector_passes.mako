## One pass of the vector form: Stockham's, whose inputs and outputs are vectors in arrays of work or
## in the user's memory. schedule.py says what a pass computes.
##
##   butterflies(step, pass_)   the loops over all butterflies of a pass
##   arrays(step)               the arrays 0 and 1 of vector v of a block, and its step twiddles
##
## With S, the stride of the pass, its butterflies are runs that share their twiddle factors:
##
##     k, the place in a run     0   1   ..  RUN-1       factors are loaded once for each k
##     run                       0 .. RUNS-1             and serve all of these
##     j = run * RUN + k         the butterfly, which reads vectors j + i * SPACING, i < R
##     at = run * RUN * R + k    and writes vectors at + i * RUN
##
## A pass over whole blocks has the vectors of a block as its innermost loop, so that neighbours in
## memory are read and written together.
##
## step   the VectorStep, which says what all numbers mean: vector_step.py
## pass_  the VectorPass
<%def name="butterflies(step, pass_)">\
        /* Pass ${pass_.index}: radix ${pass_.radix}, stride ${pass_.stride}. */
        {
            enum { R = ${pass_.radix}, RUN = ${pass_.run}, RUNS = ${pass_.runs}, SPACING = ${pass_.spacing} };
% if step.vectors.over == "points" and pass_.index == 0:
${first_over_points(step, pass_)}\
% else:
${stockham(step, pass_)}\
% endif
        }
</%def>\
<%def name="stockham(step, pass_)">\
<%
    # Step twiddles differ by vector, those of a pass do not.
    per_vector = pass_.whole_block and step.step_twiddles
%>\
            for (uint k = 0; k < RUN; ++k) {
                points_t w[R]; /* twiddle factors */
% if not per_vector:
${factors(step, pass_)}\
% endif
                for (uint run = 0; run < RUNS; ++run)
% if pass_.whole_block:
                for (uint v = 0; v < BLOCK; ++v)
% endif
                {
                    const uint j = run * RUN + k, at = run * RUN * R + k;
                    points_t x[R];
% if pass_.whole_block:
${arrays(step)}\
% endif
% if per_vector:
${factors(step, pass_)}\
% endif
${fetch(step, pass_, "j")}\
% if pass_.reads is None:
                    __global const complex_t *from_j = from + j * source_position + lane;
#pragma unroll
                    for (uint i = 0; i < R; ++i)
                        x[i] = ${load(step, "from_j + i * SPACING * source_position")};
% else:
#pragma unroll
                    for (uint i = 0; i < R; ++i)
                        x[i] = work_${pass_.reads}[j + i * SPACING];
% endif
% if pass_.index == 0 and step.halved:
#pragma unroll
                    for (uint i = 0; i < R; ++i)
                        x[i] = scaled(x[i], ONE_HALF);
% endif
% if step.has_twiddles(pass_):
#pragma unroll
                    for (uint i = 1; i < R; ++i)
                        x[i] = multiplied(x[i], w[i]);
% endif
                    butterfly_${pass_.radix}(x);
% if pass_.writes is None:
<% distance = "V" if step.vectors.over == "points" else "target_position" %>\
                    __global complex_t *to_at = to + at * ${distance} + lane;
% if step.scaled:
#pragma unroll
                    for (uint i = 0; i < R; ++i)
                        x[i] = scaled(x[i], scale);
% endif
#pragma unroll
                    for (uint i = 0; i < R; ++i)
                        ${store(step, "x[i]", f"to_at + i * RUN * {distance}")};
% else:
#pragma unroll
                    for (uint i = 0; i < R; ++i)
                        work_${pass_.writes}[at + i * RUN] = x[i];
% endif
                }
            }
</%def>\
## The results of a butterfly are neighbours, so that those of V butterflies are transposed. There are
## no factors. The last vector of butterflies begins earlier where it would not be full.
<%def name="first_over_points(step, pass_)">\
            enum { BUTTERFLIES = ${pass_.butterflies} };
            const uint v = 0;
${arrays(step)}\
            for (uint j = 0; j < BUTTERFLIES; j += V) {
                const uint at = BUTTERFLIES % V == 0 ? j : min(j, (uint)(BUTTERFLIES - V));
                points_t x[R];
${fetch(step, pass_, "(j / V)")}\
#pragma unroll
                for (uint i = 0; i < R; ++i)
                    x[i] = load_lanes(from + at + i * BUTTERFLIES);
% if step.halved:
#pragma unroll
                for (uint i = 0; i < R; ++i)
                    x[i] = scaled(x[i], ONE_HALF);
% endif
                butterfly_${pass_.radix}(x);
#pragma unroll
                for (uint h = 0; h < R / V; ++h) {
                    transpose(x + h * V);
#pragma unroll
                    for (uint l = 0; l < V; ++l)
                        work_0[at * R / V + l * (R / V) + h] = x[h * V + l];
                }
            }
</%def>\
## The twiddle factors w[1] to w[R - 1] of a pass for one k, times the step twiddles of vector v.
<%def name="factors(step, pass_)">\
<%
    own = f"{pass_.twiddle_offset} / {step.vectors.positions} + k * (R - 1) + i - 1"
    own = f"twiddles[{own}]" if step.vectors.over == "points" else f"factor_at(twiddles, {own})"
    between = f"step_twiddles_v[{pass_.step_twiddle_offset} + i - 1]"
%>\
% if step.has_twiddles(pass_):
#pragma unroll
                    for (uint i = 1; i < R; ++i)
% if step.step_twiddles and pass_.stride > 1:
                        w[i] = multiplied(${between}, ${own});
% elif step.step_twiddles:
                        w[i] = ${between};
% else:
                        w[i] = ${own};
% endif
% endif
</%def>\
<%def name="arrays(step)">\
                    const uint lane = v * V;
                    WORK points_t *work_0 = work + (v + 1) * ARRAY;
                    WORK points_t *work_1 = work + CHAINED * v * ARRAY;
% if step.step_twiddles:
                    __global const points_t *step_twiddles_v =
                        step_twiddles + (block * BLOCK + v) * ${step.step_twiddle_count};
% endif
</%def>\
## A vector of the user's memory.
<%def name="load(step, address)">\
% if step.vectors.tail == "partial":
gather_lanes(${address}, 1, LANES)\
% else:
load_lanes(${address})\
% endif
</%def>\
<%def name="store(step, x, address)">\
% if step.vectors.tail == "partial":
scatter_lanes(${x}, ${address}, 1, lane, fresh, LANES)\
% elif step.vectors.tail == "overlapping":
store_fresh_lanes(${x}, ${address}, lane, fresh)\
% else:
store_lanes(${x}, ${address})\
% endif
</%def>\
## Fetch what butterfly j's vectors will be read from, or written to, into the cache.
<%def name="fetch(step, pass_, j)">\
% for side in pass_.fetches:
<%
    vector = f"({j} * R + i)"
    if step.vectors.over == "points":
        at = f"{vector} * V"
    elif (step.load if side == "source" else step.store) == "rows":
        at = f"({vector} % V + lane) * {side}_lane + {vector} / V * V"
    else:
        at = f"{vector} * {side}_position + lane"
%>\
#pragma unroll
                    for (uint i = 0; i < R; ++i)
#pragma unroll
                        for (uint line = 0; line < ${step.fetch_lines}; ++line)
                            FETCH_LINE((size_t)(${"next" if side == "source" else "to"} + ${at}) + line * 64, ${int(side == "target")});
% endfor
</%def>\
