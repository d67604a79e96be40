/*
 * An example of clkernels/gemm/tensor_pack_halves.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm size=2000 dtype=float16
 *     algorithm     tensor
 *     configuration UNITS=warpgroup BLOCK_M=128 BLOCK_N=128 GROUPS_M=2 GROUPS_N=1 INSTRUCTIONS=4
 *                   STAGES=4 SUM_STEPS=0 BAND=8 PACK=1 SPLITS=1
 *     device        NVIDIA H200 (h200-units of tools/rendered_kernels.py)
 *     launch        gemm_tensor_pack, (262144, 1) items in groups of (128, 1)
 */
/*
 * Packs matrices of float16 for the matrix units of warpgroups.
 *
 *        X in memory                       packed: tiles one after the other
 *      +------+------+----+               +--------+--------+-- -+--------+--------+
 *      | 64 x | 64 x | .. |               | step 0 | step 1 | .. | step 0 | step 1 | ..
 *      | 64   | 64   |    |          ->   +--------+--------+-- -+--------+--------+
 *      +------+------+----+                | block of 64 lines | block | ..
 *      | ..                                 a line: 8 chunks of 16 bytes, chunk c at c ^ (line % 8)
 *
 * These units read halves along k and across it. So neighbours in memory stay neighbours: a chunk is
 * 8 of them, and what lies outside of X is zero. A line is a row of op(X) where k is along memory,
 * and one k of 64 rows where it is not. A group packs 64 lines, four chunks an item.
 *
 * Source: own; PTX ISA 9.0, layouts of wgmma. Cost: one read and one write of A and B.
 *
 * The host guarantees: dimension 0 of the grid has a group for every step of every 64 rows of
 * whole tiles, of A and then of B; dimension 1 covers the larger stack. Tiles are multiples of 64.
 *
 * A, B       `Factor` of opencl_lab/ops/gemm/launches.py: how each is stored
 * ALIGNED_A  whether the rows in memory of A are aligned to 16 bytes
 * ALIGNED_B  whether those of B are
 * TILE_M     rows of a tile of A
 * TILE_N     columns of a tile of B
 */
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void gemm_tensor_pack(__global const ushort *restrict a, __global const ushort *restrict b,
                      __global uint4 *restrict packed_a, __global uint4 *restrict packed_b,
                      const ulong m, const ulong n, const ulong k, const uint count_a,
                      const uint count_b)
{
    const uint line = get_local_id(0) / 8, chunk = get_local_id(0) % 8;
    const uint number = get_group_id(1);
    const uint steps = (uint)((k + 63) / 64);
    const uint step = get_group_id(0) % steps;
    const uint blocks_a = (uint)((m + 255) / 256) * 4;
    uint block = get_group_id(0) / steps;
    if (block < blocks_a) {
        if (number >= count_a)
            return;
        const ulong first_row = (ulong)block * 64, first = (ulong)step * 64;
        const ulong tiles = (m + 255) / 256;
        __global const ushort *from = a + (ulong)number * m * k;
        __global uint4 *to = packed_a + (((ulong)number * tiles + first_row / 256) * steps + step) * 2048
            + (uint)(first_row % 256) * 8;
        uint4 chunks[4];
        #pragma unroll
        for (uint i = 0; i < 4; i++) {
            const uint l = line + 16 * i;
            const ulong there = first + chunk * 8, whole = k, where = (first_row + l) * k + there;
            const bool inside = first_row + l < m;
            chunks[i] = (uint4)0;
            if (inside && there < whole) {
                chunks[i] = *(__global const uint4 *)(from + where);
            }
        }
        #pragma unroll
        for (uint i = 0; i < 4; i++)
            to[(line + 16 * i) * 8 + (chunk ^ line % 8)] = chunks[i];
    } else {
        block -= blocks_a;
        if (number >= count_b)
            return;
        const ulong first_row = (ulong)block * 64, first = (ulong)step * 64;
        const ulong tiles = (n + 127) / 128;
        __global const ushort *from = b + (ulong)number * n * k;
        __global uint4 *to = packed_b + (((ulong)number * tiles + first_row / 128) * steps + step) * 1024
            + (uint)(first_row % 128) * 8;
        uint4 chunks[4];
        #pragma unroll
        for (uint i = 0; i < 4; i++) {
            const uint l = line + 16 * i;
            const ulong there = first_row + chunk * 8, whole = n, where = (first + l) * n + there;
            const bool inside = first + l < k;
            chunks[i] = (uint4)0;
            if (inside && there < whole) {
                chunks[i] = *(__global const uint4 *)(from + where);
            }
        }
        #pragma unroll
        for (uint i = 0; i < 4; i++)
            to[(line + 16 * i) * 8 + (chunk ^ line % 8)] = chunks[i];
    }
}
