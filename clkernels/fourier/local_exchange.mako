## Exchange of points between the items of a group, through local memory.
##
##     pass s      an item has re_<s>_<round>_<i>, i < R, of butterfly j = j_<s> + round * items
##        write    point i to position (j / S) * S * R + j mod S + i * S of its transform
##        barrier
##        read     point i of pass s + 1 from position j + i * n / R
##
## `GroupSchedule.places` of local_schedule.py says where a position lies. Points go interleaved, as
## complex numbers; split, with real and imaginary parts in two arrays; or in two phases, first the
## real parts, then the imaginary ones in the same array. `group` is a GroupSchedule, `each` a Pass, and `number` that of the step.
<%!
    ARRAYS = {"split": {"re": "local_re", "im": "local_im"}, "two-phase": {"re": "local_re", "im": "local_re"}}

    def element_of(group, lane, position):
        """Return code for where a position of a transform lies in local memory, but for gaps."""
        if group.store == "columns":
            return f"({position}) * {group.transforms} + {lane}"
        return f"{lane} * {group.n} + {position}"

    def points_of(group, number, lane, position, step, count):
        """Return code that finds where the first of some points lies, and expressions for all of them."""
        code, found = [f"const uint start = {element_of(group, lane, position)};"], []
        for rest, offset in group.places(count, step):
            start = f"start_{rest}" if group.gap else "start"
            line = f"const uint {start} = PADDED_{number}(start + {rest});"
            code += [line] if group.gap and line not in code else []
            found.append(f"{start} + {offset}")
        return code, found
%>\
<%def name="declare(group, number)">\
% if len(group.passes) > 1 and group.exchange == "split":
    __local real_t *local_re = space, *local_im = space + ${group.padded};
% elif len(group.passes) > 1 and group.exchange == "two-phase":
    __local real_t *local_re = space;
% elif len(group.passes) > 1:
    __local complex_t *local_pairs = (__local complex_t *)space;
% endif
</%def>\
<%def name="own(group, each, round)">\
% if group.fills_rounds(each):
        {
% else:
        if (j_${each.index} + ${round * group.items} < ${each.butterflies}) {
% endif
            const uint j = j_${each.index} + ${round * group.items};
</%def>\
<%def name="write(group, number, each, parts)">\
<%
    R, S = each.radix, each.stride
    code, at = points_of(group, number, f"lane_{each.index}", f"(j / {S} * {S * R} + j % {S})", S, R)
%>\
% for round in range(group.rounds(each)):
<% own_re, own_im = f"re_{each.index}_{round}", f"im_{each.index}_{round}" %>\
${own(group, each, round)}\
% for line in code:
            ${line}
% endfor
% for i in range(R):
% if group.exchange == "interleaved":
            local_pairs[${at[i]}] = (complex_t)(${own_re}_${i}, ${own_im}_${i});
% else:
% for part in parts:
            ${ARRAYS[group.exchange][part]}[${at[i]}] = ${part}_${each.index}_${round}_${i};
% endfor
% endif
% endfor
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE); /* all points are there */
</%def>\
<%def name="read(group, number, each, parts)">\
<% code, at = points_of(group, number, f"lane_{each.index}", "j", each.butterflies, each.radix) %>\
% for round in range(group.rounds(each)):
<% own_re, own_im = f"re_{each.index}_{round}", f"im_{each.index}_{round}" %>\
${own(group, each, round)}\
% for line in code:
            ${line}
% endfor
% for i in range(each.radix):
% if group.exchange == "interleaved":
            const complex_t x_${i} = local_pairs[${at[i]}];
            ${own_re}_${i} = x_${i}.x;
            ${own_im}_${i} = x_${i}.y;
% else:
% for part in parts:
            ${part}_${each.index}_${round}_${i} = ${ARRAYS[group.exchange][part]}[${at[i]}];
% endfor
% endif
% endfor
        }
% endfor
</%def>\
<%def name="next_phase()">\
        barrier(CLK_LOCAL_MEM_FENCE); /* real parts are read; imaginary ones take their place */
</%def>\
<%def name="exchange(group, number, each, after, last)">\
    {
% for parts in group.phases:
% if not loop.first:
${next_phase()}\
% endif
${write(group, number, each, parts)}\
${read(group, number, after, parts)}\
% endfor
% if not last:
        barrier(CLK_LOCAL_MEM_FENCE); /* all points are read; the next ones take their place */
% endif
    }
</%def>\
<%def name="read_opposites(group, number, parts)">\
<%
    each = group.schedule.last

    def place_of(position):
        at = f"lane_{each.index} * {group.n} + {position}"
        return f"PADDED_{number}({at})" if group.gap else at
%>\
% for round in range(group.opposite_rounds):
        if (${opposite(group, round)}) {
            const uint k = j_${each.index} + ${round * group.items};
            const uint at = ${place_of("k")}, opposite = ${place_of(f"(k ? {group.n} - k : 0)")};
% if group.exchange == "interleaved":
            re_a_${round} = local_pairs[at].x;
            im_a_${round} = local_pairs[at].y;
            re_b_${round} = local_pairs[opposite].x;
            im_b_${round} = local_pairs[opposite].y;
% else:
% for part in parts:
            ${part}_a_${round} = ${ARRAYS[group.exchange][part]}[at];
            ${part}_b_${round} = ${ARRAYS[group.exchange][part]}[opposite];
% endfor
% endif
        }
% endfor
</%def>\
<%def name="opposite(group, round)">j_${group.schedule.last.index} + ${round * group.items} <= ${group.n // 2}</%def>\
<%def name="meet_opposites(group, number)">\
% for round in range(group.opposite_rounds):
        real_t re_a_${round} = 0, im_a_${round} = 0, re_b_${round} = 0, im_b_${round} = 0;
% endfor
% for parts in group.phases:
% if not loop.first:
${next_phase()}\
% endif
${write(group, number, group.schedule.last, parts)}\
${read_opposites(group, number, parts)}\
% endfor
</%def>\
