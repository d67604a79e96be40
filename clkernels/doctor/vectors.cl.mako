<%page args="element, width, floating, through_builtins"/>\
/*
 * Probe: vectors of WIDTH elements as arguments and results of built-in functions.
 *
 * Source: own. Written for PoCL 3.0 on AVX-512 hosts, where vload16 hangs the
 * compiler, fma(float16) aborts and max(float16) ends in a segmentation fault.
 *
 *   item i    a[i*WIDTH .. +WIDTH)   b[...]   c[...]   ->   out[...]
 *
 * The host guarantees: all arrays hold global size * WIDTH elements.
 *
 *   element           scalar type
 *   width             elements in a vector: 2, 4, 8 or 16
 *   floating          whether the element is a floating-point type
 *   through_builtins  load and store with vloadN and vstoreN, else by a pointer
 */
% if element == "double":
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
typedef ${element}${width} vector_t;

__kernel void combine(__global const ${element} *restrict a, __global const ${element} *restrict b,
                      __global const ${element} *restrict c, __global ${element} *restrict out) {
  const size_t i = get_global_id(0);
% if through_builtins:
  const vector_t x = vload${width}(i, a), y = vload${width}(i, b), z = vload${width}(i, c);
  vstore${width}(x + y * z, i, out);
% else:
  const vector_t x = ((__global const vector_t *)a)[i];
  const vector_t y = ((__global const vector_t *)b)[i];
  const vector_t z = ((__global const vector_t *)c)[i];
  const vector_t low = min(x, y), high = max(x, y), inside = clamp(z, low, high);
% if floating:
  ((__global vector_t *)out)[i] = fma(high, inside, fabs(low));
% else:
  ((__global vector_t *)out)[i] = high * inside + low;
% endif
% endif
}
