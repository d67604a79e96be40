## One pass of the vector form: Stockham's, whose inputs and outputs are vectors in arrays of work or
## in the user's memory.
##
##   one_pass(..)   the loops over all butterflies of a pass
##   arrays(..)     the arrays 0 and 1 of vector `v` of a block, and its step twiddles
##
## With S, the stride of the pass, its butterflies are runs that share their twiddle factors:
##
##     k, the place in a run     0   1   ..  run-1       factors are loaded once for each k
##     g, the run                0 .. runs-1             and serve all of these
##     j = g * run + k           the butterfly, which reads vectors j + i * spacing, i < R
##     at = g * run * R + k      and writes vectors at + i * run
##
## A pass over whole blocks has the vectors of a block as its innermost loop, so that neighbours in
## memory are read and written together.
##
## step        the VectorStep, which says what all numbers mean: opencl_lab/fourier/vector_step.py
## one         the VectorPass
## kernel      what all steps of a kernel share: `real`, `work` and `parts`, see fft_vector.cl.mako
## plus_lanes  OpenCL C, such as " + v * 8": from the first lane of a block to that of vector `v`
<%namespace name="codelets" file="butterflies.mako"/>\
<%namespace name="loads" file="vector_loads.mako"/>\
<%namespace name="stores" file="vector_stores.mako"/>\
<%namespace name="vectors" file="vectors.mako"/>\
<%def name="one_pass(step, one, kernel, plus_lanes)">\
        /* Pass ${one.index}: radix ${one.radix}, runs of ${one.stride}. */
% if step.vectors.over == "points" and one.index == 0:
${first_over_points(step, one, kernel)}\
% else:
${stockham(step, one, kernel, plus_lanes)}\
% endif
</%def>\
<%def name="stockham(step, one, kernel, plus_lanes)">\
<%
    R, block, over_points = one.radix, step.vectors.block, step.vectors.over == "points"
    twiddled = one.stride > 1
    # Step twiddles differ by vector, those of a pass do not.
    inside = one.whole_block and step.step_twiddles
    def place(i, spacing, side):
        """Return what is added to an address in the user's memory for point i."""
        if i == 0:
            return ""
        positions = i * spacing * step.vectors.positions
        return f" + {positions}" + ("" if over_points else f" * {side}_position")
%>\
        for (uint k = 0; k < ${one.run}; ++k) {
% if twiddled and not inside:
${twiddles(step, one)}\
% endif
            for (uint g = 0; g < ${one.runs}; ++g)
% if one.whole_block and block > 1:
            for (uint v = 0; v < ${block}; ++v)
% endif
            {
% if one.whole_block:
${arrays(step, kernel)}\
% endif
% if twiddled and inside:
${twiddles(step, one)}\
% endif
            const uint j = g * ${one.run} + k;
            const uint at = g * ${one.run * R} + k;
${fetch(step, one, "j", plus_lanes)}\
% if one.reads is None:
            __global const complex_t *from_at = from + j * source_position${plus_lanes};
% else:
            __${kernel.work} const vec_t *from_at = work_${one.reads} + 2 * j;
% endif
% if one.writes is None:
            __global complex_t *to_at = to + at * ${step.vectors.width if over_points else f"target_position{plus_lanes}"};
% else:
            __${kernel.work} vec_t *to_at = work_${one.writes} + 2 * at;
% endif
            vec_t ${", ".join(f"re_{i}, im_{i}" for i in range(R))};
% for i in range(R):
% if one.reads is None:
${getattr(loads, step.load_fragment)(step, i, f"from_at{place(i, one.spacing, 'source')}", kernel.parts)}\
% else:
            re_${i} = from_at[${2 * i * one.spacing}];
            im_${i} = from_at[${2 * i * one.spacing + 1}];
% endif
% if step.halved and one.index == 0:
${loads.halve(i)}\
% endif
% if i and (twiddled or step.step_twiddles):
${multiply(i, *((f"w_re_{i}", f"w_im_{i}") if twiddled else step_twiddle(one, i)))}\
% endif
% endfor
${codelets.butterfly(R, kernel.real)}\
% for i in range(R):
% if one.writes is None:
% if step.scaled:
            re_${i} *= scale;
            im_${i} *= scale;
% endif
${getattr(stores, step.store_fragment)(step, i, f"to_at{place(i, one.run, 'target')}", plus_lanes, kernel.parts)}\
% else:
            to_at[${2 * i * one.run}] = re_${i};
            to_at[${2 * i * one.run + 1}] = im_${i};
% endif
% endfor
            }
        }
