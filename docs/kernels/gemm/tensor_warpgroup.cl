/*
 * An example of clkernels/gemm/tensor_warpgroup.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm size=4096 dtype=float16
 *     algorithm     tensor
 *     configuration UNITS=warpgroup BLOCK_M=128 BLOCK_N=128 GROUPS_M=2 GROUPS_N=1 INSTRUCTIONS=4
 *                   STAGES=4 SUM_STEPS=0 BAND=8 PACK=1 SPLITS=1
 *     device        NVIDIA H200 (h200-units of tools/rendered_kernels.py)
 *     launch        gemm_tensor, (147456, 1, 1) items in groups of (288, 1, 1)
 */
/*
 * Matrix product by the matrix units of warpgroups (wgmma), from packed matrices or halves in place.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 *   A   step 0 | step 1 | ..            +------------------+
 *   B   step 0 | step 1 | ..            | warpgroup 0      |  BLOCK_M rows: BLOCK_M / 64 products
 *        |  copies, by the last warp    +------------------+  of 64 x BLOCK_N, sums in registers
 *        v  or the last four            | warpgroup 1      |
 *   [ stage 0 | stage 1 | .. ]   ---->  +------------------+  TILE_M = GROUPS * BLOCK_M
 *     local memory                            BLOCK_N
 *
 * The last warps copy steps ahead, STAGES of them; the others multiply. Two barriers a stage hand it
 * over: `full`, where the copies arrive, and `empty`, where the warps arrive that have read it.
 * Packed steps come as they are, by bulk copies of one item. Else 128 items copy 16 bytes each time.
 *
 * The matrix unit adds with fewer guard bits than float32 has, and cuts. With SUM_STEPS the sums
 * are taken out after so many products along k, and added in float32. Two limbs of TF32 make three
 * products: low * high and high * low first, then high * high; low * low is below the rounding.
 * An infinity times a low limb of 0 is NaN: an item with a NaN adds its sums up again, plainly.
 *
 * Source: own; PTX ISA 9.0 for instructions and layouts; taking sums out: H. Ootomo, R. Yokota,
 * "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical
 * peak performance", 2022. Cost: each step of a tile is read from L2 once per tile.
 *
 * The host guarantees: with PACKED, `gemm_tensor_pack` packed the matrices, float with LAYOUT "rows",
 * half by its own template; else their rows in memory are aligned to 16 bytes. A group for each tile
 * in dimension 0, the stack in dimension 1, where k is split
 * its `splits` slices in dimension 2, and `arrived` zero. The program is loaded again as sm_90a.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T     unsigned type that counts the elements of the largest array
 * A, B        `Factor` of opencl_lab/ops/gemm/launches.py: how each is stored
 * EPILOGUE    `Epilogue` of the same module: C, bias, activation
 * STACKS      dimensions of the stack of products, 0 for a single product
 * LIMBS       1, or 2 for float32 in two limbs of TF32
 * GROUPS      warpgroups that multiply
 * BLOCK_M     rows of a warpgroup, a multiple of 64
 * BLOCK_N     columns of a tile
 * STAGES      steps in local memory
 * SUM_STEPS   instructions along k after which sums leave the unit, of 4 a step; 0: at the end
 * BAND        rows of tiles that are worked on together
 * PACKED      whether packed matrices are read; else A and B where they lie, which are halves
 * SPLIT_K     "none", or "last group": groups in dimension 2 have `slice_steps` steps of k each, and the
 *             last one of a tile to come adds up the sums of all
 * STORE_WIDTH 1, 2, or 8 halves: elements of a row that are stored at once; rows are aligned to as many
 */
typedef uint index_t;
typedef half element_t;
typedef float sum_t;

