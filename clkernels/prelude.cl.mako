## Definitions that every kernel file may include. Mako renders nothing but what a switch asks for.
##
## REQUIRE_FP64   enable double precision where the device says it is an extension
## REQUIRE_FP16   the same for half precision
## DEVICE_FENCE   define DEVICE_FENCE(), after which other groups see what was written before:
##                "ptx" or "opencl". NVIDIA compiles mem_fence to a fence for the own group alone.
<%page args="REQUIRE_FP64=False, REQUIRE_FP16=False, DEVICE_FENCE=None"/>\
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
% if DEVICE_FENCE == "ptx":
#define DEVICE_FENCE() asm volatile("membar.gl;" ::: "memory")
% elif DEVICE_FENCE == "opencl":
#define DEVICE_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
% endif
