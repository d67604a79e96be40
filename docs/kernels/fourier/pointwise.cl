/*
 * An example of clkernels/fourier/pointwise.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       1000 numbers of complex64
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        multiply, (1024,) items in groups of (256,)
 */
/*
 * Multiplies spectra: the transform of a convolution.
 *
 *     product[i] = first[i] * second[i]        one item each
 *
 * Source: none.
 *
 * The host guarantees: the arrays do not overlap; items cover `count` complex numbers.
 *
 * ELEMENT   complex numbers: Element of core/kernels.py
 * INDEX_T   unsigned type that counts the elements of the arrays
 * WG_SIZE   work-items in a work-group
 */
typedef float real_t;
typedef float2 complex_t;
typedef uint index_t;

static inline complex_t times(const complex_t a, const complex_t b)
{
    return (complex_t)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void multiply(__global const complex_t *restrict first,
              __global const complex_t *restrict second,
              __global complex_t *restrict product,
              const index_t count)
{
    const index_t i = (index_t)get_global_id(0);
    if (i < count)
        product[i] = times(first[i], second[i]);
}
