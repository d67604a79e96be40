/*
 * Transpose of a matrix: transposed[column][row] = a[row][column], without local memory.
 *
 * Each item reads a part of a row and writes it down a column; a group of one item has a square of
 * BLOCK x BLOCK elements, whose lines of both matrices stay in the first cache of a CPU.
 *
 * The host guarantees: both matrices are row-major and contiguous, and do not overlap; dimension 0
 * of the grid covers the columns and dimension 1 the rows, in blocks.
 *
 * ELEMENT_T  unsigned type of the size of an element, whose bits are moved
 * BLOCK      rows and columns of a block
 */
<%page args="ELEMENT_T, BLOCK"/>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void transpose(__global const ${ELEMENT_T} *restrict a, __global ${ELEMENT_T} *restrict transposed,
               const uint rows, const uint columns)
{
    const uint first_row = get_group_id(1) * ${BLOCK};
    const uint first_column = get_group_id(0) * ${BLOCK};
    const uint last_row = min(first_row + ${BLOCK}, rows);
    const uint last_column = min(first_column + ${BLOCK}, columns);

    for (uint column = first_column; column < last_column; column++)
        for (uint row = first_row; row < last_row; row++)
            transposed[(size_t)column * rows + row] = a[(size_t)row * columns + column];
}
