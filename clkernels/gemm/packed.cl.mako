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
 *                      +----+----+----+----+      VECTORS * VECTOR_WIDTH; it stays in the first cache
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
 *     for each step of TILE_K along k:            what is left out is said by PACK_A and PACK_B
 *         pack the block of A
 *         for each panel of B:                    pack it
 *             for each ROWS rows of the block:    for each p: sum[r][v] += a[r][p] * b[p][v]
 *                                                 add what earlier steps left, or finish
 *
 * A row of A is one number for all columns, which the processor broadcasts as it reads it. So
 * A is only copied, and never turned: [row][p], or [panel][p][row] where it is stored transposed.
 * B is turned while it is packed where it is stored transposed. Panels at the edges are filled:
 * with zeros in B, with the last row in A. Where a factor is read in place, the last panel is
 * moved back instead, to lie inside the matrix, and only what is new of it is stored.
 *
 * Sums of earlier steps along k lie in the result, or in `sums` where it cannot hold them.
 * With several parts (`parts`), an item adds up one part of k only, into its own slice of `sums`;
 * another kernel adds these. Complex numbers: see panels.mako.
 *
 * Source: K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
 * 2008; F. Van Zee, R. van de Geijn, "BLIS", ACM TOMS 2015 (the loops around the micro-kernel).
 *
 * The host guarantees: all matrices are row-major and contiguous, aligned to one element, scratch
 * to 128 bytes; dimension 0 of the grid covers the columns, dimension 1 the rows, dimension 2
 * the products in steps of PRODUCTS, or the parts of k; `result` overlaps no input. Where A and B
 * must not be read it passes k = 0. Matrices read in place have at least ROWS rows, NR columns.
 *
 * TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS: see parts.mako
 * ROWS          rows of sums in registers
 * VECTORS       vectors of sums beside each other
 * VECTOR_WIDTH  real numbers in a vector; even for complex numbers
 * TILE_K        length of a step along k
 * UNROLL        values of p a trip of the inner loop; even for complex numbers
 * PACK_A        whether A is copied to local memory; needed for halves
 * PACK_B        "ahead": by another kernel; "panel": by each item; "none": read in place, for
 *               real numbers that are not halves, where B is not stored transposed
 * PRODUCTS      products of a stack that an item does one after the other
 * SUMS          sums of steps lie in "result", or in scratch: "scratch"; "parts": so do those of
 *               the parts of k
 * LOAD_WIDTH    elements that a builtin may take at once
 */
<%page args="TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS,
             ROWS, VECTORS, VECTOR_WIDTH, TILE_K, UNROLL, PACK_A, PACK_B,
             PRODUCTS, SUMS, LOAD_WIDTH"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="panels" file="/gemm/panels.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=TYPE.startswith('double')"/>\
<%
    P = panels.module.parts_of(TYPE)
    lane, swapped = panels.module.lane, panels.module.swapped
    width = VECTOR_WIDTH
    NR = VECTORS * width
    PAD = 64 // (8 if TYPE.startswith("double") else 4)
    LINE = TILE_K * P + PAD
    a_begin = f"first * a_line + out_row * {P}" if TRANS_A else f"out_row * a_line + first * {P}"
    direct = ACTIVATION != "gelu" and not (P == 2 and (HAS_C or BIAS))


    def a_place(r, u):
        """Where row r of a panel of A has the number that row u of a trip of B is multiplied by."""
        if not TRANS_A:
            return f"{r} * {LINE if PACK_A else 'a_line'} + {u}"
        line = ROWS * P if PACK_A else "a_line"
        return f"{u // P} * {line} + {r * P + u % P}"
%>\
typedef ${INDEX_T} index_t;
${parts.types()}\
${panels.vectors()}\

/* A function whose arguments are vectors: by these compilers see that wide ones are wanted. */
static inline vec_t add_product(const vec_t sum, const real_t x, const vec_t y)
{
    return sum + x * y;
}

