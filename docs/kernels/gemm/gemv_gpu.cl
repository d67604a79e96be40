/*
 * An example of clkernels/gemm/gemv_gpu.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm m=1 n=4096 k=4096 trans_b=True
 *     algorithm     gemv
 *     configuration LANES=1 PIECES=128 VECTOR=4 ROWS=2 UNROLL=4 BLOCK=256 STEP_K=1024 SPLITS=1
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        gemv_gpu, (262144, 1) items in groups of (128, 1)
 */
/*
 * Matrix times few vectors, groups of items that share the sums along k: for GPUs.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias), where m or n is FEW
 *
 * The matrix (one of A and B) is read once; x, the other one, has FEW lines of k numbers. A group
 * is LANES items across the lines times PIECES items along k:
 *
 *   lines along k                                lines across, LINES of them a load
 *
 *          piece 0 piece 1 piece 0               lane 0  lane 1  lane 2
 *   lane 0 l l l l l l l l l l l l > k           l l l l l l l l l l l l  piece 0
 *   lane 1 l l l l l l l l l l l l               l l l l l l l l l l l l  piece 1
 *          ^ VECTOR values of k                  l l l l l l l l l l l l  piece 0
 *                                                v k
 *
 * Neighbouring items read neighbouring vectors, UNROLL of them before the first is used: for lines
 * across those of UNROLL values of k in a row, so that their numbers of x are a few loads. The sums
 * of a group meet in a tree in local memory, whose order never changes. Where k is split a group has
 * one slice of it. The sums of all slices are added up by the last group of a block of lines to come
 * (gemv_gpu_reduction.mako), or by a second launch (split_k_reduction.cl.mako).
 *
 * Source: own; the two forms are those of BLAS libraries for GPUs, see N. Bell, M. Garland,
 * "Implementing sparse matrix-vector multiplication on throughput-oriented processors", SC 2009,
 * for a vector of items to a row. Cost: one read of the matrix; x comes from caches.
 *
 * The host guarantees: all matrices are row-major and contiguous; dimension 0 of the grid has
 * `blocks` groups for each of `products` products, dimension 1 one for each slice of `depth` values of
 * k, a multiple of 16; where VECTOR or LINES > 1 are loaded at once they divide the rows of the
 * matrix, and VECTOR divides k; X_VECTOR divides what of x lies in a row, k or more; `result` overlaps
 * no input. Where A and B must not be read it passes k = 0. Arrays that are aligned to their elements
 * only are read element by element. Where the last group adds up, `arrived` has a zero for each group
 * of dimension 0, and has it again afterwards.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T     unsigned type that counts the elements of the largest array
 * EPILOGUE    `Epilogue` of opencl_lab/ops/gemm/launches.py: C, bias, activation
 * STACKS      dimensions of the stack of products, 0 for a single product
 * THIN        `Thin` of opencl_lab/ops/gemm/thin/lines.py: the matrix and x, and how they lie
 * SPLIT_K     "none", or who adds up the sums of all slices: "last group" or "second launch"
 * LANES       items of a group across the lines
 * PIECES      items of a group along k, a power of two
 * LINES       lines of an item
 * VECTOR      values of k of a load; 1 for lines across
 * WIDE        whether the LINES of an item are one load, for lines across
 * UNROLL      loads along k that an item makes before it uses them, a power of two up to 16
 * X_VECTOR    numbers of x of a load, a power of two
 * PTX         whether the device takes inline PTX
 */
typedef uint index_t;
typedef float element_t;
typedef float sum_t;

#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
#define matrix b
#define other a
#define lines n
#define x_at(f, p) ((index_t)(f) * k + (p))
#define row_of(l, f) ((index_t)(f))
#define column_of(l, f) ((index_t)(l))

