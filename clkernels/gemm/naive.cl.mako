/*
 * Matrix product, one work-item for one element of the result.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 * op(X) is X, its transpose, or the conjugate of either.
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
 * the grid covers the columns, in whole work-groups, dimension 1 the rows from
 * first_row on, and dimension 2 the products of a stack from first_product on;
 * `result` overlaps no input. Where A and B must not be read it passes k = 0.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py: types in memory and of sums. Integers of 1, 2, 4
 *             and 8 bytes are uchar, short, uint, ulong, which wrap around
 * INDEX_T     unsigned type that counts the elements of the largest array
 * A, B        `Factor` of opencl_lab/ops/gemm/launches.py, how each is stored: whether A as k rows of m,
 *             B as n rows of k (transposed), and whether it counts by its complex conjugate (conjugated)
 * EPILOGUE    `Epilogue`: whether there is a C, bias, activation; see epilogue.mako
 * STACKS      dimensions of the stack of products, 0 for a single product
 * WG_M        rows of a work-group
 * WG_N        columns of a work-group
 */
<%page args="ELEMENT, INDEX_T, A, B, EPILOGUE, STACKS, WG_M, WG_N"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
typedef ${INDEX_T} index_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\

__kernel __attribute__((reqd_work_group_size(${WG_N}, ${WG_M}, 1)))
void gemm_naive(${product.arguments(EPILOGUE, STACKS)},
    const index_t first_row,
    const index_t first_product)
{
    const index_t row = first_row + get_global_id(1);
    const index_t column = get_global_id(0);
${product.enter(EPILOGUE, STACKS, "first_product + get_global_id(2)")}\
    if (row < m && column < n) {
        sum_t sum = 0;
        for (index_t p = 0; p < k; ++p) {
            const sum_t x = load_element(a, ${"p * m + row" if A.transposed else "row * k + p"});
            const sum_t y = load_element(b, ${"column * k + p" if B.transposed else "p * n + column"});
            sum = multiply_add(sum, ${"conjugate(x)" if A.conjugated else "x"},
                               ${"conjugate(y)" if B.conjugated else "y"});
        }
${epilogue.apply(ELEMENT, EPILOGUE, "sum", "row", "column")}\
        store_element(sum, result, row * n + column);
    }
}
