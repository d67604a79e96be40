## How groups of gemv_gpu.cl.mako that have slices of k add up their sums in the same launch.
##
##     partial, of a block of lines    slice 0: its results side by side | slice 1: ...
##     arrived, of a block             how many slices have come
##
## Every group leaves its sums. The last one to come to a block adds up those of all slices, in an order
## that never changes: `sharers` items have a result together, or an item several of them, with up to
## UNDER_WAY loads at once, whose latency is what all this takes.
##
##   by_last_group(..)   leave the sums; the last group adds up those of all, and stores results
##
## element, epilogue, thin        as of gemv.mako
## lanes, pieces, lines, wide     of a group, as of gemv_gpu.cl.mako
## sums                           expressions of an item of piece 0, those of a line side by side
## tree                           local memory of a sum an item at least; used where items share results
##
## Source: "threadFenceReduction" of NVIDIA's CUDA samples, see common/arrival.mako. The caller declares
## partial, arrived, first, lane, piece, me. Cost: a write of the sums and a read. Barriers are where all
## items of all groups come: PoCL needs that.
<%namespace name="arrival" file="/common/arrival.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="gemv" file="/gemm/gemv.mako"/>\
<%!
    UNDER_WAY = 32
    MOST_CHAINS = 16
    MOST_SHARERS = 16

%>\
<%def name="by_last_group(element, epilogue, thin, lanes, pieces, lines, wide, sums, tree)">\
<%
    items, results = lanes * pieces, lanes * lines * thin.few
    sharers = 1
    while sharers < MOST_SHARERS and 2 * sharers * results <= items:
        sharers *= 2
    beside = items // sharers
    trips = -(-results // beside)
    chains = max(1, min(MOST_CHAINS, UNDER_WAY // trips))
%>\
    __global sum_t *const left = partial + (size_t)get_group_id(0) * get_num_groups(1) * ${results};
    if (piece == 0) {
        __global sum_t *const own = left + get_group_id(1) * (size_t)${results} + lane;
% for s, sum in enumerate(sums):
        own[${s * lanes}] = ${sum};
% endfor
    }
    __local uint before_me;
    ${arrival.arrive("arrived[get_group_id(0)]", "before_me", "me")}
    const uint all = get_num_groups(1);
    const bool last = before_me + 1 == all;
    const uint slices = last ? all : 0;
    if (last && me == 0)
        arrived[get_group_id(0)] = 0;
    const uint share = me / ${beside};
% for t in range(trips):
    const uint r_${t} = me % ${beside} + ${t * beside};
    __global const sum_t *const from_${t} = left + min(r_${t}, (uint)${results - 1});
% for c in range(chains):
    sum_t chain_${t}_${c} = 0;
% endfor
% endfor
    for (uint slice = share; slice < slices; slice += ${chains * sharers}) {
% for c in range(chains):
        {
            const bool there = slice + ${c * sharers} < slices;
            const size_t at = (slice + ${c * sharers}) * (size_t)${results};
% for t in range(trips):
            chain_${t}_${c} += there ? from_${t}[at] : (sum_t)(0);
% endfor
        }
% endfor
    }
% for t in range(trips):
    {
        const uint r = r_${t};
        sum_t sum = ${elements.module.added([f"chain_{t}_{c}" for c in range(chains)])};
% if sharers > 1:
        ${tree}[me] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum = 0;
% for i in range(sharers):
        sum += ${tree}[me % ${beside} + ${i * beside}];
% endfor
% endif
<% line, of_line = f"(r % {lanes})", f"(r / {lanes})" %>\
% if wide:
        const index_t l_at = first + ${line} * ${lines} + ${of_line} / ${thin.few};
% else:
        const index_t l_at = first + ${line} + ${of_line} / ${thin.few} * ${lanes};
% endif
        const uint f_at = ${of_line} % ${thin.few};
        if (last && share == 0 && r < ${results} && l_at < lines) {
${gemv.result(element, epilogue, "sum", "l_at", "f_at")}\
        }
    }
% endfor
</%def>\
