/*
 * An example of clkernels/gemm/gemv_cpu.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm m=1 n=4096 k=4096 trans_b=True
 *     algorithm     gemv
 *     configuration LANES=1 PIECES=1 VECTOR=8 ROWS=4 UNROLL=1 BLOCK=16 STEP_K=2048 SPLITS=1
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        gemv_cpu, (256, 1) items in groups of (1, 1)
 */
/*
 * Matrix times few vectors, an item a work-group: for CPUs.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias), where m or n is FEW
 *
 * The matrix (one of A and B) is read once; x, the other one, has FEW lines of k numbers.
 *
 *   lines along k                              lines across
 *
 *   STEP_K of x, in the first cache            BLOCK sums a line of x, in the first cache
 *     x x x x x x x x                            s s s s s s s s
 *     | | | | | | | |  * and +                   + + + + + + + +
 *   > l l l l l l l l   ROWS lines at a time   > l l l l l l l l   ROWS values of k at a time,
 *   > l l l l l l l l   in vectors             > l l l l l l l l   each times its number of x
 *       ^ VECTOR real numbers
 *
 * Complex numbers are pairs of real ones: a line of x becomes two, its real parts r and its
 * imaginary parts i, each number twice. Of (re, im) * r and (re, im) * i the product is made at
 * the end.
 *
 * Source: own; reading several lines together is what BLAS libraries do, see K. Goto,
 * R. van de Geijn, "High-Performance Implementation of the Level-3 BLAS", ACM TOMS 35 (2008).
 * The rows that are read next are asked for early: so many streams of memory no processor follows.
 * Cost: one read of the matrix; x is read once for every BLOCK lines along k.
 *
 * The host guarantees: all matrices are row-major and contiguous; dimension 0 of the grid has
 * `blocks` items for each of `products` products, dimension 1 one for each part of `depth` values of k;
 * `result` overlaps no input. Where A and B must not be read it passes k = 0.
 *
 * TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS: as of naive
 * SIDE        "a" or "b": which factor is the matrix
 * FEW         lines of the other one
 * SPLIT       whether sums of a part of k are stored in `partial`, and not results
 * JOIN        whether the last item to come adds these up, and stores results: gemv_cpu_join.mako
 * VECTOR      real numbers of a vector
 * LOAD        real numbers that a built-in function takes at once
 * ROWS        rows of the matrix, as it is stored, that are read together
 * BLOCK       lines of an item
 * STEP_K      values of k a trip, for lines along k
 */
typedef uint index_t;
typedef float element_t;
typedef float sum_t;

