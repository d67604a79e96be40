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
 * local memory. That, and steps that lie in one piece, took float64 from 0.6 to 1.0 of cuBLAS. Read in
 * place, float64 has registers for one set of fragments alone, each loaded again right after its last
 * use: a step takes about 1.2 times as long.
 *
 * Sums in float64 are those of IEEE arithmetic. For TF32 the unit cuts: with SUM_STEPS the sums are
 * taken out after so many fragments along k and added in float32. See gemm/tensor_warpgroup.cl.mako
 * for the products of two limbs, and for infinities.
 *
 * Source: own; PTX ISA 9.0 for instructions and fragments; the pipeline of fragments is that of
 * CUTLASS (V. Thakkar et al., 2023). Cost: each step of a tile is read from L2 once per tile.
 *
 * The host guarantees: `gemm_tensor_pack` with LAYOUT "fragments" packed the matrices, or they are of
 * float64 in rows of whole 16 bytes, aligned to these; a group for each tile in dimension 0, the stack
 * in dimension 1; a group copies each step evenly.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T     unsigned type that counts the elements of the largest array
 * A, B        `Factor` of opencl_lab/ops/gemm/launches.py: how each is stored
 * EPILOGUE    `Epilogue` of the same module: C, bias, activation
 * STACKS      dimensions of the stack of products, 0 for a single product
 * LIMBS       1, or 2 for float32 in two limbs of TF32
 * PACKED      whether the matrices are packed; else float64 is read in place
 * BLOCK_M     rows of a warp, a multiple of 16
 * BLOCK_N     columns of a warp, a multiple of 16
 * GROUPS_M    warps above each other
 * GROUPS_N    warps beside each other
 * FRAGMENTS   fragments along k in a step, an even number
 * STAGES      steps in local memory
 * SUM_STEPS   fragments along k after which sums leave the unit; 0: at the end
 * BAND        rows of tiles that are worked on together
 * BULK        whether one item copies whole steps (compute capability 9.0); else all do
 * STORE_WIDTH 1 or 2: elements of a row that are stored at once; rows are aligned to as many
 */
<%page args="ELEMENT, INDEX_T, A, B, EPILOGUE, STACKS, LIMBS, PACKED, BLOCK_M, BLOCK_N, GROUPS_M,
             GROUPS_N, FRAGMENTS, STAGES, SUM_STEPS, BAND, BULK, STORE_WIDTH"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="tensor" file="/gemm/tensor_instructions.mako"/>\
<%namespace name="copies" file="/gemm/tensor_copies.mako"/>\
<%namespace name="doubles" file="/gemm/tensor_doubles.mako"/>\
<%namespace name="stores" file="/gemm/tensor_stores.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
<%
    double = ELEMENT.double
    tile_m, tile_n = GROUPS_M * BLOCK_M, GROUPS_N * BLOCK_N
    items = 32 * GROUPS_M * GROUPS_N
    fragment = 1024 if double else 512  # bytes of 16 rows or columns
    line_a, line_b = tile_m // 16 * fragment, tile_n // 16 * fragment
    bytes_a, bytes_b = LIMBS * FRAGMENTS * line_a, LIMBS * FRAGMENTS * line_b
    rows, columns = BLOCK_M // 16, BLOCK_N // 8
    word, total = ("double", "double") if double else ("uint", "float")
    step = FRAGMENTS * (16 if ELEMENT.type == "half" else 8)
    bulk = BULK and PACKED
    halves = 2 if PACKED else 1  # of the registers of fragments
    products = [(0, 0)] if LIMBS == 1 else [(1, 0), (0, 1), (0, 0)]
%>\
typedef ${INDEX_T} index_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\
#define STEP ${step}
#define STAGE_BYTES ${bytes_a + bytes_b}
${tensor.declare_warp_multiply(ELEMENT.type)}\
${copies.declare_bulk_copies() if bulk else copies.declare_async_copies()}\
${stores.declare(ELEMENT, STORE_WIDTH)}\
% if LIMBS == 2:
${tensor.declare_plain_sum(A, B)}\
% endif
% if double:
#define load_4(w0, w1, w2, w3, at) { \
    const double2 u = *(__local const double2 *)(at), v = *(__local const double2 *)((at) + 512); \
    w0 = u.x, w1 = u.y, w2 = v.x, w3 = v.y; \
}
% else:
#define load_4(w0, w1, w2, w3, at) { \
    const uint4 u = *(__local const uint4 *)(at); \
    w0 = u.x, w1 = u.y, w2 = u.z, w3 = u.w; \
}
% endif
<%def name="every_sum()">\
    #pragma unroll
    for (uint i = 0; i < ${rows}; i++)
        #pragma unroll
        for (uint j = 0; j < ${columns}; j++)
            #pragma unroll
            for (uint e = 0; e < 4; e++)
