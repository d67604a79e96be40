## Exchange of points between the items of a group, through local memory.
##
##     pass s      an item has x_s[round][i], i < R, of butterfly j = its number + round * ITEMS
##        write    point i to position (j / S) * S * R + j mod S + i * S of its transform
##        barrier
##        read     point i of pass s + 1 from position j + i * n / R
##
## Points go interleaved, as complex numbers; split, with real and imaginary components in two arrays; or
## in two phases, first the real components, then the imaginary ones in the same array. Points that are more
## than local memory holds go section by section: in each phase, items write and read those of their points
## that lie there.
##
##   declare()                       functions that say where points lie, once per kernel file
##   arrays(group)                   the arrays, at the beginning of a step
##   pass_sizes(group, pass_)        R, S, BUTTERFLIES, ROUNDS: constants of a pass
##   own(group, pass_)               which butterfly of a pass an item has in a round
##   exchange(group, pass_, after, last)
##                                   all points of a pass to those of the pass after it; `last`, whether
##                                   local memory is not written again
##   meet_opposites(group)           opposite frequencies of the last pass to lower[round], upper[round]
##
## group         GroupPasses of local_schedule.py
## pass_, after  Pass of schedule.py
<%!
    COMPONENTS = {"x": "re", "y": "im"}

    def array_of(group, component):
        """Return the array that holds a component: both share it in two phases."""
        return "local_re" if group.exchange == "two-phase" else f"local_{COMPONENTS[component]}"
%>\
<%def name="declare()">\
/* Where an element lies in local memory with a gap after so many elements, 0 for none. */
INLINE uint padded(const uint element, const uint gap)
{
    return gap == 0 ? element : element + element / gap;
}

/* Where the element lies that is `offset` after `start`, as a constant distance from one of few places:
   that of the first, if all lie `together` between two gaps, or of one less than a gap after it. */
INLINE uint place_of(const uint start, const uint offset, const uint gap, const bool together)
{
    if (gap == 0)
        return start + offset;
    const uint rest = together ? 0 : offset % gap;
    return padded(start + rest, gap) + padded(offset - rest, gap);
}
</%def>\
<%def name="arrays(group)">\
% if len(group.passes) > 1:
% if group.exchange == "split":
    __local real_t *local_re = space, *local_im = space + ${group.padded};
% elif group.exchange == "two-phase":
    __local real_t *local_re = space;
% else:
    __local complex_t *local_pairs = (__local complex_t *)space;
% endif
% endif
</%def>\
<%def name="pass_sizes(group, pass_)">\
        enum { R = ${pass_.radix}, S = ${pass_.stride}, BUTTERFLIES = ${pass_.butterflies}, ROUNDS = ${group.rounds(pass_)} };
</%def>\
<%def name="own(group, pass_)">\
            const uint j = ${group.numbering(pass_)}_item + round * ITEMS;
            if (${"true" if group.fills_rounds(pass_) else "j < BUTTERFLIES"})\
</%def>\
## Where position `position` of a butterfly's transform lies, and point i from there.
<%def name="element(group, pass_, position)">\
${f"({position}) * TRANSFORMS + {group.numbering(pass_)}_lane" if group.store == "columns" else f"{group.numbering(pass_)}_lane * N + {position}"}\
</%def>\
<%def name="place(group, pass_, distance, section)">\
<% together = group.together(pass_.radix, pass_.stride if distance == "S" else pass_.butterflies) %>\
place_of(start, i * ${distance}${" * TRANSFORMS" if group.store == "columns" else ""}, ${group.gap}, ${int(together)})\
${f" - {section * group.padded}" if section else ""}\
</%def>\
## Whether point i of butterfly j lies in the section, for which the index `which` decides: each that is
## `span` positions after the one before.
<%def name="lies_in(group, section, which, span)">\
% if group.sections > 1:
                    if (${which} / ${group.section // span} == ${section})
% endif
</%def>\
<%def name="write(group, pass_, components, section)">\
    {
${pass_sizes(group, pass_)}\
#pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
${own(group, pass_)} {
                const uint start = ${element(group, pass_, "j / S * S * R + j % S")};
#pragma unroll
                for (uint i = 0; i < R; ++i)
% if pass_ is group.schedule.last:
${lies_in(group, section, "i", pass_.stride)}\
% else:
${lies_in(group, section, "j / S", pass_.radix * pass_.stride)}\
% endif

                {
                    const uint place = ${place(group, pass_, "S", section)};
% if group.exchange == "interleaved":
                    local_pairs[place] = x_${pass_.index}[round][i];
% else:
% for component in components:
                    ${array_of(group, component)}[place] = x_${pass_.index}[round][i].${component};
% endfor
% endif
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* all points are there */
    }
</%def>\
<%def name="read(group, pass_, components, section)">\
    {
${pass_sizes(group, pass_)}\
#pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
${own(group, pass_)} {
                const uint start = ${element(group, pass_, "j")};
#pragma unroll
                for (uint i = 0; i < R; ++i)
${lies_in(group, section, "i", pass_.butterflies)}\
                {
                    const uint place = ${place(group, pass_, "BUTTERFLIES", section)};
% if group.exchange == "interleaved":
                    x_${pass_.index}[round][i] = local_pairs[place];
% else:
% for component in components:
                    x_${pass_.index}[round][i].${component} = ${array_of(group, component)}[place];
% endfor
% endif
                }
            }
        }
    }
</%def>\
<%def name="next_phase()">\
    barrier(CLK_LOCAL_MEM_FENCE); /* these are read; the next components, or section, take their place */
</%def>\
<%def name="exchange(group, pass_, after, last)">\
% for components, section in group.phases:
% if not loop.first:
${next_phase()}\
% endif
${write(group, pass_, components, section)}\
${read(group, after, components, section)}\
% endfor
% if not last:
    barrier(CLK_LOCAL_MEM_FENCE); /* all points are read; the next ones take their place */
% endif
</%def>\
<%def name="meet_opposites(group)">\
<%
    last = group.schedule.last
    sides = {"lower": "k", "upper": "k ? N - k : 0"}
%>\
    complex_t lower[${group.opposite_rounds}], upper[${group.opposite_rounds}];
% for components, section in group.phases:
% if not loop.first:
${next_phase()}\
% endif
${write(group, last, components, section)}\
#pragma unroll
    for (uint round = 0; round < ${group.opposite_rounds}; ++round) {
        const uint k = ${group.numbering(last)}_item + round * ITEMS;
        if (k <= N / 2) {
% for side, position in sides.items():
            {
                const uint p = ${position};
                const uint place = padded(${group.numbering(last)}_lane * N + p, ${group.gap})${f" - {section * group.padded}" if section else ""};
${lies_in(group, section, "p", 1)}\
                {
% if group.exchange == "interleaved":
                    ${side}[round] = local_pairs[place];
% else:
% for component in components:
                    ${side}[round].${component} = ${array_of(group, component)}[place];
% endfor
% endif
                }
            }
% endfor
        }
    }
% endfor
</%def>\