#define load_element(p, i) vload_half(i, p)
#define store_element(value, p, i) vstore_half(value, i, p)
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
#define STEP 64
#define STAGE_BYTES 49152
#define multiply(d, a, b, add) \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n" \
    "//sm_90a: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 1;\n }" \
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]) : "l"(a), "l"(b), "r"(add) : "memory")
/* Sums in registers, and the local memory that is read, are ready for products. */
#define multiply_fence() asm volatile("//sm_90a: wgmma.fence.sync.aligned;\n" ::: "memory")
/* The products so far are one batch. */
#define multiply_commit() asm volatile("//sm_90a: wgmma.commit_group.sync.aligned;\n" ::: "memory")
/* Wait until at most `left` batches are under way. */
#define multiply_wait(left) \
    asm volatile("//sm_90a: wgmma.wait_group.sync.aligned " #left ";\n" ::: "memory")
/*
 * Describe a tile in rows of 128 bytes, chunks swizzled, eight rows 1024 bytes apart from the next.
 * Rows along k may be any number. Rows across k are 64 wide, and the next 64 lie `block` bytes behind.
 */
#define describe(address, block) \
    ((1ul << 62) | (64ul << 32) | ((ulong)(block) << 12) | (ulong)(((address) & 0x3ffff) >> 4))
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
/* Two floats as halves, the first one low. */
static inline uint halves(const float x, const float y)
{
    uint both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}
/* What the lane whose number differs in bit `bit` gives. */
static inline uint swapped(const uint given, const int bit)
{
    uint taken;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(taken) : "r"(given), "r"(bit));
    return taken;
}

/* Transpose 4 x 4 words among four lanes: then word i is the one that lane i had of this lane. */
static inline uint4 exchange(uint4 w, const uint lane)
{
    const bool odd = lane & 1, high = lane & 2;
    const uint x = swapped(odd ? w.x : w.y, 1), y = swapped(odd ? w.z : w.w, 1);
    w = odd ? (uint4)(x, w.y, y, w.w) : (uint4)(w.x, x, w.z, y);
    const uint z = swapped(high ? w.x : w.z, 2), u = swapped(high ? w.y : w.w, 2);
    return high ? (uint4)(z, u, w.z, w.w) : (uint4)(w.x, w.y, z, u);
}

