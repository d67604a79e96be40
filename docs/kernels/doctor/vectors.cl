/*
 * An example of clkernels/doctor/vectors.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    elements=(('float', 4), ('uint', 4)), size=16
 */
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

__kernel void combine_float(__global const float4 *restrict a,
                            __global const float4 *restrict b,
                            __global const float4 *restrict c,
                            __global float4 *restrict out) {
    const size_t i = get_global_id(0);
    const float4 low = min(a[i], b[i]), high = max(a[i], b[i]), inside = clamp(c[i], low, high);
    out[i] = fma(high, inside, fabs(low));
}

__kernel void load_float(__global const float *restrict a,
                         __global const float *restrict b,
                         __global const float *restrict c,
                         __global float *restrict out) {
    const size_t i = get_global_id(0);
    vstore4(vload4(i, a) + vload4(i, b) * vload4(i, c), i, out);
}

__kernel void combine_uint(__global const uint4 *restrict a,
                           __global const uint4 *restrict b,
                           __global const uint4 *restrict c,
                           __global uint4 *restrict out) {
    const size_t i = get_global_id(0);
    const uint4 low = min(a[i], b[i]), high = max(a[i], b[i]), inside = clamp(c[i], low, high);
    out[i] = high * inside + low;
}

__kernel void load_uint(__global const uint *restrict a,
                        __global const uint *restrict b,
                        __global const uint *restrict c,
                        __global uint *restrict out) {
    const size_t i = get_global_id(0);
    vstore4(vload4(i, a) + vload4(i, b) * vload4(i, c), i, out);
}
