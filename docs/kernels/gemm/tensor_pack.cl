/*
 * An example of clkernels/gemm/tensor_pack.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm size=2000 dtype=float64
 *     algorithm     tensor
 *     configuration UNITS=warp BLOCK_M=64 BLOCK_N=32 GROUPS_M=2 GROUPS_N=2 INSTRUCTIONS=2
 *                   STAGES=4 SUM_STEPS=0 BAND=8 PACK=1 SPLITS=1
 *     device        NVIDIA H200 (h200-units of tools/rendered_kernels.py)
 *     launch        gemm_tensor_pack, (2048000, 1) items in groups of (256, 1)
 */
/*
 * Packs matrices for the kernels of matrix units.
 *
 *       op(X), rows x k                       packed: tiles one after the other
 *      +------+------+----+               +--------+--------+-- -+--------+--------+
 *      | tile | tile | .. | TILE rows     | step 0 | step 1 | .. | step 0 | step 1 | ..
 *      | 0, 0 | 0, 1 |    |          ->   +--------+--------+-- -+--------+--------+
 *      +------+------+----+                | high limbs | low limbs |
 *      | 1, 0 | ..                         each in 16-byte chunks, ordered by LAYOUT
 *        STEP of k
 *
 * So the kernels copy whole steps, whatever the shape, the alignment and the transposition of X:
 * what lies outside of X is zero. A group packs 64 rows of one step through local memory. It reads
 * along the rows of X in memory, and writes whole chunks.
 *
 * LAYOUT "rows", for wgmma of float: a row of 128 bytes, its 8 chunks in the order c ^ (row % 8).
 * LAYOUT "fragments", for mma.sync: what the 32 lanes of a warp hold of 16 rows, lane by lane:
 * lane 4r + c has the words of rows r and r + 8 at places c and c + 4 of k.
 *
 * LIMBS 2 splits a float32 x: high = x rounded to TF32 (11 bits), low = x - high rounded so. An
 * infinity or NaN has low 0, and what would round to infinity is cut instead.
 *
 * Source: own; splitting as in H. Ootomo, R. Yokota, "Recovering single precision accuracy from
 * Tensor Cores while surpassing the FP32 theoretical peak performance", 2022.
 * Cost: one read and LIMBS writes of A and B.
 *
 * The host guarantees: dimension 0 of the grid has a group for every step of every 64 rows of
 * whole tiles, of A and then of B; dimension 1 covers the larger stack. Tiles are multiples of 64.
 *
 * ELEMENT   `Element` of opencl_lab/core/kernels.py: half, float or double
 * A, B      `Factor` of opencl_lab/ops/gemm/launches.py: how each is stored
 * LIMBS     1, or 2 for float32 in two limbs of TF32
 * LAYOUT    "rows" or "fragments"
 * TILE_M    rows of a tile of A
 * TILE_N    columns of a tile of B
 * STEP      elements of k in a step
 */
#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef double element_t;
typedef double sum_t;
#define load_element(p, i) ((p)[i])

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void gemm_tensor_pack(__global const element_t *restrict a, __global const element_t *restrict b,
                      __global uchar *restrict packed_a, __global uchar *restrict packed_b,
                      const ulong m, const ulong n, const ulong k, const uint count_a,
                      const uint count_b)
{
    __local sum_t values[16][65]; /* k, then row: 65 so that chunks come from all banks */
    const uint item = get_local_id(0);
    const uint number = get_group_id(1);
    const uint steps = (uint)((k + 15) / 16);
    const uint step = get_group_id(0) % steps;
    const uint blocks_a = (uint)((m + 127) / 128) * 2;
    uint block = get_group_id(0) / steps;
    if (block < blocks_a) {
        if (number >= count_a)
            return;
        /* 64 rows of one step, zero outside; neighbours in memory by neighbouring items. */
        const ulong first_row = (ulong)block * 64;
        const ulong first = (ulong)step * 16;
        __global const element_t *from = a + (ulong)number * m * k;
        for (uint i = item; i < 1024; i += 256) {
            const uint row = i / 16, p = i % 16;
            const ulong where = (first_row + row) * k + first + p;
            values[p][row] = first_row + row < m && first + p < k
                ? load_element(from, where) : (sum_t)0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const ulong tiles = (m + 127) / 128;
        __global uchar *to = packed_a
            + (((ulong)number * tiles + first_row / 128) * steps + step) * 16384;
        const uint inside = (uint)(first_row % 128);
        for (uint i = item; i < 512; i += 256) {
            /* Chunks of a step: fragment of k, 16 rows, half, lane. */
            const uint r = i % 32 / 4, c = i % 4;
            const uint half_of = i / 32 % 2;
            const uint rows = i / 64 % 4, fragment = i / 256;
            const uint at = (((fragment * 8 + inside / 16 + rows) * 2 + half_of) * 32
                             + i % 32) * 16;
            const sum_t x0 = values[fragment * 8 + c + 4 * half_of][rows * 16 + r + 0];
            const sum_t x1 = values[fragment * 8 + c + 4 * half_of][rows * 16 + r + 8];
            *(__global double2 *)(to + at) = (double2)(x0, x1);
        }
    } else {
        block -= blocks_a;
        if (number >= count_b)
            return;
        /* 64 rows of one step, zero outside; neighbours in memory by neighbouring items. */
        const ulong first_row = (ulong)block * 64;
        const ulong first = (ulong)step * 16;
        __global const element_t *from = b + (ulong)number * n * k;
        for (uint i = item; i < 1024; i += 256) {
            const uint row = i % 64, p = i / 64;
            const ulong where = (first + p) * n + first_row + row;
            values[p][row] = first_row + row < n && first + p < k
                ? load_element(from, where) : (sum_t)0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const ulong tiles = (n + 63) / 64;
        __global uchar *to = packed_b
            + (((ulong)number * tiles + first_row / 64) * steps + step) * 8192;
        const uint inside = (uint)(first_row % 64);
        for (uint i = item; i < 512; i += 256) {
            /* Chunks of a step: fragment of k, 16 rows, half, lane. */
            const uint r = i % 32 / 4, c = i % 4;
            const uint half_of = i / 32 % 2;
            const uint rows = i / 64 % 4, fragment = i / 256;
            const uint at = (((fragment * 4 + inside / 16 + rows) * 2 + half_of) * 32
                             + i % 32) * 16;
            const sum_t x0 = values[fragment * 8 + c + 0][rows * 16 + r + 8 * half_of];
            const sum_t x1 = values[fragment * 8 + c + 4][rows * 16 + r + 8 * half_of];
            *(__global double2 *)(to + at) = (double2)(x0, x1);
        }
    }
}