__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void gemv_gpu(__global const element_t *restrict a,
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
    const index_t number = get_group_id(0) / blocks;
    const index_t first = get_group_id(0) % blocks * 2;
    const uint lane = get_local_id(0) / 128;
    const uint piece = get_local_id(0) % 128;
    const index_t start = min(k, (index_t)get_group_id(1) * depth);
    const index_t stop = min(k, start + depth);
    /* Lines behind the last one are the last one again, and not stored. */
    const index_t line_0_at = first + lane + 0;
    __global const element_t *line_0 = matrix + min(line_0_at, lines - 1) * k;
    sum_t sum_0_0 = 0;
    const index_t line_1_at = first + lane + 1;
    __global const element_t *line_1 = matrix + min(line_1_at, lines - 1) * k;
    sum_t sum_1_0 = 0;
    const bool aligned = ((ulong)matrix & 15) == 0 && ((ulong)other & 15) == 0;
    if (aligned) {
        index_t p = start + piece * 4;
        for (; p + 1540 <= stop; p += 2048) {
            const float4 v_0_0 = *(__global const float4 *)((line_0 + p + 0));
            const float4 v_0_1 = *(__global const float4 *)((line_1 + p + 0));
            const float4 v_1_0 = *(__global const float4 *)((line_0 + p + 512));
            const float4 v_1_1 = *(__global const float4 *)((line_1 + p + 512));
            const float4 v_2_0 = *(__global const float4 *)((line_0 + p + 1024));
            const float4 v_2_1 = *(__global const float4 *)((line_1 + p + 1024));
            const float4 v_3_0 = *(__global const float4 *)((line_0 + p + 1536));
            const float4 v_3_1 = *(__global const float4 *)((line_1 + p + 1536));
            {
                const float4 x_0_0 = *(__global const float4 *)((other + x_at(0, (p + 0)) + 0));
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s3, x_0_0.s3);
            }
            {
                const float4 x_0_0 = *(__global const float4 *)((other + x_at(0, (p + 512)) + 0));
                sum_0_0 = multiply_add(sum_0_0, v_1_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_1_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_1_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_1_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_1_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_1_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_1_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_1_1.s3, x_0_0.s3);
            }
            {
                const float4 x_0_0 = *(__global const float4 *)((other + x_at(0, (p + 1024)) + 0));
                sum_0_0 = multiply_add(sum_0_0, v_2_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_2_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_2_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_2_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_2_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_2_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_2_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_2_1.s3, x_0_0.s3);
            }
            {
                const float4 x_0_0 = *(__global const float4 *)((other + x_at(0, (p + 1536)) + 0));
                sum_0_0 = multiply_add(sum_0_0, v_3_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_3_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_3_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_3_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_3_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_3_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_3_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_3_1.s3, x_0_0.s3);
            }
        }
        for (; p < stop; p += 512) {
            const float4 v_0_0 = *(__global const float4 *)((line_0 + p + 0));
            const float4 v_0_1 = *(__global const float4 *)((line_1 + p + 0));
            {
                const float4 x_0_0 = *(__global const float4 *)((other + x_at(0, (p + 0)) + 0));
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s3, x_0_0.s3);
            }
        }
    }
    else {
        index_t p = start + piece * 4;
        for (; p + 1540 <= stop; p += 2048) {
            const float4 v_0_0 = (float4)(((line_0 + p + 0))[0], ((line_0 + p + 0))[1], ((line_0 + p + 0))[2], ((line_0 + p + 0))[3]);
            const float4 v_0_1 = (float4)(((line_1 + p + 0))[0], ((line_1 + p + 0))[1], ((line_1 + p + 0))[2], ((line_1 + p + 0))[3]);
            const float4 v_1_0 = (float4)(((line_0 + p + 512))[0], ((line_0 + p + 512))[1], ((line_0 + p + 512))[2], ((line_0 + p + 512))[3]);
            const float4 v_1_1 = (float4)(((line_1 + p + 512))[0], ((line_1 + p + 512))[1], ((line_1 + p + 512))[2], ((line_1 + p + 512))[3]);
            const float4 v_2_0 = (float4)(((line_0 + p + 1024))[0], ((line_0 + p + 1024))[1], ((line_0 + p + 1024))[2], ((line_0 + p + 1024))[3]);
            const float4 v_2_1 = (float4)(((line_1 + p + 1024))[0], ((line_1 + p + 1024))[1], ((line_1 + p + 1024))[2], ((line_1 + p + 1024))[3]);
            const float4 v_3_0 = (float4)(((line_0 + p + 1536))[0], ((line_0 + p + 1536))[1], ((line_0 + p + 1536))[2], ((line_0 + p + 1536))[3]);
            const float4 v_3_1 = (float4)(((line_1 + p + 1536))[0], ((line_1 + p + 1536))[1], ((line_1 + p + 1536))[2], ((line_1 + p + 1536))[3]);
            {
                const float4 x_0_0 = (float4)(((other + x_at(0, (p + 0)) + 0))[0], ((other + x_at(0, (p + 0)) + 0))[1], ((other + x_at(0, (p + 0)) + 0))[2], ((other + x_at(0, (p + 0)) + 0))[3]);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s3, x_0_0.s3);
            }
            {
                const float4 x_0_0 = (float4)(((other + x_at(0, (p + 512)) + 0))[0], ((other + x_at(0, (p + 512)) + 0))[1], ((other + x_at(0, (p + 512)) + 0))[2], ((other + x_at(0, (p + 512)) + 0))[3]);
                sum_0_0 = multiply_add(sum_0_0, v_1_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_1_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_1_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_1_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_1_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_1_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_1_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_1_1.s3, x_0_0.s3);
            }
            {
                const float4 x_0_0 = (float4)(((other + x_at(0, (p + 1024)) + 0))[0], ((other + x_at(0, (p + 1024)) + 0))[1], ((other + x_at(0, (p + 1024)) + 0))[2], ((other + x_at(0, (p + 1024)) + 0))[3]);
                sum_0_0 = multiply_add(sum_0_0, v_2_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_2_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_2_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_2_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_2_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_2_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_2_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_2_1.s3, x_0_0.s3);
            }
            {
                const float4 x_0_0 = (float4)(((other + x_at(0, (p + 1536)) + 0))[0], ((other + x_at(0, (p + 1536)) + 0))[1], ((other + x_at(0, (p + 1536)) + 0))[2], ((other + x_at(0, (p + 1536)) + 0))[3]);
                sum_0_0 = multiply_add(sum_0_0, v_3_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_3_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_3_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_3_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_3_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_3_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_3_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_3_1.s3, x_0_0.s3);
            }
        }
        for (; p < stop; p += 512) {
            const float4 v_0_0 = (float4)(((line_0 + p + 0))[0], ((line_0 + p + 0))[1], ((line_0 + p + 0))[2], ((line_0 + p + 0))[3]);
            const float4 v_0_1 = (float4)(((line_1 + p + 0))[0], ((line_1 + p + 0))[1], ((line_1 + p + 0))[2], ((line_1 + p + 0))[3]);
            {
                const float4 x_0_0 = (float4)(((other + x_at(0, (p + 0)) + 0))[0], ((other + x_at(0, (p + 0)) + 0))[1], ((other + x_at(0, (p + 0)) + 0))[2], ((other + x_at(0, (p + 0)) + 0))[3]);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s0, x_0_0.s0);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s0, x_0_0.s0);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s1, x_0_0.s1);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s1, x_0_0.s1);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s2, x_0_0.s2);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s2, x_0_0.s2);
                sum_0_0 = multiply_add(sum_0_0, v_0_0.s3, x_0_0.s3);
                sum_1_0 = multiply_add(sum_1_0, v_0_1.s3, x_0_0.s3);
            }
        }
    }
    const uint me = get_local_id(0);
    /* Add up the sums of the items of a line. */
    __local sum_t tree[2][128];
    tree[0][me] = sum_0_0;
    tree[1][me] = sum_1_0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (piece < 64) {
        tree[0][me] += tree[0][me + 64];
        tree[1][me] += tree[1][me + 64];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (piece < 32) {
        tree[0][me] += tree[0][me + 32];
        tree[1][me] += tree[1][me + 32];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (piece < 16) {
        tree[0][me] += tree[0][me + 16];
        tree[1][me] += tree[1][me + 16];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (piece < 8) {
        tree[0][me] += tree[0][me + 8];
        tree[1][me] += tree[1][me + 8];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (piece < 4) {
        tree[0][me] += tree[0][me + 4];
        tree[1][me] += tree[1][me + 4];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (piece < 2) {
        tree[0][me] += tree[0][me + 2];
        tree[1][me] += tree[1][me + 2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (piece < 1) {
        tree[0][me] += tree[0][me + 1];
        tree[1][me] += tree[1][me + 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (piece == 0) {
        if (line_0_at < lines) {
            {
                sum_t sum = tree[0][me];
                sum *= alpha;
                store_element(sum, result, row_of(line_0_at, 0) * n + column_of(line_0_at, 0));
            }
        }
        if (line_1_at < lines) {
            {
                sum_t sum = tree[1][me];
                sum *= alpha;
                store_element(sum, result, row_of(line_1_at, 0) * n + column_of(line_1_at, 0));
            }
        }
    }
}
