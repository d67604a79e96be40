/*
 * Transpose of a matrix: transposed[column][row] = a[row][column].
 *
 *          columns                        rows
 *      +----+----+--+                +----+----+-+
 *      |    |tile|  |                |    |    | |
 * rows +----+----+--+        columns +----+----+-+
 *      |    |    |  |                |tile|    | |
 *      +----+----+--+                +----+----+-+
 *                                    |    |    | |
 *
 * A group copies one tile by way of local memory, so that it reads along the rows of one matrix
 * and writes along those of the other.
 *
 * Source: M. Harris, "An Efficient Matrix Transpose in CUDA C/C++" (2013).
 *
 * The host guarantees: both matrices are row-major and contiguous, and do not overlap; dimension 0
 * of the grid covers the columns and dimension 1 the rows, in whole groups.
 *
 * ELEMENT_T  unsigned type of the size of an element, whose bits are moved
 * TILE       rows and columns of a tile; also the items of a group in dimension 0
 * WG_ROWS    items of a group in dimension 1, a divisor of TILE
 * LOCAL_PAD  elements between the rows of the tile, which spread its columns over the banks
 */
<%page args="ELEMENT_T, TILE, WG_ROWS, LOCAL_PAD"/>\
__kernel __attribute__((reqd_work_group_size(${TILE}, ${WG_ROWS}, 1)))
void transpose(__global const ${ELEMENT_T} *restrict a, __global ${ELEMENT_T} *restrict transposed,
               const uint rows, const uint columns)
{
    __local ${ELEMENT_T} tile[${TILE}][${TILE + LOCAL_PAD}]; /* rows of a, then columns */
    const uint x = get_local_id(0);
    const uint first_row = get_group_id(1) * ${TILE};
    const uint first_column = get_group_id(0) * ${TILE};

    for (uint y = get_local_id(1); y < ${TILE}; y += ${WG_ROWS})
        if (first_row + y < rows && first_column + x < columns)
            tile[y][x] = a[(size_t)(first_row + y) * columns + first_column + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint y = get_local_id(1); y < ${TILE}; y += ${WG_ROWS})
        if (first_row + x < rows && first_column + y < columns)
            transposed[(size_t)(first_column + y) * rows + first_row + x] = tile[x][y];
}
