/*
 * Multiplies spectra: the transform of a convolution.
 *
 *     product[i] = first[i] * second[i]        one item each
 *
 * Source: none.
 *
 * The host guarantees: the arrays do not overlap; items cover `count` complex numbers.
 *
 * REAL_T    float or double
 * INDEX_T   unsigned type that counts the elements of the arrays
 * WG_SIZE   work-items in a work-group
 */
<%page args="REAL_T, INDEX_T, WG_SIZE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
${extensions.enable(fp64=REAL_T == 'double')}\
typedef ${REAL_T}2 complex_t;

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void multiply(__global const complex_t *restrict first,
              __global const complex_t *restrict second,
              __global complex_t *restrict product,
              const ${INDEX_T} count)
{
    const ${INDEX_T} i = (${INDEX_T})get_global_id(0);
    if (i < count) {
        const complex_t a = first[i], b = second[i];
        product[i] = (complex_t)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
    }
}
