/*
 * Adds up the parts of k of the product by packed panels, and finishes; see packed.cl.mako.
 *
 *     sums     part 0: [m][n], part 1: [m][n], ...
 *              element by element, in the order of the parts: the same result in every run
 *     result   activation(alpha * sum + beta * C + bias)
 *
 * Source: own.
 *
 * The host guarantees: the items, of SPAN elements of a row each, cover the columns in dimension 0
 * and the rows in dimension 1; `result` overlaps no input.
 *
 * TYPE, INDEX_T, HAS_C, BIAS, ACTIVATION, STACKS: see parts.mako
 * SPAN          elements of an item
 */
<%page args="TYPE, INDEX_T, HAS_C, BIAS, ACTIVATION, STACKS, SPAN"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=TYPE.startswith('double')"/>\
typedef ${INDEX_T} index_t;
${parts.types()}\

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemm_sum_parts(
    ${parts.arguments()},
    const uint number,
    __global const sum_t *restrict sums)
{
    const index_t row = get_group_id(1);
    const index_t first = (index_t)get_group_id(0) * ${SPAN};
    const index_t end = min(n, first + ${SPAN});

    for (index_t column = first; column < end; ++column) {
        sum_t value = 0;
        for (uint part = 0; part < number; ++part)
            value += sums[(part * m + row) * n + column];
${parts.finish("value", "row", "column")}\
        store_element(value, result, row * n + column);
    }
}
