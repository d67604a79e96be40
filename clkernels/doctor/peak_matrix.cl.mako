<%page args="UNITS, TYPE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="tensor" file="/gemm/tensor_instructions.mako"/>\
<%namespace name="copies" file="/gemm/tensor_copies.mako"/>\
${extensions.enable(fp64=TYPE == 'double')}\
<%
    word, ones = {
        "half": ("uint", "0x3c003c00"), "float": ("uint", "0x3f800000"), "double": ("double", "1.0")
    }[TYPE]
    total = "double" if TYPE == "double" else "float"
    chains, sums = (8, 4) if UNITS == "warp" else (1, 128)
%>\
/*
 * Probe: the peak of products by matrix units.
 *
 *   UNITS "warp"        8 chains of 16 x 8 sums a warp: each += ones * ones, from registers
 *   UNITS "warpgroup"   64 x 256 sums a warpgroup: += ones * ones, from tiles in local memory
 *
 *   sums = 0 -> + K -> + K -> ...    K = 16 for half, 8 for others; 4 steps a round
 *
 * Source: own. All sums of an item must be the number of steps times K, exactly.
 *
 * The host guarantees: groups of 128 items, a number in `out` for each item, fewer than
 * 2**23 / K steps; for wgmma the program is loaded again.
 *
 *   UNITS  "warp" or "warpgroup"
 *   TYPE   half, float (as TF32) or double; not double for warpgroups
 */
% if UNITS == "warp":
${tensor.declare_warp_multiply(TYPE)}\
% else:
${tensor.declare_group_multiply(TYPE, 256)}\
${copies.declare_bulk_copies()}\
% endif
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void multiply_tiles(__global ${total} *out, const uint rounds)
{
    ${total} sum[${chains}][${sums}];
    #pragma unroll
    for (uint c = 0; c < ${chains}; c++)
        #pragma unroll
        for (uint e = 0; e < ${sums}; e++)
            sum[c][e] = 0;
% if UNITS == "warp":
    ${word} a[4] = {${ones}, ${ones}, ${ones}, ${ones}}, b[2] = {${ones}, ${ones}};
    for (uint round = 0; round < rounds; round++) {
% for step in range(4):
% for chain in range(chains):
        multiply(sum[${chain}], a, b);
% endfor
% endfor
    }
% else:
    __local uint tiles[320 * 32] __attribute__((aligned(1024)));
    const uint memory = (uint)(ulong)tiles;
    for (uint i = get_local_id(0); i < 320 * 32; i += 128)
        tiles[i] = ${ones};
    memory_fence();
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint round = 0; round < rounds; round++) {
        multiply_fence();
% for k in range(4):
        multiply(sum[0], describe(memory, 16) + ${2 * k}, describe(memory + 8192, 16) + ${2 * k}, 1);
% endfor
        multiply_commit();
        multiply_wait(0);
    }
% endif
    bool same = true;
    #pragma unroll
    for (uint c = 0; c < ${chains}; c++)
        #pragma unroll
        for (uint e = 0; e < ${sums}; e++)
            same &= sum[c][e] == sum[0][0];
    out[get_global_id(0)] = same ? sum[0][0] : -1;
}
