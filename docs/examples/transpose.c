/*
 * Transpose of a matrix, row-major and contiguous: transposed[column][row] = a[row][column].
 *
 *   transpose_seq  the definition: two plain loops
 *
 * It returns 0, as every reference does that did not run out of memory.
 *
 * ELEMENT_T   unsigned type of the size of an element
 */
#include <stdint.h>

#ifndef ELEMENT_T
#define ELEMENT_T uint32_t
#endif

int transpose_seq(const ELEMENT_T *a, ELEMENT_T *transposed, int64_t rows, int64_t columns)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++)
            transposed[column * rows + row] = a[row * columns + column];
    return 0;
}
