/*
 * Discrete Fourier transform by its definition:
 *
 *     spectrum[b][k] = scale * sum over j of signal[b][j] * exp(-+2 pi i j k / n)
 *
 * Rows are contiguous, numbers are pairs of real and imaginary part; `inverse` makes
 * the sign of the exponent positive. Roots come from a table, numbered j * k modulo n
 * by integers, and sums are formed in double precision. Each function returns 0, or an
 * errno.
 *
 *   dft_seq   one frequency after the other
 *   dft_omp   frequencies shared among threads
 *
 * REAL_T   type of the parts
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef REAL_T
#define REAL_T float
#endif

static const double TWO_PI = 6.283185307179586476925;

/* Return the n roots of unity as pairs, to be freed, or NULL. */
static double *make_roots(int64_t n, int64_t inverse)
{
    double *roots = malloc((n ? n : 1) * 2 * sizeof *roots);
    if (!roots)
        return NULL;
    for (int64_t e = 0; e < n; e++) {
        /* The second half of the circle from the first one: small angles are more exact. */
        const int64_t near = e > n - e ? n - e : e;
        const double angle = TWO_PI * (double)near / (double)n;
        roots[2 * e] = cos(angle);
        roots[2 * e + 1] = (near == e) == (inverse != 0) ? sin(angle) : -sin(angle);
    }
    return roots;
}

static void frequency(const REAL_T *signal, REAL_T *result, const double *roots, int64_t n,
                      int64_t k, double scale)
{
    double re = 0, im = 0;
    for (int64_t j = 0, power = 0; j < n; j++) {
        const double x = signal[2 * j], y = signal[2 * j + 1];
        const double c = roots[2 * power], s = roots[2 * power + 1];
        re += x * c - y * s;
        im += x * s + y * c;
        power += k;
        power -= power >= n ? n : 0;
    }
    result[0] = (REAL_T)(scale * re);
    result[1] = (REAL_T)(scale * im);
}

int dft_seq(const REAL_T *signal, REAL_T *spectrum, int64_t n, int64_t batch, int64_t inverse,
            double scale)
{
    double *roots = make_roots(n, inverse);
    if (!roots)
        return ENOMEM;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t k = 0; k < n; k++)
            frequency(signal + 2 * b * n, spectrum + 2 * (b * n + k), roots, n, k, scale);
    free(roots);
    return 0;
}

int dft_omp(const REAL_T *signal, REAL_T *spectrum, int64_t n, int64_t batch, int64_t inverse,
            double scale, int64_t threads)
{
    if (threads < 1)
        return EINVAL;
    double *roots = make_roots(n, inverse);
    if (!roots)
        return ENOMEM;
    const int64_t all = n * batch;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads((int)threads)
#endif
    for (int64_t i = 0; i < all; i++)
        frequency(signal + 2 * (i / n) * n, spectrum + 2 * i, roots, n, i % n, scale);
    free(roots);
    return 0;
}
