/*
 * An example of clkernels/gemm/direct.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm m=30 n=40 k=50
 *     algorithm     direct
 *     configuration ROWS=4 VECTORS=2 VECTOR_WIDTH=8
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        gemm_direct, (3, 3, 1) items in groups of (1, 1, 1)
 */
/*
 * Matrix product of small matrices, read in place, with all sums in registers: for CPUs.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 * op(X) is X, its transpose, or the conjugate of either.
 *
 *                     v0   v1   v2                columns of the last vector are moved back, to
 *                    +----+----+---+              end where the matrix ends: n = 20 by vectors of 8
 *               k    |    |    |   |  B
 *                    +----+----+---+                  0       8   12  16  20
 *            +-----+ +----+----+---+                  |--v0---|---v1---|
 *     ROWS   |     | |    |    |   |                              |---v2---|
 *            +-----+ +----+----+---+
 *     ROWS   |     | |####|####|###|              for each p: sum[r][v] += a[r][p] * b[p][v]
 *            +-----+ +----+----+---+
 *       A                result                   rows of the last block are moved back, too
 *
 * An item, which is a work-group, has a panel of VECTORS vectors of columns, or of LAST for the last
 * one, and goes down `tile_m` rows, ROWS at a time. Sums go along all of k in registers, and are
 * stored once. What lies in two vectors or blocks is computed twice, alike, and stored twice, perhaps
 * by two items, the same bits: that is faster than edges that are stored number by number.
 *
 * With PACK_B a vector of columns is copied first, to [v][p][lane] in local memory: where B is stored
 * transposed, it is turned then, and complex numbers become real ones of twice the depth, see
 * packed_panels.mako. In all of this a complex number is two columns.
 *
 * Source: own; the loop in the middle is the micro-kernel of K. Goto, R. van de Geijn, "Anatomy of
 * high-performance matrix multiplication", ACM TOMS 2008. Cost: A is read once for each panel, B once for
 * each ROWS rows; so both should fit the caches.
 *
 * The host guarantees: all matrices are row-major and contiguous, aligned to one element; m is at
 * least ROWS and n at least a vector; the grid covers the result: dimension 0 the panels, dimension 1
 * tiles of tile_m rows, dimension 2 the products of the stack; `result` overlaps no input. Where A and B
 * must not be read it passes k = 0. No halves.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py; integers are unsigned, as these wrap around
 * INDEX_T     unsigned type that counts the elements of the largest array
 * A, B        `Factor` of opencl_lab/ops/gemm/launches.py: how each is stored, and counts
 * EPILOGUE    `Epilogue` of the same module: C, bias, activation
 * STACKS      dimensions of the stack of products, 0 for a single product
 * BLOCKING    `Blocking` of opencl_lab/ops/gemm/packed/tiles.py: rows and width are used here, and what
 *             packing takes; its panels are single vectors
 * VECTORS     vectors of a panel
 * LAST        vectors of the last panel
 * PACK_B      whether columns of B are copied first; needed for complex numbers and a transposed B
 */
typedef uint index_t;
typedef float element_t;
typedef float sum_t;

#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
typedef float real_t;
typedef float8 vec_t;
typedef vec_t __attribute__((aligned(sizeof(real_t)))) loose_t; /* which may lie anywhere */

