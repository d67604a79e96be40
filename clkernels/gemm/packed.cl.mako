/*
 * Matrix product by packed panels, for CPUs: each work-group is one item, that is one thread.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 * op(X) is X, its transpose, or the conjugate of either.
 *
 *                                tile_n
 *                      +----+----+----+----+
 *            TILE_K    |    |####|    |    |      a panel of B: TILE_K rows of NR columns, NR being
 *                      +----+----+----+----+      VECTORS * VECTOR_WIDTH; see below
 *            +------+  +----+----+----+----+
 *      ROWS  |      |  |    |    |    |    |
 *            +------+  +----+----+----+----+
 *      ROWS  |######|  |    |####|    |    |      ROWS x NR sums in registers
 *            +------+  +----+----+----+----+
 *      ROWS  |      |  |    |    |    |    |
 *            +------+  +----+----+----+----+
 *      a block of A, tile_m rows:                 the tile of one item
 *      it stays in the second cache
 *
 *     for each k tile, at most TILE_K long:       what is left out is said by PACK_A and PACK_B
 *         pack the block of A                     pack_a, packed_panels.mako
 *         for each panel of B:                    pack it: pack_b, packed_panels.mako
 *             for each ROWS rows of the block:    the micro-kernel, packed_block.mako:
 *                                                 for each p: sum[r][v] += a[r][p] * b[p][v]
 *                                                 add what earlier values of k left, or finish
 *
 * These are the loops of GotoBLAS and BLIS, by other names, but for their order: an item goes along
 * all of k before it leaves its tile, and so k is inside the loops over both tile_n and tile_m.
 *
 *     here              BLIS                      here              BLIS
 *     ROWS              MR                        tile_m            MC
 *     panel columns     NR                        tile_n            NC
 *     TILE_K            KC                        ROWS x NR sums    the micro-tile
 *
 * A panel of B is read again for every ROWS rows: from the first cache if it fits there, else from
 * the second one. TILE_K = 384 times NR = 16 floats are 24 KiB, times NR = 48 they are 72 KiB.
 *
 * For each p, a row of A has one number for all columns, which the processor broadcasts as it reads
 * it. So A is only copied, and never turned: [row][p], or [panel][p][row] where it is stored
 * transposed. B is turned while it is packed where it is stored transposed.
 *
 * The edges: k tiles are about equally long. Packed panels are filled, those of B and of a
 * transposed A with zeros, others of A with the last row. Where a factor is read in place, the last
 * panel is moved back instead, to lie inside the matrix, and only what is new of it is stored.
 *
 * Sums of earlier values of k lie in the result, or in `sums` where it cannot hold them. Where k is
 * split an item adds up one slice of it only, into partial sums of its own in `sums`;
 * split_k_reduction.cl.mako adds these. Complex numbers: see packed_panels.mako.
 *
 * Source: K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
 * 2008; F. Van Zee, R. van de Geijn, "BLIS", ACM TOMS 2015 (the loops around the micro-kernel).
 *
 * A task is one tile, in one of `layers`: of PRODUCTS products of a stack, or of a slice of k. Where
 * there are more tasks than threads these claim them one by one (CLAIMED): runtimes hand out groups
 * in shares of all that is left, and a thread that other work disturbs would keep its share. A strip
 * is a column of tiles, tile_n wide. Its last rows are cut into lower tiles, so that all items are done
 * at about the same time.
 *
 *      strip 0   strip 1
 *     +-------+ +-------+    phase 1: `down` tiles of tile_m rows
 *     |   0   | |   2   |
 *     |   1   | |   3   |
 *     +-------+ +-------+
 *     |   0   | |   2   |    phase 2: `tail_down` tiles of tail_m rows
 *     |   1   | |   3   |
 *     +-------+ +-------+
 *
 * With PACK_B = "ahead" phase 0 packs B, in pieces of piece_n columns and PIECE_K rows. Pieces and
 * tiles are counted down the strips. So an item has to do with few strips, and what it packs is read by
 * few others: memory that many caches hold is slow to write the next time. A piece is a few panels
 * wide, as its rows lie in as many pages of memory, which processors find again at once. See
 * common/work_stealing.mako.
 *
 * The host guarantees: all matrices are row-major and contiguous, aligned to one element, scratch
 * to 128 bytes; the tasks of each layer cover the result; without CLAIMED there is an item for each;
 * `result` overlaps no input. Where A and B must not be read it passes k = 0. Matrices read in place
 * have at least ROWS rows, NR columns. With CLAIMED what common/work_stealing.mako asks for.
 *
 * ELEMENT       `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T       unsigned type that counts the elements of the largest array
 * A, B          `Factor` of opencl_lab/ops/gemm/launches.py: how each is stored, and counts
 * EPILOGUE      `Epilogue` of the same module: C, bias, activation
 * STACKS        dimensions of the stack of products, 0 for a single product
 * BLOCKING      `Blocking` of opencl_lab/ops/gemm/packed/tiles.py: sizes of the micro-kernel and of
 *               panels, what is packed, and where sums lie; its `panel` is NR. Halves need A packed;
 *               B is read in place only where it is real, no halves, and not stored transposed
 * PRODUCTS      products of a stack that an item does one after the other
 * CLAIMED       whether items claim tasks; needed for "ahead"
 * PIECE_K       rows of a piece of B, for "ahead"
 * MAX_POLLS     how often an item looks for others to finish packing
 */
