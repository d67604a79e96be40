## How a step loads number `offset` after position j of its row, as complex_t x: a fragment for each
## `LocalStep.load_fragment`, chosen by its name. A row begins at `from`, and position j, where strides are
## the user's, is at `from_j`. real.cl.mako says what is done to real signals.
<%def name="fragment(step, offset)">\
<% load = {"complex": load_complex, "unaligned": load_unaligned, "r2c-full": load_real, "c2r-full": load_mirrored, "c2r-packed": load_packed}[step.load_fragment] %>\
${load(step, offset)}\
</%def>\
<%def name="row_of(step)">\
<% real = step.load_fragment == "r2c-full" %>\
        __global const ${"real_t" if real else "complex_t"} *from = ${"(__global const real_t *)" if real else ""}source
            + (source_offset + b * source_batch + o * source_outer + c * source_lane);
</%def>\
<%def name="position_of(step)">\
% if step.load_fragment in ("complex", "unaligned"):
            __global const complex_t *from_j = from + j * source_position;
% endif
</%def>\
<%def name="load_complex(step, offset)">\
                const complex_t x = ${half(step)}from_j[${offset} * source_position];
</%def>\
## From memory that is aligned to one real number and not to two.
<%def name="load_unaligned(step, offset)">\
                const complex_t x = ${half(step)}vload2(${offset} * source_position, (__global const real_t *)from_j);
</%def>\
<%def name="half(step)">${"(real_t)0.5 * " if step.halved else ""}</%def>\
<%def name="load_real(step, offset)">\
                const complex_t x = (complex_t)(from[j + ${offset}], 0);
</%def>\
## The upper half of a real signal's frequencies mirrors the lower one, which is in memory.
<%def name="load_mirrored(step, offset)">\
                const uint p = j + ${offset};
                complex_t x = from[min(p, ${step.length} - p)];
                x.y = p == 0 ? 0 : p > ${step.length // 2} ? -x.y : x.y;
</%def>\
## Of n + 1 frequencies of a signal of 2n real numbers, frequency p of the n that it is packed as.
<%def name="load_packed(step, offset)">\
                const uint p = j + ${offset};
                complex_t here = from[p], opposite = from[${step.group.n} - p];
                if (p == 0)
                    here.y = opposite.y = 0;
                const complex_t even = (complex_t)(here.x + opposite.x, here.y - opposite.y);
                const complex_t odd = (complex_t)(here.x - opposite.x, here.y + opposite.y);
                const complex_t w = real_twiddles[p];
                const complex_t x = (complex_t)(even.x - odd.y * w.x + odd.x * w.y,
                                                even.y + odd.x * w.x + odd.y * w.y);
</%def>\
