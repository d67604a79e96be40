/*
 * Matrix product in float64 by the matrix units of warps, straight from the matrices.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 *   A, B, STEP of k at a time                  +-----------+-----------+
 *        |                                     | warp 0    | warp 2    |  BLOCK_M rows
 *        |  asynchronous copies of pairs:      +-----------+-----------+  BLOCK_N columns
 *        v  16 bytes, or twice 8               | warp 1    | warp 3    |  in registers
 *   [ stage 0 | stage 1 | .. ]                 +-----------+-----------+
 *        |  16-byte loads, no bank conflicts     TILE_M = GROUPS_M * BLOCK_M
 *        v                                       TILE_N = GROUPS_N * BLOCK_N
 *   fragments of the next 8 of k, while the last ones are multiplied
 *
 * A pair of elements that are neighbours in memory becomes one chunk of local memory, at the place
 * where the lane that needs it loads it: chunk (fragment, 16 rows, e, lane 4r + c) holds
 *
 *   neighbours along k      row 8e + r, places 2c and 2c + 1 of k
 *   neighbours along rows   rows 2r and 2r + 1, place 2c + e of k
 *
 * The order of k within 8 does not matter if it is the same for A and B. The order of rows and of
 * columns within 16 shows in the result, where the end of the kernel puts it right.
 *
 * Fragments are loaded one ahead, over the end of a stage too, so that the unit never waits for
 * local memory. What lies outside of a matrix is copied as zero. Sums are those of IEEE arithmetic.
 *
 * Source: own; PTX ISA 9.0 for instructions and fragments; the pipeline of fragments is that of
 * CUTLASS (V. Thakkar et al., 2023). Cost: each step of a tile is read from L2 once per tile.
 *
 * The host guarantees: a group for each tile in dimension 0, the stack in dimension 1; a group
 * copies each step evenly. Matrices need the alignment of one element only.
 *
 * INDEX_T     unsigned type that counts the elements of the largest array
 * TRANS_A     whether A is stored as k rows of m, and not as m rows of k
 * TRANS_B     whether B is stored as n rows of k, and not as k rows of n
 * HAS_C       whether there is a C; without one, beta is not used either
 * BIAS        "row" or "column": a number for each of them, added at the end; "": none
 * ACTIVATION  "relu" or "gelu", applied at the end; "": none
 * STACKS      dimensions of the stack of products, 0 for a single product
 * BLOCK_M     rows of a warp, a multiple of 16
 * BLOCK_N     columns of a warp, a multiple of 16
 * GROUPS_M    warps above each other
 * GROUPS_N    warps beside each other
 * FRAGMENTS   fragments of 8 along k in a step, an even number
 * STAGES      steps in local memory
 * BAND        rows of tiles that are worked on together
 */
<%page args="TYPE, INDEX_T, TRANS_A, TRANS_B, HAS_C, BIAS, ACTIVATION, STACKS, BLOCK_M, BLOCK_N,
             GROUPS_M, GROUPS_N, FRAGMENTS, STAGES, BAND"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="tensor" file="/gemm/tensor_parts.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=True"/>\
<%
    tile_m, tile_n = GROUPS_M * BLOCK_M, GROUPS_N * BLOCK_N
    items = 32 * GROUPS_M * GROUPS_N
    step = 8 * FRAGMENTS
    bytes_a, bytes_b = tile_m * step * 8, tile_n * step * 8
    rows, columns = BLOCK_M // 16, BLOCK_N // 8
%>\
typedef ${INDEX_T} index_t;
${parts.types()}\
#define STAGE_BYTES ${bytes_a + bytes_b}
${tensor.warp_multiply(TYPE)}\
${tensor.async_copies()}\

