## The micro-kernel of the product by packed panels: a block of sums in registers.
##
##     <%namespace name="block" file="/gemm/packed_block.mako"/>
##
##                     b_from: vectors of a row of B
##                       | v0 | v1 | v2 |
##     a_from: r0        +----+----+----+
##             r1        |    |    |    |     for each p: sum[r][v] += a[r][p] * b[p][v]
##             ...       |    |    |    |
##
## element, a, epilogue, blocking   as of packed_panels.mako and epilogue.mako
##
##   declare()   add_product(sum, x, y) in OpenCL C
##   block(..)   the body of the loop over the rows of a tile: the next ROWS of them, one panel of B
##
## Its variables in OpenCL C are those of `multiply` in packed.cl.mako. Of what is left of k after whole
## trips of UNROLL rows, each row has a trip of its own. A block at an edge is stored number by
## number, from `micro_tile` in local memory.
##
## Source: see packed.cl.mako. Lines of the next panel and of the result are prefetched, since
## all of a panel is new to its first block, which would wait for memory. A line is prefetched every
## four rows of B, whatever UNROLL is: more at a time pushed others out of the cache.
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="epilogues" file="/gemm/epilogue.mako"/>\
<%namespace name="panels" file="/gemm/packed_panels.mako"/>\
<%def name="declare()">\
/* A function whose arguments are vectors: by these compilers see that wide ones are wanted. */
static inline vec_t add_product(const vec_t sum, const real_t x, const vec_t y)
{
    return sum + x * y;
}

</%def>\
## Add the products of `count` rows of B, and step over them.
<%def name="add_rows(a, blocking, count)">\
<%
    rows, width, components = blocking.rows, blocking.width, blocking.components


    def a_place(r, u):
        """Where row r of a panel of A has the number that row u of a trip of B is multiplied by."""
        if not a.transposed:
            return f"{r} * {blocking.a_line if blocking.pack_a else 'a_line'} + {u}"
        return f"{u // components} * {line} + {r * components + u % components}"


    line = rows * components if blocking.pack_a else "a_line"
%>\
% for u in range(count):
                {
% for v in range(blocking.vectors):
% if blocking.pack_b == "none":
                    const vec_t b_${v} = *(__global const loose_t *)(b_from + ${v * width});
% else:
                    const vec_t b_${v} = b_from[${u * blocking.vectors + v}];
% endif
% endfor
% for r in range(rows):
                    const real_t a_${r} = a_from[${a_place(r, u)}];
% for v in range(blocking.vectors):
                    sum_${r}_${v} = add_product(sum_${r}_${v}, a_${r}, b_${v});
% endfor
% endfor
                }
% if blocking.pack_b == "none":
                b_from += b_line;
% endif
% endfor
% if blocking.pack_b != "none":
                b_from += ${count * blocking.vectors};
% endif
                a_from += ${f"{count // components} * {line}" if a.transposed else count};
</%def>\
## Store a block of sums from the registers; the last ones not as halves.
<%def name="store_whole(element, epilogue, blocking, last)">\
<%
    rows, width, components = blocking.rows, blocking.width, blocking.components
%>\
% for r in range(rows):
% for v in range(blocking.vectors):
            {
                vec_t value = sum_${r}_${v};
                const index_t row = out_row + ${r};
                __global loose_t *sums_at =
                    (__global loose_t *)(sums + row * line + out_column + ${v * width});
                if (is_added)
                    value += *sums_at;
% if not last:
                *sums_at = value;
% elif element.complex:
                value = value * alpha.x + ${panels.module.swapped("value", width)} * alpha_cross;
                *(__global loose_t *)((__global real_t *)(result + row * n) + out_column + ${v * width}) = value;
% else:
                const index_t column = out_column + ${v * width};
${epilogues.apply(element, epilogue, "value", "row", "column", width, blocking.load_width)}\
                *(__global loose_t *)(result + row * n + column) = value;
% endif
            }
