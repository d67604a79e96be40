## One step of transforms by single items with explicit vectors, as a function that does one task: a
## block of transforms (vectors over the batch), or one transform (vectors over the points).
##
##     user's columns -- opening pass --+                       +-- closing pass --> user's columns
##                                      +--> middle passes -----+
##     user's rows ----- load rows -----+    vector by vector   +-- store rows ----> user's rows
##
##   declare(step_index, step)            step_0 or step_1, the function
##   call(step_index, step, buffers)      its call for one `task`
##   tasks(step_index, step)              how many tasks there are, in OpenCL C
##   kernel_parameters(step_index, step)  what the kernel takes of it
##
## All but `declare` are also for the PointwiseStep of vector_pointwise.mako.
##
## step_index  place of the step in its kernel
## step        the VectorStep
## buffers     numbers of the kernel's buffers that it reads and writes; None: parameters of its own
<%namespace name="passes" file="vector_passes.mako"/>\
<%!
    STRIDES = [f"{side}_{axis}" for side in ("source", "target") for axis in ("outer", "position", "lane")]

    def tasks(step_index, step):
        """Return how many tasks a step has, by the kernel's parameters."""
        each = step.vectors.transforms
        blocks = f"lanes_{step_index}" if each == 1 else f"((lanes_{step_index} + {each - 1}) / {each})"
        return f"outer_{step_index} * {blocks}"

    def parameters(step, table="*", counts=("lanes",)):
        """Return the declarations of what a task needs to know."""
        factor_t = "points_t" if step.vectors.over == "points" else "real_t"
        return [
            "__global const complex_t *source",
            "__global complex_t *target",
            f"__global const {factor_t} {table}twiddles",
            *[f"__global const points_t {table}step_twiddles"] * step.step_twiddles,
            *[f"const index_t {name}" for name in (*counts, *STRIDES, *step.sizes)],
            "const real_t scale",
        ]

    def kernel_parameters(step_index, step, named_buffers=False):
        """Return the same for the kernel, which counts tasks; nothing else points to its tables.

        With named buffers, those that are read and written are parameters of their own.
        """
        declared = parameters(step, "*restrict ", ("outer", "lanes"))[2 * named_buffers :]
        return [f"{parameter}_{step_index}" for parameter in declared]

    def arguments(step_index, step, buffers):
        names = [f"{parameter.split()[-1].lstrip('*')}_{step_index}" for parameter in parameters(step)]
        return names if buffers is None else [*(f"buffer_{b}" for b in buffers), *names[2:]]
%>\
<%def name="call(step_index, step, buffers=None)">\
step_${step_index}(task, space, ${", ".join(arguments(step_index, step, buffers))});
</%def>\
<%def name="signature(step_index, step)">\
INLINE void step_${step_index}(
    const index_t task,
    WORK points_t *work,
    ${",\n    ".join(parameters(step))})
</%def>\
<%def name="declare(step_index, step)">\
<% vectors = step.vectors %>\
/* Do one task of step ${step_index}: `first` is the first of its transforms. */
${signature(step_index, step)}\
{
    enum {
        N = ${step.n}, /* points of a transform */
        BLOCK = ${vectors.block}, /* vectors of a task */
        TRANSFORMS = ${vectors.transforms}, /* of a task */
        LANES = ${vectors.active_lanes}, /* of a vector that have a transform */
        ARRAY = ${step.array}, /* vectors from one array to the next */
        CHAINED = ${int(step.chained)}, /* whether a vector's array 1 is array 0 of the one before it */
        SCALED = ${int(step.scaled)} /* whether results are multiplied by `scale` */
    };
    const index_t blocks = (lanes + (TRANSFORMS - 1)) / TRANSFORMS;
    const index_t block = task % blocks, outer = task / blocks;
% if vectors.tail == "overlapping":
    const index_t first = min(block * TRANSFORMS, lanes - TRANSFORMS);
% else:
    const index_t first = block * TRANSFORMS;
% endif
    const uint fresh = (uint)(block * TRANSFORMS - first); /* lanes before belong to the block before */
    __global const complex_t *from = source + (outer * source_outer + first * source_lane);
    __global complex_t *to = target + (outer * target_outer + first * target_lane);
% if step.fetch != "none":
    /* The next block; there is none after the last one, but fetching does not fault. */
    const index_t ahead = (task + 1) % blocks * TRANSFORMS;
    __global const complex_t *next = source
        + ((task + 1) / blocks * source_outer
           + ${"min(ahead, lanes - TRANSFORMS)" if vectors.tail == "overlapping" else "ahead"} * source_lane);
% endif

% for pass_ in step.opening:
${passes.butterflies(step, pass_)}\
% endfor
% if step.middle or "rows" in (step.load, step.store):
    for (uint v = 0; v < BLOCK; ++v) {
${passes.arrays(step)}\
% if step.load == "rows":
${load_rows(step)}\
% endif
% for pass_ in step.middle:
${passes.butterflies(step, pass_)}\
% endfor
% if step.store == "rows":
${store_rows(step, f"work_{step.passes[-1].writes}")}\
% endif
    }
% endif
% for pass_ in step.closing:
${passes.butterflies(step, pass_)}\
% endfor
}
</%def>\
## Rows of the user's memory as vectors over the batch, and back:
##
##     row 0    a0 a1 a2 a3 ..           a0   a1   a2   a3
##     row 1    b0 b1 b2 b3 ..    <->    b0   b1   b2   b3  ..        V positions of V rows at a time
##     row 2    c0 c1 c2 c3 ..           c0   c1   c2   c3
##     row 3    d0 d1 d2 d3 ..           d0   d1   d2   d3
##
## The last V positions begin earlier where n is no multiple of V. Where rows are shorter than a vector,
## or fewer than its lanes, they go number by number.
<%def name="load_rows(step)">\
        /* Load rows. */
% if step.whole_rows:
        for (uint p = 0; p < N; p += V) {
            const uint at = N % V == 0 ? p : min(p, (uint)(N - V));
            points_t x[V];
#pragma unroll
            for (uint l = 0; l < V; ++l)
                x[l] = load_lanes(from + (lane + l) * source_lane + at);
            transpose(x);
#pragma unroll
            for (uint l = 0; l < V; ++l)
                work_0[at + l] = x[l];
        }
% else:
        for (uint p = 0; p < N; ++p)
            work_0[p] = gather_lanes(from + lane * source_lane + p, source_lane, LANES);
% endif
</%def>\
<%def name="store_rows(step, array)">\
        /* Store rows. */
% if step.whole_rows:
        for (uint p = 0; p < N; p += V) {
            const uint at = N % V == 0 ? p : min(p, (uint)(N - V));
            points_t x[V];
#pragma unroll
            for (uint l = 0; l < V; ++l)
                x[l] = SCALED ? scaled(${array}[at + l], scale) : ${array}[at + l];
            transpose(x);
#pragma unroll
            for (uint l = 0; l < V; ++l)
                if (lane + l >= fresh)
                    store_lanes(x[l], to + (lane + l) * target_lane + at);
        }
% else:
        for (uint p = 0; p < N; ++p) {
            const points_t x = SCALED ? scaled(${array}[p], scale) : ${array}[p];
            scatter_lanes(x, to + lane * target_lane + p, target_lane, lane, fresh, LANES);
        }
% endif
</%def>\
