/*
 * Matrix product by square tiles in local memory.
 *
 *     result = alpha * op(A) * op(B) + beta * C        op(X) is X or its transpose
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
 * the grid covers the columns and dimension 1 the rows, in whole work-groups;
 * `result` overlaps no input. Where A and B must not be read it passes k = 0.
 *
 * REAL_T     float or double
 * INDEX_T    unsigned type that counts the elements of the largest matrix
 * TRANS_A    whether A is stored as k rows of m, and not as m rows of k
 * TRANS_B    whether B is stored as n rows of k, and not as k rows of n
 * HAS_C      whether there is a C; without one, beta is not used either
 * TILE       rows and columns of a tile, and of the work-group
 * LOCAL_PAD  elements between the rows of a tile in local memory
 * UNROLL     products a trip of the inner loop, a divisor of TILE
 */
<%page args="REAL_T, INDEX_T, TRANS_A, TRANS_B, HAS_C, TILE, LOCAL_PAD, UNROLL"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=REAL_T == 'double'"/>\
typedef ${REAL_T} real_t;
typedef ${INDEX_T} index_t;

__kernel __attribute__((reqd_work_group_size(${TILE}, ${TILE}, 1)))
void gemm_tiled(__global const real_t *restrict a,
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
    __local real_t a_tile[${TILE}][${TILE + LOCAL_PAD}]; /* row of op(A), then k */
    __local real_t b_tile[${TILE}][${TILE + LOCAL_PAD}]; /* k, then column of op(B) */
    const uint x = get_local_id(0);
    const uint y = get_local_id(1);
    const index_t first_row = (index_t)get_group_id(1) * ${TILE};
    const index_t first_column = (index_t)get_group_id(0) * ${TILE};
    real_t sum = 0;

    for (index_t first = 0; first < k; first += ${TILE}) {
        /* Load one tile of each matrix, zero outside. */
% if TRANS_A:
        a_tile[x][y] = first + y < k && first_row + x < m ? a[(first + y) * m + first_row + x] : 0;
% else:
        a_tile[y][x] = first_row + y < m && first + x < k ? a[(first_row + y) * k + first + x] : 0;
% endif
% if TRANS_B:
        b_tile[x][y] =
            first_column + y < n && first + x < k ? b[(first_column + y) * k + first + x] : 0;
% else:
        b_tile[y][x] =
            first + y < k && first_column + x < n ? b[(first + y) * n + first_column + x] : 0;
% endif
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Add the products of the tiles. */
        for (uint p = 0; p < ${TILE}; p += ${UNROLL}) {
% for u in range(UNROLL):
            sum += a_tile[y][p + ${u}] * b_tile[p + ${u}][x];
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    /* Store the element, if there is one. */
    const index_t row = first_row + y;
    const index_t column = first_column + x;
    if (row < m && column < n) {
        const index_t place = row * n + column;
        result[place] = alpha * sum\
${" + beta * c[place]" if HAS_C else ""};
    }
}
