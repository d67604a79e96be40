## How blocked.cl.mako stores the block of an item: in vectors, or side by side where rows are no
## whole vectors.
##
##     an item's sums   v v v v . . . . v v v v      stored as they are: four lanes apart
##     by local memory  0 1 2 3 4 5 6 7 8 9 ..       neighbouring items, neighbouring columns
##
## A store of single numbers that lie a vector apart would touch each piece of memory once for every
## lane. So row after row of all items goes through local memory, where the tiles of B were: two
## strips of WG_M rows that take turns, so that a barrier a strip is enough.
##
##   results()   store what lies inside the result, or in `partial` where k is split
##
## Most names of parameters are read from the page that calls, as all of blocked.cl.mako. It declares
## the sums sum_R_V, item, block, lane, own_row, own_column, first_row, first_column, b_tile.
##
## Source: own. The caller guarantees that all items come to results() unless JOIN: there are barriers.
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="memory" file="/gemm/blocked_memory.mako"/>\
<%def name="results()">\
<%
    each = 2 if parts.module.is_complex(TYPE) else 1
    apart = each == 1 and STORE_WIDTH < VECTOR_WIDTH
    if apart and not SPLIT and BUFFERS == 2 and WG_M <= TILE_K:
        side_by_side()
    else:
        as_they_are(STORE_WIDTH if each == 1 else 1, each)
%>\
</%def>\
<%def name="as_they_are(stored, each)">\
<%
    real = parts.module.sum_type(TYPE).removesuffix("2")
    kind = parts.module.vector(real, stored * each)
    lanes = parts.module.lanes
%>\
% for r in range(WORK_M):
    {
        const index_t row = first_row + own_row + ${r // ROW_WIDTH * LANES_M * ROW_WIDTH + r % ROW_WIDTH};
        if (row < m) {
% for v in range(WORK_N // VECTOR_WIDTH):
% for l in range(0, VECTOR_WIDTH, stored):
            {
                const index_t column = first_column + own_column + ${v * LANES_N * VECTOR_WIDTH + l};
                if (column < n) {
                    ${kind} value = ${lanes(f"sum_{r}_{v}", l * each, stored * each, VECTOR_WIDTH * each)};
${finished(stored)}\
                }
            }
% endfor
% endfor
        }
    }
% endfor
</%def>\
## Turn `value`, for `stored` columns from `column` on, into results, unless it is of a part of k.
<%def name="finished(stored)">\
<% of_sums = "float" if TYPE == "half" else TYPE %>\
% if SPLIT and not JOIN:
                    ${memory.module.store(of_sums, "value", "partial + (row * n + column)", stored, ALIGNED, MOST)}
% else:
${parts.finish("value", "row", "column", stored, MOST)}\
                    ${memory.module.store(TYPE, "value", "result + (row * n + column)", stored, ALIGNED, MOST)}
% endif
</%def>\
<%def name="side_by_side()">\
<% columns = WG_N * WORK_N %>\
    const uint own_line = block / ${WG_N // LANES_N} * ${LANES_M} + lane / ${LANES_N};
    barrier(CLK_LOCAL_MEM_FENCE); /* the last tiles may be overwritten */
% for r in range(WORK_M):
    {
        __local sum_t *const strip = b_tile + ${r % 2 * WG_M * columns};
% for v in range(WORK_N // VECTOR_WIDTH):
        *(__local vec_t *)(strip + own_line * ${columns} + own_column + ${v * LANES_N * VECTOR_WIDTH}) = sum_${r}_${v};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE); /* the strip is complete, and the one before it read */
#pragma unroll
        for (uint number = item; number < ${WG_M * columns}; number += ${WG_M * WG_N}) {
            const uint line = number / ${columns};
            const index_t row = first_row + line / ${LANES_M} * ${LANES_M * WORK_M} + line % ${LANES_M} * ${ROW_WIDTH} + ${r // ROW_WIDTH * LANES_M * ROW_WIDTH + r % ROW_WIDTH};
            const index_t column = first_column + number % ${columns};
            if (row < m && column < n) {
                sum_t value = strip[number];
${finished(1)}\
            }
        }
    }
% endfor
</%def>\
