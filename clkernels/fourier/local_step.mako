## One step of transforms by work-groups in local memory, as a function that does what one group
## does: see fft_local.cl.mako.
##
##     load --> pass 0 --> exchange --> pass 1 --> .. --> store
##
##     a convolution:   load, times chirp --> passes --> times its spectrum --> passes --> times chirp, store
##                      or one of these parts: "first" at the load, "product" and "last" at the store
##     a real signal:   .. --> last pass --> opposite frequencies meet --> store
##
##   declare(step_index, step, inverse, shared, ptx)
##                                                  step_0 or step_1, the function
##   kernel_parameters(step_index, step, shared)    what the kernel takes of it
##   arguments(step_index, step)                    what the kernel hands to it
##
## step_index  place of the step in the launch
## step        LocalStep of local_schedule.py
## inverse     whether components are swapped as they are read and written
## shared      "source" or "target" if the other step of the launch uses it, too
## ptx         whether the device takes PTX: NVIDIA's compiler inlines what is called once. AMD's calls
##             it, with registers for the largest groups there are, and keeps the points in memory
<%namespace name="loads" file="local_loads.mako"/>\
<%namespace name="local" file="local_exchange.mako"/>\
<%namespace name="passes" file="local_passes.mako"/>\
<%namespace name="stores" file="local_stores.mako"/>\
<%!
    def parameters(step, shared):
        """Return the declarations of what a group needs to know."""
        # A convolution reads these tables twice, and Intel's compiler for CPUs gives items the
        # values of others where it may keep one from before a barrier.
        aliased = {shared, *(("twiddles", "chirp") if step.convolution == "whole" else ())}

        def pointer(name, type):
            return f"__global {type} *{'' if name in aliased else 'restrict '}{name}"

        return [
            pointer("source", "const complex_t"),
            pointer("target", "complex_t"),
            *[pointer(table, "const complex_t") for table in step.tables],
            *[f"const index_t {name}" for name in step.numbers],
            *["const real_t scale"] * step.scaled,
        ]

    def index(step, side, offset):
        """Return where a point is in a whole row, of which the step may do parts."""
        if step.convolution == "whole" or not step.convolution:
            return f"j + {offset}"
        return f"(j + {offset}) * {side}_position + c * {side}_lane"

    def kernel_parameters(step_index, step, shared):
        return [f"{parameter}_{step_index}" for parameter in parameters(step, shared)]

    def arguments(step_index, step):
        names = (parameter.split()[-1].lstrip("*") for parameter in parameters(step, ""))
        return ", ".join(f"{name}_{step_index}" for name in names)
%>\
<%def name="declare(step_index, step, inverse, shared, ptx)">\
<%
    group = step.group
    first, last = group.passes[0], group.schedule.last
    swapped = ".yx" if inverse else ""
    guard = "if (c < lanes)" if step.partial_group else ""
    read_at, written_at = index(step, "source", "i * BUTTERFLIES"), index(step, "target", "i * S")
%>\
/* Do what one group of step ${step_index} does. */
${"" if ptx else "INLINE "}void step_${step_index}(
    const index_t group_number,
    __local real_t *space,
    ${",\n    ".join(parameters(step, shared))})
{
    enum { N = ${group.n}, TRANSFORMS = ${group.transforms}, ITEMS = ${group.items} }; /* of a group, of a transform */
% for name, value in step.constants:
    const index_t ${name} = ${value};
% endfor
${local.arrays(group)}\
    const uint item = (uint)get_local_id(0);
% if step.single_batch:
    const index_t group_lane = group_number * TRANSFORMS, o = 0, b = 0;
% else:
    const index_t lane_groups = (lanes + (TRANSFORMS - 1)) / TRANSFORMS;
    const index_t group_lane = group_number % lane_groups * TRANSFORMS;
    const index_t o = group_number / lane_groups % outer, b = group_number / lane_groups / outer;
% endif
    /* Which transform an item has, and its number there: as it loads, and from then on. */
% for numbering, order in group.numberings:
% if order == "rows":
    const uint ${numbering}_lane = item / ITEMS, ${numbering}_item = item % ITEMS;
% else:
    const uint ${numbering}_lane = item % TRANSFORMS, ${numbering}_item = item / TRANSFORMS;
% endif
% endfor
    /* Points of passes. They begin as 0, also where an item has no butterfly: undefined values cost time. */
% for pass_ in group.passes:
    complex_t x_${pass_.index}[${group.rounds(pass_)}][${pass_.radix}] = {{0}};
% endfor

    /* Load. */
    {
${local.pass_sizes(group, first)}\
        const index_t c = group_lane + load_lane;
${loads.row_of(step)}\
#pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
${local.own(group, first)} ${guard} {
${loads.position_of(step)}\
#pragma unroll
                for (uint i = 0; i < R; ++i)
                    ${f"if ({read_at} < {step.loaded})" if step.loaded else ""} {
                        const complex_t x = ${loads.point(step, "i * BUTTERFLIES")};
                        x_0[round][i] = ${f"times(x, chirp[{read_at}])" if step.chirps_loads else f"x{swapped}"};
                    }
            }
        }
    }
${passes.all_passes(step, step.convolution != "whole" and not step.packs_spectrum)}\
% if step.convolution == "whole":

    /* Multiply by the transform of the chirp; swapped components make the next transform the inverse. */
    {
${local.pass_sizes(group, last)}\
#pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
${local.own(group, last)} {
#pragma unroll
                for (uint i = 0; i < R; ++i)
                    x_${last.index}[round][i] = times(x_${last.index}[round][i], chirp_spectrum[j + i * S]).yx;
            }
        }
    }
${local.exchange(group, last, first, False)}\
${passes.all_passes(step, True)}\
% endif
% if step.packs_spectrum:
${stores.packed_spectrum(step)}\
% else:

    /* Store. */
    {
${local.pass_sizes(group, last)}\
        const index_t c = group_lane + ${group.numbering(last)}_lane;
${stores.row_of(step)}\
#pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
${local.own(group, last)} ${guard} {
${stores.position_of(step)}\
% if step.step_twiddle_bits:
${passes.step_twiddles(step, last)}\
% endif
#pragma unroll
                for (uint i = 0; i < R; ++i)
                    ${f"if ({written_at} < {step.stored})" if step.stored else ""} {
                        complex_t x = ${f"times(x_{last.index}[round][i], w[i])" if step.step_twiddle_bits else f"x_{last.index}[round][i]"};
% if step.convolution == "product":
                        /* Swapped components make the next transform the inverse. */
                        x = times(x, chirp_spectrum[${written_at}]).yx;
% endif
% if step.chirps_stores:
                        x = times(x.yx, chirp[${written_at}]);
% endif
% if step.scaled:
                        x *= scale;
% endif
% if inverse:
                        x = x.yx;
% endif
                        ${stores.point(step, "i * S")};
                    }
            }
        }
    }
% endif
}
</%def>\
