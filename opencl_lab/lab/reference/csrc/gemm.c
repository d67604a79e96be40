/*
 * Matrix products: out = alpha * op(a) * op(b) + beta * c, row-major and contiguous.
 *
 * There are `batch` of them, of which c and out follow each other; from one to the next, a and
 * b move by a_step and b_step elements. op(a) is m x k and op(b) is k x n; a transposed matrix is stored the other way
 * round. As in BLAS, c is not read where beta is 0, and a and b are not read where
 * alpha or k is 0. Each function returns 0, or an errno.
 *
 *   gemm_seq      the definition: three plain loops
 *   gemm_blocked  blocks that stay in cache, an inner loop along rows that vectorises
 *   gemm_omp      the same, blocks of rows shared among threads
 *
 * REAL_T   type of the elements
 */
#include <errno.h>
#include <stdint.h>

#include "export.h"

#ifndef REAL_T
#define REAL_T float
#endif

#define BLOCK_M 32
#define BLOCK_N 128
#define BLOCK_K 64

static int64_t lesser(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static REAL_T finish(REAL_T sum, REAL_T alpha, REAL_T beta, const REAL_T *c, int64_t place)
{
    return beta == 0 ? alpha * sum : alpha * sum + beta * c[place];
}

EXPORT int gemm_seq(const REAL_T *a, const REAL_T *b, const REAL_T *c, REAL_T *out, int64_t m,
                    int64_t n, int64_t k, int64_t trans_a, int64_t trans_b, double alpha,
                    double beta, int64_t batch, int64_t a_step, int64_t b_step)
{
    if (k == 0 || alpha == 0)
        k = 0, alpha = 0;
    for (; batch > 0; batch--, a += a_step, b += b_step, c += m * n, out += m * n)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                REAL_T sum = 0;
                for (int64_t p = 0; p < k; p++)
                    sum += (trans_a ? a[p * m + i] : a[i * k + p]) *
                           (trans_b ? b[j * k + p] : b[p * n + j]);
                out[i * n + j] = finish(sum, (REAL_T)alpha, (REAL_T)beta, c, i * n + j);
            }
    return 0;
}

/* Copy a block to contiguous rows; `source` points at its first element. */
static void pack(const REAL_T *source, int64_t row_stride, int64_t column_stride, int64_t rows,
                 int64_t columns, REAL_T *target, int64_t target_stride)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            target[i * target_stride + j] = source[i * row_stride + j * column_stride];
}

/* sum += a_block * b_block; the inner loop runs along contiguous rows. */
static void multiply_block(const REAL_T *restrict a_block, const REAL_T *restrict b_block,
                           REAL_T *restrict sum, int64_t rows, int64_t columns, int64_t depth)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = 0; p < depth; p++) {
            const REAL_T factor = a_block[i * BLOCK_K + p];
            for (int64_t j = 0; j < columns; j++)
                sum[i * BLOCK_N + j] += factor * b_block[p * BLOCK_N + j];
        }
}

/* Compute the rows from `first` on, BLOCK_M of them or as many as there are. */
static void block_of_rows(const REAL_T *a, const REAL_T *b, const REAL_T *c, REAL_T *out,
                          int64_t first, int64_t m, int64_t n, int64_t k, int64_t trans_a,
                          int64_t trans_b, REAL_T alpha, REAL_T beta)
{
    REAL_T a_block[BLOCK_M * BLOCK_K], b_block[BLOCK_K * BLOCK_N], sum[BLOCK_M * BLOCK_N];
    const int64_t rows = lesser(BLOCK_M, m - first);
    const int64_t a_row = trans_a ? 1 : k, a_column = trans_a ? m : 1;
    const int64_t b_row = trans_b ? 1 : n, b_column = trans_b ? k : 1;

    for (int64_t j = 0; j < n; j += BLOCK_N) {
        const int64_t columns = lesser(BLOCK_N, n - j);
        for (int64_t i = 0; i < BLOCK_M * BLOCK_N; i++)
            sum[i] = 0;
        for (int64_t p = 0; p < k; p += BLOCK_K) {
            const int64_t depth = lesser(BLOCK_K, k - p);
            pack(a + first * a_row + p * a_column, a_row, a_column, rows, depth, a_block, BLOCK_K);
            pack(b + p * b_row + j * b_column, b_row, b_column, depth, columns, b_block, BLOCK_N);
            multiply_block(a_block, b_block, sum, rows, columns, depth);
        }
        for (int64_t i = 0; i < rows; i++)
            for (int64_t l = 0; l < columns; l++) {
                const int64_t place = (first + i) * n + j + l;
                out[place] = finish(sum[i * BLOCK_N + l], alpha, beta, c, place);
            }
    }
}

EXPORT int gemm_blocked(const REAL_T *a, const REAL_T *b, const REAL_T *c, REAL_T *out, int64_t m,
                        int64_t n, int64_t k, int64_t trans_a, int64_t trans_b, double alpha,
                        double beta, int64_t batch, int64_t a_step, int64_t b_step)
{
    if (k == 0 || alpha == 0)
        k = 0, alpha = 0;
    for (; batch > 0; batch--, a += a_step, b += b_step, c += m * n, out += m * n)
        for (int64_t first = 0; first < m; first += BLOCK_M)
            block_of_rows(a, b, c, out, first, m, n, k, trans_a, trans_b, (REAL_T)alpha,
                          (REAL_T)beta);
    return 0;
}

EXPORT int gemm_omp(const REAL_T *a, const REAL_T *b, const REAL_T *c, REAL_T *out, int64_t m,
                    int64_t n, int64_t k, int64_t trans_a, int64_t trans_b, double alpha,
                    double beta, int64_t batch, int64_t a_step, int64_t b_step, int64_t threads)
{
    const int64_t blocks = (m + BLOCK_M - 1) / BLOCK_M;
    if (threads < 1)
        return EINVAL;
    if (k == 0 || alpha == 0)
        k = 0, alpha = 0;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) num_threads((int)threads)
#endif
    for (int64_t block = 0; block < batch * blocks; block++) {
        const int64_t item = block / blocks, place = item * m * n;
        block_of_rows(a + item * a_step, b + item * b_step, c + place, out + place,
                      block % blocks * BLOCK_M, m, n, k, trans_a, trans_b, (REAL_T)alpha,
                      (REAL_T)beta);
    }
    return 0;
}