</%def>\
## The results of a butterfly are neighbours, so that those of V butterflies are transposed. There are
## no factors. The last vector of butterflies begins earlier where it would not be full.
<%def name="first_over_points(step, one, kernel)">\
<% R, V, count = one.radix, step.vectors.width, one.butterflies %>\
${arrays(step, kernel)}\
        for (uint j = 0; j < ${count}; j += ${V}) {
            const uint at = ${"j" if count % V == 0 else f"min(j, (uint){count - V})"};
            __global const complex_t *from_at = from + at;
${fetch(step, one, f"(j / {V})", "")}\
            vec_t ${", ".join(f"re_{i}, im_{i}" for i in range(R))};
% for i in range(R):
${loads.vector(step, i, f"from_at + {i * count}" if i else "from_at", kernel.parts)}\
% if step.halved:
${loads.halve(i)}\
% endif
% endfor
${codelets.butterfly(R, kernel.real)}\
            __${kernel.work} vec_t *work_at = work_0 + at * ${2 * R // V};
% for h in range(R // V):
${vectors.transpose([f"re_{h * V + l}" for l in range(V)], V)}\
${vectors.transpose([f"im_{h * V + l}" for l in range(V)], V)}\
% for l in range(V):
            work_at[${2 * (l * (R // V) + h)}] = re_${h * V + l};
            work_at[${2 * (l * (R // V) + h) + 1}] = im_${h * V + l};
% endfor
% endfor
        }
</%def>\
## Load w_re_<i>, w_im_<i>, the factors of a pass for one k: scalars over the batch, vectors over the
## points; times the step twiddle of the lane, where there is one.
<%def name="twiddles(step, one)">\
<% each = 2 * (one.radix - 1) %>\
% for i in range(1, one.radix):
<% at = 2 * (i - 1) %>\
% if step.vectors.over == "points":
            const vec_t w_re_${i} = ((__global const vec_t *)(twiddles + ${2 * one.twiddle_offset}))[k * ${each} + ${at}];
            const vec_t w_im_${i} = ((__global const vec_t *)(twiddles + ${2 * one.twiddle_offset}))[k * ${each} + ${at + 1}];
% else:
            const real_t pass_re_${i} = twiddles[k * ${each} + ${2 * one.twiddle_offset + at}];
            const real_t pass_im_${i} = twiddles[k * ${each} + ${2 * one.twiddle_offset + at + 1}];
% if step.step_twiddles:
<% re, im = step_twiddle(one, i) %>\
            const vec_t w_re_${i} = ${re} * pass_re_${i} - ${im} * pass_im_${i};
            const vec_t w_im_${i} = ${re} * pass_im_${i} + ${im} * pass_re_${i};
% else:
            const real_t w_re_${i} = pass_re_${i}, w_im_${i} = pass_im_${i};
% endif
% endif
% endfor
</%def>\
## Multiply point i by a factor.
<%def name="multiply(i, re, im)">\
            {
                const vec_t product = re_${i} * ${re} - im_${i} * ${im};
                im_${i} = re_${i} * ${im} + im_${i} * ${re};
                re_${i} = product;
            }
</%def>\
<%!
    def step_twiddle(one, i):
        """Return the parts of the step twiddle of point i, in OpenCL C."""
        at = one.step_twiddle_offset + 2 * (i - 1)
        return f"step_twiddles_at[{at}]", f"step_twiddles_at[{at + 1}]"
%>\
<%def name="arrays(step, kernel)">\
            __${kernel.work} vec_t *work_0 = work + (v + 1) * ${step.array};
            __${kernel.work} vec_t *work_1 = work${f" + v * {step.array}" if step.chained else ""};
% if step.step_twiddles:
            __global const vec_t *step_twiddles_at = step_twiddles + (block * ${step.vectors.block} + v) * ${step.step_twiddle_count};
% endif
</%def>\
## Fetch what butterfly j's vectors will be read from, or written to, into the cache.
<%def name="fetch(step, one, j, plus_lanes)">\
% for side in one.fetches:
% for i in range(one.radix):
<%
    V, vector = step.vectors.width, f"({j} * {one.radix} + {i})"
    if step.vectors.over == "points":
        at = f"{vector} * {V}"
    elif (step.load if side == "source" else step.store) == "rows":
        at = f"({vector} % {V}{plus_lanes}) * {side}_lane + {vector} / {V} * {V}"
    else:
        at = f"{vector} * {side}_position{plus_lanes}"
%>\
% for line in range(step.fetch_lines):
            FETCH_LINE((size_t)(${"next" if side == "source" else "to"} + ${at}) + ${64 * line}, ${int(side == "target")});
% endfor
% endfor
% endfor
</%def>\
