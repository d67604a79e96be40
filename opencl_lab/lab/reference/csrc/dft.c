/*
 * Discrete Fourier transform by its definition:
 *
 *     result[b][k] = scale * sum over j of signal[b][j] * exp(-+2 pi i j k / n)
 *
 * Rows are contiguous, complex numbers are pairs of real and imaginary part; `inverse` makes
 * the sign of the exponent positive. Roots come from a table, numbered j * k modulo n
 * by integers, and sums are formed in double precision. Each function returns 0, or an
 * errno.
 *
 * Where one side is real, the other one has the first n / 2 + 1 frequencies of its n, as the
 * others mirror them: of a spectrum that is transformed back, each stands for two numbers,
 * but frequency 0, and n / 2 if n is even, whose imaginary parts are taken for 0.
 *
 *   dft_seq   one number of the result after the other
 *   dft_omp   numbers of the result shared among threads
 *
 * REAL_T                     type of the parts
 * SIGNAL_PARTS, RESULT_PARTS numbers of these that make an element: 1 where it is real, or 2
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "export.h"

#ifndef REAL_T
#define REAL_T float
#endif
#ifndef SIGNAL_PARTS
#define SIGNAL_PARTS 2
#endif
#ifndef RESULT_PARTS
#define RESULT_PARTS 2
#endif

#define HALF_OF(n) ((n) ? (n) / 2 + 1 : 0)
#define SAMPLES(n) (RESULT_PARTS == 2 ? (n) : HALF_OF(n)) /* elements of a row of the signal */
#define POINTS(n) (SIGNAL_PARTS == 2 ? (n) : HALF_OF(n))  /* and of the result */

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

/* Find element i of all results. */
static void element(const REAL_T *signal, REAL_T *result, const double *roots, int64_t n,
                    int64_t i, double scale)
{
    const REAL_T *row = signal + SIGNAL_PARTS * (i / POINTS(n)) * SAMPLES(n);
    const int64_t k = i % POINTS(n);
    double re = 0, im = 0;
    for (int64_t j = 0, power = 0; j < SAMPLES(n); j++) {
        const double c = roots[2 * power], s = roots[2 * power + 1];
        const int twice = RESULT_PARTS == 1 && j != 0 && 2 * j != n;
        const double x = (twice ? 2 : 1) * (double)row[SIGNAL_PARTS * j];
        re += x * c;
        im += x * s;
        if (SIGNAL_PARTS == 2 && (RESULT_PARTS == 2 || twice)) {
            const double y = (twice ? 2 : 1) * (double)row[SIGNAL_PARTS * j + 1];
            re -= y * s;
            im += y * c;
        }
        power += k;
        power -= power >= n ? n : 0;
    }
    result[RESULT_PARTS * i] = (REAL_T)(scale * re);
    if (RESULT_PARTS == 2)
        result[RESULT_PARTS * i + 1] = (REAL_T)(scale * im);
}

EXPORT int dft_seq(const REAL_T *signal, REAL_T *result, int64_t n, int64_t batch, int64_t inverse,
                   double scale)
{
    double *roots = make_roots(n, inverse);
    if (!roots)
        return ENOMEM;
    for (int64_t i = 0; i < POINTS(n) * batch; i++)
        element(signal, result, roots, n, i, scale);
    free(roots);
    return 0;
}

EXPORT int dft_omp(const REAL_T *signal, REAL_T *result, int64_t n, int64_t batch, int64_t inverse,
                   double scale, int64_t threads)
{
    if (threads < 1)
        return EINVAL;
    double *roots = make_roots(n, inverse);
    if (!roots)
        return ENOMEM;
    const int64_t all = POINTS(n) * batch;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads((int)threads)
#endif
    for (int64_t i = 0; i < all; i++)
        element(signal, result, roots, n, i, scale);
    free(roots);
    return 0;
}
