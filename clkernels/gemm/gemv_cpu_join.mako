## How items of gemv_cpu.cl.mako that share k add up their sums in the same launch.
##
##     partial, of a block of lines    part 0: its sums as its item has them | part 1: ...
##     arrived, of a block             how many parts have come
##
## Every item leaves its sums. The last one to come to a block adds up those of all parts, in their
## order, so that the result is the same each time; all others are done. Nobody waits.
##
##   begin()   leave the sums; what follows is for the last item, whose `sums` are then those of all k
##
## The caller guarantees: groups of one item and no barriers; items see what others have written before
## a fence and an atomic operation; `arrived` has a zero for each block. It declares partial, arrived,
## count, sums. The names of these parameters are read from the page that calls: FEW, BLOCK.
##
## Source: "threadFenceReduction" of NVIDIA's CUDA samples. Cost: a write of the sums and a read.
##
## rows     how many rows of real numbers the sums are, side by side
## length   real numbers of a row
## used     OpenCL C: how many of them there are
<%def name="begin(rows, length, used)">\
    const uint all = get_num_groups(1);
    sum_real_t *const mine = (sum_real_t *)sums;
    __global sum_real_t *kept = (__global sum_real_t *)partial + get_global_id(0) * all * ${rows * length};
    __global sum_real_t *const own = kept + get_global_id(1) * ${rows * length};
    for (uint e = 0; e < ${rows}; ++e)
        for (uint i = 0; i < ${used}; ++i)
            own[e * ${length} + i] = mine[e * ${length} + i];
    mem_fence(CLK_GLOBAL_MEM_FENCE); /* what was written is seen before it is counted */
    if (atomic_inc(&arrived[get_global_id(0)]) + 1 != all)
        return;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_xchg(&arrived[get_global_id(0)], 0);
    for (uint part = 0; part < all; ++part) {
        for (uint e = 0; e < ${rows}; ++e)
            for (uint i = 0; i < ${used}; ++i)
                mine[e * ${length} + i] = kept[e * ${length} + i] + (part ? mine[e * ${length} + i] : 0);
        kept += ${rows * length};
    }
</%def>\