/* Copy `count` neighbours, 0 to 2, and zeros for the others; `whole`: they are aligned as a pair. */
static inline void copy_pair(const uint to, __global const element_t *from, const uint count,
                             const bool whole)
{
    if (whole) {
        copy_part(16, "cg", to, from, 8 * count);
    } else {
        copy_part(8, "ca", to, from, count > 0 ? 8 : 0);
        copy_part(8, "ca", to + 8, from + 1, count > 1 ? 8 : 0);
    }
}
<%def name="copy(name, along_k, tile)">\
<% groups, lines = items // 64, tile // 16 %>\
/* Copy one step of a tile: ${"neighbours along k" if along_k else "neighbours along rows"}. */
static inline void copy_${name}(const uint to, __global const element_t *from, const index_t first_row,
                          const index_t first, const index_t extent, const index_t k,
                          const bool whole)
{
    const uint item = get_local_id(0);
    const uint r = item % 32 / 4, c = item % 4, e = item / 32 % 2;
    #pragma unroll
    for (uint x = 0; x < ${tile * step // 2 // items}; x++) {
        const uint line = item / 64 + x * ${groups};
% if along_k:
        const index_t row = first_row + line % ${lines} * 16 + 8 * e + r;
        const index_t p = first + line / ${lines} * 8 + 2 * c;
        const uint count = row < extent && p < k ? (k - p > 1 ? 2 : 1) : 0;
        copy_pair(to + (item + x * ${items}) * 16, from + (row * k + p), count, whole);
% else:
        const index_t row = first_row + line % ${lines} * 16 + 2 * r;
        const index_t p = first + line / ${lines} * 8 + 2 * c + e;
        const uint count = row < extent && p < k ? (extent - row > 1 ? 2 : 1) : 0;
        copy_pair(to + (item + x * ${items}) * 16, from + (p * extent + row), count, whole);
% endif
    }
}
</%def>\
${copy("a", not TRANS_A, tile_m)}\
${copy("b", TRANS_B, tile_n)}\
## Load the fragments of place `p` of the step at `source` to half `to` of the registers.
<%def name="load(to, source, p)">\
% for i in range(rows):
<% at = f"{source} + ({p * tile_m // 16} + warp_m * {rows} + {i}) * 1024 + lane * 16" %>\
        {
            const double2 u = *(__local const double2 *)(${at});
            const double2 v = *(__local const double2 *)(${at} + 512);
            a_part[${to}][${i}][0] = u.x, a_part[${to}][${i}][${1 if TRANS_A else 2}] = u.y;
            a_part[${to}][${i}][${2 if TRANS_A else 1}] = v.x, a_part[${to}][${i}][3] = v.y;
        }
% endfor
% for j in range(0, columns, 2):
<%
    at = f"{source} + {bytes_a} + ({p * tile_n // 16} + warp_n * {columns // 2} + {j // 2}) * 1024 + lane * 16"
    second, third = (f"[{j}][1]", f"[{j + 1}][0]") if TRANS_B else (f"[{j + 1}][0]", f"[{j}][1]")
%>\
        {
            const double2 u = *(__local const double2 *)(${at});
            const double2 v = *(__local const double2 *)(${at} + 512);
            b_part[${to}][${j}][0] = u.x, b_part[${to}]${second} = u.y;
            b_part[${to}]${third} = v.x, b_part[${to}][${j + 1}][1] = v.y;
        }
% endfor
</%def>\

__kernel __attribute__((reqd_work_group_size(${items}, 1, 1)))
void gemm_tensor(${parts.arguments()})
{
    __local uchar stages[${STAGES} * STAGE_BYTES] __attribute__((aligned(128)));
    const uint memory = (uint)(ulong)stages;
    const uint item = get_local_id(0), lane = item % 32, warp = item / 32;
    const uint warp_m = warp % ${GROUPS_M}, warp_n = warp / ${GROUPS_M};
${tensor.tile_of_group(tile_m, tile_n, BAND)}\
${parts.enter("get_group_id(1)")}\
    const index_t tile_m = (index_t)tile_row * ${tile_m}, tile_n = (index_t)tile_column * ${tile_n};
    const bool whole_a = ((ulong)a | 8 * (ulong)${"m" if TRANS_A else "k"}) % 16 == 0;
    const bool whole_b = ((ulong)b | 8 * (ulong)${"k" if TRANS_B else "n"}) % 16 == 0;
    double sum[${rows}][${columns}][4];
    #pragma unroll
    for (uint i = 0; i < ${rows}; i++)
        #pragma unroll
        for (uint j = 0; j < ${columns}; j++)
            #pragma unroll
            for (uint e = 0; e < 4; e++)
                sum[i][j][e] = 0;
    double a_part[2][${rows}][4], b_part[2][${columns}][2];
    index_t copied = 0; /* how far along k */
    #pragma unroll
    for (uint s = 0; s < ${STAGES - 1}; s++) {
        if (copied < k) {
            copy_a(memory + s * STAGE_BYTES, a, tile_m, copied, m, k, whole_a);
            copy_b(memory + s * STAGE_BYTES + ${bytes_a}, b, tile_n, copied, n, k, whole_b);
        }
        copied += ${step};
        copies_commit();
    }
    uint stage = 0, spare = ${STAGES - 1};
    __local const uchar *now = stages;
    copies_wait(${STAGES - 2});
    barrier(CLK_LOCAL_MEM_FENCE);
${load(0, "now", 0)}\
    for (index_t first = 0; first < k; first += ${step}) {
        __local const uchar *next;
% for p in range(FRAGMENTS):
% if p == FRAGMENTS - 1:
        copies_wait(${STAGES - 2});
        barrier(CLK_LOCAL_MEM_FENCE); /* all have read the stage that is filled next */
        stage = stage + 1 == ${STAGES} ? 0 : stage + 1;
        next = stages + stage * STAGE_BYTES;
${load((p + 1) % 2, "next", 0)}\
% else:
${load((p + 1) % 2, "now", p + 1)}\
% endif
% if p == 0:
        if (copied < k) {
            copy_a(memory + spare * STAGE_BYTES, a, tile_m, copied, m, k, whole_a);
            copy_b(memory + spare * STAGE_BYTES + ${bytes_a}, b, tile_n, copied, n, k, whole_b);
        }
        copied += ${step};
        copies_commit();
        spare = spare + 1 == ${STAGES} ? 0 : spare + 1;
% endif
% for i in range(rows):
% for j in (range(columns) if i % 2 == 0 else reversed(range(columns))):
        multiply(sum[${i}][${j}], a_part[${p % 2}][${i}], b_part[${p % 2}][${j}]);
% endfor
% endfor
% endfor
        now = next;
    }
    copies_wait(0);

    /* Lane 4r + c has places r and r + 8 of 16 rows, 2c and 2c + 1 of 8 columns of each product. */
    const index_t first_row = tile_m + warp_m * ${BLOCK_M} + lane / 4${" * 2" if TRANS_A else ""};
    const index_t first_column = tile_n + warp_n * ${BLOCK_N} + lane % 4 * ${2 if TRANS_B else 4};
    #pragma unroll
    for (uint i = 0; i < ${rows}; i++)
        #pragma unroll
        for (uint j = 0; j < ${columns}; j += 2)
            #pragma unroll
            for (uint h = 0; h < 4; h++) {
                const index_t row = first_row + 16 * i + h / 2 * ${1 if TRANS_A else 8};
% if TRANS_B:
                const index_t column = first_column + 8 * (j + h % 2);
                const double x = sum[i][j + h % 2][h / 2 * 2], y = sum[i][j + h % 2][h / 2 * 2 + 1];
% else:
                const index_t column = first_column + 8 * j + 2 * (h % 2);
                const double x = sum[i][j][h / 2 * 2 + h % 2], y = sum[i][j + 1][h / 2 * 2 + h % 2];
% endif
${tensor.store_pair(parts, TYPE, "x", "y")}\
            }
}
