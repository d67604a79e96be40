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
<%page args="ELEMENT, INDEX_T, WG_SIZE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="complex_numbers" file="complex.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
${complex_numbers.declare(ELEMENT, INDEX_T)}\

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void multiply(__global const complex_t *restrict first,
              __global const complex_t *restrict second,
              __global complex_t *restrict product,
              const index_t count)
{
    const index_t i = (index_t)get_global_id(0);
    if (i < count)
        product[i] = times(first[i], second[i]);
}
