## DEVICE_FENCE(), after which other groups of a launch see what this item has seen or written
## before. NVIDIA compiles mem_fence to a fence for the own group alone.
##
## PTX   whether the device takes inline PTX
<%def name="declare(PTX)">\
% if PTX:
#define DEVICE_FENCE() asm volatile("membar.gl;" ::: "memory")
% else:
#define DEVICE_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
% endif
</%def>\
