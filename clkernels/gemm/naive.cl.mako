/*
 * Matrix product, one work-item for one element of the result.
 *
 *     result = alpha * op(A) * op(B) + beta * C        op(X) is X or its transpose
 *
 *                        | column
 *                 op(B)  v
 *               +--------b-------+
 *               |        b       | k
 *               |        b       |         The item at (row, column) walks along
 *       k       +--------b-------+         its row of op(A) and down its column
 *    +-------+  +----------------+         of op(B). Nothing is shared.
 *  > a a a a |  |        x       | m
 *    +-------+  +----------------+
 *      op(A)          result, n columns
 *
 * Source: the definition; the 1x1 baseline that the other kernels are measured against.
 *
 * The host guarantees: all matrices are row-major and contiguous; dimension 0 of
 * the grid covers the columns and dimension 1 the rows, in whole work-groups;
 * `result` overlaps no input. Where A and B must not be read it passes k = 0.
 *
 * REAL_T   float or double
 * INDEX_T  unsigned type that counts the elements of the largest matrix
 * TRANS_A  whether A is stored as k rows of m, and not as m rows of k
 * TRANS_B  whether B is stored as n rows of k, and not as k rows of n
 * HAS_C    whether there is a C; without one, beta is not used either
 * WG_M     rows of a work-group
 * WG_N     columns of a work-group
 */
<%page args="REAL_T, INDEX_T, TRANS_A, TRANS_B, HAS_C, WG_M, WG_N"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=REAL_T == 'double'"/>\
typedef ${REAL_T} real_t;
typedef ${INDEX_T} index_t;

__kernel __attribute__((reqd_work_group_size(${WG_N}, ${WG_M}, 1)))
void gemm_naive(__global const real_t *restrict a,
                __global const real_t *restrict b,
% if HAS_C:
                __global const real_t *restrict c,
% endif
                __global real_t *restrict result,
                const index_t m,
                const index_t n,
                const index_t k,
                const real_t alpha,
                const real_t beta)
{
    const index_t row = get_global_id(1);
    const index_t column = get_global_id(0);
    if (row < m && column < n) {
        real_t sum = 0;
        for (index_t p = 0; p < k; ++p)
            sum += a[${"p * m + row" if TRANS_A else "row * k + p"}]
                   * b[${"column * k + p" if TRANS_B else "p * n + column"}];
        const index_t place = row * n + column;
        result[place] = alpha * sum\
${" + beta * c[place]" if HAS_C else ""};
    }
}
