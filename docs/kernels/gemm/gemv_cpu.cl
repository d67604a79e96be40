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
 *   lines along k: dot                         lines across: add
 *
 *   STEP_K of x, in the first cache            BLOCK sums a line of x, in the first cache
 *     x x x x x x x x                            s s s s s s s s
 *     | | | | | | | |  * and +                   + + + + + + + +
 *   > l l l l l l l l   ROWS lines at a time   > l l l l l l l l   ROWS values of k at a time,
 *   > l l l l l l l l   in vectors             > l l l l l l l l   each times its number of x
 *       ^ VECTOR real numbers
 *
 * Complex numbers are pairs of real ones: a line of x becomes two, its real components r and its
 * imaginary ones i, each number twice. Of (re, im) * r and (re, im) * i the product is made at
 * the end.
 *
 * Where k is split an item has one slice of it. Its sums are added up by the last item of a block to come
 * (gemv_cpu_reduction.mako), or by a second launch (split_k_reduction.cl.mako).
 *
 * Source: own; reading several lines together is what BLAS libraries do, see K. Goto,
 * R. van de Geijn, "High-Performance Implementation of the Level-3 BLAS", ACM TOMS 35 (2008).
 * The rows that are read next are asked for early: so many streams of memory no processor follows.
 * Cost: one read of the matrix; x is read once for every BLOCK lines along k.
 *
 * The host guarantees: all matrices are row-major and contiguous; dimension 0 of the grid has
 * `blocks` items for each of `products` products, dimension 1 one for each slice of `depth` values of
 * k; `result` overlaps no input. Where A and B must not be read it passes k = 0.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T     unsigned type that counts the elements of the largest array
 * EPILOGUE    `Epilogue` of opencl_lab/ops/gemm/launches.py: C, bias, activation
 * STACKS      dimensions of the stack of products, 0 for a single product
 * THIN        `Thin` of opencl_lab/ops/gemm/thin/lines.py: the matrix and x, and how they lie
 * SPLIT_K     "none", or who adds up the sums of all slices: "last group" or "second launch"
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
typedef float real_t; /* of an element in memory, or of its components */
typedef float sum_real_t;
typedef float8 vector_t;
typedef vector_t unaligned_t __attribute__((aligned(4)));
#define matrix b
#define other a
#define lines n
#define x_at(f, p) ((index_t)(f) * k + (p))
#define row_of(l, f) ((index_t)(f))
#define column_of(l, f) ((index_t)(l))
#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define FETCH_LINE(address, writes) __builtin_prefetch((const void *)(size_t)(address), writes, 3)
#endif
#endif
#ifndef FETCH_LINE
#define FETCH_LINE(address, writes)
#endif

#define FEW 1
#define COMPONENTS 1
#define X_LINES (FEW * COMPONENTS) /* lines of x in real numbers */
#define VECTOR 8
#define BLOCK 16
#define STEP_K 2048

static inline vector_t load_vector(__global const real_t *p)
{
    return *(__global const unaligned_t *)p;
}

/* What a product has become: of (re, im) times the real and times the imaginary component of x. */
static inline sum_t product_of(const sum_t *by)
{
    return by[0];
}

/* Add up the lanes of a vector; those of real and of imaginary components apart. */
static inline sum_t add_lanes(const vector_t v_8)
{
    const float4 v_4 = v_8.lo + v_8.hi;
    const float2 v_2 = v_4.lo + v_4.hi;
    const float v_1 = v_2.lo + v_2.hi;
    return v_1;
}