#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
typedef float real_t;
typedef float sum_real_t;
typedef float8 vector_t;
typedef float8 unaligned_t __attribute__((aligned(4)));
#define matrix b
#define other a
#define lines n
#define x_at(f, p) ((index_t)(f) * k + (p))
#define row_of(l, f) ((index_t)(f))
#define column_of(l, f) ((index_t)(l))
/* Ask for a line of memory before it is needed. The built-in prefetch of OpenCL often does nothing. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define fetch_line(p, writes) __builtin_prefetch((const void *)(size_t)(p), writes, 3)
#endif
#endif
#ifndef fetch_line
#define fetch_line(p, writes)
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemv_cpu(__global const element_t *restrict a,
              __global const element_t *restrict b,
              __global element_t *restrict result,
              const index_t m,
              const index_t n,
              const index_t k,
              const sum_t alpha,
              const sum_t beta,
              const index_t blocks,
              const index_t depth)
{
    const index_t number = get_global_id(0) / blocks;
    const index_t first = get_global_id(0) % blocks * 16;
    const uint count = min(lines - first, (index_t)16);
    const index_t start = min(k, (index_t)get_global_id(1) * depth);
    const index_t stop = min(k, start + depth);
    sum_t sums[16];
    for (uint i = 0; i < count * 1; ++i) {
        sums[i] = 0;
    }
    for (index_t p = start; p < stop; p += 2048) {
        const uint steps = min(stop - p, (index_t)2048);
        const uint whole = steps * 1 / 8 * 8;
        uint line = 0;
        for (; line + 4 <= count; line += 4) {
            __global const real_t *line_0 = (__global const real_t *)matrix
                + ((first + line + 0) * k + p) * 1;
            vector_t sum_0_0 = 0;
            __global const real_t *line_1 = (__global const real_t *)matrix
                + ((first + line + 1) * k + p) * 1;
            vector_t sum_1_0 = 0;
            __global const real_t *line_2 = (__global const real_t *)matrix
                + ((first + line + 2) * k + p) * 1;
            vector_t sum_2_0 = 0;
            __global const real_t *line_3 = (__global const real_t *)matrix
                + ((first + line + 3) * k + p) * 1;
            vector_t sum_3_0 = 0;
            const size_t next = (size_t)k * 4;
            for (uint q = 0; q < whole; q += 8) {
                const vector_t v_0 = *(__global const unaligned_t *)(line_0 + q);
                fetch_line(line_0 + q + next, 0);
                const vector_t v_1 = *(__global const unaligned_t *)(line_1 + q);
                fetch_line(line_1 + q + next, 0);
                const vector_t v_2 = *(__global const unaligned_t *)(line_2 + q);
                fetch_line(line_2 + q + next, 0);
                const vector_t v_3 = *(__global const unaligned_t *)(line_3 + q);
                fetch_line(line_3 + q + next, 0);
                {
                    const vector_t x_q = *(__global const unaligned_t *)(other + x_at(0, p) + q);
                    sum_0_0 += v_0 * x_q;
                    sum_1_0 += v_1 * x_q;
                    sum_2_0 += v_2 * x_q;
                    sum_3_0 += v_3 * x_q;
                }
            }
            const float4 sum_0_0_4 = sum_0_0.lo + sum_0_0.hi;
            const float2 sum_0_0_2 = sum_0_0_4.lo + sum_0_0_4.hi;
            const float sum_0_0_1 = sum_0_0_2.lo + sum_0_0_2.hi;
            sum_t sum_0_0_all = sum_0_0_1;
            const float4 sum_1_0_4 = sum_1_0.lo + sum_1_0.hi;
            const float2 sum_1_0_2 = sum_1_0_4.lo + sum_1_0_4.hi;
            const float sum_1_0_1 = sum_1_0_2.lo + sum_1_0_2.hi;
            sum_t sum_1_0_all = sum_1_0_1;
            const float4 sum_2_0_4 = sum_2_0.lo + sum_2_0.hi;
            const float2 sum_2_0_2 = sum_2_0_4.lo + sum_2_0_4.hi;
            const float sum_2_0_1 = sum_2_0_2.lo + sum_2_0_2.hi;
            sum_t sum_2_0_all = sum_2_0_1;
            const float4 sum_3_0_4 = sum_3_0.lo + sum_3_0.hi;
            const float2 sum_3_0_2 = sum_3_0_4.lo + sum_3_0_4.hi;
            const float sum_3_0_1 = sum_3_0_2.lo + sum_3_0_2.hi;
            sum_t sum_3_0_all = sum_3_0_1;
            for (uint q = whole / 1; q < steps; ++q) {
                const sum_t v_0 = load_element((__global const element_t *)line_0, q);
                sum_0_0_all += v_0 * other[x_at(0, p) + q];
                const sum_t v_1 = load_element((__global const element_t *)line_1, q);
                sum_1_0_all += v_1 * other[x_at(0, p) + q];
                const sum_t v_2 = load_element((__global const element_t *)line_2, q);
                sum_2_0_all += v_2 * other[x_at(0, p) + q];
                const sum_t v_3 = load_element((__global const element_t *)line_3, q);
                sum_3_0_all += v_3 * other[x_at(0, p) + q];
            }
            sums[(line + 0) * 1 + 0] += sum_0_0_all;
            sums[(line + 1) * 1 + 0] += sum_1_0_all;
            sums[(line + 2) * 1 + 0] += sum_2_0_all;
            sums[(line + 3) * 1 + 0] += sum_3_0_all;
        }
        for (; line < count; ++line) {
            __global const real_t *line_0 = (__global const real_t *)matrix
                + ((first + line + 0) * k + p) * 1;
            vector_t sum_0_0 = 0;
            const size_t next = (size_t)k * 1;
            for (uint q = 0; q < whole; q += 8) {
                const vector_t v_0 = *(__global const unaligned_t *)(line_0 + q);
                fetch_line(line_0 + q + next, 0);
                {
                    const vector_t x_q = *(__global const unaligned_t *)(other + x_at(0, p) + q);
                    sum_0_0 += v_0 * x_q;
                }
            }
            const float4 sum_0_0_4 = sum_0_0.lo + sum_0_0.hi;
            const float2 sum_0_0_2 = sum_0_0_4.lo + sum_0_0_4.hi;
            const float sum_0_0_1 = sum_0_0_2.lo + sum_0_0_2.hi;
            sum_t sum_0_0_all = sum_0_0_1;
            for (uint q = whole / 1; q < steps; ++q) {
                const sum_t v_0 = load_element((__global const element_t *)line_0, q);
                sum_0_0_all += v_0 * other[x_at(0, p) + q];
            }
            sums[(line + 0) * 1 + 0] += sum_0_0_all;
        }
    }
    /* Store the sums of the block, in the order of the result. */
    for (uint f = 0; f < 1; ++f) {
        for (uint line = 0; line < count; ++line) {
            sum_t sum = sums[line * 1 + f];
            sum *= alpha;
            store_element(sum, result, row_of(first + line, f) * n + column_of(first + line, f));
        }
    }
}
