/*
 * An example of clkernels/gemm/packed.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       gemm size=4096
 *     algorithm     packed
 *     configuration ROWS=4 VECTORS=2 VECTOR_WIDTH=8 PANELS_M=22 PANELS_N=128 TILE_K=384 UNROLL=2
 *                   PACK_A=True PACK_B=ahead PRODUCTS=1 SPLITS=1
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        gemm_packed, (2,) items in groups of (1,)
 */
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
 *     for each TILE_K values of k:                what is left out is said by PACK_A and PACK_B
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
 * The edges: the last k tile is the short one. Packed panels are filled, those of B and of a
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
typedef uint index_t;
typedef float element_t;
typedef float sum_t;

#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
typedef float real_t;
typedef float8 vec_t;
typedef float8 __attribute__((aligned(4))) loose_t;

/* A function whose arguments are vectors: by these compilers see that wide ones are wanted. */
static inline vec_t add_product(const vec_t sum, const real_t x, const vec_t y)
{
    return sum + x * y;
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define FETCH_LINE(address, writes) __builtin_prefetch((const void *)(size_t)(address), writes, 3)
#endif
#endif
#ifndef FETCH_LINE
#define FETCH_LINE(address, writes)
#endif

/* Write one element of B, or zero, at a column of the panel. */
static inline void put_element(__global real_t *place, const sum_t value)
{
    place[0] = value;
}

/* Pack rows first..first + count of the panel of B that begins at an element's column. */
static inline void pack_b(__global const element_t *restrict b, __global real_t *packed,
                          const index_t first, const uint count, const index_t column,
                          const index_t n, const index_t k)
{
    const uint columns = min((index_t)16, n - column);
    uint done = 0;

    if (columns == 16) {
        __global const real_t *from = (__global const real_t *)(b + first * n + column);
        for (; done < count; ++done) {
            {
                const vec_t v = *(__global const loose_t *)(from + 0);
                *(__global vec_t *)(packed + 0) = v;
            }
            {
                const vec_t v = *(__global const loose_t *)(from + 8);
                *(__global vec_t *)(packed + 8) = v;
            }
            FETCH_LINE(from + 16, 0);
            from += n;
            packed += 16;
        }
    }
    for (; done < count; ++done) {
        for (uint j = 0; j < 16; ++j)
            put_element(packed + j * 1,
                        j < columns ? load_element(b, (first + done) * n + column + j)
                        : (sum_t)0);
        packed += 16;
    }
}

static inline void multiply(
    __global const element_t *restrict a,
    __global const element_t *restrict b,
    __global element_t *restrict result,
    const index_t m,
    const index_t n,
    const index_t k,
    const sum_t alpha,
    const sum_t beta,
    const index_t number,
    const index_t slice,
    const index_t slice_k,
    const index_t first_row,
    const index_t first_column,
    const index_t tile_m,
    const index_t tile_n,
    __global const real_t *restrict packed_b,
    __local real_t *restrict a_block,
    __local real_t *restrict micro_tile)
{
    const index_t line = n * 1; /* real numbers in a row of B and of the result */
    const index_t end_column = min(line, first_column + tile_n);
    const uint rows = min(tile_m, m - first_row);
    const uint rows_filled = (rows + 3) / 4 * 4;
    const index_t begin = min(k, slice * slice_k);
    const index_t end = min(k, begin + slice_k);
    __global real_t *sums = (__global real_t *)result;

    index_t first = begin;
    do {
        const uint count = min((index_t)384, end - first);
        const bool is_added = first > begin;
        const bool is_last = first + count == end;
        for (uint r = 0; r < rows_filled; ++r) {
            const index_t from = (first_row + min(r, rows - 1)) * k + first;
            __local real_t *to = a_block + r * 400;
            uint p = 0;
            for (; p + 8 <= count; p += 8)
                *(__local loose_t *)(to + p * 1) = *(__global const loose_t *)(a + from + p);
            for (; p < count; ++p)
                *(__local sum_t *)(to + p * 1) = load_element(a, from + p);
        }
        for (index_t column = first_column; column < end_column; column += 16) {
            const index_t out_column = column;
            __global const real_t *b_next =
                packed_b + ((column / 16 + 1) * k + first) * 16;
            for (uint r = 0; r < rows; r += 4) {
                /* Add up in registers: whole trips, then the rest. */
                const index_t out_row = first_row + r;
                __local const real_t *a_from = a_block + r * 400;
                __global const vec_t *b_from = (__global const vec_t *)(
                    packed_b + (column / 16 * k + first) * 16);
                vec_t sum_0_0 = 0;
                vec_t sum_0_1 = 0;
                vec_t sum_1_0 = 0;
                vec_t sum_1_1 = 0;
                vec_t sum_2_0 = 0;
                vec_t sum_2_1 = 0;
                vec_t sum_3_0 = 0;
                vec_t sum_3_1 = 0;
                FETCH_LINE(sums + (out_row + 0) * line + out_column + 0, 1);
                FETCH_LINE(sums + (out_row + 1) * line + out_column + 0, 1);
                FETCH_LINE(sums + (out_row + 2) * line + out_column + 0, 1);
                FETCH_LINE(sums + (out_row + 3) * line + out_column + 0, 1);
                uint p = 0;
                for (; p + 2 <= count * 1; p += 2) {
                    FETCH_LINE(b_next, 0);
                    b_next += 8;
                    {
                        const vec_t b_0 = b_from[0];
                        const vec_t b_1 = b_from[1];
                        const real_t a_0 = a_from[0 * 400 + 0];
                        sum_0_0 = add_product(sum_0_0, a_0, b_0);
                        sum_0_1 = add_product(sum_0_1, a_0, b_1);
                        const real_t a_1 = a_from[1 * 400 + 0];
                        sum_1_0 = add_product(sum_1_0, a_1, b_0);
                        sum_1_1 = add_product(sum_1_1, a_1, b_1);
                        const real_t a_2 = a_from[2 * 400 + 0];
                        sum_2_0 = add_product(sum_2_0, a_2, b_0);
                        sum_2_1 = add_product(sum_2_1, a_2, b_1);
                        const real_t a_3 = a_from[3 * 400 + 0];
                        sum_3_0 = add_product(sum_3_0, a_3, b_0);
                        sum_3_1 = add_product(sum_3_1, a_3, b_1);
                    }
                    {
                        const vec_t b_0 = b_from[2];
                        const vec_t b_1 = b_from[3];
                        const real_t a_0 = a_from[0 * 400 + 1];
                        sum_0_0 = add_product(sum_0_0, a_0, b_0);
                        sum_0_1 = add_product(sum_0_1, a_0, b_1);
                        const real_t a_1 = a_from[1 * 400 + 1];
                        sum_1_0 = add_product(sum_1_0, a_1, b_0);
                        sum_1_1 = add_product(sum_1_1, a_1, b_1);
                        const real_t a_2 = a_from[2 * 400 + 1];
                        sum_2_0 = add_product(sum_2_0, a_2, b_0);
                        sum_2_1 = add_product(sum_2_1, a_2, b_1);
                        const real_t a_3 = a_from[3 * 400 + 1];
                        sum_3_0 = add_product(sum_3_0, a_3, b_0);
                        sum_3_1 = add_product(sum_3_1, a_3, b_1);
                    }
                    b_from += 4;
                    a_from += 2;
                }
                for (; p < count * 1; p += 1) {
                    {
                        const vec_t b_0 = b_from[0];
                        const vec_t b_1 = b_from[1];
                        const real_t a_0 = a_from[0 * 400 + 0];
                        sum_0_0 = add_product(sum_0_0, a_0, b_0);
                        sum_0_1 = add_product(sum_0_1, a_0, b_1);
                        const real_t a_1 = a_from[1 * 400 + 0];
                        sum_1_0 = add_product(sum_1_0, a_1, b_0);
                        sum_1_1 = add_product(sum_1_1, a_1, b_1);
                        const real_t a_2 = a_from[2 * 400 + 0];
                        sum_2_0 = add_product(sum_2_0, a_2, b_0);
                        sum_2_1 = add_product(sum_2_1, a_2, b_1);
                        const real_t a_3 = a_from[3 * 400 + 0];
                        sum_3_0 = add_product(sum_3_0, a_3, b_0);
                        sum_3_1 = add_product(sum_3_1, a_3, b_1);
                    }
                    b_from += 2;
                    a_from += 1;
                }

                /* Store the block: in vectors where it lies inside and is all new. */
                const uint old_rows = first_row + r - out_row;
                const uint old_columns = column - out_column;
                const uint rows_here = min((index_t)4, m - out_row);
                const uint columns_here = min((index_t)16, line - out_column);
                const bool is_whole = rows_here - old_rows == 4 &&
                                      columns_here - old_columns == 16;
                if (is_whole && !is_last) {
                    {
                        vec_t value = sum_0_0;
                        const index_t row = out_row + 0;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 0);
                        if (is_added)
                            value += *sums_at;
                        *sums_at = value;
                    }
                    {
                        vec_t value = sum_0_1;
                        const index_t row = out_row + 0;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 8);
                        if (is_added)
                            value += *sums_at;
                        *sums_at = value;
                    }
                    {
                        vec_t value = sum_1_0;
                        const index_t row = out_row + 1;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 0);
                        if (is_added)
                            value += *sums_at;
                        *sums_at = value;
                    }
                    {
                        vec_t value = sum_1_1;
                        const index_t row = out_row + 1;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 8);
                        if (is_added)
                            value += *sums_at;
                        *sums_at = value;
                    }
                    {
                        vec_t value = sum_2_0;
                        const index_t row = out_row + 2;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 0);
                        if (is_added)
                            value += *sums_at;
                        *sums_at = value;
                    }
                    {
                        vec_t value = sum_2_1;
                        const index_t row = out_row + 2;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 8);
                        if (is_added)
                            value += *sums_at;
                        *sums_at = value;
                    }
                    {
                        vec_t value = sum_3_0;
                        const index_t row = out_row + 3;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 0);
                        if (is_added)
                            value += *sums_at;
                        *sums_at = value;
                    }
                    {
                        vec_t value = sum_3_1;
                        const index_t row = out_row + 3;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 8);
                        if (is_added)
                            value += *sums_at;
                        *sums_at = value;
                    }
                    continue;
                }
                if (is_whole) {
                    {
                        vec_t value = sum_0_0;
                        const index_t row = out_row + 0;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 0);
                        if (is_added)
                            value += *sums_at;
                        const index_t column = out_column + 0;
                        value *= alpha;
                        *(__global loose_t *)(result + row * n + column) = value;
                    }
                    {
                        vec_t value = sum_0_1;
                        const index_t row = out_row + 0;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 8);
                        if (is_added)
                            value += *sums_at;
                        const index_t column = out_column + 8;
                        value *= alpha;
                        *(__global loose_t *)(result + row * n + column) = value;
                    }
                    {
                        vec_t value = sum_1_0;
                        const index_t row = out_row + 1;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 0);
                        if (is_added)
                            value += *sums_at;
                        const index_t column = out_column + 0;
                        value *= alpha;
                        *(__global loose_t *)(result + row * n + column) = value;
                    }
                    {
                        vec_t value = sum_1_1;
                        const index_t row = out_row + 1;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 8);
                        if (is_added)
                            value += *sums_at;
                        const index_t column = out_column + 8;
                        value *= alpha;
                        *(__global loose_t *)(result + row * n + column) = value;
                    }
                    {
                        vec_t value = sum_2_0;
                        const index_t row = out_row + 2;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 0);
                        if (is_added)
                            value += *sums_at;
                        const index_t column = out_column + 0;
                        value *= alpha;
                        *(__global loose_t *)(result + row * n + column) = value;
                    }
                    {
                        vec_t value = sum_2_1;
                        const index_t row = out_row + 2;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 8);
                        if (is_added)
                            value += *sums_at;
                        const index_t column = out_column + 8;
                        value *= alpha;
                        *(__global loose_t *)(result + row * n + column) = value;
                    }
                    {
                        vec_t value = sum_3_0;
                        const index_t row = out_row + 3;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 0);
                        if (is_added)
                            value += *sums_at;
                        const index_t column = out_column + 0;
                        value *= alpha;
                        *(__global loose_t *)(result + row * n + column) = value;
                    }
                    {
                        vec_t value = sum_3_1;
                        const index_t row = out_row + 3;
                        __global loose_t *sums_at =
                            (__global loose_t *)(sums + row * line + out_column + 8);
                        if (is_added)
                            value += *sums_at;
                        const index_t column = out_column + 8;
                        value *= alpha;
                        *(__global loose_t *)(result + row * n + column) = value;
                    }
                    continue;
                }
                *(__local vec_t *)(micro_tile + 0) = sum_0_0;
                *(__local vec_t *)(micro_tile + 8) = sum_0_1;
                *(__local vec_t *)(micro_tile + 16) = sum_1_0;
                *(__local vec_t *)(micro_tile + 24) = sum_1_1;
                *(__local vec_t *)(micro_tile + 32) = sum_2_0;
                *(__local vec_t *)(micro_tile + 40) = sum_2_1;
                *(__local vec_t *)(micro_tile + 48) = sum_3_0;
                *(__local vec_t *)(micro_tile + 56) = sum_3_1;
                for (uint i = old_rows; i < rows_here; ++i) {
                    for (uint j = old_columns; j < columns_here; j += 1) {
                        const index_t row = out_row + i;
                        const index_t column = (out_column + j) / 1;
                        sum_t value = *(__local sum_t *)(micro_tile + i * 16 + j);
                        __global sum_t *sums_at = (__global sum_t *)sums + row * n + column;
                        if (is_added)
                            value += *sums_at;
                        if (is_last) {
                            value *= alpha;
                            store_element(value, result, row * n + column);
                        } else {
                            *sums_at = value;
                        }
                    }
                }
            }
        }
        first += count;
    } while (first < end);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemm_packed(
    __global const element_t *restrict a,
    __global const element_t *restrict b,
    __global element_t *restrict result,
    const index_t m,
    const index_t n,
    const index_t k,
    const sum_t alpha,
    const sum_t beta,
    const index_t products,
    const index_t slice_k,
    const index_t tile_m,
    __local real_t *restrict a_block,
    __global real_t *packed_b,
    const index_t piece_n,
    const uint pieces,
    const index_t tail_m,
    const uint tail_down,
    const uint layers,
    const uint from,
    const uint to,
    volatile __global uint *counters,
    const uint strips,
    const uint down,
    const index_t tile_n)
{
    __local real_t micro_tile[64] __attribute__((aligned(128)));
    const uint shares = (uint)get_global_size(0);
    bool here = true;
    const uint pieces_down = (k + 63) / 64;
    for (uint phase = from; phase < to; ++phase) {
        const uint below = phase == 1 ? down : tail_down;
        const index_t top = phase == 1 ? 0 : down * tile_m;
        const index_t height = phase == 1 ? tile_m : tail_m;
        if (here) {
            const index_t tasks = phase == 0 ? pieces : layers * strips * below;
            volatile __global uint *claimed = counters + phase * (shares + 1);
            volatile __global uint *finished = claimed + shares;
            /* Do the tasks of this item's share, then what is left of the others'. */
            for (uint other = 0; other < shares; ++other) {
                const uint share = ((uint)get_global_id(0) + other) % shares;
                const index_t begin = (index_t)((ulong)tasks * share / shares);
                const index_t end = (index_t)((ulong)tasks * (share + 1) / shares);
                for (;;) {
                    const index_t task = begin + atomic_inc(&claimed[share]);
                    if (task >= end)
                        break;

                    if (phase == 0) {
                        const index_t first = (index_t)(task % pieces_down) * 64;
                        const uint count = min((index_t)64, k - first);
                        const index_t begin = task / pieces_down * piece_n;
                        const index_t end = min(n, begin + piece_n);
                        for (index_t column = begin; column < end; column += 16)
                            pack_b(b, packed_b + (column / 16 * k + first) * 16,
                                   first, count, column, n, k);
                    } else {
                        const uint layer = task / (strips * below), at = task % (strips * below);
                        const index_t first_row = top + at % below * height;
                        const index_t first_column = at / below * tile_n;
                        const index_t first_product = (index_t)layer * 1;
                        const index_t end_product = min(products, first_product + 1);
                        for (index_t number = first_product; number < end_product; ++number)
                            multiply(a, b, result, m, n, k, alpha, beta,
                                     number, 0, slice_k, first_row, first_column, height, tile_n,
                                     packed_b, a_block, micro_tile);
                    }
                    mem_fence(CLK_GLOBAL_MEM_FENCE); /* what was written is seen before it is counted */
                    atomic_inc(finished);
                }
            }
            /* Look for the others to finish, or leave: who finishes the last task goes on. */
            for (uint polls = 0; phase == 0 && here && atomic_or(finished, 0) != tasks; ++polls)
                here = polls < 1048576;
            mem_fence(CLK_GLOBAL_MEM_FENCE);
        }
    }
    if (to == 3) {
        /* The last to leave, when all is done, makes the counters ready for the next launch. */
        const uint words = 3 * (shares + 1);
        if (atomic_inc(&counters[words]) + 1 == get_global_size(0))
            for (uint t = 0; t <= words; ++t)
                atomic_xchg(&counters[t], 0);
    }
}
