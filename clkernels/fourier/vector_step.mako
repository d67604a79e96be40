## One step of transforms by single items with explicit vectors, as a function that does one task: a
## block of transforms (vectors over the batch), or one transform (vectors over the points).
##
##     user's columns -- opening pass --+                       +-- closing pass --> user's columns
##                                      +--> middle passes -----+
##     user's rows ----- load rows -----+    vector by vector   +-- store rows ----> user's rows
##
## `first` is the first transform of the block, out of `lanes` that may be neighbours in memory;
## `fresh` is the first lane of a block that it stores: more than 0 only in the last one, which begins
## earlier where it would not be full, so that its first lanes belong to the block before.
##
##   function(..)           the function
##   call(..)               its call
##   tasks(..)              how many tasks there are, in OpenCL C
##   kernel_parameters(..)  what the kernel takes of it
##
## number  of the step in its kernel
## step    the VectorStep
## kernel  what all steps share, see fft_vector.cl.mako
<%namespace name="loads" file="vector_loads.mako"/>\
<%namespace name="passes" file="vector_passes.mako"/>\
<%namespace name="stores" file="vector_stores.mako"/>\
<%!
    STRIDES = [f"{side}_{axis}" for side in ("source", "target") for axis in ("outer", "position", "lane")]

    def blocks(step, lanes):
        """Return how many tasks so many lanes are, in OpenCL C."""
        each = step.vectors.transforms
        return lanes if each == 1 else f"({lanes} + {each - 1}) / {each}"

    def tasks(number, step):
        """Return how many tasks a step has, by the kernel's parameters."""
        count = blocks(step, f"lanes_{number}")
        return f"outer_{number} * " + (f"({count})" if "/" in count else count)

    def parameters(step, table="*", counts=("lanes",)):
        """Return the declarations of what a task needs to know."""
        return [
            "__global const complex_t *source",
            "__global complex_t *target",
            f"__global const real_t {table}twiddles",
            *[f"__global const vec_t {table}step_twiddles"] * step.step_twiddles,
            *[f"const index_t {name}" for name in (*counts, *STRIDES)],
            "const real_t scale",
        ]

    def kernel_parameters(number, step):
        """Return the same for the kernel, which counts tasks; nothing else points to its tables."""
        declared = parameters(step, "*restrict ", ("outer", "lanes"))
        return [f"{one}_{number}" for one in declared]
%>\
<%def name="call(number, step)">\
step_${number}(task, space, ${", ".join(f"{one.split()[-1].lstrip('*')}_{number}" for one in parameters(step))});
</%def>\
<%def name="function(number, step, kernel)">\
<%
    vectors, each = step.vectors, step.vectors.transforms
    plus_lanes = f" + v * {vectors.width}" if vectors.block > 1 else ""
    overlapping = vectors.tail == "overlapping"
    rows_in, rows_out = step.load == "rows", step.store == "rows"
%>\
/* Do one task of step ${number}: transform a block of lanes. */
static inline __attribute__((always_inline)) void step_${number}(
    const index_t task,
    __${kernel.work} vec_t *work,
    ${",\n    ".join(parameters(step))})
{
    const index_t blocks = ${blocks(step, "lanes")};
    const index_t block = task % blocks;
% if vectors.over == "points":
    const index_t first = block;
% elif overlapping:
    const index_t first = min(block * ${each}, lanes - ${each});
    const uint fresh = (uint)(block * ${each} - first); /* lanes before belong to the block before */
% else:
    const index_t first = block * ${each};
% endif
    __global const complex_t *from =
        source + (task / blocks * source_outer + first * source_lane);
% if step.fetch != "none":
    /* The next block; there is none after the last one, but fetching does not fault. */
    const index_t ahead = (task + 1) % blocks * ${each};
    __global const complex_t *next = source
        + ((task + 1) / blocks * source_outer
           + ${f"min(ahead, lanes - {each})" if overlapping else "ahead"} * source_lane);
% endif
    __global const real_t *reals_from = (__global const real_t *)from;
    __global complex_t *to = target + (task / blocks * target_outer + first * target_lane);

% if vectors.block == 1:
    const uint v = 0;
% endif
% for one in step.opening:
${passes.one_pass(step, one, kernel, plus_lanes)}\
% endfor
% if step.middle or rows_in or rows_out:
% if vectors.block > 1:
    for (uint v = 0; v < ${vectors.block}; ++v)
% endif
    {
${passes.arrays(step, kernel)}\
% if rows_in:
        /* Load rows, V positions of each at a time. */
${getattr(loads, step.load_fragment)(step, plus_lanes, kernel.work, kernel.parts)}\
% endif
% for one in step.middle:
${passes.one_pass(step, one, kernel, plus_lanes)}\
% endfor
% if rows_out:
        /* Store rows. */
${getattr(stores, step.store_fragment)(step, plus_lanes, f"work_{step.passes[-1].writes}", kernel.work, kernel.parts)}\
% endif
    }
% endif
% for one in step.closing:
${passes.one_pass(step, one, kernel, plus_lanes)}\
% endfor
}
</%def>\