<%page args="ELEMENT, INDEX_T, A, B, EPILOGUE, STACKS, BLOCKING, PRODUCTS, CLAIMED, PIECE_K, MAX_POLLS"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="fetch" file="/common/fetch.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
<%namespace name="panels" file="/gemm/packed_panels.mako"/>\
<%namespace name="block" file="/gemm/packed_block.mako"/>\
<%namespace name="stealing" file="/common/work_stealing.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
<%
    ROWS, PACK_A, PACK_B, SUMS = BLOCKING.rows, BLOCKING.pack_a, BLOCKING.pack_b, BLOCKING.sums
    TILE_K, width, components = BLOCKING.tile_k, BLOCKING.width, BLOCKING.components
    NR = BLOCKING.panel
%>\
typedef ${INDEX_T} index_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\
${panels.declare(ELEMENT, BLOCKING)}\

${block.declare()}\
${fetch.declare()}\
% if PACK_B != "none":
${panels.declare_pack_b(ELEMENT, A, B, BLOCKING, "__local" if PACK_B == "panel" else "__global")}\
% endif

static inline void multiply(
    ${product.arguments(EPILOGUE, STACKS)},
    const index_t number,
    const index_t slice,
    const index_t slice_k,
    const index_t first_row,
    const index_t first_column,
    const index_t tile_m,
    const index_t tile_n,
% if PACK_B == "ahead":
    __global const real_t *restrict packed_b,
% endif
% if SUMS != "result":
    __global real_t *restrict sums,
% endif
% if PACK_A:
    __local real_t *restrict a_block,
% endif
% if PACK_B == "panel":
    __local real_t *restrict b_panel,
% endif
    __local real_t *restrict micro_tile)
{
${product.enter(EPILOGUE, STACKS, "number")}\
    const index_t line = n * ${components}; /* real numbers in a row of B and of the result */
    const index_t end_column = min(line, first_column + tile_n);
    const uint rows = min(tile_m, m - first_row);
    const uint rows_filled = (rows + ${ROWS - 1}) / ${ROWS} * ${ROWS};
    const index_t begin = min(k, slice * slice_k);
    const index_t end = min(k, begin + slice_k);
% if SUMS == "result":
    __global real_t *sums = (__global real_t *)result;
% elif SUMS == "scratch":
    sums += number * m * line;
% else:
    sums += slice * m * line;
% endif
% if ELEMENT.complex:
    const vec_t alpha_cross = (vec_t)(${", ".join(("alpha.y" if l % 2 else "-alpha.y") for l in range(width))});
% endif

    /* k tiles of about the same length: each costs its sums once, a short one as much as a long one. */
    const index_t k_tiles = max((index_t)1, (end - begin + ${TILE_K - 1}) / ${TILE_K});
    const index_t step = min((index_t)${TILE_K}, ((end - begin) / k_tiles + 8) / 8 * 8);
    index_t first = begin;
    do {
        const uint count = min(step, end - first);
        const bool is_added = first > begin;
        const bool is_last = ${"false" if SUMS == "partial" else "first + count == end"};
% if PACK_A:
${panels.pack_a(ELEMENT, A, BLOCKING)}\
% endif
        for (index_t column = first_column; column < end_column; column += ${NR}) {
% if PACK_B == "none":
            const index_t out_column = min(column, line - ${NR});
            const index_t b_line = line;
% else:
            const index_t out_column = column;
% endif
% if PACK_B == "panel":
            pack_b(b, b_panel, first, count, column / ${components}, n, k);
% endif
% if PACK_B == "ahead":
            __global const real_t *b_next =
                packed_b + ((column / ${NR} + 1) * k + first) * ${NR * components};
% endif
            for (uint r = 0; r < rows; r += ${ROWS}) {
${block.block(ELEMENT, A, EPILOGUE, BLOCKING)}\
            }
        }
        first += count;
    } while (first < end);
}

