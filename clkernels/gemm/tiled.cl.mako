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
<%page args="ELEMENT, INDEX_T, A, B, EPILOGUE, STACKS, TILE, LOCAL_PAD, UNROLL"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
typedef ${INDEX_T} index_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\

<%
    def loaded(matrix, conjugated, place):
        value = f"load_element({matrix}, {place})"
        return f"conjugate({value})" if conjugated else value
%>\
__kernel __attribute__((reqd_work_group_size(${TILE}, ${TILE}, 1)))
void gemm_tiled(${product.arguments(EPILOGUE, STACKS)},
    const index_t first_row,
    const index_t first_product)
{
    __local sum_t a_tile[${TILE}][${TILE + LOCAL_PAD}]; /* row of op(A), then k */
    __local sum_t b_tile[${TILE}][${TILE + LOCAL_PAD}]; /* k, then column of op(B) */
    const uint x = get_local_id(0);
    const uint y = get_local_id(1);
    const index_t top = first_row + (index_t)get_group_id(1) * ${TILE};
    const index_t first_column = (index_t)get_group_id(0) * ${TILE};
    sum_t sum = 0;

${product.enter(EPILOGUE, STACKS, "first_product + get_group_id(2)")}\
    for (index_t first = 0; first < k; first += ${TILE}) {
        /* Load one tile of each matrix, zero outside. */
% if A.transposed:
        a_tile[x][y] = first + y < k && top + x < m
            ? ${loaded("a", A.conjugated, "(first + y) * m + top + x")} : (sum_t)0;
% else:
        a_tile[y][x] = top + y < m && first + x < k
            ? ${loaded("a", A.conjugated, "(top + y) * k + first + x")} : (sum_t)0;
% endif
% if B.transposed:
        b_tile[x][y] = first_column + y < n && first + x < k
            ? ${loaded("b", B.conjugated, "(first_column + y) * k + first + x")} : (sum_t)0;
% else:
        b_tile[y][x] = first + y < k && first_column + x < n
            ? ${loaded("b", B.conjugated, "(first + y) * n + first_column + x")} : (sum_t)0;
% endif
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Add the products of the tiles. */
        for (uint p = 0; p < ${TILE}; p += ${UNROLL}) {
% for u in range(UNROLL):
            sum = multiply_add(sum, a_tile[y][p + ${u}], b_tile[p + ${u}][x]);
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    /* Store the element, if there is one. */
    const index_t row = top + y;
    const index_t column = first_column + x;
    if (row < m && column < n) {
${epilogue.apply(ELEMENT, EPILOGUE, "sum", "row", "column")}\
        store_element(sum, result, row * n + column);
    }
}
