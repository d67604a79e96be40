## How items of gemv_cpu.cl.mako that have slices of k add up their sums in the same launch.
##
##     partial, of a block of lines    slice 0: its sums as its item has them | slice 1: ...
##     arrived, of a block             how many slices have come
##
## Every item leaves its sums. The last one to come to a block adds up those of all slices, in their
## order, so that the result is the same each time; all others are done. Nobody waits.
##
##   by_last_item(rows, length, used)   what follows is for the last item, whose `sums` are then
##                                      those of all k
##
## rows     OpenCL C: how many rows of real numbers the sums are, side by side
## length   OpenCL C: real numbers of a row
## used     OpenCL C: how many of them there are
##
## Source: "threadFenceReduction" of NVIDIA's CUDA samples. The caller guarantees: groups of one item and
## no barriers; items see what others have written before a fence and an atomic operation; `arrived`
## has a zero for each block. It declares partial, arrived, sums, sum_real_t. Cost: a write of the sums
## and a read.
<%def name="by_last_item(rows, length, used)">\
    const uint slices = get_num_groups(1);
    sum_real_t *const mine = (sum_real_t *)sums;
    __global sum_real_t *left = (__global sum_real_t *)partial + get_global_id(0) * slices * ${rows} * ${length};
    __global sum_real_t *const own = left + get_global_id(1) * ${rows} * ${length};
    for (uint e = 0; e < ${rows}; ++e)
        for (uint i = 0; i < ${used}; ++i)
            own[e * ${length} + i] = mine[e * ${length} + i];
    mem_fence(CLK_GLOBAL_MEM_FENCE); /* what was written is seen before it is counted */
    if (atomic_inc(&arrived[get_global_id(0)]) + 1 != slices)
        return;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_xchg(&arrived[get_global_id(0)], 0);
    for (uint slice = 0; slice < slices; ++slice) {
        for (uint e = 0; e < ${rows}; ++e)
            for (uint i = 0; i < ${used}; ++i)
                mine[e * ${length} + i] = left[e * ${length} + i] + (slice ? mine[e * ${length} + i] : 0);
        left += ${rows} * ${length};
    }
</%def>\
