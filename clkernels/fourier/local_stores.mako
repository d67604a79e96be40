## How a step stores its result: one way for each `LocalStep.store_fragment`.
##
##   row_of(step)             `to`, the row of transform c
##   position_of(step)        `to_j`, position j of it
##   point(step, offset)      the statement that stores x `offset` positions after j
##   packed_spectrum(step)    a whole section instead: of frequencies k and n - k of the packed signal,
##                            those of the signal itself, see real.cl.mako
##
## step    LocalStep of local_schedule.py
## offset  OpenCL C
<%namespace name="local" file="local_exchange.mako"/>\
<%def name="row_of(step)">\
<% real = step.store_fragment == "c2r-full" %>\
        __global ${"real_t" if real else "complex_t"} *to = ${"(__global real_t *)" if real else ""}target
            + (b * target_batch + o * target_outer + c * target_lane);
</%def>\
<%def name="position_of(step)">\
                __global ${"real_t" if step.store_fragment == "c2r-full" else "complex_t"} *to_j = to + j * target_position;
</%def>\
<%def name="point(step, offset)">\
<%
    ways = {
        "complex": f"to_j[{offset} * target_position] = x",
        # To memory that is aligned to one real number and not to two.
        "unaligned": f"vstore2(x, {offset} * target_position, (__global real_t *)to_j)",
        "c2r-full": f"to_j[{offset} * target_position] = x.x",
    }
%>\
${ways[step.store_fragment]}\
</%def>\
<%def name="packed_spectrum(step)">\
<% group = step.group %>\

    /* Of frequencies k and N - k, make those of the signal that was packed, and store them. */
${local.meet_opposites(group)}\
    const index_t c = group_lane + ${group.numbering(group.schedule.last)}_lane;
    __global complex_t *to = target + c * target_lane;
#pragma unroll
    for (uint round = 0; round < ${group.opposite_rounds}; ++round) {
        const uint k = ${group.numbering(group.schedule.last)}_item + round * ITEMS;
        if (${"c < lanes && " if step.partial_group else ""}k <= N / 2) {
            const complex_t w = real_twiddles[k];
            const complex_t a = lower[round], b = upper[round];
            const complex_t even = (complex_t)(a.x + b.x, a.y - b.y);
            const complex_t x = (complex_t)(a.x - b.x, a.y + b.y);
            const complex_t odd = (complex_t)(x.x * w.y + x.y * w.x, x.y * w.y - x.x * w.x);
            const complex_t opposite = even - odd;
            to[k] = (even + odd)${" * scale" if step.scaled else ""};
            if (2 * k != N)
                to[N - k] = (complex_t)(opposite.x, -opposite.y)${" * scale" if step.scaled else ""};
        }
    }
</%def>\