</%def>\
## Load the fragments of place `p` of the step at `source` to half `to` of the registers.
<%def name="load(to, source, p)">\
% for limb in range(LIMBS):
% for i in range(rows):
${load_a(limb, i, to, source, p)}\
% endfor
% for j in range(0, columns, 2):
${load_b(limb, j, to, source, p)}\
% endfor
% endfor
</%def>\
<%def name="load_a(limb, i, to, source, p)">\
<%
    block = f"(warp_m * {rows} + {i})"
    at = f"{source} + {(limb * FRAGMENTS + p) * line_a} + {block} * {fragment} + lane * 16"
    words = [f"a{limb}[{to}][{i}][{e}]" for e in range(4)]
%>\
% if PACKED:
        load_4(${", ".join(words)}, ${at})
% else:
% for e in range(4):
        ${words[e]} = ${doubles.module.number(source, not A.transposed, tile_m, step, block, p, (e % 2, e // 2))};
% endfor
% endif
</%def>\
## The fragments of columns j and j + 1.
<%def name="load_b(limb, j, to, source, p)">\
<%
    block = f"(warp_n * {columns // 2} + {j // 2})"
    at = f"{source} + {bytes_a + (limb * FRAGMENTS + p) * line_b} + {block} * {fragment} + lane * 16"
    words = [f"b{limb}[{to}][{j + e // 2}][{e % 2}]" for e in range(4)]
%>\
% if PACKED:
        load_4(${", ".join(words)}, ${at})
% else:
% for e in range(4):
        ${words[e]} = ${doubles.module.number(f"{source} + {bytes_a}", B.transposed, tile_n, step, block, p, (e // 2, e % 2))};
% endfor
% endif
</%def>\

__kernel __attribute__((reqd_work_group_size(${items}, 1, 1)))
void gemm_tensor(${product.arguments(EPILOGUE, STACKS)}\
% if PACKED:
,
    __global const uchar *restrict packed_a,
    __global const uchar *restrict packed_b\
% endif
)
{
    __local uchar stages[${STAGES} * STAGE_BYTES] __attribute__((aligned(128)));
    const uint memory = (uint)(ulong)stages;
    const uint item = get_local_id(0), lane = item % 32, warp = item / 32;
    const uint warp_m = warp % ${GROUPS_M}, warp_n = warp / ${GROUPS_M};
${tensor.tile_of_group(tile_m, tile_n, BAND)}\
% if PACKED:
${tensor.enter_packed(EPILOGUE, STACKS, bytes_a, bytes_b)}\
% else:
    const ulong steps = (k + STEP - 1) / STEP;
${product.enter(EPILOGUE, STACKS, "get_group_id(1)")}\
% endif

% if bulk:
    __local ulong barriers[${STAGES}];
    const uint full = (uint)(ulong)barriers;
    uint parity = 0;
    if (item == 0) {
        for (uint s = 0; s < ${STAGES}; s++)
            barrier_start(full + 8 * s, 1);
        memory_fence();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
${copies.declare_bulk_step(bytes_a, bytes_b, 'if (item == 0) ')}\
% elif PACKED:
${copies.declare_async_step(bytes_a, bytes_b, items)}\
% else:
${doubles.declare_step(not A.transposed, B.transposed, tile_m, tile_n, step, items)}\
% endif
    ${total} sum[${rows}][${columns}][4];
${every_sum()}\
                sum[i][j][e] = 0;
% if SUM_STEPS:
    float fresh[${rows}][${columns}][4]; /* the sums of the last few products */
% endif
% for limb in range(LIMBS):
    ${word} a${limb}[${halves}][${rows}][4], b${limb}[${halves}][${columns}][2];
% endfor
    #pragma unroll
    for (uint s = 0; s < ${STAGES - 1}; s++) {
        if (s < steps)
            copy_step(s, s)
% if not bulk:
        copies_commit();
% endif
    }
    uint stage = 0, free = ${STAGES - 1};
    __local const uchar *now = stages;
% if bulk:
    if (steps != 0)
        barrier_wait(full, 0);
% else:
    copies_wait(${STAGES - 2});
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
${load(0, "now", 0)}\
    for (ulong step = 0; step < steps; step++) {
        __local const uchar *next;
% for p in range(FRAGMENTS):
<% then, q = ("next", 0) if p == FRAGMENTS - 1 else ("now", p + 1) %>\
% if p == FRAGMENTS - 1:
% if not bulk:
        copies_wait(${STAGES - 2});
% endif
        barrier(CLK_LOCAL_MEM_FENCE); /* all have read the stage that is filled next */
        stage = stage + 1 == ${STAGES} ? 0 : stage + 1;
% if bulk:
        parity ^= stage == 0;
        if (step + 1 < steps)
            barrier_wait(full + 8 * stage, parity);
% endif
        next = stages + stage * STAGE_BYTES;
% endif
% if PACKED:
${load((p + 1) % 2, then, q)}\
% endif
% if p == 0:
        if (step + ${STAGES - 1} < steps)
            copy_step(free, step + ${STAGES - 1})
% if not bulk:
        copies_commit();
% endif
        free = free + 1 == ${STAGES} ? 0 : free + 1;
% endif
% if SUM_STEPS and p % SUM_STEPS == 0:
${every_sum()}\
                fresh[i][j][e] = 0;
% endif
% for limb_a, limb_b in products:
% for i in range(rows):
% for j in (range(columns) if i % 2 == 0 or not PACKED else reversed(range(columns))):
        multiply(${"fresh" if SUM_STEPS else "sum"}[${i}][${j}], a${limb_a}[${p % halves}][${i}], b${limb_b}[${p % halves}][${j}]);
% if not PACKED and i == rows - 1 and j % 2:
${load_b(0, j - 1, 0, then, q)}\
% endif
% endfor
% if not PACKED:
${load_a(0, i, 0, then, q)}\
% endif
% endfor
% endfor
% if SUM_STEPS and (p + 1) % SUM_STEPS == 0:
${every_sum()}\
                sum[i][j][e] += fresh[i][j][e];
% endif
% endfor
        now = next;
    }
% if not bulk:
    copies_wait(0);
% endif

    /* Lane 4r + c has rows r and r + 8, columns 2c and 2c + 1 of each product. */
    const index_t first_row = (index_t)tile_row * ${tile_m} + warp_m * ${BLOCK_M} + lane / 4;
    const index_t first_column = (index_t)tile_column * ${tile_n} + warp_n * ${BLOCK_N} + lane % 4 * 2;
% if LIMBS == 2:
    bool plain = false;
${every_sum()}\
                plain |= isnan(sum[i][j][e]);
    if (plain) {
        #pragma unroll 1
        for (uint i = 0; i < ${rows * columns * 2}; i++) {
            const index_t row = first_row + i / ${columns * 2} * 16 + i % 2 * 8;
            const index_t column = first_column + i % ${columns * 2} / 2 * 8;
            const float x = row < m && column < n ? plain_sum(a, b, row, column, m, n, k) : 0;
            const float y =
                row < m && column + 1 < n ? plain_sum(a, b, row, column + 1, m, n, k) : 0;
${stores.store_pair(ELEMENT, EPILOGUE, "x", "y", STORE_WIDTH)}\
        }
        return;
    }
% endif
    #pragma unroll
    for (uint i = 0; i < ${rows}; i++)
        #pragma unroll
        for (uint j = 0; j < ${columns}; j++)
            #pragma unroll
            for (uint h = 0; h < 2; h++) {
                const index_t row = first_row + 16 * i + 8 * h;
                const index_t column = first_column + 8 * j;
${stores.store_pair(ELEMENT, EPILOGUE, "sum[i][j][2 * h]", "sum[i][j][2 * h + 1]", STORE_WIDTH)}\
            }
}
