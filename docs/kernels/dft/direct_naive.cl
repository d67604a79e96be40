/*
 * An example of clkernels/dft/direct_naive.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       dft n=1000 batch=8
 *     algorithm     direct-naive
 *     configuration WG_SIZE=64
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        dft_naive, (8192,) items in groups of (64,)
 */
/*
 * Discrete Fourier transform by its definition, one work-item a frequency.
 *
 *     spectrum[b][k] = scale * sum over j of signal[b][j] * w^(j * k)       w = exp(-+2 pi i / n)
 *
 * One side may be real; the other one then has the frequencies from 0 to n / 2.
 *
 *     signal    | 0 | 1 | 2 | ...                              | n - 1 |   one row of the batch
 *     item k      every sample, times the root number (j * k) mod n
 *     sums        BLOCK samples each:  |--------|--------|--------|-----|
 *
 * Source: the definition. The angle of j * k loses all its digits in single precision
 * once j * k passes 2^24, so roots come from a table of n and their number is reduced
 * modulo n exactly, by integers. A sum of n numbers loses digits with the square root
 * of n: blocks are summed apart, and then added with compensation (W. Kahan, "Further
 * remarks on reducing truncation errors", CACM 8(1), 1965).
 *
 * The host guarantees: rows are contiguous; work-groups cover the frequencies of one row
 * after the other; `spectrum` does not overlap `signal`; roots[e] is w^e, correctly rounded.
 *
 * ELEMENT   complex numbers: Element of core/kernels.py
 * INDEX_T   unsigned type that holds 2n
 * WG_SIZE   work-items in a work-group
 * BLOCK     samples that are summed together
 * KIND      c2c, r2c or c2r: which sides are complex
 */
typedef float real_t;
typedef float2 complex_t;
typedef uint index_t;
typedef complex_t sample_t;
typedef complex_t result_t;
#define SAMPLES(n) (n)
#define POINTS(n) (n)

/* Return sample j of a row. A frequency of half a spectrum stands for its mirror image too, but
 * 0 and n / 2 are their own, and their imaginary components are taken for 0. */
static inline sample_t sample_at(__global const sample_t *row, const index_t j, const index_t n)
{
    return row[j];
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void dft_naive(__global const sample_t *restrict signal,
               __global result_t *restrict spectrum,
               __global const complex_t *restrict roots,
               const index_t n,
               const real_t scale)
{
    const index_t points = POINTS(n), samples = SAMPLES(n);
    const size_t groups = (points + (size_t)63) / 64; /* of a row */
    const index_t k = (index_t)(get_group_id(0) % groups * 64 + get_local_id(0));
    const ulong row = get_group_id(0) / groups;

    if (k < points) {
        complex_t total = 0;
        complex_t lost = 0; /* what rounding took from `total` */
        index_t power = 0;  /* (j * k) mod n */
        for (index_t first = 0; first < samples; first += 128) {
            const index_t end = min(first + 128, samples);
            complex_t sum = 0;
            for (index_t j = first; j < end; ++j) {
                const sample_t x = sample_at(signal + row * samples, j, n);
                const complex_t w = roots[power];
                sum.x += x.x * w.x;
                sum.x -= x.y * w.y;
                sum.y += x.x * w.y;
                sum.y += x.y * w.x;
                power += k;
                power -= power >= n ? n : 0;
            }
            const complex_t add = sum - lost;
            const complex_t next = total + add;
            lost = (next - total) - add;
            total = next;
        }
        spectrum[row * points + k] = scale * total;
    }
}
