/*
 * Matrix product with a block of the result in the registers of each work-item.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 * op(X) is X, its transpose, or the conjugate of either. A work-group owns one tile of the
 * result, WG_M * WORK_M rows by WG_N * WORK_N columns, and walks along k in steps of TILE_K.
 * Each step lies in local memory, k by k:
 *
 *     a_tile   TILE_K lines of the tile's rows of op(A)      (so A is turned on its way)
 *     b_tile   TILE_K lines of the tile's columns of op(B)
 *
 * With two buffers the next step is on its way from global memory into registers while the
 * products of this one are added up, so that one barrier a step is enough:
 *
 *     registers     load 1 . . . . . . . load 2 . . . . . . .
 *     local memory  [0] multiply  [1] <- 1  [1] multiply  [0] <- 2  [0] ...
 *
 * LANES_M x LANES_N items with numbers in a row share a block of the tile. An item owns its
 * rows in chunks of ROW_WIDTH and its columns in chunks of VECTOR_WIDTH, which are spaced so
 * that what neighbours read from a line lies side by side: no bank conflicts, and coalesced
 * stores. Two items beside each other, two chunks of columns:
 *
 *     b_tile line p:   | v0 v0 | w0 w0 | v1 v1 | w1 w1 |
 *                       item 0  item 1  item 0  item 1
 *
 *     for each p:  sum[row r][vector v] += a_tile[p][row r] * b_tile[p][vector v]
 *
 * A complex product is two of real numbers by vectors: the real part of a times (re, im) of b,
 * and its imaginary part times (-im, re).
 *
 * The first step takes what k leaves over, with zero beyond; all others are whole. Rows and
 * columns past the end read the last ones instead, and what they give is not stored. So no
 * step has a slow way for edges. Where k is split, group after group has the same tile and
 * another share of k, and stores its sums. With JOIN the last of them adds these up, see
 * blocked_join.mako; else sum_parts.cl.mako does.
 *
 * Source: V. Volkov, J. Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008
 * (register blocks over shared-memory tiles); R. Nath, S. Tomov, J. Dongarra, "An improved MAGMA
 * GEMM for Fermi", IJHPCA 2010 (prefetch through registers); NVIDIA's CUTLASS (the rest of k
 * first).
 *
 * The host guarantees: all matrices are row-major and contiguous; `result` overlaps no input; the
 * grid has a group for every tile, part and product of the stack, tiles first. Where A and B must
 * not be read it passes k = 0. LOAD_A, LOAD_B and STORE_WIDTH divide the rows of the arrays they
 * are about. With JOIN `arrived` has a zero for every tile and product, and has it again afterwards;
 * `partial` is aligned to vectors. LOAD_A and LOAD_B, but for 1, divide TILE_K where the rows lie along k. With ALIGNED
 * the arrays are aligned to 16 bytes, else to one element. `share` is a multiple of TILE_K.
 *
 * TYPE ... STACKS  see parts.mako
 * INDEX_T          unsigned type that counts the elements of the largest array
 * TRANS_A, TRANS_B whether A is stored as k rows of m, and B as n rows of k
 * CONJ_A, CONJ_B   whether A and B count by their complex conjugates
 * WORK_M, WORK_N   rows and columns of the result that an item owns
 * WG_M, WG_N       items of a group along the rows and the columns
 * TILE_K           length of a step along k; the items share the loads of a tile evenly
 * BUFFERS          2: the next step is loaded meanwhile; 1: one after the other
 * LINE_A, LINE_B   elements from line to line of a tile in local memory: its own, and a gap
 * SWIZZLE          rows of tiles in a strip: groups in a row go down a strip, for the caches
 * SPLIT            whether k is split;  JOIN: whether groups add up its shares themselves
 * VECTOR_WIDTH     columns in a vector, a power of two that divides WORK_N
 * ROW_WIDTH        rows read at once, a power of two that divides WORK_M
 * LANES_M, LANES_N divisors of WG_M and WG_N;  LOAD_A, LOAD_B: elements to load at once
 * STORE_WIDTH      elements to store at once, a divisor of VECTOR_WIDTH
 * ALIGNED          whether vectors in global memory are aligned
 * MOST             real numbers that a builtin may take at once where they are not
 * UNROLL           values of p a trip of the inner loop
 * PTX              whether the device takes inline PTX
 */
