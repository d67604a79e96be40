/*
 * Fast Fourier transforms by single work-items with explicit vectors: the form for CPUs. A group
 * is one item, so that there is no barrier. A launch does one step, transforms of one length, or the
 * two that a four-step transform has here. On a device with one compute unit a single item does all
 * steps of a plan one after the other, also those that are no transforms; and so do all items with
 * rows of their own:
 *
 *     fft_vector.cl.mako            the kernel: which item does which task
 *       common/work_stealing.mako     shares of the tasks, and the way from step to step
 *       vector_step.mako              one task of a step: load, passes, store; rows as vectors
 *         vector_passes.mako            one pass: loops, twiddle factors
 *       vector_pointwise.mako         one row of a step before, between or after transforms
 *       butterflies.mako              the transform of a few points in registers
 *       vectors.mako                  vectors of real and imaginary components
 *
 * How points lie in vectors, and which arrays passes read and write, is in VectorStep of
 * opencl_lab/ops/fft/passes/vector_step.py, with drawings; what a pass computes, in schedule.py there.
 *
 * No launch multiplies by the twiddle factors between the steps. The second step transforms its
 * column p, of as many as there are `lanes`, at frequencies k + p / lanes, so that in each pass the
 * power of w_(S R) is i * (j mod S + p / lanes): a factor by position times one by column.
 *
 * Source: Stockham's autosort algorithm (W. T. Cochran et al., 1967) as given by
 * N. K. Govindaraju et al., "High performance discrete Fourier transforms on graphics
 * processors", SC 2008; four steps after D. H. Bailey, "FFTs in external or hierarchical
 * memory", 1990.
 *
 * The host guarantees: `source` and `target` of a step are aligned to one real, and either do
 * not overlap or are one array, all columns without a tail, or of items that do all steps all columns
 * or rows in one step; element (o, p, c) of either lies at
 * o * OUTER + p * POSITION + c * LANE, where LANE is 1 for "columns" and POSITION is 1
 * for "rows"; `work` has the room of a step for each item; over the points, lanes count the
 * transforms. Of several steps, what work_stealing.mako says.
 *
 * ELEMENT       complex numbers: Element of core/kernels.py
 * INDEX_T       unsigned type that counts the elements of the arrays
 * VECTOR_WIDTH  lanes of a vector: 2, 4, 8 or 16
 * WORK          memory of the arrays: local, which all items of a unit use one after the other, so that
 *               it stays in its caches, or global where that is too small
 * INVERSE       whether components are swapped as they are read and written
 * STEPS         a VectorStep each; for items that do all steps also a PointwiseStep
 * BUFFERS       for items that do all steps: the numbers of the source and the target of each step
 *               among the buffers that the kernel takes; else None
 * OWN           for items that do all steps of one row after the other: how many numbers of each
 *               buffer an item has for itself, 0 for those of all rows, which only pointwise steps
 *               read and write; else None
 * MAX_POLLS     how often an item looks for others to finish a step
 * CONDITIONAL   whether a launch before this one may have called it off
 */
<%page args="ELEMENT, INDEX_T, VECTOR_WIDTH, WORK, INVERSE, STEPS, BUFFERS, OWN, MAX_POLLS, CONDITIONAL=False"/>\
<%namespace name="condition" file="/common/condition.mako"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="fetch" file="/common/fetch.mako"/>\
<%namespace name="stealing" file="/common/work_stealing.mako"/>\
<%namespace name="butterflies" file="butterflies.mako"/>\
<%namespace name="complex_numbers" file="complex.mako"/>\
<%namespace name="steps" file="vector_step.mako"/>\
<%namespace name="pointwise" file="vector_pointwise.mako"/>\
<%namespace name="vectors" file="vectors.mako"/>\
<%
    alone = BUFFERS is not None
    fused = len(STEPS) > 1 and not alone
    radices = [radix for step in STEPS for radix in step.radices]
    shared = ["volatile __global uint *counters"] * fused
    shared += ["__global points_t *restrict work"] * (WORK == "global")
    declared = condition.module.parameters(CONDITIONAL)
    declared += [line for s, step in enumerate(STEPS) for line in steps.module.kernel_parameters(s, step, alone)]
    if alone:
        declared += [f"__global complex_t *buffer_{b}" for b in range(max(map(max, BUFFERS)) + 1)]
%>\
${extensions.enable(fp64=ELEMENT.double)}\
${complex_numbers.inlined()}\
#define WORK __${WORK}

${complex_numbers.declare(ELEMENT, INDEX_T)}\

${vectors.declare(ELEMENT, VECTOR_WIDTH, INVERSE)}\

/* Twiddle factor number i of a table, for all lanes. */
INLINE points_t factor_at(__global const real_t *twiddles, const uint i)
{
    points_t w;
    w.re = twiddles[2 * i];
    w.im = twiddles[2 * i + 1];
    return w;
}

% if any(step.fetch != "none" for step in STEPS):
${fetch.declare()}\
% endif
${butterflies.declare(radices, ELEMENT, ("points_t", "vec_t", "re", "im"))}\
% for s, step in enumerate(STEPS):
${(steps if step.radices else pointwise).declare(s, step)}\

% endfor
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void fft_vector(
    ${",\n    ".join(declared + shared)})
{
    enum { ROOM = ${max(step.room for step in STEPS)} }; /* vectors of the arrays of an item */
% if WORK == "local":
    __local points_t space[ROOM];
% else:
    __global points_t *space = work + get_global_id(0) * ROOM;
% endif
${condition.check(CONDITIONAL)}\
% if OWN:
% for b, numbers in enumerate(OWN):
% if numbers:
    buffer_${b} += get_global_id(0) * ${numbers};
% endif
% endfor
<%stealing:split tasks="${steps.module.tasks(0, STEPS[0])}">\
    {
        const index_t row = task;
% for s, step in enumerate(STEPS):
% if step.radices:
        for (index_t task = 0; task < ${steps.module.tasks(s, step)}; ++task)
${steps.call(s, step, BUFFERS[s])}\
% else:
        {
            const index_t task = row;
${steps.call(s, step, BUFFERS[s])}\
        }
% endif
% endfor
    }
</%stealing:split>\
% elif alone:
## PoCL's code for a plain loop over all tasks took 1.5 times as long with vectors of 64 bytes.
% for s, step in enumerate(STEPS):
    {
<%stealing:split tasks="${steps.module.tasks(s, step)}">\
${steps.call(s, step, BUFFERS[s])}\
</%stealing:split>\
    }
% endfor
% elif not fused:
<%stealing:split tasks="${steps.module.tasks(0, STEPS[0])}">\
${steps.call(0, STEPS[0])}\
</%stealing:split>\
% else:
${stealing.begin()}\
% for s, step in enumerate(STEPS):
<%stealing:phase number="${s}" tasks="${steps.module.tasks(s, step)}" max_polls="${MAX_POLLS if s + 1 < len(STEPS) else None}">\
${steps.call(s, step)}\
</%stealing:phase>\
% endfor
${stealing.end(len(STEPS))}\
% endif
}
