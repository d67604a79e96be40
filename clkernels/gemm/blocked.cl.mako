/*
 * Matrix product with a block of the result in the registers of each work-item.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 * op(X) is X, its transpose, or the conjugate of either. A work-group owns one tile of the
 * result, WG_M * WORK_M rows by WG_N * WORK_N columns, and walks along k in k tiles of TILE_K.
 * Each of these lies in local memory, k by k:
 *
 *     a_tile   TILE_K lines of the tile's rows of op(A)      (so A is turned on its way)
 *     b_tile   TILE_K lines of the tile's columns of op(B)
 *
 * With two buffers the next k tile is on its way from global memory into registers while the
 * products of this one are added up, so that one barrier a k tile is enough:
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
 * The first k tile takes what k leaves over, with zero beyond; all others are whole. Rows and
 * columns past the end read the last ones instead, and what they give is not stored. So no
 * k tile has a slow way for edges. Where a tile has too few items to hide what they wait for, several
 * items have the same block, each with its share of every k tile; in the end they exchange their sums
 * in local memory, and each goes on with a part of the block. Where k is split, group after group has
 * the same tile and another slice of k. The last group of a tile to come adds up the sums of all slices
 * (blocked_reduction.mako), or a second launch does (split_k_reduction.cl.mako).
 *
 * Source: V. Volkov, J. Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008
 * (register blocks over shared-memory tiles); R. Nath, S. Tomov, J. Dongarra, "An improved MAGMA
 * GEMM for Fermi", IJHPCA 2010 (prefetch through registers); NVIDIA's CUTLASS (the rest of k
 * first).
 *
 * The host guarantees: all matrices are row-major and contiguous; `result` overlaps no input; the
 * grid has a group for every tile, slice and product of the stack, tiles first. Where A and B must
 * not be read it passes k = 0. Widths of loads and STORE_WIDTH divide the rows of the arrays they are
 * about; those of loads, but for 1, divide TILE_K where the rows lie along k. With ALIGNED the arrays
 * are aligned to 16 bytes, else to one element. `slice_k` is a multiple of TILE_K. Where the last
 * group adds up, `arrived` has a zero for every tile and product, and has it again afterwards;
 * `partial` is aligned to vectors.
 *
 * ELEMENT          `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T          unsigned type that counts the elements of the largest array
 * EPILOGUE         `Epilogue` of opencl_lab/ops/gemm/launches.py: C, bias, activation
 * STACKS           dimensions of the stack of products, 0 for a single product
 * TILE_A, TILE_B   `StagedTile` of opencl_lab/ops/gemm/blocked/algorithm.py: tiles in local memory, and
 *                  how they are loaded
 * WORK_M, WORK_N   rows and columns of the result that an item owns
 * WG_M, WG_N       items of a group along the rows and the columns
 * WG_K             items with the same sums, of other values of k: a divisor of TILE_K and of WORK_M
 * LOCAL            elements of local memory for tiles and for the exchange of sums, if WG_K is above 1
 * TILE_K           values of k in a k tile; the items share the loads of a tile evenly
 * BUFFERS          2: the next k tile is loaded meanwhile; 1: one after the other
 * SWIZZLE          rows of tiles in a strip: groups in a row go down a strip, for the caches
 * SPLIT_K          "none", or who adds up the sums of all slices: "last group" or "second launch"
 * VECTOR_WIDTH     columns in a vector, a power of two that divides WORK_N
 * ROW_WIDTH        rows read at once, a power of two that divides WORK_M
 * LANES_M, LANES_N items that share a block of the tile: divisors of WG_M and WG_N
 * STORE_WIDTH      elements to store at once, a divisor of VECTOR_WIDTH
 * ALIGNED          whether vectors in global memory are aligned
 * MOST             real numbers that a built-in function may take at once where they are not
 * UNROLL           values of p a trip of the inner loop
 * PTX              whether the device takes inline PTX
 * SUB_GROUP        items of a sub-group, 0: the compiler chooses
 */
<%page args="ELEMENT, INDEX_T, EPILOGUE, STACKS, TILE_A, TILE_B, WORK_M, WORK_N, WG_M, WG_N, WG_K,
             TILE_K, LOCAL, BUFFERS, SWIZZLE, SPLIT_K, VECTOR_WIDTH, ROW_WIDTH, LANES_M, LANES_N, STORE_WIDTH,
             ALIGNED, MOST, UNROLL, PTX, SUB_GROUP"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
