## Definitions that every kernel file may include. Mako renders nothing but what a switch asks for.
##
## REQUIRE_FP64   enable double precision where the device says it is an extension
## REQUIRE_FP16   the same for half precision
<%page args="REQUIRE_FP64=False, REQUIRE_FP16=False"/>\
% if REQUIRE_FP64:
#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
% endif
% if REQUIRE_FP16:
#if defined(cl_khr_fp16)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
% endif
