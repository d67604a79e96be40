/*
 * Fast Fourier transforms of rows by one work-item with vectors over the points, of all lengths whose
 * passes have the radices of this program: lengths and strides are numbers, so that another length
 * needs no other program. It does what fft_vector.cl.mako does for one such step, with the same bits.
 *
 *     row of the user -- first pass, transposed --> array 0 -- pass --> array 1 -- .. --> row of the user
 *
 * Source: as fft_vector.cl.mako, with the drawings of opencl_lab/ops/fft/passes/vector_step.py.
 *
 * The host guarantees: one item; two arrays of n / VECTOR_WIDTH vectors in `work`; `source` and `target`
 * do not overlap and are aligned to one real; passes as `Pass` of row_passes.py, of which the first has
 * radix VECTOR_WIDTH and the last writes the user's row.
 *
 * ELEMENT       complex numbers: Element of core/kernels.py
 * INDEX_T       unsigned type that counts the elements of the arrays
 * VECTOR_WIDTH  lanes of a vector: 2, 4, 8 or 16
 * INVERSE       whether components are swapped as they are read and written
 * RADICES       of all passes but the first
 * STEPS         the VectorStep of this launch, for readers: the program is the same for all
 */
<%page args="ELEMENT, INDEX_T, VECTOR_WIDTH, INVERSE, RADICES, STEPS"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="butterflies" file="butterflies.mako"/>\
<%namespace name="complex_numbers" file="complex.mako"/>\
<%namespace name="vectors" file="vectors.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
${complex_numbers.inlined()}\
/* One copy of each pass: what is compiled once takes the least time to build. */
#define CALLED static __attribute__((noinline))

${complex_numbers.declare(ELEMENT, INDEX_T)}\

${vectors.declare(ELEMENT, VECTOR_WIDTH, INVERSE)}\

${butterflies.declare((VECTOR_WIDTH, *RADICES), ELEMENT, ("points_t", "vec_t", "re", "im"))}\
/* Counted in vectors: see VectorPass; array 2 is the user's row. */
typedef struct {
    uint radix, run, runs, spacing, reads, writes, factors;
} pass_t;

/* The results of a butterfly are neighbours, so that those of V butterflies are transposed. */
CALLED void first_pass(__global const pass_t *pass, __local points_t *work, __global const complex_t *from)
{
    const uint butterflies = pass->runs;
    for (uint j = 0; j < butterflies; j += V) {
        const uint at = min(j, butterflies - V);
        points_t x[V];
#pragma unroll
        for (uint i = 0; i < V; ++i)
            x[i] = load_lanes(from + at + i * butterflies);
        butterfly_${VECTOR_WIDTH}(x);
        transpose(x);
#pragma unroll
        for (uint l = 0; l < V; ++l)
            work[at + l] = x[l];
    }
}

% for radix in RADICES:
/* Do a pass of radix ${radix}; vector_passes.mako says what it reads and writes. */
CALLED void pass_${radix}(
    __global const pass_t *pass,
    __local points_t *work,
    const uint array,
    __global complex_t *to,
    __global const points_t *factors,
    const bool scales,
    const real_t scale)
{
    enum { R = ${radix}, USER = 2 };
    const uint run = pass->run, runs = pass->runs, spacing = pass->spacing;
    const bool to_user = pass->writes == USER;
    __local const points_t *read = work + pass->reads * array;
    __local points_t *written = work + pass->writes * array;
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
            } else {
#pragma unroll
                for (uint i = 0; i < R; ++i)
                    written[at + i * run] = x[i];
            }
        }
    }
}

% endfor
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void fft_rows(
    __global const complex_t *source,
    __global complex_t *target,
    __global const pass_t *restrict passes,
    __global const points_t *restrict factors,
    const uint count,
    const uint n,
    const index_t rows,
    const real_t scale,
    __local points_t *restrict work)
{
    for (index_t row = 0; row < rows; ++row) {
        __global complex_t *to = target + row * n;
        first_pass(passes, work, source + row * n);
        for (uint p = 1; p < count; ++p) {
            const bool scales = p + 1 == count && scale != 1;
            switch (passes[p].radix) {
% for radix in RADICES:
            case ${radix}:
                pass_${radix}(passes + p, work, n / V, to, factors, scales, scale);
                break;
% endfor
            }
        }
    }
}
