/*
 * An example of clkernels/gemm/blocked.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm size=1024
 *     algorithm     blocked
 *     configuration WORK_M=4 WORK_N=4 WG_M=8 WG_N=16 TILE_K=8 BUFFERS=2 LOCAL_PAD=1 SWIZZLE=1
 *                   SPLITS=4
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        gemm_blocked, (262144,) items in groups of (128,)
 */
/*
 * Matrix product with a block of the result in the registers of each work-item.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 * op(X) is X, its transpose, or the conjugate of either. A work-group owns one tile of the
 * result, WG_M * WORK_M rows by WG_N * WORK_N columns, and walks along k in k tiles of TILE_K.
 * Each of these lies in local memory, k by k:
 *
 *     a_tile   TILE_K lines of the tile's rows of op(A)      (so A is turned on its way)
 *     b_tile   TILE_K lines of the tile's columns of op(B)
 *
 * With two buffers the next k tile is on its way from global memory into registers while the
 * products of this one are added up, so that one barrier a k tile is enough:
 *
 *     registers     load 1 . . . . . . . load 2 . . . . . . .
 *     local memory  [0] multiply  [1] <- 1  [1] multiply  [0] <- 2  [0] ...
 *
 * LANES_M x LANES_N items with numbers in a row share a block of the tile. An item owns its
 * rows in chunks of ROW_WIDTH and its columns in chunks of VECTOR_WIDTH, which are spaced so
 * that what neighbours read from a line lies side by side: no bank conflicts, and coalesced
 * stores. Two items beside each other, two chunks of columns:
 *
 *     b_tile line p:   | v0 v0 | w0 w0 | v1 v1 | w1 w1 |
 *                       item 0  item 1  item 0  item 1
 *
 *     for each p:  sum[row r][vector v] += a_tile[p][row r] * b_tile[p][vector v]
 *
 * A complex product is two of real numbers by vectors: the real part of a times (re, im) of b,
 * and its imaginary part times (-im, re).
 *
 * The first k tile takes what k leaves over, with zero beyond; all others are whole. Rows and
 * columns past the end read the last ones instead, and what they give is not stored. So no
 * k tile has a slow way for edges. Where k is split, group after group has the same tile and
 * another slice of k. The last group of a tile to come adds up the sums of all slices
 * (blocked_reduction.mako), or a second launch does (split_k_reduction.cl.mako).
 *
 * Source: V. Volkov, J. Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008
 * (register blocks over shared-memory tiles); R. Nath, S. Tomov, J. Dongarra, "An improved MAGMA
 * GEMM for Fermi", IJHPCA 2010 (prefetch through registers); NVIDIA's CUTLASS (the rest of k
 * first).
 *
 * The host guarantees: all matrices are row-major and contiguous; `result` overlaps no input; the
 * grid has a group for every tile, slice and product of the stack, tiles first. Where A and B must
 * not be read it passes k = 0. Widths of loads and STORE_WIDTH divide the rows of the arrays they are
 * about; those of loads, but for 1, divide TILE_K where the rows lie along k. With ALIGNED the arrays
 * are aligned to 16 bytes, else to one element. `slice_k` is a multiple of TILE_K. Where the last
 * group adds up, `arrived` has a zero for every tile and product, and has it again afterwards;
 * `partial` is aligned to vectors.
 *
 * ELEMENT          `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T          unsigned type that counts the elements of the largest array
 * EPILOGUE         `Epilogue` of opencl_lab/ops/gemm/launches.py: C, bias, activation
 * STACKS           dimensions of the stack of products, 0 for a single product
 * TILE_A, TILE_B   `StagedTile` of opencl_lab/ops/gemm/blocked/staging.py: tiles in local memory, and
 *                  how they are loaded
 * WORK_M, WORK_N   rows and columns of the result that an item owns
 * WG_M, WG_N       items of a group along the rows and the columns
 * TILE_K           values of k in a k tile; the items share the loads of a tile evenly
 * BUFFERS          2: the next k tile is loaded meanwhile; 1: one after the other
 * SWIZZLE          rows of tiles in a strip: groups in a row go down a strip, for the caches
 * SPLIT_K          "none", or who adds up the sums of all slices: "last group" or "second launch"
 * VECTOR_WIDTH     columns in a vector, a power of two that divides WORK_N
 * ROW_WIDTH        rows read at once, a power of two that divides WORK_M
 * LANES_M, LANES_N items that share a block of the tile: divisors of WG_M and WG_N
 * STORE_WIDTH      elements to store at once, a divisor of VECTOR_WIDTH
 * ALIGNED          whether vectors in global memory are aligned
 * MOST             real numbers that a built-in function may take at once where they are not
 * UNROLL           values of p a trip of the inner loop
 * PTX              whether the device takes inline PTX
 */
