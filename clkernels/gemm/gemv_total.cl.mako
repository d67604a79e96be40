/*
 * The second pass of a matrix product whose sums along k were formed in parts.
 *
 *     partial  part 0: s s s s s s ...  \
 *              part 1: s s s s s s ...   > + in an order that never changes, then the epilogue
 *              part 2: s s s s s s ...  /
 *
 *     a group:  LANES items side by side, each with EACH elements, times PIECES items that
 *               share the parts; a tree in local memory adds their sums.
 *
 * Source: own; a tree of sums. Cost: one read of `partial`, one write.
 *
 * The host guarantees: dimension 0 of the grid covers `total` elements, the results of all
 * products of the stack, in whole groups; `result` overlaps nothing.
 *
 * TYPE, INDEX_T, HAS_C, BIAS, ACTIVATION, STACKS: as of naive
 * LANES       items of a group along the elements
 * PIECES      items of a group that share the parts, a power of two
 * EACH        elements of an item
 */
<%page args="TYPE, INDEX_T, HAS_C, BIAS, ACTIVATION, STACKS, LANES, PIECES, EACH"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=TYPE.startswith('double')"/>\
typedef ${INDEX_T} index_t;
${parts.types()}\

__kernel __attribute__((reqd_work_group_size(${LANES * PIECES}, 1, 1)))
void gemv_total(${parts.arguments()},
    __global const sum_t *restrict partial,
    const index_t total,
    const uint splits)
{
% if PIECES > 1:
    __local sum_t tree[${PIECES * LANES}];
    const uint lane = get_local_id(0) % ${LANES};
    const uint piece = get_local_id(0) / ${LANES};
% else:
    const uint lane = get_local_id(0);
    const uint piece = 0;
% endif
% for e in range(EACH if PIECES > 1 else 1):
    {
% if PIECES == 1 and EACH > 1:
    for (uint e = 0; e < ${EACH}; ++e) {
<% e = "e" %>\
% endif
        const index_t element = (get_group_id(0) * (index_t)${EACH} + ${e}) * ${LANES} + lane;
        sum_t sum = 0;
        if (element < total) {
            for (uint s = piece; s < splits; s += ${PIECES}) {
                sum += partial[s * total + element];
            }
        }
% if PIECES > 1:
% if e:
        barrier(CLK_LOCAL_MEM_FENCE); /* the tree before was read */
% endif
        tree[get_local_id(0)] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
<% half = PIECES // 2 %>\
% while half:
        if (piece < ${half}) {
            tree[get_local_id(0)] += tree[get_local_id(0) + ${half * LANES}];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
<% half //= 2 %>\
% endwhile
        sum = tree[lane];
% endif
        if (piece == 0 && element < total) {
            const index_t row = element / n % m;
            const index_t column = element % n;
% if HAS_C and STACKS:
            __global const element_t *c_all = c;
            __global const element_t *c = c_all + element / (m * n) * m * n;
% endif
${parts.finish("sum", "row", "column")}\
            store_element(sum, result, element);
        }
% if PIECES == 1 and EACH > 1:
    }
% endif
    }
% endfor
}
