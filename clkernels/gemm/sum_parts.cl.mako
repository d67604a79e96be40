/*
 * Adds up the partial sums of a matrix product whose k was split, and makes results of them.
 *
 *     partial, of a product    part 0 | part 1 | ... | part splits - 1      m x n sums each
 *                                  \       \      |       /
 *     result                     activation(alpha * sum + beta * c + bias)
 *
 * SHARERS items of a group have WIDTH sums together. Each adds every SHARERS-th part, in four
 * chains, so that four loads are under way; then one of them adds what they have, in pairs. An item
 * of a CPU has the sums for itself, and EACH times WIDTH of them.
 * The order is always the same, and errors grow with the length of a chain only.
 *
 * Source: own. Cost: reads all partial sums once.
 *
 * The host guarantees: WIDTH divides m * n, and n if there is a bias, and is 1 for complex numbers;
 * the arrays are aligned to one element; `partial` has m * n sums for each part of each product of
 * the stack.
 *
 * TYPE ... STACKS  see parts.mako
 * INDEX_T          unsigned type that counts the elements of the largest array
 * WIDTH            sums that items share
 * SHARERS          items that share them, a power of two
 * WG_SIZE          items of a group, a multiple of SHARERS
 * EACH             times WIDTH: sums of an item; 1 where items share
 * ALIGNED          whether vectors of WIDTH are aligned in the arrays
 * MOST             real numbers that a builtin may take at once where they are not
 */
<%page args="TYPE, INDEX_T, HAS_C, BIAS, ACTIVATION, STACKS, WIDTH, SHARERS, WG_SIZE, EACH,
             ALIGNED, MOST"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="memory" file="/gemm/blocked_memory.mako"/>\
${extensions.enable(fp64=TYPE.startswith('double'))}\
<%
    CHAINS = 4
    beside = WG_SIZE // SHARERS
    vec = parts.module.vector(parts.module.sum_type(TYPE), WIDTH)


    def part(number):
        pointer = f"(sums_of + (size_t)({number}) * m * n)"
        if ALIGNED or WIDTH == 1:
            return f"*(__global const {vec} *){pointer}"
        return parts.module.load(parts.module.sum_type(TYPE), pointer, WIDTH, MOST)


    def in_pairs(terms):
        if len(terms) == 1:
            return terms[0]
        half = len(terms) // 2
        return f"({in_pairs(terms[:half])} + {in_pairs(terms[half:])})"
%>\
typedef ${INDEX_T} index_t;
${parts.types()}\

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void gemm_sum_parts(${parts.arguments()},
    __global const sum_t *restrict partial,
    const uint splits,
    const index_t products)
{
% if SHARERS > 1:
    __local sum_t shared[${WG_SIZE * WIDTH}] __attribute__((aligned(64)));
% endif
    const index_t each = m * n / ${WIDTH};
    const uint x = get_local_id(0) % ${beside};
    const uint y = get_local_id(0) / ${beside};
% if EACH > 1:
    const index_t begin = get_group_id(0) * (index_t)${EACH * beside} + x;
    const index_t end = min(begin + ${EACH}, products * each);
    for (index_t piece = begin; piece < end; ++piece)
% else:
    const index_t piece = get_group_id(0) * (index_t)${beside} + x;
% endif
    {
        /* Items past the last piece add up that one again, and store nothing. */
        const index_t here = min(piece, products * each - 1);
        const index_t number = here / each;
        const index_t place = here % each * ${WIDTH};
        __global const sum_t *sums_of = partial + (size_t)number * splits * m * n + place;
        ${vec} sum_0 = 0\
% for c in range(1, CHAINS):
, sum_${c} = 0\
% endfor
;
        for (uint first = 0; first < splits; first += ${CHAINS * SHARERS}) {
% for c in range(CHAINS):
            const uint part_${c} = first + ${c * SHARERS} + y;
            sum_${c} += part_${c} < splits ? ${part(f"part_{c}")} : (${vec})(0);
% endfor
        }
        ${vec} value = (sum_0 + sum_1) + (sum_2 + sum_3);
% if SHARERS > 1:
        __local ${vec} *sums = (__local ${vec} *)shared;
        sums[get_local_id(0)] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
        value = ${in_pairs([f"sums[x + {i * beside}]" for i in range(SHARERS)])};
% endif
        const index_t row = place / n;
        const index_t column = place % n;
        if (y == 0 && piece < products * each) {
% if HAS_C and STACKS:
            __global const element_t *all_c = c;
            __global const element_t *c = all_c + number * m * n;
% endif
${parts.finish("value", "row", "column", WIDTH, MOST)}\
            ${memory.module.store(TYPE, "value", "result + (number * m * n + place)", WIDTH, ALIGNED, MOST)}
        }
    }
}
