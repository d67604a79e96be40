/*
 * An example of clkernels/gemm/tensor_warp.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm size=2000 dtype=float64
 *     algorithm     tensor
 *     configuration UNITS=warp BLOCK_M=64 BLOCK_N=32 GROUPS_M=2 GROUPS_N=2 INSTRUCTIONS=2
 *                   STAGES=4 SUM_STEPS=0 BAND=8 PACK=1 SPLITS=1
 *     device        NVIDIA H200 (h200-units of tools/rendered_kernels.py)
 *     launch        gemm_tensor, (65536, 1, 1) items in groups of (128, 1, 1)
 */
/*
 * Matrix product by the matrix units of warps (mma.sync), from packed fragments.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 *   packed A   step 0 | step 1 | ..            +-----------+-----------+
 *   packed B   step 0 | step 1 | ..            | warp 0    | warp 2    |  BLOCK_M rows
 *        |  asynchronous copies: bulk, or      +-----------+-----------+  BLOCK_N columns
 *        v  16 bytes an item, in order         | warp 1    | warp 3    |  in registers
 *   [ stage 0 | stage 1 | .. ]                 +-----------+-----------+
 *        |  16-byte loads, no bank conflicts     TILE_M = GROUPS_M * BLOCK_M
 *        v                                       TILE_N = GROUPS_N * BLOCK_N
 *   fragments of the next 8 or 16 of k, while the last ones are multiplied
 *
 * Fragments are loaded one ahead, over the end of a stage too: so the matrix unit never waits for
 * local memory. That, and steps that lie in one piece, took float64 from 0.6 to 1.0 of cuBLAS; with
 * the same chunks copied from the matrices in place the kernel stayed at 0.6.
 *
 * Sums in float64 are those of IEEE arithmetic. For TF32 the unit cuts: with SUM_STEPS the sums are
 * taken out after so many fragments along k and added in float32. See gemm/tensor_warpgroup.cl.mako
 * for the products of two limbs, and for infinities.
 *
 * Source: own; PTX ISA 9.0 for instructions and fragments; the pipeline of fragments is that of
 * CUTLASS (V. Thakkar et al., 2023). Cost: each step of a tile is read from L2 once per tile.
 *
 * The host guarantees: `gemm_tensor_pack` with LAYOUT "fragments" packed the matrices; a group for
 * each tile in dimension 0, the stack in dimension 1; a group copies each step evenly.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T     unsigned type that counts the elements of the largest array
 * A, B        `Factor` of opencl_lab/ops/gemm/launches.py: how each is stored
 * EPILOGUE    `Epilogue` of the same module: C, bias, activation
 * STACKS      dimensions of the stack of products, 0 for a single product
 * LIMBS       1, or 2 for float32 in two limbs of TF32
 * BLOCK_M     rows of a warp, a multiple of 16
 * BLOCK_N     columns of a warp, a multiple of 16
 * GROUPS_M    warps above each other
 * GROUPS_N    warps beside each other
 * FRAGMENTS   fragments along k in a step, an even number
 * STAGES      steps in local memory
 * SUM_STEPS   fragments along k after which sums leave the unit; 0: at the end
 * BAND        rows of tiles that are worked on together
 * BULK        whether one item copies whole steps (compute capability 9.0); else all do
 * STORE_WIDTH    1 or 2: elements of a row that are stored at once; rows are aligned to as many
 */
#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef uint index_t;
typedef double element_t;
typedef double sum_t;

#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
#define STEP 16
#define STAGE_BYTES 24576
#define multiply(d, a, b) \
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
    : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]))
/* A barrier in local memory that `count` arrivals complete. */
#define barrier_start(bar, count) \
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory")
/* What was written to local memory so far is there for the units that copy and multiply, too. */
#define memory_fence() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define barrier_arrive(bar) \
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory")
/* Arrive, and let the barrier wait for so many bytes besides. */
#define barrier_expect(bar, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" \
    :: "r"(bar), "r"(bytes) : "memory")
/* Wait for the end of the phase of this parity. */
#define barrier_wait(bar, parity) \
    asm volatile("{ .reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n" \
    "@p bra DONE;\nbra AGAIN;\nDONE: }" :: "r"(bar), "r"(parity) : "memory")
/* One item copies many bytes to local memory; they count at the barrier. */
#define bulk_copy(to, from, bytes, bar) \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
    :: "r"(to), "l"((ulong)(from)), "r"(bytes), "r"(bar) : "memory")
#define load_4(w0, w1, w2, w3, at) { \
    const double2 u = *(__local const double2 *)(at), v = *(__local const double2 *)((at) + 512); \
    w0 = u.x, w1 = u.y, w2 = v.x, w3 = v.y; }

