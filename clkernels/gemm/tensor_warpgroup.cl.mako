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
<%page args="ELEMENT, INDEX_T, A, B, EPILOGUE, STACKS, LIMBS, GROUPS, BLOCK_M, BLOCK_N, STAGES,
             SUM_STEPS, BAND, PACKED, SPLIT_K, STORE_WIDTH"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="tensor" file="/gemm/tensor_instructions.mako"/>\
<%namespace name="copies" file="/gemm/tensor_copies.mako"/>\
<%namespace name="stores" file="/gemm/tensor_stores.mako"/>\
<%namespace name="reduction" file="/gemm/tensor_reduction.mako"/>\
% if SPLIT_K == "last group":
${fence.declare(PTX=True)}\
% endif
<%
    tile_m = GROUPS * BLOCK_M
    bytes_a, bytes_b = LIMBS * tile_m * 128, LIMBS * BLOCK_N * 128
    sums = BLOCK_N // 2  # of an item in 64 rows
    blocks = BLOCK_M // 64
    products = [(0, 0)] if LIMBS == 1 else [(1, 0), (0, 1), (0, 0)]
    run = SUM_STEPS or 4
    copiers = 32 if PACKED else 128
    # Whether neighbours lie across k, in blocks of 64 for each k. TF32 is always packed along it.
    half = ELEMENT.type == "half"
    across_a, across_b = half and A.transposed, half and not B.transposed
%>\
typedef ${INDEX_T} index_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\
#define STEP ${64 if ELEMENT.type == "half" else 32}
#define STAGE_BYTES ${bytes_a + bytes_b}
${tensor.declare_group_multiply(ELEMENT.type, BLOCK_N, (across_a, across_b))}\
${copies.declare_bulk_copies()}\
${stores.declare(ELEMENT, STORE_WIDTH)}\
${"" if PACKED else copies.declare_async_copies()}\
% if LIMBS == 2:
${tensor.declare_plain_sum(A, B)}\
% endif

