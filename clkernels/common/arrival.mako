## The last group to come finds what all others have written: no other group is waited for.
##
##     arrive(counter, before, item)   `before`, a word of local memory, becomes how many groups have
##                                     come before this one, the same for all items
##
## Who has all other groups before it comes after all that they have written before they came, and
## makes the counter zero again for the next launch. Uses DEVICE_FENCE of fence.cl.mako.
##
## Source: "threadFenceReduction" of NVIDIA's CUDA samples. The caller guarantees: all items of the
## group come here; `counter`, a uint of global memory, is zero at first. Cost: an atomic operation
## per group, two fences, two barriers.
##
## item   OpenCL C: the number of this item
<%def name="arrive(counter, before, item='item')">\
DEVICE_FENCE();
barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
if (${item} == 0)
    ${before} = atomic_inc(&${counter});
barrier(CLK_LOCAL_MEM_FENCE);
DEVICE_FENCE();\
</%def>\
