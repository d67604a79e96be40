/*
 * An example of clkernels/dft/cosine.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       8 cosine transforms of type 2, of 1000 float32
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        before, (8192,) items in groups of (256,)
 */
/*
 * Cosine and sine transforms of types 1 to 4: what is done before and after a Fourier transform.
 *
 * Rows of n reals x become rows y of n reals. Factors of 2 are part of the Fourier transform's scale.
 *
 *     type 1   the row and its mirror image, real   2 (n - 1) numbers    | a b c d c b |
 *              y = the real parts                   sine: 2 (n + 1)      | 0 a b c 0 -c -b -a |
 *     type 2   even positions, odd ones reversed, real         n = 5     | a c e d b |
 *              y[k] + i y'[n - k] = w^k V[k]   with y' = -y              w = exp(-2 pi i / 4n)
 *     type 3   the inverse of type 2:   V[k] = w^-k (x[k] - i x[n - k]), back to reals
 *     type 4   n even: z[p] = v^(8p + 1) (x[2p] + i x[n - 1 - 2p]), complex, n / 2 numbers
 *              y[2k] - i y[n - 1 - 2k] = v^(8k + 1) Z[k]                 v = exp(-2 pi i / 16n)
 *              n odd: the odd results of type 2 of the row and n zeros
 *
 * A sine transform is the cosine transform of other signs and orders: of types 2 and 3, samples at odd
 * positions are negated, and frequencies come in reverse order; of type 4, samples come in
 * reverse order, and frequencies at odd positions are negated. Type 1 mirrors with a sign.
 *
 * Source: J. Makhoul, "A fast cosine transform in one and two dimensions", 1980, for types 2 and 3;
 * for type 4 and even n, the half-length transform of real symmetric data of P. Duhamel,
 * Y. Mahieux, J. P. Petit, "A fast algorithm for the implementation of filter banks based on
 * time domain aliasing cancellation", 1991.
 *
 * The host guarantees: rows are contiguous and do not overlap; work-groups cover the points of one
 * row after the other: in `before` the numbers of a row that are transformed (frequencies
 * for type 3), in `after` the frequencies of a row (real numbers for type 3). Real arrays are
 * aligned to one real only.
 *
 * ELEMENT  complex numbers: Element of core/kernels.py
 * INDEX_T  unsigned type that counts the elements of the arrays
 * WG_SIZE  work-items in a work-group
 * TYPE     1, 2, 3 or 4
 * SINE     whether it is a sine transform
 * PADDED   whether type 4 goes by type 2 of twice the length
 *
 * `weight` makes the transform's matrix orthogonal, but for a common factor, where it is not 1: by it
 * are multiplied the ends of type 1 of the cosine transform, before and after, and the first
 * number of its types 2, after, and 3, before; the last one of the sine transform.
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
#define GROUP __attribute__((reqd_work_group_size(256, 1, 1)))

/* Where sample or frequency j of a cosine transform lies in a row, and with which sign. */
#define REVERSED(j) (j)
#define NEGATED(j, x) (x)

__kernel GROUP
void before(__global const real_t *restrict signal,
            __global real_t *restrict numbers,
            const index_t n,
            const index_t points,
            const real_t weight)
{
    const index_t p = point_of(points), row = row_of(points);
    __global const real_t *x = signal + row * n;
    if (p >= points)
        return;
    const index_t j = 2 * p < n ? 2 * p : 2 * (n - p) - 1;
    numbers[row * n + p] = NEGATED(j, x[j]);
}

__kernel GROUP
void after(__global const complex_t *restrict numbers,
           __global real_t *restrict result,
           __global const complex_t *restrict twiddles,
           const index_t n,
           const index_t points,
           const real_t weight)
{
    const index_t k = point_of(points), row = row_of(points);
    __global real_t *y = result + row * n;
    if (k >= points)
        return;
    const complex_t both = times(twiddles[k], numbers[row * points + k]);
    y[REVERSED(k)] = k == 0 ? weight * both.x : both.x;
    if (k > 0 && 2 * k != n)
        y[REVERSED(n - k)] = -both.y;
}
