/*
 * Transforms of real signals: what is done before or after complex ones.
 *
 * Even length n = 2h: neighbours are the components of one complex number, so that a row of n
 * reals is a row of h complex numbers z = x[even] + i x[odd] already, and
 *
 *     X[k] = E[k] + w^k O[k],   E = (Z[k] + conj(Z[h - k])) / 2,   O = (Z[k] - conj(Z[h - k])) / 2i
 *
 *     r2c_packed   Z / 2 of h numbers  ->  X of h + 1        w = exp(-2 pi i / n)
 *     c2r_packed   X of h + 1          ->  E + i O of h
 *
 * Numbers are halved when they are read (for r2c by the complex transform), as components of Z, and
 * of 2 (E + i O), may be too large where all results are not.
 *
 * Odd length n: rows are complex, with imaginary components of zero.
 *
 *     complex_rows   n reals           ->  z of n
 *     half_spectra   Z of n            ->  X of n / 2 + 1
 *     whole_spectra  X of n / 2 + 1    ->  Z of n, the rest by symmetry; or its conjugate
 *     real_rows      z of n            ->  n reals
 *
 * Source: J. W. Cooley, P. A. W. Lewis, P. D. Welch, "The fast Fourier transform algorithm:
 * programming considerations in the calculation of sine, cosine and Laplace transforms", 1970.
 * As NumPy does, the imaginary component of frequency 0, and of n / 2 if n is even, is taken for 0.
 *
 * The host guarantees: rows are contiguous; work-groups cover the frequencies or positions of
 * one row after the other. Real arrays are aligned to one real only.
 *
 * ELEMENT  complex numbers: Element of core/kernels.py
 * INDEX_T  unsigned type that counts the elements of the arrays
 * WG_SIZE  work-items in a work-group
 */
<%page args="ELEMENT, INDEX_T, WG_SIZE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="grid" file="grid.mako"/>\
<%namespace name="complex_numbers" file="complex.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
${complex_numbers.declare(ELEMENT, INDEX_T)}\
${grid.declare(WG_SIZE=WG_SIZE)}\
#define GROUP __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))

static inline complex_t conjugate(const complex_t a)
{
    return (complex_t)(a.x, -a.y);
}

/* Each item makes X[k] and X[h - k], for k up to h / 2, of the same two numbers. */
__kernel GROUP
void r2c_packed(__global const complex_t *restrict half_rows,
                __global complex_t *restrict spectrum,
                __global const complex_t *restrict twiddles,
                const index_t h)
{
    const index_t k = point_of(h / 2 + 1), row = row_of(h / 2 + 1);
    if (k <= h / 2) {
        const complex_t a = half_rows[row * h + k];
        const complex_t b = conjugate(half_rows[row * h + (k == 0 ? 0 : h - k)]);
        const complex_t product = times(twiddles[k], a - b), odd = (complex_t)(product.y, -product.x);
        spectrum[row * (h + 1) + k] = a + b + odd;
        if (2 * k != h)
            spectrum[row * (h + 1) + h - k] = conjugate(a + b - odd);
    }
}

__kernel GROUP
void c2r_packed(__global const complex_t *restrict spectrum,
                __global complex_t *restrict half_rows,
                __global const complex_t *restrict twiddles,
                const index_t h)
{
    const index_t k = point_of(h / 2 + 1), row = row_of(h / 2 + 1);
    if (k <= h / 2) {
        complex_t a = (real_t)0.5 * spectrum[row * (h + 1) + k];
        complex_t b = (real_t)0.5 * conjugate(spectrum[row * (h + 1) + h - k]);
        if (k == 0)
            a.y = b.y = 0;
        const complex_t odd = times(conjugate(twiddles[k]), a - b);
        half_rows[row * h + k] = a + b + (complex_t)(-odd.y, odd.x);
        if (k > 0 && 2 * k != h)
            half_rows[row * h + h - k] = conjugate(a + b) + (complex_t)(odd.y, odd.x);
    }
}

__kernel GROUP
void complex_rows(__global const real_t *restrict signal, __global complex_t *restrict rows, const index_t n)
{
    const index_t p = point_of(n), row = row_of(n);
    if (p < n)
        rows[row * n + p] = (complex_t)(signal[row * n + p], 0);
}

__kernel GROUP
void half_spectra(__global const complex_t *restrict rows, __global complex_t *restrict spectrum, const index_t n)
{
    const index_t bins = n / 2 + 1, k = point_of(bins), row = row_of(bins);
    if (k < bins) {
        const complex_t x = rows[row * n + k];
        spectrum[row * bins + k] = (complex_t)(x.x, k == 0 ? 0 : x.y);
    }
}

__kernel GROUP
void whole_spectra(__global const complex_t *restrict spectrum,
                   __global complex_t *restrict rows,
                   const index_t n,
                   const real_t sign)
{
    const index_t bins = n / 2 + 1, k = point_of(bins), row = row_of(bins);
    if (k < bins) {
        const complex_t x = spectrum[row * bins + k];
        rows[row * n + k] = (complex_t)(x.x, k == 0 ? 0 : sign * x.y);
        if (k > 0 && 2 * k < n)
            rows[row * n + n - k] = (complex_t)(x.x, -sign * x.y);
    }
}

__kernel GROUP
void real_rows(__global const complex_t *restrict rows, __global real_t *restrict signal, const index_t n)
{
    const index_t p = point_of(n), row = row_of(n);
    if (p < n)
        signal[row * n + p] = rows[row * n + p].x;
}
