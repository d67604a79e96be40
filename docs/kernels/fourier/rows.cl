/*
 * An example of clkernels/fourier/rows.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       64 columns of 16384 complex64
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        rows_in, (1048576,) items in groups of (256,)
 */
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
typedef float real_t;
typedef float2 complex_t;
typedef uint index_t;

static inline complex_t times(const complex_t a, const complex_t b)
{
    return (complex_t)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* Work-groups of a row. The host keeps them, times the rows, within index_t, whose division is
   the cheaper the shorter it is. */
static inline index_t groups_of(const index_t points)
{
    return (points + 255) / 256;
}

/* Which point of its row an item has; some of the last group have none and get `points` or more. */
static inline index_t point_of(const index_t points)
{
    return (index_t)get_group_id(0) % groups_of(points) * 256 + (index_t)get_local_id(0);
}

static inline index_t row_of(const index_t points)
{
    return (index_t)get_group_id(0) / groups_of(points);
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
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

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
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
