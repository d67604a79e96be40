## How groups of gemv_gpu.cl.mako that share k add up their sums in the same launch.
##
##     partial, of a block of lines    part 0: its results side by side | part 1: ...
##     arrived, of a block             how many parts have come
##
## Every group leaves its sums. The last one to come to a block adds up those of all parts, in an order
## that never changes: `sharers` items have a result together, with CHAINS loads under way each.
##
##   finish(sums, tree)   leave the sums, add up those of all, store results
##
## The names of these parameters are read from the page that calls: LANES, PIECES, LINES, FEW, WIDE.
## It declares partial, arrived, first, lane, piece, me.
##
## Source: "threadFenceReduction" of NVIDIA's CUDA samples, see common/arrival.mako. Cost: a write of
## the sums and a read. Barriers are where all items of all groups come: PoCL needs that.
##
## sums    expressions of an item of piece 0, those of a line side by side
## tree    local memory of a sum an item at least; used where items share results
<%namespace name="arrival" file="/common/arrival.mako"/>\
<%namespace name="gemv" file="/gemm/gemv.mako"/>\
<%!
    CHAINS = 8
    MOST_SHARERS = 16
%>\
<%def name="finish(sums, tree)">\
<%
    items, results = LANES * PIECES, LANES * LINES * FEW
    sharers = 1
    while sharers < MOST_SHARERS and 2 * sharers * results <= items:
        sharers *= 2
    beside = items // sharers
    trips = -(-results // beside)
%>\
    __global sum_t *const kept = partial + (size_t)get_group_id(0) * get_num_groups(1) * ${results};
    if (piece == 0) {
        __global sum_t *const own = kept + get_group_id(1) * (size_t)${results} + lane;
% for s, sum in enumerate(sums):
        own[${s * LANES}] = ${sum};
% endfor
    }
    __local uint before_me;
    ${arrival.arrive("arrived[get_group_id(0)]", "before_me", "me")}
    const uint all = get_num_groups(1);
    const bool last = before_me + 1 == all;
    const uint parts = last ? all : 0;
    if (last && me == 0)
        arrived[get_group_id(0)] = 0;
    const uint share = me / ${beside};
% for t in range(trips):
    {
        const uint r = me % ${beside} + ${t * beside};
        __global const sum_t *const from = kept + min(r, (uint)${results - 1});
% for c in range(CHAINS):
        sum_t chain_${c} = 0;
% endfor
        for (uint part = share; part < parts; part += ${CHAINS * sharers}) {
% for c in range(CHAINS):
            chain_${c} += part + ${c * sharers} < parts ? from[(part + ${c * sharers}) * (size_t)${results}] : (sum_t)(0);
% endfor
        }
        sum_t sum = ((chain_0 + chain_1) + (chain_2 + chain_3)) + ((chain_4 + chain_5) + (chain_6 + chain_7));
% if sharers > 1:
        ${tree}[me] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum = 0;
% for i in range(sharers):
        sum += ${tree}[me % ${beside} + ${i * beside}];
% endfor
% endif
<% line, of_line = f"(r % {LANES})", f"(r / {LANES})" %>\
% if WIDE:
        const index_t l_at = first + ${line} * ${LINES} + ${of_line} / ${FEW};
% else:
        const index_t l_at = first + ${line} + ${of_line} / ${FEW} * ${LANES};
% endif
        const uint f_at = ${of_line} % ${FEW};
        if (last && share == 0 && r < ${results} && l_at < lines) {
${gemv.result("sum", "l_at", "f_at")}\
        }
    }
% endfor
</%def>\