/* Multiply 4 lines, `apart` numbers from each other, with `steps` values of x. */
static inline void dot_4(__global const real_t *line, const size_t apart,
                         __global const sum_real_t *x, const size_t x_apart, const uint steps, sum_t *sums)
{
    const uint whole = steps * COMPONENTS / VECTOR * VECTOR;
    const size_t next = 4 * apart;
    vector_t sum[4][X_LINES] = {{0}};
    for (uint q = 0; q < whole; q += VECTOR) {
        vector_t v[4];
        #pragma unroll
        for (uint r = 0; r < 4; ++r) {
            v[r] = load_vector(line + r * apart + q);
            FETCH_LINE(line + r * apart + q + next, 0);
        }
        #pragma unroll
        for (uint e = 0; e < X_LINES; ++e) {
            const vector_t x_q = *(__global const unaligned_t *)(x + e * x_apart + q);
            #pragma unroll
            for (uint r = 0; r < 4; ++r)
                sum[r][e] += v[r] * x_q;
        }
    }
    sum_t all[4][X_LINES];
    #pragma unroll
    for (uint r = 0; r < 4; ++r)
        #pragma unroll
        for (uint e = 0; e < X_LINES; ++e)
            all[r][e] = add_lanes(sum[r][e]);
    for (uint q = whole / COMPONENTS; q < steps; ++q) {
        #pragma unroll
        for (uint r = 0; r < 4; ++r) {
            const sum_t v = load_element((__global const element_t *)(line + r * apart), q);
            #pragma unroll
            for (uint e = 0; e < X_LINES; ++e)
                all[r][e] += v * *(__global const sum_t *)(x + e * x_apart + q * COMPONENTS);
        }
    }
    #pragma unroll
    for (uint r = 0; r < 4; ++r)
        #pragma unroll
        for (uint f = 0; f < FEW; ++f)
            sums[r * FEW + f] += product_of(all[r] + f * COMPONENTS);
}

/* Multiply 1 lines, `apart` numbers from each other, with `steps` values of x. */
static inline void dot_1(__global const real_t *line, const size_t apart,
                         __global const sum_real_t *x, const size_t x_apart, const uint steps, sum_t *sums)
{
    const uint whole = steps * COMPONENTS / VECTOR * VECTOR;
    const size_t next = 1 * apart;
    vector_t sum[1][X_LINES] = {{0}};
    for (uint q = 0; q < whole; q += VECTOR) {
        vector_t v[1];
        #pragma unroll
        for (uint r = 0; r < 1; ++r) {
            v[r] = load_vector(line + r * apart + q);
            FETCH_LINE(line + r * apart + q + next, 0);
        }
        #pragma unroll
        for (uint e = 0; e < X_LINES; ++e) {
            const vector_t x_q = *(__global const unaligned_t *)(x + e * x_apart + q);
            #pragma unroll
            for (uint r = 0; r < 1; ++r)
                sum[r][e] += v[r] * x_q;
        }
    }
    sum_t all[1][X_LINES];
    #pragma unroll
    for (uint r = 0; r < 1; ++r)
        #pragma unroll
        for (uint e = 0; e < X_LINES; ++e)
            all[r][e] = add_lanes(sum[r][e]);
    for (uint q = whole / COMPONENTS; q < steps; ++q) {
        #pragma unroll
        for (uint r = 0; r < 1; ++r) {
            const sum_t v = load_element((__global const element_t *)(line + r * apart), q);
            #pragma unroll
            for (uint e = 0; e < X_LINES; ++e)
                all[r][e] += v * *(__global const sum_t *)(x + e * x_apart + q * COMPONENTS);
        }
    }
    #pragma unroll
    for (uint r = 0; r < 1; ++r)
        #pragma unroll
        for (uint f = 0; f < FEW; ++f)
            sums[r * FEW + f] += product_of(all[r] + f * COMPONENTS);
}

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
    const index_t first = get_global_id(0) % blocks * BLOCK;
    const uint count = min(lines - first, (index_t)BLOCK);
    const index_t start = min(k, (index_t)get_global_id(1) * depth);
    const index_t stop = min(k, start + depth);
    sum_t sums[BLOCK * FEW];
    for (uint i = 0; i < count * FEW; ++i)
        sums[i] = 0;
    const size_t apart = (size_t)k * COMPONENTS;
    for (index_t p = start; p < stop; p += STEP_K) {
        const uint steps = min(stop - p, (index_t)STEP_K);
        __global const sum_real_t *x = other + p;
        const size_t x_apart = k;
        uint line = 0;
        for (; line + 4 <= count; line += 4)
            dot_4((__global const real_t *)(matrix + (first + line) * k + p), apart, x, x_apart, steps,
                  sums + line * FEW);
        for (; line + 1 <= count; line += 1)
            dot_1((__global const real_t *)(matrix + (first + line) * k + p), apart, x, x_apart, steps,
                  sums + line * FEW);
    }
    /* Store the sums of the block, in the order of the result. */
    for (uint f = 0; f < FEW; ++f) {
        for (uint line = 0; line < count; ++line) {
            sum_t sum = sums[line * FEW + f];
            sum *= alpha;
            store_element(sum, result, row_of(first + line, f) * n + column_of(first + line, f));
        }
    }
}
