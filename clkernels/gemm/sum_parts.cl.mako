/*
 * Adds up the partial sums of a matrix product whose k was split, and makes results of them.
 *
 *     partial, of a product    part 0 | part 1 | ... | part splits - 1      m x n sums each
 *                                  \       \      |       /
 *     result                     activation(alpha * sum + beta * c + bias)
 *
 * An item has WIDTH sums of a row. It adds the parts in four chains, each fourth part in one,
 * and then these: the same order always, half as long as rounding errors go, and four loads
 * are under way.
 *
 * Source: own. Cost: reads all partial sums once.
 *
 * The host guarantees: WIDTH divides n, and is 1 for complex numbers; the arrays are aligned to
 * one element; `partial` has m * n sums for each part of each product of the stack.
 *
 * TYPE ... STACKS  see parts.mako
 * INDEX_T          unsigned type that counts the elements of the largest array
 * WIDTH            sums of an item
 * WG_SIZE          items of a group
 * ALIGNED          whether vectors of WIDTH are aligned in the arrays
 * MOST             real numbers that a builtin may take at once where they are not
 */
<%page args="TYPE, INDEX_T, HAS_C, BIAS, ACTIVATION, STACKS, WIDTH, WG_SIZE, ALIGNED, MOST"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="memory" file="/gemm/blocked_memory.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=TYPE.startswith('double')"/>\
<%
    CHAINS = 4
    vec = parts.module.vector(parts.module.sum_type(TYPE), WIDTH)


    def part(number):
        pointer = f"(partial + (size_t)({number}) * m * n + place)"
        if ALIGNED or WIDTH == 1:
            return f"*(__global const {vec} *){pointer}"
        return parts.module.load(parts.module.sum_type(TYPE), pointer, WIDTH, MOST)
%>\
typedef ${INDEX_T} index_t;
${parts.types()}\

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void gemm_sum_parts(${parts.arguments()},
    __global const sum_t *restrict partial,
    const uint splits,
    const index_t products)
{
    const index_t each = m * (n / ${WIDTH});
    const index_t number = get_global_id(0) / each;
    const index_t place = get_global_id(0) % each * ${WIDTH};
    if (number < products) {
        partial += (size_t)number * splits * m * n;
${parts.enter("number")}\
% for c in range(CHAINS):
        ${vec} sum_${c} = 0;
% endfor
        uint s = 0;
        for (; s + ${CHAINS - 1} < splits; s += ${CHAINS}) {
% for c in range(CHAINS):
            sum_${c} += ${part(f"s + {c}")};
% endfor
        }
        for (; s < splits; ++s)
            sum_0 += ${part("s")};
        ${vec} value = (sum_0 + sum_1) + (sum_2 + sum_3);
        const index_t row = place / n;
        const index_t column = place % n;
${parts.finish("value", "row", "column", WIDTH, MOST)}\
        ${memory.module.store(TYPE, "value", "result + place", WIDTH, ALIGNED, MOST)}
    }
}