__kernel __attribute__((reqd_work_group_size(288, 1, 1)))
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
    __local uchar stages[4 * STAGE_BYTES] __attribute__((aligned(1024)));
    __local ulong barriers[8];
    const uint memory = (uint)(ulong)stages;
    const uint full = (uint)(ulong)barriers, empty = full + 32;
    const uint item = get_local_id(0), lane = item % 32, warp = item / 32;
    uint stage = 0, parity = 0;
    const uint tiles_m = (uint)((m + 255) / 256);
    const uint tiles_n = (uint)((n + 127) / 128);
    const uint group = (uint)get_group_id(0);
    const uint first_band = group / (8 * tiles_n) * 8;
    const uint bands = min((uint)8, tiles_m - first_band);
    const uint tile_row = first_band + group % (8 * tiles_n) % bands;
    const uint tile_column = group % (8 * tiles_n) / bands;
    const ulong steps = (k + STEP - 1) / STEP;
    __global const element_t *const every_a = a;
    __global const element_t *const every_b = b;
    if (k != 0) {
        packed_a += ((ulong)(a - every_a) / ((ulong)m * k) * tiles_m + tile_row) * steps * 32768;
        packed_b += ((ulong)(b - every_b) / ((ulong)n * k) * tiles_n + tile_column) * steps * 16384;
    }
    const ulong first_step = 0, last_step = steps;

    if (item == 0) {
        for (uint s = 0; s < 4; s++) {
            barrier_start(full + 8 * s, 1);
            barrier_start(empty + 8 * s, 8);
        }
        memory_fence();
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (warp >= 8) {
        /* Copy steps as stages become free; the first round finds all of them free. */
#define copy_step(stage, step) { \
    const uint to = memory + (stage) * STAGE_BYTES, bar = full + 8 * (stage); \
    barrier_expect(bar, STAGE_BYTES); \
    bulk_copy(to, packed_a + (step) * 32768, 32768, bar); \
    bulk_copy(to + 32768, packed_b + (step) * 16384, 16384, bar); }
        if (lane == 0) {
            for (ulong step = first_step; step < last_step; step++) {
                barrier_wait(empty + 8 * stage, parity ^ 1);
                copy_step(stage, step)
                    if (++stage == 4) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    float sum0[64];
    #pragma unroll
    for (uint i = 0; i < 64; i++)
        sum0[i] = 0;
    float sum1[64];
    #pragma unroll
    for (uint i = 0; i < 64; i++)
        sum1[i] = 0;
    uint before = 4; /* the stage whose products may still be under way */
    for (ulong step = first_step; step < last_step; step++) {
        const uint tile_a = memory + stage * STAGE_BYTES, tile_b = tile_a + 32768;
        const ulong of_a = describe(tile_a + warp / 4 * 16384, 16);
        const ulong of_b = describe(tile_b, 8192);
        barrier_wait(full + 8 * stage, parity);
        multiply_fence();
        multiply(sum0, of_a + 0, of_b + 0, 1);
        multiply(sum0, of_a + 2, of_b + 128, 1);
        multiply(sum0, of_a + 4, of_b + 256, 1);
        multiply(sum0, of_a + 6, of_b + 384, 1);
        multiply(sum1, of_a + 512, of_b + 0, 1);
        multiply(sum1, of_a + 514, of_b + 128, 1);
        multiply(sum1, of_a + 516, of_b + 256, 1);
        multiply(sum1, of_a + 518, of_b + 384, 1);
        multiply_commit();
        multiply_wait(1);
        if (lane == 0 && before < 4)
            barrier_arrive(empty + 8 * before);
        before = stage;
        if (++stage == 4) {
            stage = 0;
            parity ^= 1;
        }
    }
    multiply_wait(0);

    /* Lane 4r + c has rows r and r + 8 of its warp's 16, columns 2c and 2c + 1 of every 8. */
    const index_t first_row = (index_t)tile_row * 256 + warp / 4 * 128 + warp % 4 * 16 + lane / 4;
    const index_t first_column = (index_t)tile_column * 128 + lane % 4 * 2;
    #pragma unroll
    for (uint j = 0; j < 16; j += 4) {
        #pragma unroll
        for (uint h = 0; h < 2; h++) {
            const index_t row = first_row + 0 + 8 * h;
            const index_t column = first_column + 8 * j;
            uint words[4];
            {
                float2 pair = (float2)(sum0[4 * j + 0 + 2 * h + 0], sum0[4 * j + 0 + 2 * h + 1]);
                pair *= alpha;
                words[0] = halves(pair.x, pair.y);
            }
            {
                float2 pair = (float2)(sum0[4 * j + 4 + 2 * h + 0], sum0[4 * j + 4 + 2 * h + 1]);
                pair *= alpha;
                words[1] = halves(pair.x, pair.y);
            }
            {
                float2 pair = (float2)(sum0[4 * j + 8 + 2 * h + 0], sum0[4 * j + 8 + 2 * h + 1]);
                pair *= alpha;
                words[2] = halves(pair.x, pair.y);
            }
            {
                float2 pair = (float2)(sum0[4 * j + 12 + 2 * h + 0], sum0[4 * j + 12 + 2 * h + 1]);
                pair *= alpha;
                words[3] = halves(pair.x, pair.y);
            }
            const uint4 chunk = exchange((uint4)(words[0], words[1], words[2], words[3]), lane);
            const index_t begin = column + 6 * (lane % 4); /* 8 a lane instead of 2 */
            if (row < m && begin < n)
                *(__global uint4 *)(result + row * n + begin) = chunk;
        }
    }
    #pragma unroll
    for (uint j = 0; j < 16; j += 4) {
        #pragma unroll
        for (uint h = 0; h < 2; h++) {
            const index_t row = first_row + 64 + 8 * h;
            const index_t column = first_column + 8 * j;
            uint words[4];
            {
                float2 pair = (float2)(sum1[4 * j + 0 + 2 * h + 0], sum1[4 * j + 0 + 2 * h + 1]);
                pair *= alpha;
                words[0] = halves(pair.x, pair.y);
            }
            {
                float2 pair = (float2)(sum1[4 * j + 4 + 2 * h + 0], sum1[4 * j + 4 + 2 * h + 1]);
                pair *= alpha;
                words[1] = halves(pair.x, pair.y);
            }
            {
                float2 pair = (float2)(sum1[4 * j + 8 + 2 * h + 0], sum1[4 * j + 8 + 2 * h + 1]);
                pair *= alpha;
                words[2] = halves(pair.x, pair.y);
            }
            {
                float2 pair = (float2)(sum1[4 * j + 12 + 2 * h + 0], sum1[4 * j + 12 + 2 * h + 1]);
                pair *= alpha;
                words[3] = halves(pair.x, pair.y);
            }
            const uint4 chunk = exchange((uint4)(words[0], words[1], words[2], words[3]), lane);
            const index_t begin = column + 6 * (lane % 4); /* 8 a lane instead of 2 */
            if (row < m && begin < n)
                *(__global uint4 *)(result + row * n + begin) = chunk;
        }
    }
}
