/*
 * Columns as rows, and back: for transforms along an axis that is not the last one and too
 * long to keep several neighbours in a cache.
 *
 *     array       [outer][position][lane]   ->  rows_in   ->   [outer][lane][position]
 *                                           <-  rows_out  <-
 *
 * Source: none; each item moves one number.
 *
 * The host guarantees: both arrays are contiguous and do not overlap; work-groups
 * cover the positions of one row after the other.
 *
 * ELEMENT  complex numbers: Element of core/kernels.py
 * INDEX_T  unsigned type that counts the elements of the arrays
 * WG_SIZE  work-items in a work-group
 */
<%page args="ELEMENT, INDEX_T, WG_SIZE"/>\
<%namespace name="grid" file="grid.mako"/>\
${grid.declare(ELEMENT, INDEX_T, WG_SIZE)}\

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void rows_in(__global const complex_t *restrict source,
             __global complex_t *restrict rows,
             const index_t n,
             const index_t lanes)
{
    const index_t p = point_of(n), row = row_of(n);
    if (p < n)
        rows[row * n + p] =
            source[(row / lanes * n + p) * lanes + row % lanes];
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void rows_out(__global const complex_t *restrict rows,
              __global complex_t *restrict target,
              const index_t n,
              const index_t lanes)
{
    const index_t p = point_of(n), row = row_of(n);
    if (p < n)
        target[(row / lanes * n + p) * lanes + row % lanes] =
            rows[row * n + p];
}
