/*
 * An example of clkernels/fourier/mirror.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       8 spectra of 1000 complex64
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        mirror, (8192,) items in groups of (256,)
 */
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
void mirror(__global const complex_t *restrict half_rows,
            __global complex_t *restrict whole,
            const index_t n)
{
    const index_t k = point_of(n), row = row_of(n), bins = n / 2 + 1;
    if (k < n) {
        const complex_t x = half_rows[row * bins + (k < bins ? k : n - k)];
        whole[row * n + k] = (complex_t)(x.x, k < bins ? x.y : -x.y);
    }
}