__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void gemm_tensor(__global const element_t *restrict a,
                 __global const element_t *restrict b,
                 __global element_t *restrict result,
                 const index_t m,
                 const index_t n,
                 const index_t k,
                 const sum_t alpha,
                 const sum_t beta,
                 __global const uchar *restrict packed_a,
                 __global const uchar *restrict packed_b)
{
    __local uchar stages[4 * STAGE_BYTES] __attribute__((aligned(128)));
    const uint memory = (uint)(ulong)stages;
    const uint item = get_local_id(0), lane = item % 32, warp = item / 32;
    const uint warp_m = warp % 2, warp_n = warp / 2;
    const uint tiles_m = (uint)((m + 127) / 128);
    const uint tiles_n = (uint)((n + 63) / 64);
    const uint group = (uint)get_group_id(0);
    const uint first_band = group / (8 * tiles_n) * 8;
    const uint bands = min((uint)8, tiles_m - first_band);
    const uint tile_row = first_band + group % (8 * tiles_n) % bands;
    const uint tile_column = group % (8 * tiles_n) / bands;
    const ulong steps = (k + STEP - 1) / STEP;
    __global const element_t *const every_a = a;
    __global const element_t *const every_b = b;
    if (k != 0) {
        packed_a += ((ulong)(a - every_a) / ((ulong)m * k) * tiles_m + tile_row) * steps * 16384;
        packed_b += ((ulong)(b - every_b) / ((ulong)n * k) * tiles_n + tile_column) * steps * 8192;
    }

    __local ulong barriers[4];
    const uint full = (uint)(ulong)barriers;
    uint parity = 0;
    if (item == 0) {
        for (uint s = 0; s < 4; s++)
            barrier_start(full + 8 * s, 1);
        memory_fence();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#define copy_step(stage, step) if (item == 0) { \
    const uint to = memory + (stage) * STAGE_BYTES, bar = full + 8 * (stage); \
    barrier_expect(bar, STAGE_BYTES); \
    bulk_copy(to, packed_a + (step) * 16384, 16384, bar); \
    bulk_copy(to + 16384, packed_b + (step) * 8192, 8192, bar); }
    double sum[4][4][4];
    #pragma unroll
    for (uint i = 0; i < 4; i++)
        #pragma unroll
        for (uint j = 0; j < 4; j++)
            #pragma unroll
            for (uint e = 0; e < 4; e++)
                sum[i][j][e] = 0;
    double a0[2][4][4], b0[2][4][2];
    #pragma unroll
    for (uint s = 0; s < 3; s++) {
        if (s < steps)
            copy_step(s, s)
    }
    uint stage = 0, free = 3;
    __local const uchar *now = stages;
    if (steps != 0)
        barrier_wait(full, 0);
    load_4(a0[0][0][0], a0[0][0][1], a0[0][0][2], a0[0][0][3], now + 0 + (warp_m * 4 + 0) * 1024 + lane * 16)
        load_4(a0[0][1][0], a0[0][1][1], a0[0][1][2], a0[0][1][3], now + 0 + (warp_m * 4 + 1) * 1024 + lane * 16)
        load_4(a0[0][2][0], a0[0][2][1], a0[0][2][2], a0[0][2][3], now + 0 + (warp_m * 4 + 2) * 1024 + lane * 16)
        load_4(a0[0][3][0], a0[0][3][1], a0[0][3][2], a0[0][3][3], now + 0 + (warp_m * 4 + 3) * 1024 + lane * 16)
        load_4(b0[0][0][0], b0[0][0][1], b0[0][1][0], b0[0][1][1], now + 16384 + (warp_n * 2 + 0) * 1024 + lane * 16)
        load_4(b0[0][2][0], b0[0][2][1], b0[0][3][0], b0[0][3][1], now + 16384 + (warp_n * 2 + 1) * 1024 + lane * 16)
        for (ulong step = 0; step < steps; step++) {
        __local const uchar *next;
        load_4(a0[1][0][0], a0[1][0][1], a0[1][0][2], a0[1][0][3], now + 8192 + (warp_m * 4 + 0) * 1024 + lane * 16)
            load_4(a0[1][1][0], a0[1][1][1], a0[1][1][2], a0[1][1][3], now + 8192 + (warp_m * 4 + 1) * 1024 + lane * 16)
            load_4(a0[1][2][0], a0[1][2][1], a0[1][2][2], a0[1][2][3], now + 8192 + (warp_m * 4 + 2) * 1024 + lane * 16)
            load_4(a0[1][3][0], a0[1][3][1], a0[1][3][2], a0[1][3][3], now + 8192 + (warp_m * 4 + 3) * 1024 + lane * 16)
            load_4(b0[1][0][0], b0[1][0][1], b0[1][1][0], b0[1][1][1], now + 20480 + (warp_n * 2 + 0) * 1024 + lane * 16)
            load_4(b0[1][2][0], b0[1][2][1], b0[1][3][0], b0[1][3][1], now + 20480 + (warp_n * 2 + 1) * 1024 + lane * 16)
            if (step + 3 < steps)
            copy_step(free, step + 3)
            free = free + 1 == 4 ? 0 : free + 1;
        multiply(sum[0][0], a0[0][0], b0[0][0]);
        multiply(sum[0][1], a0[0][0], b0[0][1]);
        multiply(sum[0][2], a0[0][0], b0[0][2]);
        multiply(sum[0][3], a0[0][0], b0[0][3]);
        multiply(sum[1][3], a0[0][1], b0[0][3]);
        multiply(sum[1][2], a0[0][1], b0[0][2]);
        multiply(sum[1][1], a0[0][1], b0[0][1]);
        multiply(sum[1][0], a0[0][1], b0[0][0]);
        multiply(sum[2][0], a0[0][2], b0[0][0]);
        multiply(sum[2][1], a0[0][2], b0[0][1]);
        multiply(sum[2][2], a0[0][2], b0[0][2]);
        multiply(sum[2][3], a0[0][2], b0[0][3]);
        multiply(sum[3][3], a0[0][3], b0[0][3]);
        multiply(sum[3][2], a0[0][3], b0[0][2]);
        multiply(sum[3][1], a0[0][3], b0[0][1]);
        multiply(sum[3][0], a0[0][3], b0[0][0]);
        barrier(CLK_LOCAL_MEM_FENCE); /* all have read the stage that is filled next */
        stage = stage + 1 == 4 ? 0 : stage + 1;
        parity ^= stage == 0;
        if (step + 1 < steps)
            barrier_wait(full + 8 * stage, parity);
        next = stages + stage * STAGE_BYTES;
        load_4(a0[0][0][0], a0[0][0][1], a0[0][0][2], a0[0][0][3], next + 0 + (warp_m * 4 + 0) * 1024 + lane * 16)
            load_4(a0[0][1][0], a0[0][1][1], a0[0][1][2], a0[0][1][3], next + 0 + (warp_m * 4 + 1) * 1024 + lane * 16)
            load_4(a0[0][2][0], a0[0][2][1], a0[0][2][2], a0[0][2][3], next + 0 + (warp_m * 4 + 2) * 1024 + lane * 16)
            load_4(a0[0][3][0], a0[0][3][1], a0[0][3][2], a0[0][3][3], next + 0 + (warp_m * 4 + 3) * 1024 + lane * 16)
            load_4(b0[0][0][0], b0[0][0][1], b0[0][1][0], b0[0][1][1], next + 16384 + (warp_n * 2 + 0) * 1024 + lane * 16)
            load_4(b0[0][2][0], b0[0][2][1], b0[0][3][0], b0[0][3][1], next + 16384 + (warp_n * 2 + 1) * 1024 + lane * 16)
            multiply(sum[0][0], a0[1][0], b0[1][0]);
        multiply(sum[0][1], a0[1][0], b0[1][1]);
        multiply(sum[0][2], a0[1][0], b0[1][2]);
        multiply(sum[0][3], a0[1][0], b0[1][3]);
        multiply(sum[1][3], a0[1][1], b0[1][3]);
        multiply(sum[1][2], a0[1][1], b0[1][2]);
        multiply(sum[1][1], a0[1][1], b0[1][1]);
        multiply(sum[1][0], a0[1][1], b0[1][0]);
        multiply(sum[2][0], a0[1][2], b0[1][0]);
        multiply(sum[2][1], a0[1][2], b0[1][1]);
        multiply(sum[2][2], a0[1][2], b0[1][2]);
        multiply(sum[2][3], a0[1][2], b0[1][3]);
        multiply(sum[3][3], a0[1][3], b0[1][3]);
        multiply(sum[3][2], a0[1][3], b0[1][2]);
        multiply(sum[3][1], a0[1][3], b0[1][1]);
        multiply(sum[3][0], a0[1][3], b0[1][0]);
        now = next;
    }

    /* Lane 4r + c has rows r and r + 8, columns 2c and 2c + 1 of each product. */
    const index_t first_row = (index_t)tile_row * 128 + warp_m * 64 + lane / 4;
    const index_t first_column = (index_t)tile_column * 64 + warp_n * 32 + lane % 4 * 2;
    #pragma unroll
    for (uint i = 0; i < 4; i++)
        #pragma unroll
        for (uint j = 0; j < 4; j++)
            #pragma unroll
            for (uint h = 0; h < 2; h++) {
                const index_t row = first_row + 16 * i + 8 * h;
                const index_t column = first_column + 8 * j;
                if (row < m && column + 1 < n) {
                    double2 pair = (double2)(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
                    pair *= alpha;
                    *(__global double2 *)(result + row * n + column) = pair;
                } else if (row < m && column < n) {
                    sum_t single = sum[i][j][2 * h];
                    single *= alpha;
                    store_element(single, result, row * n + column);
                }
            }
}