<%page args="TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS,
             WORK_M, WORK_N, WG_M, WG_N, TILE_K, BUFFERS, SWIZZLE, SPLIT, LINE_A, LINE_B,
             VECTOR_WIDTH, ROW_WIDTH, LANES_M, LANES_N, LOAD_A, LOAD_B, STORE_WIDTH, ALIGNED,
             MOST, UNROLL, JOIN, PTX"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="memory" file="/gemm/blocked_memory.mako"/>\
<%namespace name="join" file="/gemm/blocked_join.mako"/>\
${extensions.enable(fp64=TYPE.startswith('double'))}\
<%
    each = 2 if parts.module.is_complex(TYPE) else 1
    real = parts.module.sum_type(TYPE).removesuffix("2")
    vec = lambda width: parts.module.vector(real, width * each)
    lanes = parts.module.lanes
    items, tile_m, tile_n = WG_M * WG_N, WG_M * WORK_M, WG_N * WORK_N
    vectors = range(WORK_N // VECTOR_WIDTH)
    sums = [f"sum_{r}_{v}" for r in range(WORK_M) for v in vectors]
    pieces = range(0, VECTOR_WIDTH, STORE_WIDTH if each == 1 else 1)
    stored = STORE_WIDTH if each == 1 else 1
    matrices = (
        memory.module.Matrix("a", tile_m, TRANS_A, CONJ_A, LOAD_A, LINE_A, "m", "first_row"),
        memory.module.Matrix("b", tile_n, not TRANS_B, CONJ_B, LOAD_B, LINE_B, "n", "first_column"),
    )
%>\
typedef ${INDEX_T} index_t;
typedef ${real} real_t;
typedef ${vec(VECTOR_WIDTH)} vec_t;
${parts.types()}\
% if JOIN:
${fence.declare(PTX=PTX)}\
% endif

## Add the products of one step, which lies in the buffer `current`.
<%def name="multiply()">\
#pragma unroll ${UNROLL}
        for (uint p = 0; p < ${TILE_K}; ++p) {
% for v in vectors:
            const vec_t b_${v} = *(__local const vec_t *)(b_from + p * ${LINE_B} + \
${v * LANES_N * VECTOR_WIDTH});
% if each == 2:
            const vec_t turned_${v} = (vec_t)(${", ".join(
                f"-b_{v}.s{lane + 1:x}, b_{v}.s{lane:x}" for lane in range(0, 2 * VECTOR_WIDTH, 2))});
% endif
% endfor
% for c in range(WORK_M // ROW_WIDTH):
            const ${vec(ROW_WIDTH)} a_${c} = *(__local const ${vec(ROW_WIDTH)} *)(a_from + \
p * ${LINE_A} + ${c * LANES_M * ROW_WIDTH});
% for l in range(ROW_WIDTH):
% for v in vectors:
            sum_${c * ROW_WIDTH + l}_${v} += ${lanes(f"a_{c}", each * l, 1, each * ROW_WIDTH)} * b_${v};
% if each == 2:
            sum_${c * ROW_WIDTH + l}_${v} += a_${c}.s${f"{2 * l + 1:x}"} * turned_${v};
% endif
% endfor
% endfor
% endfor
        }
</%def>\
__kernel __attribute__((reqd_work_group_size(${items}, 1, 1)))
void gemm_blocked(${parts.arguments()}\
% if SPLIT:
,
    __global sum_t *${"" if JOIN else "restrict "}partial,
% if JOIN:
    volatile __global uint *arrived,
% endif
    const uint splits,
    const index_t share\
% endif
)
{
    __local sum_t a_tile[${BUFFERS * TILE_K * LINE_A}] __attribute__((aligned(64)));
    __local sum_t b_tile[${BUFFERS * TILE_K * LINE_B}] __attribute__((aligned(64)));
    const uint item = get_local_id(0);

    /* Find the tile, the share of k and the product. */
    const index_t tiles_m = (m + ${tile_m - 1}) / ${tile_m};
    const index_t tiles_n = (n + ${tile_n - 1}) / ${tile_n};
    const index_t tile = get_group_id(0) % (tiles_m * tiles_n);
% if STACKS or SPLIT:
    const index_t number = get_group_id(0) / (tiles_m * tiles_n);
% endif
% if SWIZZLE > 1:
    const index_t strip = tile / (${SWIZZLE} * tiles_n) * ${SWIZZLE};
    const index_t inside = tile - strip * tiles_n;
    const index_t height = min((index_t)${SWIZZLE}, tiles_m - strip);
    const index_t first_row = (strip + inside % height) * ${tile_m};
    const index_t first_column = inside / height * ${tile_n};
% else:
    const index_t first_row = tile / tiles_n * ${tile_m};
    const index_t first_column = tile % tiles_n * ${tile_n};
% endif
% if SPLIT:
    const index_t start = number % splits * share;
    const index_t depth = min(share, k - start);
% if JOIN:
    const index_t counter = number / splits * (tiles_m * tiles_n) + tile;
% else:
    partial += (size_t)number * m * n;
% endif
${parts.enter("number / splits")}\
    a += start${" * m" if TRANS_A else ""};
    b += start${"" if TRANS_B else " * n"};
% else:
    const index_t depth = k;
${parts.enter("number")}\
% endif

    /* Find what this item owns. */
    const uint lane = item % ${LANES_M * LANES_N};
    const uint block = item / ${LANES_M * LANES_N};
    const uint own_row = block / ${WG_N // LANES_N} * ${LANES_M * WORK_M} + lane / ${LANES_N} * ${ROW_WIDTH};
    const uint own_column = block % ${WG_N // LANES_N} * ${LANES_N * WORK_N} + lane % ${LANES_N} * ${VECTOR_WIDTH};
    __local const sum_t *a_from = a_tile + own_row;
    __local const sum_t *b_from = b_tile + own_column;
% for r in range(WORK_M):
% for v in vectors:
    vec_t sum_${r}_${v} = 0;
% endfor
% endfor

    const index_t steps = max((depth + ${TILE_K - 1}) / ${TILE_K}, (index_t)1);
    const uint rest = depth - (steps - 1) * ${TILE_K}; /* what the first step takes of k */
% if BUFFERS == 2:
    uint current = 0;

    /* Load the first step. */
% for matrix in matrices:
${memory.find(matrix, items, TILE_K)}\
${memory.load(matrix, items, TILE_K, "rest")}\
${memory.put(matrix, items, TILE_K, "0")}\
${memory.advance(matrix, "rest")}\
% endfor
    barrier(CLK_LOCAL_MEM_FENCE); /* the tiles are complete */

    /* No condition stands between the loads and the products, so that compilers may mix them. */
    for (index_t step = 1; step < steps; ++step) {
% for matrix in matrices:
${memory.load(matrix, items, TILE_K, "")}\
${memory.advance(matrix, TILE_K)}\
% endfor
${multiply()}\
        current ^= 1;
% for matrix in matrices:
${memory.put(matrix, items, TILE_K, f"current * {TILE_K * matrix.line}")}\
% endfor
        a_from = a_tile + current * ${TILE_K * LINE_A} + own_row;
        b_from = b_tile + current * ${TILE_K * LINE_B} + own_column;
        barrier(CLK_LOCAL_MEM_FENCE); /* the next tiles are complete, these may be overwritten */
    }
${multiply()}\
% else:
    for (index_t step = 0; step < steps; ++step) {
        const uint some = step ? ${TILE_K} : rest;
% for matrix in matrices:
${memory.stage(matrix, items, TILE_K, "some")}\
${memory.advance(matrix, "some")}\
% endfor
% if items > 1:
        barrier(CLK_LOCAL_MEM_FENCE); /* the tiles are complete */
% endif
${multiply()}\
% if items > 1:
        barrier(CLK_LOCAL_MEM_FENCE); /* the tiles may be overwritten */
% endif
    }
% endif

% if JOIN:
${join.begin(sums, items)}\
% endif

    /* Store what lies inside the result. */
% for r in range(WORK_M):
    {
        const index_t row = first_row + own_row + ${r // ROW_WIDTH * LANES_M * ROW_WIDTH + r % ROW_WIDTH};
        if (row < m) {
% for v in vectors:
% for l in pieces:
${store(r, v, l)}\
% endfor
% endfor
        }
    }
% endfor
% if JOIN:
${join.end()}\
% endif
}
## The piece of a vector of sums that begins at element `l`.
<%def name="store(r, v, l)">\
<% of_sums = "float" if TYPE == "half" else TYPE %>\
            {
                const index_t column = first_column + own_column + ${v * LANES_N * VECTOR_WIDTH + l};
                if (column < n) {
                    ${vec(stored)} value = ${lanes(f"sum_{r}_{v}", l * each, stored * each, VECTOR_WIDTH * each)};
% if SPLIT and not JOIN:
                    ${memory.module.store(of_sums, "value", "partial + (row * n + column)", stored, ALIGNED, MOST)}
% else:
${parts.finish("value", "row", "column", stored, MOST)}\
                    ${memory.module.store(TYPE, "value", "result + (row * n + column)", stored, ALIGNED, MOST)}
% endif
                }
            }
</%def>\
