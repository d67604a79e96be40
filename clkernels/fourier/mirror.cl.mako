/*
 * Whole spectra of real signals: frequencies above n / 2 mirror those below.
 *
 *     half_rows  | 0 | 1 | 2 | 3 |                n = 6; * is the complex conjugate
 *     whole      | 0 | 1 | 2 | 3 | 2* | 1* |      one item each
 *
 * Source: none; each item moves one number.
 *
 * The host guarantees: rows are contiguous and do not overlap; work-groups cover the
 * frequencies of one row after the other.
 *
 * ELEMENT    complex numbers: Element of core/kernels.py
 * INDEX_T    unsigned type that counts the elements of the arrays
 * WG_SIZE    work-items in a work-group
 * CONJUGATE  whether to take the conjugate of all, as of an inverse transform
 */
<%page args="ELEMENT, INDEX_T, WG_SIZE, CONJUGATE"/>\
<%namespace name="grid" file="grid.mako"/>\
${grid.declare(ELEMENT, INDEX_T, WG_SIZE)}\

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void mirror(__global const complex_t *restrict half_rows,
            __global complex_t *restrict whole,
            const index_t n)
{
    const index_t k = point_of(n), row = row_of(n), bins = n / 2 + 1;
    if (k < n) {
        const complex_t x = half_rows[row * bins + (k < bins ? k : n - k)];
        whole[row * n + k] = (complex_t)(x.x, k < bins ? ${"-x.y : x.y" if CONJUGATE else "x.y : -x.y"});
    }
}
