/*
 * Fast Fourier transforms by work-groups in local memory: the form for GPUs. A launch does one
 * step, transforms of one length, or two steps of a longer transform, one after the other.
 *
 * A group does some transforms of n points, each by several items. In a pass, each item has every
 * so-many-th butterfly and keeps its points in registers; between two passes all points go through
 * local memory:
 *
 *     global --load--> registers --butterfly--> local --butterfly--> ... --store--> global
 *
 *     item of a transform    0    1    2   ..  items-1   0    1   ...
 *     butterfly j            0    1    2   ..            items     ...     of n / R in a pass
 *
 *     butterfly j reads positions j + i * n/R, i < R; multiplies by w^(i * (j mod S));
 *     writes positions (j / S) * S * R + (j mod S) + i * S    S = product of the radices before
 *
 * Of rows, neighbouring items read neighbouring positions; of columns, the same position of
 * neighbouring transforms. They write alike: with rows in and columns out, the exchange after the
 * first pass transposes. All items meet every barrier; loads and stores of transforms past the end
 * are guarded.
 *
 * Between two steps of a transform, the results are multiplied by twiddle factors, each of them the
 * product of two from tables of about sqrt(n) entries. Transforms of a length with large prime
 * factors are done as convolutions, as bluestein.cl.mako explains: one group does all of it
 * ("whole"), or the "first" step multiplies what it reads by the chirp, the last one there what it
 * writes by the transform of the chirp ("product"), and the "last" one what it writes by the chirp.
 *
 *     local_step.mako      what a group does
 *     local_loads.mako     from global memory into registers; real signals, too
 *     local_passes.mako    twiddle factors and butterflies
 *     local_exchange.mako  through local memory
 *     local_stores.mako    from registers to global memory
 *     fused_steps.mako     how groups of two steps share a launch
 *
 * Source: Stockham's autosort algorithm (W. T. Cochran et al., 1967) as given for GPUs by
 * N. K. Govindaraju et al., "High performance discrete Fourier transforms on graphics
 * processors", SC 2008; four steps after D. H. Bailey, "FFTs in external or hierarchical
 * memory", 1990.
 *
 * The host guarantees: `source` and `target` of a step do not overlap; element (b, o, p, c) of
 * either lies at offset + b * BATCH + o * OUTER + p * POSITION + c * LANE; there is a group for
 * every `transforms` lanes, these for each `o` < outer, and all of that for each `b`.
 *
 * ELEMENT      complex numbers: Element of core/kernels.py
 * INDEX_T      unsigned type that counts the elements of the arrays
 * INVERSE      whether components are swapped as they are read and written
 * LOCAL_REALS  real numbers of local memory
 * PTX          whether the device takes inline PTX
 * SUB_GROUP    items of a sub-group, 0: the compiler chooses
 * LOOK_AHEAD   of two steps: by how many parts the first one is ahead
 * MAX_POLLS    of two steps: how often a group reads the first one's counter before it does that step itself
 * STEPS        one or two `LocalStep` of opencl_lab/ops/fft/passes/local_schedule.py, whose groups have
 *              equally many items
 * CONDITIONAL  whether a launch before this one may have called it off
 */
<%page args="ELEMENT, INDEX_T, INVERSE, LOCAL_REALS, STEPS, PTX, SUB_GROUP, LOOK_AHEAD, MAX_POLLS,
             CONDITIONAL=False"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="condition" file="/common/condition.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="butterflies" file="butterflies.mako"/>\
<%namespace name="complex_numbers" file="complex.mako"/>\
<%namespace name="exchange" file="local_exchange.mako"/>\
<%namespace name="loads" file="local_loads.mako"/>\
<%namespace name="passes" file="local_passes.mako"/>\
<%namespace name="steps" file="local_step.mako"/>\
<%namespace name="fused_steps" file="fused_steps.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
% if len(STEPS) > 1:
${fence.declare(PTX=PTX)}\
% endif
<%
    fused = len(STEPS) > 1
    radices = [radix for step in STEPS for radix in step.group.schedule.radices]
    # What lies between two steps of a launch changes while it is read.
    between = ("target", "source") if fused else ("",)
    declared = condition.module.parameters(CONDITIONAL)
    declared += [line for s, step in enumerate(STEPS) for line in steps.module.kernel_parameters(s, step, between[s])]
    declared += ["volatile __global uint *counters", "const uint parts"] * fused
    arguments = [steps.module.arguments(s, step) for s, step in enumerate(STEPS)]
%>\
${complex_numbers.inlined()}\

${complex_numbers.declare(ELEMENT, INDEX_T)}\

${exchange.declare()}\

${loads.declare([step.load_fragment for step in STEPS])}\
${passes.declare(any(step.step_twiddle_bits for step in STEPS))}\
${butterflies.declare(radices, ELEMENT, ("complex_t", "real_t", "x", "y"))}\
% for s, step in enumerate(STEPS):
${steps.declare(s, step, INVERSE, between[s], PTX)}\

% endfor
__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(${STEPS[0].group.work_group}, 1, 1)))
void fft_local(
    ${",\n    ".join(declared)})
{
% if LOCAL_REALS:
    __local real_t space[${LOCAL_REALS}] __attribute__((aligned(16)));
% else:
    __local real_t *space = 0;
% endif
${condition.check(CONDITIONAL)}\
% if fused:
${fused_steps.run([step.tiles for step in STEPS], LOOK_AHEAD, MAX_POLLS, arguments, PTX)}\
% else:
    step_0((index_t)get_group_id(0), space, ${arguments[0]});
% endif
}