/* A function whose arguments are vectors: by these compilers see that wide ones are wanted. */
static inline vec_t add_product(const vec_t sum, const real_t x, const vec_t y)
{
    return sum + x * y;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemm_direct(__global const element_t *restrict a,
                 __global const element_t *restrict b,
                 __global element_t *restrict result,
                 const index_t m,
                 const index_t n,
                 const index_t k,
                 const sum_t alpha,
                 const sum_t beta,
                 const index_t tile_m)
{
    const index_t line = n * 1; /* real numbers in a row of B and of the result */
    const index_t column = get_global_id(0) * 16;
    const index_t first_row = get_global_id(1) * tile_m;
    const index_t end_row = min(m, first_row + tile_m);
    if (get_global_id(0) + 1 < get_global_size(0)) {
        const index_t column_0 = column + 0;
        const index_t column_1 = min(column + 8, line - 8);
        for (index_t next = first_row; next < end_row; next += 4) {
            const index_t first = min(next, m - 4);
            __global const real_t *a_from = (__global const real_t *)(a + first * k);
            vec_t sum_0_0 = 0;
            vec_t sum_0_1 = 0;
            vec_t sum_1_0 = 0;
            vec_t sum_1_1 = 0;
            vec_t sum_2_0 = 0;
            vec_t sum_2_1 = 0;
            vec_t sum_3_0 = 0;
            vec_t sum_3_1 = 0;
            for (index_t p = 0; p < k; ++p) {
                {
                    const vec_t y_0 = *(__global const loose_t *)(b + p * line + column_0);
                    const vec_t y_1 = *(__global const loose_t *)(b + p * line + column_1);
                    const real_t x_0 = a_from[0 * k * 1 + 0];
                    sum_0_0 = add_product(sum_0_0, x_0, y_0);
                    sum_0_1 = add_product(sum_0_1, x_0, y_1);
                    const real_t x_1 = a_from[1 * k * 1 + 0];
                    sum_1_0 = add_product(sum_1_0, x_1, y_0);
                    sum_1_1 = add_product(sum_1_1, x_1, y_1);
                    const real_t x_2 = a_from[2 * k * 1 + 0];
                    sum_2_0 = add_product(sum_2_0, x_2, y_0);
                    sum_2_1 = add_product(sum_2_1, x_2, y_1);
                    const real_t x_3 = a_from[3 * k * 1 + 0];
                    sum_3_0 = add_product(sum_3_0, x_3, y_0);
                    sum_3_1 = add_product(sum_3_1, x_3, y_1);
                }
                a_from += 1;
            }
            {
                const index_t row = first + 0, column = column_0;
                vec_t value = sum_0_0;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 0, column = column_1;
                vec_t value = sum_0_1;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 1, column = column_0;
                vec_t value = sum_1_0;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 1, column = column_1;
                vec_t value = sum_1_1;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 2, column = column_0;
                vec_t value = sum_2_0;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 2, column = column_1;
                vec_t value = sum_2_1;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 3, column = column_0;
                vec_t value = sum_3_0;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 3, column = column_1;
                vec_t value = sum_3_1;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
        }
    } else {
        const index_t column_0 = min(column + 0, line - 8);
        for (index_t next = first_row; next < end_row; next += 4) {
            const index_t first = min(next, m - 4);
            __global const real_t *a_from = (__global const real_t *)(a + first * k);
            vec_t sum_0_0 = 0;
            vec_t sum_1_0 = 0;
            vec_t sum_2_0 = 0;
            vec_t sum_3_0 = 0;
            for (index_t p = 0; p < k; ++p) {
                {
                    const vec_t y_0 = *(__global const loose_t *)(b + p * line + column_0);
                    const real_t x_0 = a_from[0 * k * 1 + 0];
                    sum_0_0 = add_product(sum_0_0, x_0, y_0);
                    const real_t x_1 = a_from[1 * k * 1 + 0];
                    sum_1_0 = add_product(sum_1_0, x_1, y_0);
                    const real_t x_2 = a_from[2 * k * 1 + 0];
                    sum_2_0 = add_product(sum_2_0, x_2, y_0);
                    const real_t x_3 = a_from[3 * k * 1 + 0];
                    sum_3_0 = add_product(sum_3_0, x_3, y_0);
                }
                a_from += 1;
            }
            {
                const index_t row = first + 0, column = column_0;
                vec_t value = sum_0_0;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 1, column = column_0;
                vec_t value = sum_1_0;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 2, column = column_0;
                vec_t value = sum_2_0;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
            {
                const index_t row = first + 3, column = column_0;
                vec_t value = sum_3_0;
                value *= alpha;
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
        }
    }
}
