/*
 * Transforms of any length n as convolutions: what is done before, between and after
 * two transforms of a smooth length m >= 2n - 1.
 *
 *     j k = (j^2 + k^2 - (k - j)^2) / 2, so with the chirp w[j] = exp(-+ pi i j^2 / n)
 *
 *     X[k] = w[k] * sum over j of (x[j] w[j]) * conj(w)[k - j]
 *
 *     chirp_in         | x w                 | zeros                  |   rows of m
 *     transform, chirp_multiply by the transform of conj(w), transform again
 *     chirp_out        | X / w               | not used               |
 *
 * The second transform is the inverse of the first: real and imaginary components are swapped
 * before and after it, so that one program does both.
 *
 * Source: L. I. Bluestein, "A linear filtering approach to the computation of discrete Fourier
 * transform", 1970. The power j^2 is reduced modulo 2n exactly, by the host.
 *
 * The host guarantees: element (o, p, c) of the user's side lies at o * OUTER + p * POSITION +
 * c * LANE; row (o, c) of `rows` is row o * lanes + c, contiguous; `chirp` has n entries and
 * `chirp_spectrum` m, the factor 1 / m included. Work-groups cover the positions of one row after
 * the other.
 *
 * ELEMENT  complex numbers: Element of core/kernels.py
 * INDEX_T  unsigned type that counts the elements of the arrays
 * WG_SIZE  work-items in a work-group
 */
<%page args="ELEMENT, INDEX_T, WG_SIZE"/>\
<%namespace name="grid" file="grid.mako"/>\
${grid.declare(ELEMENT, INDEX_T, WG_SIZE)}\

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void chirp_in(__global const complex_t *restrict source,
              __global complex_t *restrict rows,
              __global const complex_t *restrict chirp,
              const index_t n,
              const index_t m,
              const index_t lanes,
              const index_t outer,
              const index_t position,
              const index_t lane)
{
    const index_t p = point_of(m);
    const index_t row = row_of(m);
    if (p < m) {
        complex_t x = 0;
        if (p < n)
            x = times(source[row / lanes * outer + p * position + row % lanes * lane], chirp[p]);
        rows[row * m + p] = x;
    }
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void chirp_multiply(__global complex_t *restrict rows,
                    __global const complex_t *restrict chirp_spectrum,
                    const index_t m)
{
    const index_t p = point_of(m);
    if (p < m) {
        const index_t place = row_of(m) * m + p;
        rows[place] = times(rows[place], chirp_spectrum[p]).yx;
    }
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void chirp_out(__global const complex_t *restrict rows,
               __global complex_t *restrict target,
               __global const complex_t *restrict chirp,
               const index_t n,
               const index_t m,
               const index_t lanes,
               const index_t outer,
               const index_t position,
               const index_t lane,
               const real_t scale)
{
    const index_t p = point_of(n);
    const index_t row = row_of(n);
    if (p < n)
        target[row / lanes * outer + p * position + row % lanes * lane] =
            scale * times(rows[row * m + p].yx, chirp[p]);
}