typedef uint index_t;
typedef float real_t;
typedef float4 vec_t;
typedef float element_t;
typedef float sum_t;

#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
#define DEVICE_FENCE() asm volatile("membar.gl;" ::: "memory")

__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void gemm_blocked(__global const element_t *restrict a,
                  __global const element_t *restrict b,
                  __global element_t *restrict result,
                  const index_t m,
                  const index_t n,
                  const index_t k,
                  const sum_t alpha,
                  const sum_t beta,
                  __global sum_t *partial,
                  volatile __global uint *arrived,
                  const uint splits,
                  const index_t slice_k)
{
    __local sum_t a_tile[576] __attribute__((aligned(64)));
    __local sum_t b_tile[1088] __attribute__((aligned(64)));
    const uint item = get_local_id(0);

    /* Find the tile, the slice of k and the product. */
    const index_t tiles_m = (m + 31) / 32;
    const index_t tiles_n = (n + 63) / 64;
    const index_t tile = get_group_id(0) % (tiles_m * tiles_n);
    const index_t number = get_group_id(0) / (tiles_m * tiles_n);
    const index_t first_row = tile / tiles_n * 32;
    const index_t first_column = tile % tiles_n * 64;
    const index_t start = number % splits * slice_k;
    const index_t depth = min(slice_k, k - start);
    const index_t counter = number / splits * (tiles_m * tiles_n) + tile;
    a += start;
    b += start * n;

    /* Find what this item owns. */
    const uint lane = item % 32;
    const uint block = item / 32;
    const uint own_row = block / 2 * 16 + lane / 8 * 4;
    const uint own_column = block % 2 * 32 + lane % 8 * 4;
    __local const sum_t *a_from = a_tile + own_row;
    __local const sum_t *b_from = b_tile + own_column;
    vec_t sum_0_0 = 0;
    vec_t sum_1_0 = 0;
    vec_t sum_2_0 = 0;
    vec_t sum_3_0 = 0;

    const index_t steps = max((depth + 7) / 8, (index_t)1);
    const uint rest = depth - (steps - 1) * 8; /* what the first k tile takes */
    uint current = 0;

    /* Load the first k tile. */
    const uint a_far = item / 4;
    const uint a_near = item % 4 * 2;
    const index_t a_at_0 = min(first_row + (a_far + 0), m - 1) * k + a_near;
    float2 a_next_0;
    a_next_0 = a_near < rest ? *(__global const float2 *)(a + a_at_0) : (float2)(0);
    a_tile[0 + (a_near + 0) * 36 + (a_far + 0)] = a_next_0.s0;
    a_tile[0 + (a_near + 1) * 36 + (a_far + 0)] = a_next_0.s1;
    a += (index_t)(rest);
    const uint b_far = item / 16;
    const uint b_near = item % 16 * 4;
    const index_t b_at_0 = (b_far + 0) * n + min(first_column + b_near, n - 4);
    float4 b_next_0;
    b_next_0 = (b_far + 0) < rest ? *(__global const float4 *)(b + b_at_0) : (float4)(0);
    *(__local float4 *)(b_tile + 0 + (b_far + 0) * 68 + b_near) = b_next_0;
    b += (index_t)(rest) * n;
    barrier(CLK_LOCAL_MEM_FENCE); /* the tiles are complete */

    /* No condition stands between the loads and the products, so that compilers may mix them. */
    for (index_t step = 1; step < steps; ++step) {
        a_next_0 = *(__global const float2 *)(a + a_at_0);
        a += (index_t)(8);
        b_next_0 = *(__global const float4 *)(b + b_at_0);
        b += (index_t)(8) * n;
        #pragma unroll 8
        for (uint p = 0; p < 8; ++p) {
            const vec_t b_0 = *(__local const vec_t *)(b_from + p * 68 + 0);
            const float4 a_0 = *(__local const float4 *)(a_from + p * 36 + 0);
            sum_0_0 += a_0.s0 * b_0;
            sum_1_0 += a_0.s1 * b_0;
            sum_2_0 += a_0.s2 * b_0;
            sum_3_0 += a_0.s3 * b_0;
        }
        current ^= 1;
        a_tile[current * 288 + (a_near + 0) * 36 + (a_far + 0)] = a_next_0.s0;
        a_tile[current * 288 + (a_near + 1) * 36 + (a_far + 0)] = a_next_0.s1;
        *(__local float4 *)(b_tile + current * 544 + (b_far + 0) * 68 + b_near) = b_next_0;
        a_from = a_tile + current * 288 + own_row;
        b_from = b_tile + current * 544 + own_column;
        barrier(CLK_LOCAL_MEM_FENCE); /* the next tiles are complete, these may be overwritten */
    }
    #pragma unroll 8
    for (uint p = 0; p < 8; ++p) {
        const vec_t b_0 = *(__local const vec_t *)(b_from + p * 68 + 0);
        const float4 a_0 = *(__local const float4 *)(a_from + p * 36 + 0);
        sum_0_0 += a_0.s0 * b_0;
        sum_1_0 += a_0.s1 * b_0;
        sum_2_0 += a_0.s2 * b_0;
        sum_3_0 += a_0.s3 * b_0;
    }

    /* Leave the sums to the last group of this tile, which adds up those of all. */
    const size_t apart = 512;
    __global vec_t *left = (__global vec_t *)partial + counter * splits * apart + item;
    __global vec_t *own = left + number % splits * apart;
    own[0] = sum_0_0;
    own[128] = sum_1_0;
    own[256] = sum_2_0;
    own[384] = sum_3_0;
    __local uint before_me;
    DEVICE_FENCE();
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (item == 0)
        before_me = atomic_inc(&arrived[counter]);
    barrier(CLK_LOCAL_MEM_FENCE);
    DEVICE_FENCE();
    if (before_me + 1 == splits) {
        if (item == 0)
            arrived[counter] = 0;
        sum_0_0 = 0;
        sum_1_0 = 0;
        sum_2_0 = 0;
        sum_3_0 = 0;
        #pragma unroll 4
        for (uint slice = 0; slice < splits; ++slice) {
            sum_0_0 += left[0];
            sum_1_0 += left[128];
            sum_2_0 += left[256];
            sum_3_0 += left[384];
            left += apart;
        }

        /* Store what lies inside the result. */
        {
            const index_t row = first_row + own_row + 0;
            if (row < m) {
                {
                    const index_t column = first_column + own_column + 0;
                    if (column < n) {
                        float4 value = sum_0_0;
                        value *= alpha;
                        *(__global float4 *)(result + (row * n + column)) = value;
                    }
                }
            }
        }
        {
            const index_t row = first_row + own_row + 1;
            if (row < m) {
                {
                    const index_t column = first_column + own_column + 0;
                    if (column < n) {
                        float4 value = sum_1_0;
                        value *= alpha;
                        *(__global float4 *)(result + (row * n + column)) = value;
                    }
                }
            }
        }
        {
            const index_t row = first_row + own_row + 2;
            if (row < m) {
                {
                    const index_t column = first_column + own_column + 0;
                    if (column < n) {
                        float4 value = sum_2_0;
                        value *= alpha;
                        *(__global float4 *)(result + (row * n + column)) = value;
                    }
                }
            }
        }
        {
            const index_t row = first_row + own_row + 3;
            if (row < m) {
                {
                    const index_t column = first_column + own_column + 0;
                    if (column < n) {
                        float4 value = sum_3_0;
                        value *= alpha;
                        *(__global float4 *)(result + (row * n + column)) = value;
                    }
                }
            }
        }
    }
}
