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
<%page args="ELEMENT, INDEX_T, EPILOGUE, STACKS, WIDTH, SHARERS, WG_SIZE, EACH, ALIGNED, MOST"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
<%
    CHAINS = 4
    beside = WG_SIZE // SHARERS


    def loaded(pointer):
        if ALIGNED or WIDTH == 1:
            return f"*(__global const vec_t *)({pointer})"
        return elements.module.load(ELEMENT.sum, f"({pointer})", WIDTH, MOST)
%>\
typedef ${INDEX_T} index_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\
typedef ${elements.module.vector(ELEMENT.sum, WIDTH)} vec_t;

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void gemm_split_k_reduction(${product.arguments(EPILOGUE, STACKS)},
    __global const sum_t *restrict partial,
    const uint splits,
    const index_t products)
{
% if SHARERS > 1:
    __local sum_t shared[${WG_SIZE * WIDTH}] __attribute__((aligned(64)));
% endif
    const index_t vectors = m * n / ${WIDTH}; /* of a product */
    const uint x = get_local_id(0) % ${beside};
    const uint y = get_local_id(0) / ${beside};
% if EACH > 1:
    const index_t begin = get_group_id(0) * (index_t)${EACH * beside} + x;
    const index_t end = min(begin + ${EACH}, products * vectors);
    for (index_t vector = begin; vector < end; ++vector)
% else:
    const index_t vector = get_group_id(0) * (index_t)${beside} + x;
% endif
    {
        /* Items past the last vector add up that one again, and store nothing. */
        const index_t here = min(vector, products * vectors - 1);
        const index_t number = here / vectors;
        const index_t place = here % vectors * ${WIDTH};
        __global const sum_t *sums_of = partial + (size_t)number * splits * m * n + place;
        vec_t sum_0 = 0, sum_1 = 0, sum_2 = 0, sum_3 = 0;
        for (uint first = 0; first < splits; first += ${CHAINS * SHARERS}) {
% for c in range(CHAINS):
            const uint slice_${c} = first + ${c * SHARERS} + y;
            sum_${c} += slice_${c} < splits ? ${loaded(f"sums_of + (size_t)(slice_{c}) * m * n")} : (vec_t)(0);
% endfor
        }
        vec_t value = (sum_0 + sum_1) + (sum_2 + sum_3);
% if SHARERS > 1:
        __local vec_t *sums = (__local vec_t *)shared;
        sums[get_local_id(0)] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
        value = ${elements.module.added([f"sums[x + {i * beside}]" for i in range(SHARERS)])};
% endif
        const index_t row = place / n;
        const index_t column = place % n;
        if (y == 0 && vector < products * vectors) {
            ${epilogue.apply(ELEMENT, EPILOGUE, "value", "row", "column", WIDTH, MOST, "(c + number * m * n)" if STACKS else "c")}\
            ${elements.module.store_vector(ELEMENT.type, "value", "result + (number * m * n + place)", WIDTH, ALIGNED)}
        }
    }
}