% endfor
% endfor
</%def>\
<%def name="block(element, a, epilogue, blocking)">\
<%
    rows, vectors, width = blocking.rows, blocking.vectors, blocking.width
    panel, components = blocking.panel, blocking.components
    places = ("first", "out_row") if a.transposed else ("out_row", "first")
    a_begin = f"{places[0]} * a_line + {places[1]} * {components}"
    # Whether vectors of sums become vectors of results.
    lanes_of_gelu = width > 1 and element.real == "float"
    direct = (epilogue.activation != "gelu" or lanes_of_gelu) and not (
        element.complex and (epilogue.c or epilogue.bias))
    direct = direct and blocking.sums != "partial"
    # So many conversions of halves in a row make LLVM write past its memory in PoCL 3.0: a loop.
    bulky = element.type == "half"
%>\
                /* Add up in registers: whole trips, then the rest. */
% if blocking.pack_a:
                const index_t out_row = first_row + r;
                __local const real_t *a_from = a_block + r * ${blocking.tile_k * components if a.transposed else blocking.a_line};
% else:
                const index_t out_row = min(first_row + r, m - ${rows});
                const index_t a_line = ${"m" if a.transposed else "k"} * ${components};
                __global const real_t *a_from = (__global const real_t *)a + ${a_begin};
% endif
% if blocking.pack_b == "none":
                __global const real_t *b_from = b + first * line + out_column;
% elif blocking.pack_b == "panel":
                __local const vec_t *b_from = (__local const vec_t *)b_panel;
% else:
                __global const vec_t *b_from = (__global const vec_t *)(
                    packed_b + (column / ${panel} * k + first) * ${panel * components});
% endif
% for r in range(rows):
% for v in range(blocking.vectors):
                vec_t sum_${r}_${v} = 0;
% endfor
% endfor
% for r in range(rows):
% for v in range(0, panel, blocking.cache_line):
                FETCH_LINE(sums + (out_row + ${r}) * line + out_column + ${v}, 1);
% endfor
% endfor
                uint p = 0;
                for (; p + ${blocking.unroll} <= count * ${components}; p += ${blocking.unroll}) {
% if blocking.pack_b == "ahead":
                    FETCH_LINE(b_next, 0);
                    b_next += ${max(1, blocking.cache_line * blocking.unroll // 4)};
% endif
${add_rows(a, blocking, blocking.unroll)}\
                }
% if blocking.unroll > components:
                for (; p < count * ${components}; p += ${components}) {
${add_rows(a, blocking, components)}\
                }
% endif

                /* Store the block: in vectors where it lies inside and is all new. */
                const uint old_rows = first_row + r - out_row;
                const uint old_columns = column - out_column;
                const uint rows_here = min((index_t)${rows}, m - out_row);
                const uint columns_here = min((index_t)${panel}, line - out_column);
                const bool is_whole = rows_here - old_rows == ${rows} &&
                                      columns_here - old_columns == ${panel};
                if (is_whole && !is_last) {
${store_whole(element, epilogue, blocking, False)}\
                    continue;
                }
% if direct and not bulky:
                if (is_whole) {
${store_whole(element, epilogue, blocking, True)}\
                    continue;
                }
% endif
% for r in range(rows):
% for v in range(blocking.vectors):
                *(__local vec_t *)(micro_tile + ${r * panel + v * width}) = sum_${r}_${v};
% endfor
% endfor
% if direct and bulky:
                if (is_whole) {
                    for (uint i = 0; i < ${rows * vectors}; ++i) {
                        vec_t value = ((__local const vec_t *)micro_tile)[i];
                        const index_t row = out_row + i / ${vectors};
                        const index_t column = out_column + i % ${vectors} * ${width};
                        if (is_added)
                            value += *(__global const loose_t *)(sums + row * line + column);
${epilogues.apply(element, epilogue, "value", "row", "column", width, blocking.load_width)}\
% for text in elements.module.store(element.type, "value", "result + row * n + column", width, blocking.load_width):
                        ${text}
% endfor
                    }
                    continue;
                }
% endif
                for (uint i = old_rows; i < rows_here; ++i) {
                    for (uint j = old_columns; j < columns_here; j += ${components}) {
                        const index_t row = out_row + i;
                        const index_t column = (out_column + j) / ${components};
                        sum_t value = *(__local sum_t *)(micro_tile + i * ${panel} + j);
                        __global sum_t *sums_at = (__global sum_t *)sums + row * n + column;
                        if (is_added)
                            value += *sums_at;
                        if (is_last) {
${epilogues.apply(element, epilogue, "value", "row", "column")}\
                            store_element(value, result, row * n + column);
                        } else {
                            *sums_at = value;
                        }
                    }
                }
</%def>\
