<%page args="elements, size"/>\
/*
 * Probe: vectors of `size` bytes as arguments and results of built-in functions.
 *
 * Source: own. Written for PoCL 3.0 on AVX-512 hosts, where vload16 hangs the
 * compiler, fma(float16) aborts and max(float16) ends in a segmentation fault.
 *
 *   item i    a[i*W .. +W)   b[...]   c[...]   ->   out[...]      W elements are one vector
 *
 *   combine_T  vectors come through pointers, and go through min, max, clamp (and fma, fabs)
 *   load_T     vectors come and go through vloadW and vstoreW
 *
 * The host guarantees: all arrays hold global size * W elements, aligned to a vector.
 *
 *   elements  scalar types and their bytes, for example [("float", 4), ("uint", 4)]
 *   size      bytes in a vector
 */
% for element, element_bytes in elements:
<% vector = f"{element}{size // element_bytes}"; width = size // element_bytes %>
% if element == "double":
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
__kernel void combine_${element}(__global const ${vector} *restrict a,
                                 __global const ${vector} *restrict b,
                                 __global const ${vector} *restrict c,
                                 __global ${vector} *restrict out) {
  const size_t i = get_global_id(0);
  const ${vector} low = min(a[i], b[i]), high = max(a[i], b[i]), inside = clamp(c[i], low, high);
% if element == "uint":
  out[i] = high * inside + low;
% else:
  out[i] = fma(high, inside, fabs(low));
% endif
}

__kernel void load_${element}(__global const ${element} *restrict a,
                              __global const ${element} *restrict b,
                              __global const ${element} *restrict c,
                              __global ${element} *restrict out) {
  const size_t i = get_global_id(0);
  vstore${width}(vload${width}(i, a) + vload${width}(i, b) * vload${width}(i, c), i, out);
}
% endfor
