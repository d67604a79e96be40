## Definitions that every kernel file may include. Mako renders nothing but what a switch asks for.
##
## fp64   enable double precision where the device says it is an extension
## fp16   the same for half precision
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