<%namespace name="staging" file="/gemm/blocked_staging.mako"/>\
<%namespace name="reduction" file="/gemm/blocked_reduction.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
<%
    components = elements.module.components(ELEMENT)
    vec = lambda width: elements.module.vector(ELEMENT.real, width * components)
    lanes = elements.module.lanes
    owners, tile_m, tile_n = WG_M * WG_N, WG_M * WORK_M, WG_N * WORK_N
    items = owners * WG_K
    vectors = range(WORK_N // VECTOR_WIDTH)
    sums = [f"sum_{r}_{v}" for r in range(WORK_M) for v in vectors]
    stored = 1 if ELEMENT.complex else STORE_WIDTH  # elements at once
    tiles = (TILE_A, TILE_B)
    # Names of the sums that an item stores, with their columns, and their rows.
    if WG_K == 1:
        stored_rows = [
            ([(f"sum_{r}_{v}", v * LANES_N * VECTOR_WIDTH) for v in vectors],
             r // ROW_WIDTH * LANES_M * ROW_WIDTH + r % ROW_WIDTH)
            for r in range(WORK_M)
        ]
    else:
        stored_rows = []
        for j in range(len(sums) // WG_K):
            r, v = (f"({j * WG_K} + share) {way} {len(vectors)}" for way in "/%")
            row = f"({r}) / {ROW_WIDTH} * {LANES_M * ROW_WIDTH} + ({r}) % {ROW_WIDTH}"
            stored_rows.append(([(f"mine_{j}", f"{v} * {LANES_N * VECTOR_WIDTH}")], row))
    own_a, own_b = ("own_row", "own_column") if WG_K == 1 else ("own_a", "own_b")
%>\
typedef ${INDEX_T} index_t;
typedef ${ELEMENT.real} real_t;
typedef ${vec(VECTOR_WIDTH)} vec_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\
% if SPLIT_K == "last group":
${fence.declare(PTX=PTX)}\
% endif

## Add the products of one k tile, which lies in the buffer `current`.
<%def name="multiply()">\
#pragma unroll ${UNROLL}
        for (uint p = 0; p < ${TILE_K // WG_K}; ++p) {
% for v in vectors:
            const vec_t b_${v} = *(__local const vec_t *)(b_from + p * ${TILE_B.line} + \
${v * LANES_N * VECTOR_WIDTH});
% if ELEMENT.complex:
            const vec_t turned_${v} = (vec_t)(${", ".join(
                f"-b_{v}.s{lane + 1:x}, b_{v}.s{lane:x}" for lane in range(0, 2 * VECTOR_WIDTH, 2))});
% endif
% endfor
% for c in range(WORK_M // ROW_WIDTH):
            const ${vec(ROW_WIDTH)} a_${c} = *(__local const ${vec(ROW_WIDTH)} *)(a_from + \
p * ${TILE_A.line} + ${c * LANES_M * ROW_WIDTH});
% for l in range(ROW_WIDTH):
% for v in vectors:
            sum_${c * ROW_WIDTH + l}_${v} += ${lanes(f"a_{c}", components * l, 1, components * ROW_WIDTH)} * b_${v};
% if ELEMENT.complex:
            sum_${c * ROW_WIDTH + l}_${v} += a_${c}.s${f"{2 * l + 1:x}"} * turned_${v};
% endif
% endfor
% endfor
% endfor
        }
</%def>\
__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(${items}, 1, 1)))
void gemm_blocked(${product.arguments(EPILOGUE, STACKS)}\
% if SPLIT_K != "none":
,
    __global sum_t *${"" if SPLIT_K == "last group" else "restrict "}partial,
% if SPLIT_K == "last group":
    volatile __global uint *arrived,
% endif
    const uint splits,
    const index_t slice_k\
% endif
)
{
% if WG_K == 1:
    __local sum_t a_tile[${BUFFERS * TILE_K * TILE_A.line}] __attribute__((aligned(64)));
    __local sum_t b_tile[${BUFFERS * TILE_K * TILE_B.line}] __attribute__((aligned(64)));
% else:
    __local sum_t tiles[${LOCAL}] __attribute__((aligned(64)));
    __local sum_t *const a_tile = tiles, *const b_tile = tiles + ${BUFFERS * TILE_K * TILE_A.line};
% endif
    const uint item = get_local_id(0);

    /* Find the tile, the slice of k and the product. */
    const index_t tiles_m = (m + ${tile_m - 1}) / ${tile_m};
    const index_t tiles_n = (n + ${tile_n - 1}) / ${tile_n};
    const index_t tile = get_group_id(0) % (tiles_m * tiles_n);
% if STACKS or SPLIT_K != "none":
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
% if SPLIT_K != "none":
    const index_t start = number % splits * slice_k;
    const index_t depth = min(slice_k, k - start);
% if SPLIT_K == "last group":
    const index_t counter = number / splits * (tiles_m * tiles_n) + tile;
% else:
    partial += (size_t)number * m * n;
% endif
${product.enter(EPILOGUE, STACKS, "number / splits")}\
    a += start${" * m" if TILE_A.along else ""};
    b += start${" * n" if TILE_B.along else ""};
% else:
    const index_t depth = k;
${product.enter(EPILOGUE, STACKS, "number")}\
% endif

    /* Find what this item owns. */
% if WG_K > 1:
    const uint owner = item % ${owners}, share = item / ${owners};
% endif
    const uint lane = ${"item" if WG_K == 1 else "owner"} % ${LANES_M * LANES_N};
    const uint block = ${"item" if WG_K == 1 else "owner"} / ${LANES_M * LANES_N};
    const uint own_row = block / ${WG_N // LANES_N} * ${LANES_M * WORK_M} + lane / ${LANES_N} * ${ROW_WIDTH};
    const uint own_column = block % ${WG_N // LANES_N} * ${LANES_N * WORK_N} + lane % ${LANES_N} * ${VECTOR_WIDTH};
% if WG_K > 1:
    const uint own_a = own_row + share * ${TILE_K // WG_K * TILE_A.line};
    const uint own_b = own_column + share * ${TILE_K // WG_K * TILE_B.line};
% endif
    __local const sum_t *a_from = a_tile + ${own_a};
    __local const sum_t *b_from = b_tile + ${own_b};
% for r in range(WORK_M):
% for v in vectors:
    vec_t sum_${r}_${v} = 0;
% endfor
% endfor

    const index_t steps = max((depth + ${TILE_K - 1}) / ${TILE_K}, (index_t)1);
    const uint rest = depth - (steps - 1) * ${TILE_K}; /* what the first k tile takes */
% if BUFFERS == 2:
    uint current = 0;

    /* Load the first k tile. */
% for tile in tiles:
${staging.find(ELEMENT, tile)}\
${staging.load(ELEMENT, ALIGNED, MOST, tile, "rest")}\
${staging.put(ELEMENT, tile, "0")}\
${staging.advance(tile, "rest")}\
% endfor
    barrier(CLK_LOCAL_MEM_FENCE); /* the tiles are complete */

    /* No condition stands between the loads and the products, so that compilers may mix them. */
    for (index_t step = 1; step < steps; ++step) {
% for tile in tiles:
${staging.load(ELEMENT, ALIGNED, MOST, tile, "")}\
${staging.advance(tile, TILE_K)}\
% endfor
${multiply()}\
        current ^= 1;
% for tile in tiles:
${staging.put(ELEMENT, tile, f"current * {TILE_K * tile.line}")}\
% endfor
        a_from = a_tile + current * ${TILE_K * TILE_A.line} + ${own_a};
        b_from = b_tile + current * ${TILE_K * TILE_B.line} + ${own_b};
        barrier(CLK_LOCAL_MEM_FENCE); /* the next tiles are complete, these may be overwritten */
    }
${multiply()}\
% else:
    for (index_t step = 0; step < steps; ++step) {
        const uint some = step ? ${TILE_K} : rest;
% for tile in tiles:
${staging.stage(ELEMENT, ALIGNED, MOST, tile, "some")}\
${staging.advance(tile, "some")}\
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

% if WG_K > 1:
${reduction.within_group(sums, items, WG_K, LOCAL // VECTOR_WIDTH)}\
% endif
% if SPLIT_K == "last group":
${reduction.by_last_group(sums if WG_K == 1 else [name for names, _ in stored_rows for name, _ in names], items)}\
% endif

    /* Store what lies inside the result. */
% for names, own in stored_rows:
    {
        const index_t row = first_row + own_row + ${own};
        if (row < m) {
% for name, beside in names:
% for l in range(0, VECTOR_WIDTH, stored):
${store(name, beside, l)}\
% endfor
% endfor
        }
    }
% endfor
% if SPLIT_K == "last group":
${reduction.end()}\
% endif
}
## Store a slice of a vector of sums, that which begins at element `l`; `beside` columns lie before it.
<%def name="store(name, beside, l)">\
            {
                const index_t column = first_column + own_column + ${beside + l if WG_K == 1 else f"{beside} + {l}"};
                if (column < n) {
                    ${vec(stored)} value = ${lanes(name, l * components, stored * components, VECTOR_WIDTH * components)};
% if SPLIT_K == "second launch":
                    ${elements.module.store_vector(ELEMENT.sum, "value", "partial + (row * n + column)", stored, ALIGNED)}
% else:
${epilogue.apply(ELEMENT, EPILOGUE, "value", "row", "column", stored, MOST)}\
                    ${elements.module.store_vector(ELEMENT.type, "value", "result + (row * n + column)", stored, ALIGNED)}
% endif
                }
            }
</%def>\
