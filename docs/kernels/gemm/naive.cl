/*
 * An example of clkernels/gemm/naive.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm size=1000 beta=0.5
 *     algorithm     naive
 *     configuration WG_M=8 WG_N=32
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        gemm_naive, (1024, 1000, 1) items in groups of (32, 8, 1)
 */
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
typedef uint index_t;
typedef float element_t;
typedef float sum_t;

#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))

__kernel __attribute__((reqd_work_group_size(32, 8, 1)))
void gemm_naive(__global const element_t *restrict a,
                __global const element_t *restrict b,
                __global const element_t *restrict c,
                __global element_t *restrict result,
                const index_t m,
                const index_t n,
                const index_t k,
                const sum_t alpha,
                const sum_t beta,
                const index_t first_row,
                const index_t first_product)
{
    const index_t row = first_row + get_global_id(1);
    const index_t column = get_global_id(0);
    if (row < m && column < n) {
        sum_t sum = 0;
        for (index_t p = 0; p < k; ++p) {
            const sum_t x = load_element(a, row * k + p);
            const sum_t y = load_element(b, p * n + column);
            sum = multiply_add(sum, x,
                               y);
        }
        sum *= alpha;
        sum += beta * (c + ((row) * n + column))[0];
        store_element(sum, result, row * n + column);
    }
}
