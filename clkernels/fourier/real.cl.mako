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
 * Odd length n: two rows a, b share a complex transform of z = a + i b. Each is scaled first, by
 * the power of two that scales.cl.mako finds, so that the rounding errors of a large one do not
 * drown a small one; the scale of a row that is not finite is NaN, and so will be its result alone.
 *
 *     pair_pack    two rows of reals          ->  z of n
 *     pair_split   Z of n                     ->  A, B of n / 2 + 1
 *     pair_join    A, B of n / 2 + 1          ->  A + i B of n, the rest by symmetry
 *     pair_unpack  z of n                     ->  two rows of reals
 *
 * Source: J. W. Cooley, P. A. W. Lewis, P. D. Welch, "The fast Fourier transform algorithm:
 * programming considerations in the calculation of sine, cosine and Laplace transforms", 1970.
 * As NumPy does, the imaginary component of frequency 0, and of n / 2 if n is even, is taken for 0.
 *
 * The host guarantees: rows are contiguous; work-groups cover the frequencies or positions of
 * one row, or pair of rows, after the other; of the last pair b may be missing. Real
 * arrays are aligned to one real only.
 *
 * ELEMENT  complex numbers: Element of core/kernels.py
 * INDEX_T  unsigned type that counts the elements of the arrays
 * WG_SIZE  work-items in a work-group
 * ALONE    whether rows share no transform (even length, or one row) and need no scale
 */
<%page args="ELEMENT, INDEX_T, WG_SIZE, ALONE"/>\
<%namespace name="grid" file="grid.mako"/>\
${grid.declare(ELEMENT, INDEX_T, WG_SIZE)}\
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
        complex_t a = ONE_HALF * spectrum[row * (h + 1) + k];
        complex_t b = ONE_HALF * conjugate(spectrum[row * (h + 1) + h - k]);
        if (k == 0)
            a.y = b.y = 0;
        const complex_t odd = times(conjugate(twiddles[k]), a - b);
        half_rows[row * h + k] = a + b + (complex_t)(-odd.y, odd.x);
        if (k > 0 && 2 * k != h)
            half_rows[row * h + h - k] = conjugate(a + b) + (complex_t)(odd.y, odd.x);
    }
}

<% scales = "" if ALONE else " __global const real_t *restrict scales," %>\
% if ALONE:
#define SCALED(type, row, x) (x)
#define UNSCALED(row, x) (x)
% else:
#define SCALED(type, row, x) (isfinite(scales[row]) ? (x) * scales[row] : (type)(0))
#define UNSCALED(row, x) ((x) / scales[row])
% endif

__kernel GROUP
void pair_pack(__global const real_t *restrict signal,
               __global complex_t *restrict rows,${scales}
               const index_t n,
               const index_t count)
{
    const index_t p = point_of(n), pair = row_of(n);
    if (p < n) {
        const index_t a = 2 * pair, b = a + 1;
        rows[pair * n + p] = (complex_t)(SCALED(real_t, a, signal[a * n + p]),
                                         b < count ? SCALED(real_t, b, signal[b * n + p]) : 0);
    }
}

__kernel GROUP
void pair_split(__global const complex_t *restrict rows,
                __global complex_t *restrict spectrum,${scales}
                const index_t n,
                const index_t count)
{
    const index_t k = point_of(n / 2 + 1), pair = row_of(n / 2 + 1), bins = n / 2 + 1;
    if (k < bins) {
        /* Halved first: the sum of both may be too large for its type. */
        const complex_t a = ONE_HALF * rows[pair * n + k];
        const complex_t b = ONE_HALF * conjugate(rows[pair * n + (k == 0 ? 0 : n - k)]);
        const complex_t odd = a - b;
        spectrum[2 * pair * bins + k] = UNSCALED(2 * pair, a + b);
        if (2 * pair + 1 < count)
            spectrum[(2 * pair + 1) * bins + k] =
                UNSCALED(2 * pair + 1, (complex_t)(odd.y, -odd.x));
    }
}

__kernel GROUP
void pair_join(__global const complex_t *restrict spectrum,
               __global complex_t *restrict rows,${scales}
               const index_t n,
               const index_t count)
{
    const index_t k = point_of(n / 2 + 1), pair = row_of(n / 2 + 1), bins = n / 2 + 1;
    if (k < bins) {
        complex_t a = SCALED(complex_t, 2 * pair, spectrum[2 * pair * bins + k]), b = 0;
        if (2 * pair + 1 < count)
            b = SCALED(complex_t, 2 * pair + 1, spectrum[(2 * pair + 1) * bins + k]);
        if (k == 0)
            a.y = b.y = 0;
        rows[pair * n + k] = a + (complex_t)(-b.y, b.x);
        if (k > 0)
            rows[pair * n + n - k] = conjugate(a) + (complex_t)(b.y, b.x);
    }
}

__kernel GROUP
void pair_unpack(__global const complex_t *restrict rows,
                 __global real_t *restrict signal,${scales}
                 const index_t n,
                 const index_t count)
{
    const index_t p = point_of(n), pair = row_of(n);
    if (p < n) {
        const complex_t x = rows[pair * n + p];
        signal[2 * pair * n + p] = UNSCALED(2 * pair, x.x);
        if (2 * pair + 1 < count)
            signal[(2 * pair + 1) * n + p] = UNSCALED(2 * pair + 1, x.y);
    }
}