/* Ask for a line of memory before it is needed. The built-in prefetch of OpenCL often does nothing. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define fetch_line(p, writes) __builtin_prefetch((const void *)(size_t)(p), writes, 3)
#endif
#endif
#ifndef fetch_line
#define fetch_line(p, writes)
#endif

% if PACK_B == "panel":
${panels.pack_rows("__local")}\
% endif
## Add the products of `count` rows of B, and step over them.
<%def name="steps(count)">\
% for u in range(count):
                {
% for v in range(VECTORS):
% if PACK_B == "none":
                    const vec_t b_${v} = *(__global const loose_t *)(b_from + ${v * width});
% else:
                    const vec_t b_${v} = b_from[${u * VECTORS + v}];
% endif
% endfor
% for r in range(ROWS):
                    const real_t a_${r} = a_from[${a_place(r, u)}];
% for v in range(VECTORS):
                    sum_${r}_${v} = add_product(sum_${r}_${v}, a_${r}, b_${v});
% endfor
% endfor
                }
% if PACK_B == "none":
                b_from += b_line;
% endif
% endfor
% if PACK_B != "none":
                b_from += ${count * VECTORS};
% endif
                a_from += ${count if not TRANS_A else f"{count // P} * {ROWS * P if PACK_A else 'a_line'}"};
</%def>\
## Copy `count` columns of `rows` rows of A, from p on.
<%def name="pack_a()">\
% if TRANS_A:
        for (uint r = 0; r < rows; r += ${ROWS}) {
            __local real_t *to = a_block + r * ${TILE_K * P};
            for (uint p = 0; p < count; ++p) {
                const index_t from = (first + p) * m + first_row + r;
                if (r + ${ROWS} <= rows) {
% for r in range(ROWS):
                    *(__local sum_t *)(to + ${r * P}) = load_element(a, from + ${r});
% endfor
                } else {
                    for (uint i = 0; i < ${ROWS}; ++i)
                        *(__local sum_t *)(to + i * ${P}) =
                            r + i < rows ? load_element(a, from + i) : (sum_t)0;
                }
                to += ${ROWS * P};
            }
        }
% else:
        for (uint r = 0; r < rows_filled; ++r) {
            const index_t from = (first_row + min(r, rows - 1)) * k + first;
            __local real_t *to = a_block + r * ${LINE};
            uint p = 0;
% if P * width > 1 and width % P == 0:
<% step = width // P %>\
            for (; p + ${step} <= count; p += ${step})
% if TYPE == "half":
                *(__local loose_t *)(to + p) = vload_half${width}(0, a + from + p);
% else:
                *(__local loose_t *)(to + p * ${P}) = *(__global const loose_t *)(a + from + p);
% endif
% endif
            for (; p < count; ++p)
                *(__local sum_t *)(to + p * ${P}) = load_element(a, from + p);
        }
% endif
</%def>\
## Store a block of sums from the registers.
<%def name="store_whole(last)">\
% for r in range(ROWS):
% for v in range(VECTORS):
            {
                vec_t value = sum_${r}_${v};
                const index_t row = out_row + ${r};
                __global loose_t *sums_at =
                    (__global loose_t *)(sums + row * line + out_column + ${v * width});
                if (is_added)
                    value += *sums_at;
% if not last:
                *sums_at = value;
% elif P == 2:
                value = value * alpha.x + ${swapped("value", width)} * alpha_cross;
                *(__global loose_t *)((__global real_t *)(result + row * n) + out_column + ${v * width}) = value;
% else:
                const index_t column = out_column + ${v * width};
${parts.finish("value", "row", "column", width, LOAD_WIDTH)}\
% if TYPE == "half":
% for text in parts.module.store(TYPE, "value", "result + row * n + column", width, LOAD_WIDTH):
                ${text}
% endfor
% else:
                *(__global loose_t *)(result + row * n + column) = value;
% endif
% endif
            }
% endfor
% endfor
</%def>\

static inline void multiply(
    ${parts.arguments()},
    const index_t number,
    const index_t part,
    const index_t share,
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
    __local real_t *restrict tile)
{
${parts.enter("number")}\
    const index_t line = n * ${P}; /* real numbers in a row of B and of the result */
    const index_t first_row = (index_t)get_group_id(1) * tile_m;
    const index_t first_column = (index_t)get_group_id(0) * tile_n;
    const index_t end_column = min(line, first_column + tile_n);
    const uint rows = min(tile_m, m - first_row);
    const uint rows_filled = (rows + ${ROWS - 1}) / ${ROWS} * ${ROWS};
    const index_t begin = min(k, part * share);
    const index_t end = min(k, begin + share);
% if SUMS == "result":
    __global real_t *sums = (__global real_t *)result;
% elif SUMS == "scratch":
    sums += number * m * line;
% else:
    sums += part * m * line;
% endif
% if P == 2:
    const vec_t alpha_cross = (vec_t)(${", ".join(("alpha.y" if l % 2 else "-alpha.y") for l in range(width))});
