## How groups of gemv_gpu.cl.mako that share k add up their sums in the same launch.
##
##     partial, of a block of lines    part 0: its results side by side | part 1: ...
##     arrived, of a block             how many parts have come
##
## Every group leaves its sums. The last one to come to a block adds up those of all parts, in an order
## that never changes: `sharers` items have a result together, or an item several of them, with up to
## UNDER_WAY loads at once, whose latency is what all this takes.
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
    UNDER_WAY = 32
    MOST_CHAINS = 16
    MOST_SHARERS = 16


    def in_pairs(terms):
        if len(terms) == 1:
            return terms[0]
        half = len(terms) // 2
        return f"({in_pairs(terms[:half])} + {in_pairs(terms[half:])})"
%>\
<%def name="finish(sums, tree)">\
<%
    items, results = LANES * PIECES, LANES * LINES * FEW
    sharers = 1
    while sharers < MOST_SHARERS and 2 * sharers * results <= items:
        sharers *= 2
    beside = items // sharers
    trips = -(-results // beside)
    chains = max(1, min(MOST_CHAINS, UNDER_WAY // trips))
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
    const uint r_${t} = me % ${beside} + ${t * beside};
    __global const sum_t *const from_${t} = kept + min(r_${t}, (uint)${results - 1});
% for c in range(chains):
    sum_t chain_${t}_${c} = 0;
% endfor
% endfor
    for (uint part = share; part < parts; part += ${chains * sharers}) {
% for c in range(chains):
        {
            const bool there = part + ${c * sharers} < parts;
            const size_t at = (part + ${c * sharers}) * (size_t)${results};
% for t in range(trips):
            chain_${t}_${c} += there ? from_${t}[at] : (sum_t)(0);
% endfor
        }
% endfor
    }
% for t in range(trips):
    {
        const uint r = r_${t};
        sum_t sum = ${in_pairs([f"chain_{t}_{c}" for c in range(chains)])};
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
