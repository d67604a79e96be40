/*
 * An example of clkernels/gemm/split_k_reduction.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm m=64 n=64 k=65536
 *     algorithm     blocked
 *     configuration WORK_M=8 WORK_N=8 WG_M=8 WG_N=8 TILE_K=16 BUFFERS=2 LOCAL_PAD=1 SWIZZLE=1
 *                   SPLITS=200
 *     device        GPU (plain-gpu of tools/rendered_kernels.py)
 *     launch        gemm_split_k_reduction, (16384,) items in groups of (128,)
 */
/*
 * Split-K reduction: adds up the partial sums of a matrix product, and makes results of them.
 *
 *     partial, of a product    slice 0 of k | slice 1 | ... | slice splits - 1      m x n sums each
 *                                     \         \     |          /
 *     result                     activation(alpha * sum + beta * c + bias)
 *
 * SHARERS items of a group have WIDTH sums together. Each adds every SHARERS-th slice, in four
 * chains, so that four loads are under way; then one of them adds what they have, in pairs. An item
 * of a CPU has the sums for itself, and EACH times WIDTH of them.
 * The order is always the same, and errors grow with the length of a chain only.
 *
 * Source: own; the parallel split-K of CUTLASS has a second kernel like this. Cost: reads all partial
 * sums once.
 *
 * The host guarantees: WIDTH divides m * n, and n if there is a bias, and is 1 for complex numbers;
 * the arrays are aligned to one element; `partial` has m * n sums for each slice of each product of
 * the stack.
 *
 * ELEMENT          `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T          unsigned type that counts the elements of the largest array
 * EPILOGUE         `Epilogue` of opencl_lab/ops/gemm/launches.py: C, bias, activation
 * STACKS           dimensions of the stack of products, 0 for a single product
 * WIDTH            sums that items share
 * SHARERS          items that share them, a power of two
 * WG_SIZE          items of a group, a multiple of SHARERS
 * EACH             times WIDTH: sums of an item; 1 where items share
 * ALIGNED          whether vectors of WIDTH are aligned in the arrays
 * MOST             real numbers that a built-in function may take at once where they are not
 */
typedef uint index_t;
typedef float element_t;
typedef float sum_t;

#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
typedef float4 vec_t;

__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void gemm_split_k_reduction(__global const element_t *restrict a,
                            __global const element_t *restrict b,
                            __global element_t *restrict result,
                            const index_t m,
                            const index_t n,
                            const index_t k,
                            const sum_t alpha,
                            const sum_t beta,
                            __global const sum_t *restrict partial,
                            const uint splits,
                            const index_t products)
{
    __local sum_t shared[512] __attribute__((aligned(64)));
    const index_t vectors = m * n / 4; /* of a product */
    const uint x = get_local_id(0) % 8;
    const uint y = get_local_id(0) / 8;
    const index_t vector = get_group_id(0) * (index_t)8 + x;
    {
        /* Items past the last vector add up that one again, and store nothing. */
        const index_t here = min(vector, products * vectors - 1);
        const index_t number = here / vectors;
        const index_t place = here % vectors * 4;
        __global const sum_t *sums_of = partial + (size_t)number * splits * m * n + place;
        vec_t sum_0 = 0, sum_1 = 0, sum_2 = 0, sum_3 = 0;
        for (uint first = 0; first < splits; first += 64) {
            const uint slice_0 = first + 0 + y;
            sum_0 += slice_0 < splits ? *(__global const vec_t *)(sums_of + (size_t)(slice_0) * m * n) : (vec_t)(0);
            const uint slice_1 = first + 16 + y;
            sum_1 += slice_1 < splits ? *(__global const vec_t *)(sums_of + (size_t)(slice_1) * m * n) : (vec_t)(0);
            const uint slice_2 = first + 32 + y;
            sum_2 += slice_2 < splits ? *(__global const vec_t *)(sums_of + (size_t)(slice_2) * m * n) : (vec_t)(0);
            const uint slice_3 = first + 48 + y;
            sum_3 += slice_3 < splits ? *(__global const vec_t *)(sums_of + (size_t)(slice_3) * m * n) : (vec_t)(0);
        }
        vec_t value = (sum_0 + sum_1) + (sum_2 + sum_3);
        __local vec_t *sums = (__local vec_t *)shared;
        sums[get_local_id(0)] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
        value = ((((sums[x + 0] + sums[x + 8]) + (sums[x + 16] + sums[x + 24])) + ((sums[x + 32] + sums[x + 40]) + (sums[x + 48] + sums[x + 56]))) + (((sums[x + 64] + sums[x + 72]) + (sums[x + 80] + sums[x + 88])) + ((sums[x + 96] + sums[x + 104]) + (sums[x + 112] + sums[x + 120]))));
        const index_t row = place / n;
        const index_t column = place % n;
        if (y == 0 && vector < products * vectors) {
            value *= alpha;
            *(__global float4 *)(result + (number * m * n + place)) = value;
        }
    }
}
