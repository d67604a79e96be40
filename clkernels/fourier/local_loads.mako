## How a step loads a point: one way for each `LocalStep.load_fragment`. real.cl.mako says what is done to
## real signals.
##
##   declare(fragments)         functions that some ways need, once per kernel file
##   row_of(step)               `from`, the row of transform c
##   position_of(step)          `from_j`, position j of it, where strides are the user's
##   point(step, offset)        OpenCL C: the point `offset` positions after j
##
## fragments  the `load_fragment` of each step
## step       LocalStep of local_schedule.py
## offset     OpenCL C
<%def name="declare(fragments)">\
% if "c2r-full" in fragments:
/* Load frequency p of a real signal of n: the upper half mirrors the lower one, which is in memory. */
INLINE complex_t load_mirrored(__global const complex_t *from, const uint p, const uint n)
{
    complex_t x = from[min(p, n - p)];
    x.y = p == 0 ? 0 : p > n / 2 ? -x.y : x.y;
    return x;
}

% endif
% if "c2r-packed" in fragments:
/* Of n + 1 frequencies of a signal of 2n real numbers, make frequency p of the n that it is packed as,
   halved, so that it is not too large where the signal is not. */
INLINE complex_t load_packed(__global const complex_t *from, __global const complex_t *real_twiddles,
                             const uint p, const uint n)
{
    complex_t here = ONE_HALF * from[p], opposite = ONE_HALF * from[n - p];
    if (p == 0)
        here.y = opposite.y = 0;
    const complex_t even = (complex_t)(here.x + opposite.x, here.y - opposite.y);
    const complex_t odd = (complex_t)(here.x - opposite.x, here.y + opposite.y);
    const complex_t w = real_twiddles[p];
    return (complex_t)(even.x - odd.y * w.x + odd.x * w.y, even.y + odd.x * w.x + odd.y * w.y);
}

% endif
</%def>\
<%def name="row_of(step)">\
<% real = step.load_fragment == "r2c-full" %>\
        __global const ${"real_t" if real else "complex_t"} *from = ${"(__global const real_t *)" if real else ""}source
            + (b * source_batch + o * source_outer + c * source_lane);
</%def>\
<%def name="position_of(step)">\
% if step.load_fragment in ("complex", "unaligned"):
                __global const complex_t *from_j = from + j * source_position;
% endif
</%def>\
<%def name="point(step, offset)">\
<%
    half = "ONE_HALF * " if step.halved else ""
    ways = {
        "complex": f"{half}from_j[{offset} * source_position]",
        # From memory that is aligned to one real number and not to two.
        "unaligned": f"{half}vload2({offset} * source_position, (__global const real_t *)from_j)",
        "r2c-full": f"(complex_t)(from[j + {offset}], 0)",
        "c2r-full": f"load_mirrored(from, j + {offset}, {step.length})",
        "c2r-packed": f"load_packed(from, real_twiddles, j + {offset}, N)",
    }
%>\
${ways[step.load_fragment]}\
</%def>\
