<%page args="UNITS, TYPE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="tensor" file="/gemm/tensor_instructions.mako"/>\
<%namespace name="copies" file="/gemm/tensor_copies.mako"/>\
${extensions.enable(fp64=TYPE == 'double')}\
/*
 * Probe: one product by matrix units, of a warp or of a warpgroup.
 *
 *   UNITS "warp"        16 x 8 sums += 16 x 8 by 8 x 8, fragments in registers (mma.sync)
 *   UNITS "warpgroup"   64 x 8 sums += 64 x 32 by 32 x 8, tiles in local memory (wgmma)
 *
 *       k ->              the tiles of the warpgroup: rows of 32 numbers,
 *   a  [rows][k]          16-byte chunk c of row r at place c ^ (r % 8)
 *   b  [columns][k]
 *   out [rows][columns]
 *
 * Source: own; PTX ISA 9.0, sections on mma and wgmma. With small whole numbers all sums are exact.
 *
 * The host guarantees: one group of 32 or of 128 items; for wgmma the program is loaded again.
 *
 *   UNITS  "warp" or "warpgroup"
 *   TYPE   float (as TF32) or double; float for warpgroups
 */
% if UNITS == "warp":
<% word = "double" if TYPE == "double" else "uint" %>\
${tensor.declare_warp_multiply(TYPE)}\
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void multiply_tiles(__global const ${TYPE} *a, __global const ${TYPE} *b, __global ${TYPE} *out)
{
    const uint r = get_local_id(0) / 4, c = get_local_id(0) % 4;
    ${word} left[4], right[2];
    ${TYPE} sum[4] = {0, 0, 0, 0};
    for (uint e = 0; e < 4; e++)
        left[e] = as_${word}(a[(r + e % 2 * 8) * 8 + c + e / 2 * 4]);
    for (uint e = 0; e < 2; e++)
        right[e] = as_${word}(b[r * 8 + c + 4 * e]);
    multiply(sum, left, right);
    for (uint e = 0; e < 4; e++)
        out[(r + e / 2 * 8) * 8 + 2 * c + e % 2] = sum[e];
}
% else:
${tensor.declare_group_multiply(TYPE, 8)}\
${copies.declare_bulk_copies()}\
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void multiply_tiles(__global const float *a, __global const float *b, __global float *out)
{
    __local float tiles[72 * 32] __attribute__((aligned(1024)));
    const uint item = get_local_id(0), lane = item % 32, memory = (uint)(ulong)tiles;
    float sum[4] = {0, 0, 0, 0};
    for (uint i = item; i < 72 * 32; i += 128) {
        const uint row = i / 32, k = i % 32;
        tiles[row * 32 + ((k / 4 ^ row % 8) << 2) + k % 4] = row < 64 ? a[i] : b[i - 64 * 32];
    }
    memory_fence();
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_fence();
% for k in range(4):
    multiply(sum, describe(memory, 16) + ${2 * k}, describe(memory + 8192, 16) + ${2 * k}, 1);
% endfor
    multiply_commit();
    multiply_wait(0);
    for (uint e = 0; e < 4; e++)
        out[(item / 32 * 16 + lane / 4 + e / 2 * 8) * 8 + lane % 4 * 2 + e % 2] = sum[e];
}
% endif
