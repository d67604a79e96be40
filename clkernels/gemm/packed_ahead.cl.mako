/*
 * Packs a matrix into panels ahead of the product by packed panels; see packed.cl.mako.
 *
 *     b                              packed
 *     +--------+--------+--------+   panel 0: [k][NR], panel 1: [k][NR], ...
 *     |        |########|        |   zero past the last column
 *     |        |########|        |   #: what one item packs of every STEP_N panels, STEP_K rows
 *     +--------+--------+--------+
 *
 * An item walks along a few panels beside each other: its rows lie in as many pages of memory,
 * which processors find again at once.
 *
 * Source: see packed_panels.mako.
 *
 * The host guarantees: b is row-major and contiguous, aligned to one element, `packed` to 128
 * bytes; dimension 0 of the grid covers the panels in steps of STEP_N, dimension 1 the rows in
 * steps of STEP_K.
 *
 * TYPE, INDEX_T, TRANS_B, CONJ_A, CONJ_B, ACTIVATION: see parts.mako
 * VECTORS       vectors in a row of a panel
 * VECTOR_WIDTH  real numbers in a vector; even for complex numbers
 * STEP_N        panels of an item
 * STEP_K        rows of an item
 */
<%page args="TYPE, INDEX_T, TRANS_B, CONJ_A, CONJ_B, ACTIVATION, VECTORS, VECTOR_WIDTH, STEP_N, STEP_K"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="panels" file="/gemm/packed_panels.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=TYPE.startswith('double')"/>\
<%
    P = panels.module.parts_of(TYPE)
    NR = VECTORS * VECTOR_WIDTH
%>\
typedef ${INDEX_T} index_t;
${parts.types()}\
${panels.vectors()}\

${panels.pack_rows("__global")}\

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemm_pack(__global const element_t *restrict b,
               __global real_t *restrict packed,
               const index_t n,
               const index_t k)
{
    const index_t first = (index_t)get_group_id(1) * ${STEP_K};
    const uint count = min((index_t)${STEP_K}, k - first);
    const index_t first_column = (index_t)get_group_id(0) * ${STEP_N * NR // P};
    const index_t end_column = min(n, first_column + ${STEP_N * NR // P});

    for (index_t column = first_column; column < end_column; column += ${NR // P})
        pack_rows(b, packed + (column / ${NR // P} * k + first) * ${NR * P}, first, count, column, n, k);
}
