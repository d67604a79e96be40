/*
 * An example of clkernels/gemm/tiled.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm size=1000
 *     algorithm     tiled
 *     configuration TILE=32 LOCAL_PAD=1 UNROLL=8
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        gemm_tiled, (1024, 1024, 1) items in groups of (32, 32, 1)
 */
/*
 * Matrix product by square tiles in local memory.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 * op(X) is X, its transpose, or the conjugate of either.
 *
 *                      TILE
 *              +--+--+------+--+
 *              |  |  | b 0  |  |         A work-group of TILE x TILE items owns one
 *              +--+--+------+--+         tile of the result. It walks along k, a tile
 *              |  |  | b 1  |  |  k      of each input at a time:
 *              +--+--+------+--+
 *     k                                    load a tile of A and of B, an element an item
 *  +-----+-----+-----+------+--+           barrier: the tiles are complete
 *  |     |     |     |      |  |           add TILE products to the item's sum
 *  +-----+-----+-----+------+--+           barrier: the tiles may be overwritten
 *  | a 0 | a 1 |     |result|  |  m
 *  +-----+-----+-----+------+--+         Every element loaded is used TILE times.
 *                       n
 *
 * Source: the classic tiled product of the OpenCL and CUDA programming guides.
 *
 * Loads outside a matrix give zero, so every item takes part in every barrier and
 * every trip; only the store is guarded. A transposed matrix is read along its own
 * rows, coalesced, and turned while it is written to local memory; LOCAL_PAD then
 * spreads a column of the tile over the banks.
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
 * TILE        rows and columns of a tile, and of the work-group
 * LOCAL_PAD   elements between the rows of a tile in local memory
 * UNROLL      products a trip of the inner loop, a divisor of TILE
 */
typedef uint index_t;
typedef float element_t;
typedef float sum_t;

#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))

__kernel __attribute__((reqd_work_group_size(32, 32, 1)))
void gemm_tiled(__global const element_t *restrict a,
                __global const element_t *restrict b,
                __global element_t *restrict result,
                const index_t m,
                const index_t n,
                const index_t k,
                const sum_t alpha,
                const sum_t beta,
                const index_t first_row,
                const index_t first_product)
{
    __local sum_t a_tile[32][33]; /* row of op(A), then k */
    __local sum_t b_tile[32][33]; /* k, then column of op(B) */
    const uint x = get_local_id(0);
    const uint y = get_local_id(1);
    const index_t top = first_row + (index_t)get_group_id(1) * 32;
    const index_t first_column = (index_t)get_group_id(0) * 32;
    sum_t sum = 0;

    for (index_t first = 0; first < k; first += 32) {
        /* Load one tile of each matrix, zero outside. */
        a_tile[y][x] = top + y < m && first + x < k
            ? load_element(a, (top + y) * k + first + x) : (sum_t)0;
        b_tile[y][x] = first + y < k && first_column + x < n
            ? load_element(b, (first + y) * n + first_column + x) : (sum_t)0;
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Add the products of the tiles. */
        for (uint p = 0; p < 32; p += 8) {
            sum = multiply_add(sum, a_tile[y][p + 0], b_tile[p + 0][x]);
            sum = multiply_add(sum, a_tile[y][p + 1], b_tile[p + 1][x]);
            sum = multiply_add(sum, a_tile[y][p + 2], b_tile[p + 2][x]);
            sum = multiply_add(sum, a_tile[y][p + 3], b_tile[p + 3][x]);
            sum = multiply_add(sum, a_tile[y][p + 4], b_tile[p + 4][x]);
            sum = multiply_add(sum, a_tile[y][p + 5], b_tile[p + 5][x]);
            sum = multiply_add(sum, a_tile[y][p + 6], b_tile[p + 6][x]);
            sum = multiply_add(sum, a_tile[y][p + 7], b_tile[p + 7][x]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    /* Store the element, if there is one. */
    const index_t row = top + y;
    const index_t column = first_column + x;
    if (row < m && column < n) {
        sum *= alpha;
        store_element(sum, result, row * n + column);
    }
}
