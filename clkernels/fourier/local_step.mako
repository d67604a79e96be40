## One step of transforms by work-groups in local memory, as a function that does what one group
## does: see fft_local.cl.mako. `step` is a LocalStep of local_schedule.py, `number` its place
## in the launch, and `group` its GroupSchedule.
<%namespace name="loads" file="local_loads.mako"/>\
<%namespace name="local" file="local_exchange.mako"/>\
<%namespace name="passes" file="local_passes.mako"/>\
<%namespace name="stores" file="local_stores.mako"/>\
<%def name="declare(step, number, real_t, inverse, parameters)">\
<%
    group = step.group
    first, last = group.passes[0], group.schedule.last
    re_part, im_part = ("y", "x") if inverse else ("x", "y")
    guard = "c < lanes" if step.partial_group else "1"

    def only_to(end, offset):
        """Return the condition that a position is before the end, if there is one."""
        return f"if (j + {offset} < {end}) " if end else ""
%>\
% if group.gap:
#define PADDED_${number}(at) ((at) + (at) / ${group.gap})
% endif

/* Do what one group of this step does. */
void step_${number}(const index_t group_number, __local real_t *space, ${", ".join(parameters)})
{
% for name, value in step.constants:
    const index_t ${name} = ${value};
% endfor
${local.declare(group, number)}\
    const uint item = (uint)get_local_id(0);
% if step.single_batch:
    const index_t first_lane = group_number * ${group.transforms}, o = 0, b = 0;
% else:
    const index_t lane_groups = (lanes + ${group.transforms - 1}) / ${group.transforms};
    const index_t first_lane = group_number % lane_groups * ${group.transforms};
    const index_t o = group_number / lane_groups % outer, b = group_number / lane_groups / outer;
% endif
% for each in group.passes:
% if group.order(each) == "rows":
    const uint lane_${each.index} = item / ${group.items};
    const uint j_${each.index} = item % ${group.items};
% else:
    const uint lane_${each.index} = item % ${group.transforms};
    const uint j_${each.index} = item / ${group.transforms};
% endif
% for round in range(group.rounds(each)):
    real_t ${", ".join(f"re_{each.index}_{round}_{i} = 0, im_{each.index}_{round}_{i} = 0" for i in range(each.radix))};
% endfor
% endfor

    /* Load. */
    {
        const index_t c = first_lane + lane_0;
${loads.row_of(step)}\
% for round in range(group.rounds(first)):
        if (${guard}) {
${local.own(group, first, round)}\
${loads.position_of(step)}\
% for i in range(first.radix):
<% offset = i * first.butterflies %>\
            ${only_to(step.loaded, offset)}{
${loads.fragment(step, offset)}\
% if step.convolved:
                const complex_t w = chirp[j + ${offset}];
                re_0_${round}_${i} = x.x * w.x - x.y * w.y;
                im_0_${round}_${i} = x.x * w.y + x.y * w.x;
% else:
                re_0_${round}_${i} = x.${re_part};
                im_0_${round}_${i} = x.${im_part};
% endif
            }
% endfor
        }
        }
% endfor
    }
${passes.all_passes(step, number, real_t, not step.convolved and not step.packs_spectrum)}\
% if step.convolved:

    /* Multiply by the transform of the chirp; swapped parts make the next transform the inverse. */
    {
% for round in range(group.rounds(last)):
<% own_re, own_im = f"re_{last.index}_{round}", f"im_{last.index}_{round}" %>\
${local.own(group, last, round)}\
% for i in range(last.radix):
            {
                const complex_t w = chirp_spectrum[j + ${i * last.stride}];
                const real_t x = ${own_re}_${i}, y = ${own_im}_${i};
                ${own_im}_${i} = x * w.x - y * w.y;
                ${own_re}_${i} = x * w.y + y * w.x;
            }
% endfor
        }
% endfor
    }
${local.exchange(group, number, last, first, False)}\
${passes.all_passes(step, number, real_t, True)}\
% endif
% if step.packs_spectrum:
${stores.packed_spectrum(step, number)}\
% else:

    /* Store. */
    {
        const index_t c = first_lane + lane_${last.index};
${stores.row_of(step)}\
% for round in range(group.rounds(last)):
        if (${guard}) {
${local.own(group, last, round)}\
${stores.position_of(step)}\
% if step.step_twiddle_bits:
${passes.step_twiddles(step, last, round)}\
% endif
% for i in range(last.radix):
<% offset = i * last.stride %>\
            ${only_to(step.stored, offset)}{
                complex_t x = (complex_t)(re_${last.index}_${round}_${i}, im_${last.index}_${round}_${i});
% if step.convolved:
                const complex_t w = chirp[j + ${offset}];
                x = (complex_t)(x.y * w.x - x.x * w.y, x.y * w.y + x.x * w.x);
% endif
% if step.scaled:
                x *= scale;
% endif
${stores.fragment(step, offset, inverse)}\
            }
% endfor
        }
        }
% endfor
    }
% endif
}
</%def>\