__kernel __attribute__((reqd_work_group_size(${GROUPS * 128 + copiers}, 1, 1)))
void gemm_tensor(${product.arguments(EPILOGUE, STACKS)}\
% if PACKED:
,
    __global const uchar *restrict packed_a,
    __global const uchar *restrict packed_b\
% endif
% if SPLIT_K == "last group":
,
    __global float4 *partial, /* others write what this group reads: no restrict */
    volatile __global uint *arrived,
    const uint splits,
    const uint slice_steps\
% endif
)
{
    __local uchar stages[${STAGES} * STAGE_BYTES] __attribute__((aligned(1024)));
    __local ulong barriers[${2 * STAGES}];
    const uint memory = (uint)(ulong)stages;
    const uint full = (uint)(ulong)barriers, empty = full + ${8 * STAGES};
    const uint item = get_local_id(0), lane = item % 32, warp = item / 32;
    uint stage = 0, parity = 0;
${tensor.tile_of_group(tile_m, BLOCK_N, BAND)}\
% if PACKED:
${tensor.enter_packed(EPILOGUE, STACKS, bytes_a, bytes_b)}\
% else:
    const ulong steps = (k + STEP - 1) / STEP;
${product.enter(EPILOGUE, STACKS, "get_group_id(1)")}\
% endif
% if SPLIT_K == "last group":
    const ulong first_step = (ulong)get_group_id(2) * slice_steps, last_step = min(first_step + slice_steps, steps);
% else:
    const ulong first_step = 0, last_step = steps;
% endif

    if (item == 0) {
        for (uint s = 0; s < ${STAGES}; s++) {
            barrier_start(full + 8 * s, ${1 if PACKED else copiers});
            barrier_start(empty + 8 * s, ${GROUPS * 4});
        }
        memory_fence();
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (warp >= ${GROUPS * 4}) {
        /* Copy steps as stages become free; the first round finds all of them free. */
% if PACKED:
${copies.packed_steps(bytes_a, bytes_b, STAGES)}\
% else:
${copies.steps_in_place(tile_m, BLOCK_N, across_a, across_b, STAGES)}\
% endif
        return;
    }

% for block in range(blocks):
    float sum${block}[${sums}];
    #pragma unroll
    for (uint i = 0; i < ${sums}; i++)
        sum${block}[i] = 0;
% endfor
% if SUM_STEPS:
    float fresh[${sums}]; /* the sums of the last few products */
    #pragma unroll
    for (uint i = 0; i < ${sums}; i++)
        fresh[i] = 0;
% else:
    uint before = ${STAGES}; /* the stage whose products may still be under way */
% endif
    for (ulong step = first_step; step < last_step; step++) {
        const uint tile_a = memory + stage * STAGE_BYTES, tile_b = tile_a + ${bytes_a};
        const ulong of_a = describe(tile_a + warp / 4 * ${BLOCK_M * 128}, ${8192 if across_a else 16});
        const ulong of_b = describe(tile_b, ${8192 if across_b else 16});
        barrier_wait(full + 8 * stage, parity);
% for block in range(blocks if SUM_STEPS else 1):
% for first in range(0, 4, run):
        multiply_fence();
<%
    order = [
        (k, limb_a, limb_b, block if SUM_STEPS else rows)
        for rows in ([block] if SUM_STEPS else range(blocks))
        for small in (True, False)
        for k in range(first, first + run)
        for limb_a, limb_b in products
        if (limb_a + limb_b > 0) == small
    ]
%>\
% for count, (k, limb_a, limb_b, rows) in enumerate(order):
<%
    from_a = (rows * 64 + limb_a * tile_m) * 128 + k * (2048 if across_a else 32)
    from_b = limb_b * BLOCK_N * 128 + k * (2048 if across_b else 32)
    sum_of = "fresh" if SUM_STEPS else f"sum{rows}"
%>\
        multiply(${sum_of}, of_a + ${from_a // 16}, of_b + ${from_b // 16}, ${int(not SUM_STEPS or count > 0)});
% endfor
        multiply_commit();
% if SUM_STEPS:
        multiply_wait(0);
% if block == blocks - 1 and first + run >= 4:
        if (lane == 0)
            barrier_arrive(empty + 8 * stage);
% endif
        #pragma unroll
        for (uint i = 0; i < ${sums}; i++)
            sum${block}[i] += fresh[i];
% endif
% endfor
% endfor
% if not SUM_STEPS:
        multiply_wait(1);
        if (lane == 0 && before < ${STAGES})
            barrier_arrive(empty + 8 * before);
        before = stage;
% endif
        if (++stage == ${STAGES}) {
            stage = 0;
            parity ^= 1;
        }
    }
% if not SUM_STEPS:
    multiply_wait(0);
% endif
% if SPLIT_K == "last group":
${reduction.by_last_group([f"sum{block}" for block in range(blocks)], sums, GROUPS * 128)}\
% endif

    /* Lane 4r + c has rows r and r + 8 of its warp's 16, columns 2c and 2c + 1 of every 8. */
    const index_t first_row = (index_t)tile_row * ${tile_m} + warp / 4 * ${BLOCK_M} + warp % 4 * 16 + lane / 4;
    const index_t first_column = (index_t)tile_column * ${BLOCK_N} + lane % 4 * 2;
% if LIMBS == 2:
    bool plain = false;
% for block in range(blocks):
    #pragma unroll
    for (uint i = 0; i < ${sums}; i++)
        plain |= isnan(sum${block}[i]);
% endfor
    if (plain) {
        #pragma unroll 1
        for (uint i = 0; i < ${blocks * sums // 2}; i++) {
            const index_t row = first_row + i / ${sums // 2} * 64 + i % 2 * 8;
            const index_t column = first_column + i % ${sums // 2} / 2 * 8;
            const float x = row < m && column < n ? plain_sum(a, b, row, column, m, n, k) : 0;
            const float y =
                row < m && column + 1 < n ? plain_sum(a, b, row, column + 1, m, n, k) : 0;
${stores.store_pair(ELEMENT, EPILOGUE, "x", "y", STORE_WIDTH)}\
        }
        return;
    }
% endif
% for block in range(blocks):
    #pragma unroll
% if STORE_WIDTH == 8:
    for (uint j = 0; j < ${BLOCK_N // 8}; j += 4) {
% else:
    for (uint j = 0; j < ${BLOCK_N // 8}; j++) {
% endif
        #pragma unroll
        for (uint h = 0; h < 2; h++) {
            const index_t row = first_row + ${64 * block} + 8 * h;
            const index_t column = first_column + 8 * j;
% if STORE_WIDTH == 8:
${stores.store_chunk(ELEMENT, EPILOGUE, [[f"sum{block}[4 * j + {4 * i} + 2 * h + {e}]" for e in (0, 1)] for i in range(4)])}\
% else:
${stores.store_pair(ELEMENT, EPILOGUE, f"sum{block}[4 * j + 2 * h]", f"sum{block}[4 * j + 2 * h + 1]", STORE_WIDTH)}\
% endif
        }
    }
% endfor
}
