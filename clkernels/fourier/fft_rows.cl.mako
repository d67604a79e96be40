/*
 * Fast Fourier transforms of rows by one work-item with vectors, of all lengths whose passes have the
 * radices of this program: lengths, strides and passes are numbers, so that another length needs no
 * other program. Steps follow each other as in fft_vector.cl.mako, with the same bits:
 *
 *     complex rows      transform
 *     real rows         transform | halves, or halves | transform
 *     any length        chirp_in | transform | chirp_multiply | transform | chirp_out
 *
 * A transform has vectors over the points:
 *
 *     row -- first pass, transposed --> array 0 -- pass --> array 1 -- .. --> row
 *
 * Source: as fft_vector.cl.mako, with the drawings of opencl_lab/ops/fft/passes/vector_step.py.
 *
 * The host guarantees: one item; two arrays of the longest transform in `space`; buffers are aligned to
 * one real; source and target of a step are one array or do not overlap; passes as `pass_numbers` of
 * row_passes.py, of which the first has radix VECTOR_WIDTH and the last writes the row.
 *
 * ELEMENT       complex numbers: Element of core/kernels.py
 * INDEX_T       unsigned type that counts the elements of the arrays
 * VECTOR_WIDTH  lanes of a vector: 2, 4, 8 or 16
 * INVERSE       whether components are swapped as they are read and written
 * RADICES       of all passes but the first
 * ROWS          the steps: RowsStep of row_passes.py, and PointwiseStep of any length
 * BUFFERS       the numbers of the source and the target of each step among the buffers
 * STEPS         the steps of this launch, for readers: the program is the same for all
 */
<%page args="ELEMENT, INDEX_T, VECTOR_WIDTH, INVERSE, RADICES, ROWS, BUFFERS, STEPS"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="butterflies" file="butterflies.mako"/>\
<%namespace name="complex_numbers" file="complex.mako"/>\
<%namespace name="vector_steps" file="vector_step.mako"/>\
<%namespace name="pointwise" file="vector_pointwise.mako"/>\
<%namespace name="vectors" file="vectors.mako"/>\
<%!
    def place(s, beyond):
        """Return where row `task` of a transform begins."""
        return f"task * (points_{s} + {beyond})"
%>\
<%
    transforms = [step for step in ROWS if step.transforms]
    halved = sorted({step.halved for step in transforms})
    declared = [f"__global complex_t *buffer_{b}" for b in range(max(map(max, BUFFERS)) + 1)]
    for s, step in enumerate(ROWS):
        declared += (
            [
                f"__global const pass_t *restrict passes_{s}",
                f"__global const points_t *restrict twiddles_{s}",
                f"const index_t count_{s}",
                f"const index_t points_{s}",
                f"const real_t scale_{s}",
            ]
            if step.transforms
            else vector_steps.module.kernel_parameters(s, step, True)
        )
%>\
${extensions.enable(fp64=ELEMENT.double)}\
${complex_numbers.inlined()}\
/* One copy of each pass: what is compiled once takes the least time to build. */
#define CALLED static __attribute__((noinline))
#define WORK __local

${complex_numbers.declare(ELEMENT, INDEX_T)}\

${vectors.declare(ELEMENT, VECTOR_WIDTH, INVERSE)}\

${butterflies.declare((VECTOR_WIDTH, *RADICES), ELEMENT, ("points_t", "vec_t", "re", "im"))}\
/* Counted in vectors: see VectorPass; array 2 is the user's row. */
typedef struct {
    uint radix, run, runs, spacing, reads, writes, factors;
} pass_t;

% for each in halved:
/* The results of a butterfly are neighbours, so that those of V butterflies are transposed. */
CALLED void first_pass${"_halved" * each}(
    __global const pass_t *pass, __local points_t *work, __global const complex_t *from)
{
    const uint butterflies = pass->runs;
    for (uint j = 0; j < butterflies; j += V) {
        const uint at = min(j, butterflies - V);
        points_t x[V];
#pragma unroll
        for (uint i = 0; i < V; ++i)
            x[i] = load_lanes(from + at + i * butterflies);
% if each:
#pragma unroll
        for (uint i = 0; i < V; ++i)
            x[i] = scaled(x[i], ONE_HALF);
% endif
        butterfly_${VECTOR_WIDTH}(x);
        transpose(x);
#pragma unroll
        for (uint l = 0; l < V; ++l)
            work[at + l] = x[l];
    }
}

% endfor
% for radix in RADICES:
/* Do a pass of radix ${radix}; vector_passes.mako says what it reads and writes. */
CALLED void pass_${radix}(
    __global const pass_t *pass,
    __local points_t *work,
    const uint array,
    __global complex_t *to,
    const bool scales,
    const real_t scale,
    __global const points_t *factors)
{
    enum { R = ${radix}, USER = 2 };
    const uint run = pass->run, runs = pass->runs, spacing = pass->spacing;
    __local const points_t *read = work + pass->reads * array;
    __local points_t *written = work + pass->writes * array;
    const bool to_user = pass->writes == USER;
    factors += pass->factors;
    for (uint k = 0; k < run; ++k) {
        points_t w[R]; /* twiddle factors */
#pragma unroll
        for (uint i = 1; i < R; ++i)
            w[i] = factors[k * (R - 1) + i - 1];
        for (uint r = 0; r < runs; ++r) {
            const uint j = r * run + k, at = r * run * R + k;
            points_t x[R];
            x[0] = read[j];
#pragma unroll
            for (uint i = 1; i < R; ++i)
                x[i] = multiplied(read[j + i * spacing], w[i]);
            butterfly_${radix}(x);
            if (scales) {
#pragma unroll
                for (uint i = 0; i < R; ++i)
                    x[i] = scaled(x[i], scale);
            }
            if (to_user) {
#pragma unroll
                for (uint i = 0; i < R; ++i)
                    store_lanes(x[i], to + (at + i * run) * V);
                continue;
            }
#pragma unroll
            for (uint i = 0; i < R; ++i)
                written[at + i * run] = x[i];
        }
    }
}

% endfor
% for s, step in enumerate(ROWS):
% if not step.transforms:
${pointwise.declare(s, step)}\

% endif
% endfor
## Step s, a transform, of row `task`.
<%def name="transform(s, step)">\
<% source, target = BUFFERS[s] %>\
        {
            __global complex_t *to = buffer_${target} + ${place(s, step.target)};
            first_pass${"_halved" * step.halved}(passes_${s}, space, buffer_${source} + ${place(s, step.source)});
            for (uint p = 1; p < count_${s}; ++p) {
                const bool scales = p + 1 == count_${s} && scale_${s} != 1;
                switch (passes_${s}[p].radix) {
% for radix in RADICES:
                case ${radix}:
                    pass_${radix}(passes_${s} + p, space, points_${s} / V, to, scales, scale_${s}, twiddles_${s});
                    break;
% endfor
                }
            }
        }
</%def>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void fft_rows(
    ${",\n    ".join(declared)},
    const index_t rows,
    __local points_t *restrict space)
{
    for (index_t task = 0; task < rows; ++task) {
% for s, step in enumerate(ROWS):
% if step.transforms:
${transform(s, step)}\
% else:
        ${vector_steps.call(s, step, BUFFERS[s])}\
% endif
% endfor
    }
}