## Multiply tile `task` of those that have `height` rows from `top` on, `below` in a strip.
<%def name="one_tile()">\
        const uint layer = task / (strips * below), at = task % (strips * below);
        const index_t first_row = top + at % below * height;
        const index_t first_column = at / below * tile_n;
        const index_t first_product = ${"0" if SUMS == "partial" else f"(index_t)layer * {PRODUCTS}"};
        const index_t end_product = min(products, first_product + ${PRODUCTS});
        for (index_t number = first_product; number < end_product; ++number)
            multiply(a, b, ${"c, " if EPILOGUE.c else ""}${"bias, " if EPILOGUE.bias else ""}result, m, n, k, alpha, beta,
% for d in range(STACKS):
                     count_${d}, a_step_${d}, b_step_${d},
% endfor
                     number, ${"layer" if SUMS == "partial" else "0"}, slice_k, first_row, first_column, height, tile_n,
                     ${", ".join([*["packed_b"] * (PACK_B == "ahead"), *["sums"] * (SUMS != "result"),
                                  *["a_block"] * PACK_A, *["b_panel"] * (PACK_B == "panel"), "micro_tile"])});
</%def>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemm_packed(
    ${product.arguments(EPILOGUE, STACKS)},
    const index_t products,
    const index_t slice_k,
    const index_t tile_m,
% if SUMS != "result":
    __global real_t *restrict sums,
% endif
% if PACK_A:
    __local real_t *restrict a_block,
% endif
% if PACK_B == "ahead":
    __global real_t *packed_b,
    const index_t piece_n,
    const uint pieces,
% endif
% if CLAIMED:
    const index_t tail_m,
    const uint tail_down,
    const uint layers,
    const uint from,
    const uint to,
    volatile __global uint *counters,
% endif
    const uint strips,
    const uint down,
    const index_t tile_n)
{
% if PACK_B == "panel":
    __local real_t b_panel[${TILE_K * components * NR}] __attribute__((aligned(128)));
% endif
    __local real_t micro_tile[${ROWS * NR}] __attribute__((aligned(128)));
% if not CLAIMED:
    const uint task = get_global_id(0), below = down;
    const index_t top = 0, height = tile_m;
${one_tile()}\
% else:
${stealing.begin()}\
% if PACK_B == "ahead":
    const uint pieces_down = (k + ${PIECE_K - 1}) / ${PIECE_K};
% endif
    for (uint phase = from; phase < to; ++phase) {
        const uint below = phase == 1 ? down : tail_down;
        const index_t top = phase == 1 ? 0 : down * tile_m;
        const index_t height = phase == 1 ? tile_m : tail_m;
    <%stealing:phase number="phase" tasks="${'phase == 0 ? pieces : ' if PACK_B == 'ahead' else ''}layers * strips * below" max_polls="${MAX_POLLS if PACK_B == 'ahead' else None}" waits="phase == 0">
% if PACK_B == "ahead":
        if (phase == 0) {
            const index_t first = (index_t)(task % pieces_down) * ${PIECE_K};
            const uint count = min((index_t)${PIECE_K}, k - first);
            const index_t begin = task / pieces_down * piece_n;
            const index_t end = min(n, begin + piece_n);
            for (index_t column = begin; column < end; column += ${NR // components})
                pack_b(b, packed_b + (column / ${NR // components} * k + first) * ${NR * components},
                          first, count, column, n, k);
        } else {
% endif
${one_tile()}\
% if PACK_B == "ahead":
        }
% endif
    </%stealing:phase>
    }
    if (to == 3) {
${stealing.end(3)}\
    }
% endif
}