% endif

    index_t first = begin;
    do {
        const uint count = min((index_t)${TILE_K}, end - first);
        const bool is_added = first > begin;
        const bool is_last = ${"false" if SUMS == "parts" else "first + count == end"};
% if PACK_A:
${pack_a()}\
% endif
        for (index_t column = first_column; column < end_column; column += ${NR}) {
% if PACK_B == "none":
            const index_t out_column = min(column, line - ${NR});
            const index_t b_line = line;
% else:
            const index_t out_column = column;
% endif
% if PACK_B == "panel":
            pack_rows(b, b_panel, first, count, column / ${P}, n, k);
% endif
% if PACK_B == "ahead":
            __global const real_t *b_next =
                packed_b + ((column / ${NR} + 1) * k + first) * ${NR * P};
% endif
            for (uint r = 0; r < rows; r += ${ROWS}) {
                /* Add up in registers: whole trips, then the rest. */
% if PACK_A:
                const index_t out_row = first_row + r;
                __local const real_t *a_from = a_block + r * ${TILE_K * P if TRANS_A else LINE};
% else:
                const index_t out_row = min(first_row + r, m - ${ROWS});
                const index_t a_line = ${"m" if TRANS_A else "k"} * ${P};
                __global const real_t *a_from = (__global const real_t *)a + ${a_begin};
% endif
% if PACK_B == "none":
                __global const real_t *b_from = b + first * line + out_column;
% elif PACK_B == "panel":
                __local const vec_t *b_from = (__local const vec_t *)b_panel;
% else:
                __global const vec_t *b_from = (__global const vec_t *)(
                    packed_b + (column / ${NR} * k + first) * ${NR * P});
% endif
% for r in range(ROWS):
% for v in range(VECTORS):
                vec_t sum_${r}_${v} = 0;
% endfor
% endfor
% for r in range(ROWS):
% for v in range(0, NR, PAD):
                fetch_line(sums + (out_row + ${r}) * line + out_column + ${v}, 1);
% endfor
% endfor
                uint p = 0;
                for (; p + ${UNROLL} <= count * ${P}; p += ${UNROLL}) {
% if PACK_B == "ahead":
                    fetch_line(b_next, 0);
                    b_next += ${PAD};
% endif
${steps(UNROLL)}\
                }
% if UNROLL > P:
                for (; p < count * ${P}; p += ${P}) {
${steps(P)}\
                }
% endif

                /* Store the block: in vectors where it lies inside and is all new. */
                const uint old_rows = first_row + r - out_row;
                const uint old_columns = column - out_column;
                const uint rows_here = min((index_t)${ROWS}, m - out_row);
                const uint columns_here = min((index_t)${NR}, line - out_column);
                const bool is_whole = rows_here - old_rows == ${ROWS} &&
                                      columns_here - old_columns == ${NR};
                if (is_whole && !is_last) {
${store_whole(False)}\
                    continue;
                }
% if direct and SUMS != "parts":
                if (is_whole) {
${store_whole(True)}\
                    continue;
                }
% endif
% for r in range(ROWS):
% for v in range(VECTORS):
                *(__local vec_t *)(tile + ${r * NR + v * width}) = sum_${r}_${v};
% endfor
% endfor
                for (uint i = old_rows; i < rows_here; ++i) {
                    for (uint j = old_columns; j < columns_here; j += ${P}) {
                        const index_t row = out_row + i;
                        const index_t column = (out_column + j) / ${P};
                        sum_t value = *(__local sum_t *)(tile + i * ${NR} + j);
                        __global sum_t *sums_at = (__global sum_t *)sums + row * n + column;
                        if (is_added)
                            value += *sums_at;
                        if (is_last) {
${parts.finish("value", "row", "column")}\
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
    ${parts.arguments()},
    const index_t products,
    const index_t share,
    const index_t tile_m,
% if PACK_B == "ahead":
    __global const real_t *restrict packed_b,
% endif
% if SUMS != "result":
    __global real_t *restrict sums,
% endif
% if PACK_A:
    __local real_t *restrict a_block,
% endif
    const index_t tile_n)
{
% if PACK_B == "panel":
    __local real_t b_panel[${TILE_K * P * NR}] __attribute__((aligned(128)));
% endif
    __local real_t tile[${ROWS * NR}] __attribute__((aligned(128)));
    const index_t first_product = ${"0" if SUMS == "parts" else f"(index_t)get_group_id(2) * {PRODUCTS}"};
    const index_t end_product = min(products, first_product + ${PRODUCTS});

    for (index_t number = first_product; number < end_product; ++number)
        multiply(a, b, ${"c, " if HAS_C else ""}${"bias, " if BIAS else ""}result, m, n, k, alpha, beta,
% for d in range(STACKS):
                 count_${d}, a_step_${d}, b_step_${d},
% endfor
                 number, ${"get_group_id(2)" if SUMS == "parts" else "0"}, share, tile_m, tile_n,
                 ${", ".join([*["packed_b"] * (PACK_B == "ahead"), *["sums"] * (SUMS != "result"),
                              *["a_block"] * PACK_A, *["b_panel"] * (PACK_B == "panel"), "tile"])});
}
