## One block of sums of the product by packed panels: added up in registers, and stored.
##
##     <%namespace name="block" file="/gemm/packed_block.mako"/>
##
##                     b_from: vectors of a row of B
##                       | v0 | v1 | v2 |
##     a_from: r0        +----+----+----+
##             r1        |    |    |    |     for each p: sum[r][v] += a[r][p] * b[p][v]
##             ...       |    |    |    |
##
## The names of its parameters, and its variables in OpenCL C, are those of packed.cl.mako.
##
##   helpers()   functions in OpenCL C
##   block()     the body of the loop over the rows of a tile: the next ROWS of them, one panel of B
##
## Source: see packed.cl.mako. Lines of the next panel and of the result are asked for early, since
## all of a panel is new to its first block, which would wait for memory. A line is asked for every
## four rows of B, whatever UNROLL is: asked for faster, lines came at the cost of others.
<%namespace name="fetch" file="/common/fetch.mako"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="panels" file="/gemm/packed_panels.mako"/>\
<%def name="helpers()">\
/* A function whose arguments are vectors: by these compilers see that wide ones are wanted. */
static inline vec_t add_product(const vec_t sum, const real_t x, const vec_t y)
{
    return sum + x * y;
}

${fetch.declare()}\
</%def>\
## Add the products of `count` rows of B, and step over them.
<%def name="steps(count)">\
<%
    P = panels.module.parts_of(TYPE)
    swapped = panels.module.swapped
    width = VECTOR_WIDTH
    NR = VECTORS * width
    PAD = panels.module.pad(TYPE)
    LINE = TILE_K * P + PAD


    def a_place(r, u):
        """Where row r of a panel of A has the number that row u of a trip of B is multiplied by."""
        if not TRANS_A:
            return f"{r} * {LINE if PACK_A else 'a_line'} + {u}"
        line = ROWS * P if PACK_A else "a_line"
        return f"{u // P} * {line} + {r * P + u % P}"
%>\
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
## Store a block of sums from the registers; the last ones not as halves.
<%def name="store_whole(last)">\
<%
    P = panels.module.parts_of(TYPE)
    swapped = panels.module.swapped
    width = VECTOR_WIDTH
    NR = VECTORS * width
    PAD = panels.module.pad(TYPE)
    LINE = TILE_K * P + PAD
%>\
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
                *(__global loose_t *)(result + row * n + column) = value;
% endif
            }
% endfor
% endfor
</%def>\<%def name="block()">\
<%
    P = panels.module.parts_of(TYPE)
    swapped = panels.module.swapped
    width = VECTOR_WIDTH
    NR = VECTORS * width
    PAD = panels.module.pad(TYPE)
    LINE = TILE_K * P + PAD
    a_begin = f"first * a_line + out_row * {P}" if TRANS_A else f"out_row * a_line + first * {P}"
    lanes_of_gelu = width > 1 and panels.module.real(TYPE) == "float"
    direct = (ACTIVATION != "gelu" or lanes_of_gelu) and not (P == 2 and (HAS_C or BIAS))
    # So many conversions of halves in a row make LLVM write past its memory in PoCL 3.0: a loop.
    bulky = TYPE == "half"

%>\
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
                FETCH_LINE(sums + (out_row + ${r}) * line + out_column + ${v}, 1);
% endfor
% endfor
                uint p = 0;
                for (; p + ${UNROLL} <= count * ${P}; p += ${UNROLL}) {
% if PACK_B == "ahead":
                    FETCH_LINE(b_next, 0);
                    b_next += ${max(1, PAD * UNROLL // 4)};
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
% if direct and SUMS != "parts" and not bulky:
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
% if direct and SUMS != "parts" and bulky:
                if (is_whole) {
                    for (uint i = 0; i < ${ROWS * VECTORS}; ++i) {
                        vec_t value = ((__local const vec_t *)tile)[i];
                        const index_t row = out_row + i / ${VECTORS};
                        const index_t column = out_column + i % ${VECTORS} * ${width};
                        if (is_added)
                            value += *(__global const loose_t *)(sums + row * line + column);
${parts.finish("value", "row", "column", width, LOAD_WIDTH)}\
% for text in parts.module.store(TYPE, "value", "result + row * n + column", width, LOAD_WIDTH):
                        ${text}
% endfor
                    }
                    continue;
                }
% endif
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
</%def>\
