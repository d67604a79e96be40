## Definitions that every kernel file may include. Mako renders nothing but what a switch asks for.
##
## fp64   enable double precision where the device says it is an extension
## fp16   the same for half precision
##
## `ask_width` asks for sub-groups of so many items, by an attribute of the kernel of Intel's extension
## cl_intel_required_subgroup_size; 0: the compiler chooses.
<%def name="enable(fp64=False, fp16=False)">\
% if fp64:
#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
% endif
% if fp16:
#if defined(cl_khr_fp16)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
% endif
</%def>\
<%def name="ask_width(width)">\
% if width:
__attribute__((intel_reqd_sub_group_size(${width}))) \
% endif
</%def>\
