/*
 * Matrix product of small matrices, read in place, with all sums in registers: for CPUs.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 * op(X) is X, its transpose, or the conjugate of either.
 *
 *                     v0   v1   v2                columns of the last vector are moved back, to
 *                    +----+----+---+              end where the matrix ends: n = 20 by vectors of 8
 *               k    |    |    |   |  B
 *                    +----+----+---+                  0       8   12  16  20
 *            +-----+ +----+----+---+                  |--v0---|---v1---|
 *     ROWS   |     | |    |    |   |                              |---v2---|
 *            +-----+ +----+----+---+
 *     ROWS   |     | |####|####|###|              for each p: sum[r][v] += a[r][p] * b[p][v]
 *            +-----+ +----+----+---+
 *       A                result                   rows of the last block are moved back, too
 *
 * An item, which is a work-group, has a panel of VECTORS vectors of columns, or of those that are left,
 * and goes down `tile_m` rows, ROWS at a time. Sums go along all of k in registers, and are
 * stored once. What lies in two vectors or blocks is computed twice, alike, and stored twice, perhaps
 * by two items, the same bits: that is faster than edges that are stored number by number.
 *
 * With PACK_B a vector of columns is copied first, to [v][p][lane] in local memory: where B is stored
 * transposed, it is turned then, and complex numbers become real ones of twice the depth, see
 * packed_panels.mako. In all of this a complex number is two columns.
 *
 * Source: own; the loop in the middle is the micro-kernel of K. Goto, R. van de Geijn, "Anatomy of
 * high-performance matrix multiplication", ACM TOMS 2008. Cost: A is read once for each panel, B once for
 * each ROWS rows; so both should fit the caches.
 *
 * The host guarantees: all matrices are row-major and contiguous, aligned to one element; m is at
 * least ROWS and n at least a vector; the grid covers the result: dimension 0 the panels, dimension 1
 * tiles of tile_m rows, dimension 2 the products of the stack; `result` overlaps no input. Where A and B
 * must not be read it passes k = 0. No halves.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py; integers are unsigned, as these wrap around
 * INDEX_T     unsigned type that counts the elements of the largest array
 * A, B        `Factor` of opencl_lab/ops/gemm/launches.py: how each is stored, and counts
 * EPILOGUE    `Epilogue` of the same module: C, bias, activation
 * STACKS      dimensions of the stack of products, 0 for a single product
 * BLOCKING    `Blocking` of opencl_lab/ops/gemm/packed/tiles.py: rows and width are used here, and what
 *             packing takes; its panels are single vectors
 * VECTORS     vectors of a panel
 * PACK_B      whether columns of B are copied first; needed for complex numbers and a transposed B
 */
<%page args="ELEMENT, INDEX_T, A, B, EPILOGUE, STACKS, BLOCKING, VECTORS, PACK_B"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="fetch" file="/common/fetch.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
<%namespace name="panels" file="/gemm/packed_panels.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
<%
    ROWS, width, components = BLOCKING.rows, BLOCKING.width, BLOCKING.components
    # Whether vectors of sums become vectors of results.
    in_vectors = not (ELEMENT.complex and (EPILOGUE.c or EPILOGUE.bias)) and (
        EPILOGUE.activation != "gelu" or not ELEMENT.double)
%>\
typedef ${INDEX_T} index_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\
typedef ${ELEMENT.real} real_t;
typedef ${elements.module.vector(ELEMENT.real, width)} vec_t;
typedef vec_t __attribute__((aligned(sizeof(real_t)))) loose_t; /* which may lie anywhere */
% if PACK_B:
${fetch.declare()}\
${panels.declare_pack_b(ELEMENT, A, B, BLOCKING, "__local")}\
% endif

/* A function whose arguments are vectors: by these compilers see that wide ones are wanted. */
static inline vec_t add_product(const vec_t sum, const real_t x, const vec_t y)
{
    return sum + x * y;
}

## Multiply a panel of so many vectors: all rows of the tile.
<%def name="panel(vectors)">\
% for v in range(vectors):
        const index_t column_${v} = ${f"min(column + {v * width}, line - {width})" if v + 1 == vectors else f"column + {v * width}"};
% endfor
% if PACK_B:
% for v in range(vectors):
        __local real_t *b_${v} = b_panel + ${v * width * components} * k;
        pack_b(b, b_${v}, 0, k, column_${v} / ${components}, n, k);
% endfor
% endif
        for (index_t next = first_row; next < end_row; next += ${ROWS}) {
            const index_t first = min(next, m - ${ROWS});
            __global const real_t *a_from = (__global const real_t *)(a + first * ${"1" if A.transposed else "k"});
% for r in range(ROWS):
% for v in range(vectors):
            vec_t sum_${r}_${v} = 0;
% endfor
% endfor
            for (index_t p = 0; p < k; ++p) {
% for c in range(components):
                {
% for v in range(vectors):
% if PACK_B:
                    const vec_t y_${v} = *(__local const vec_t *)(b_${v} + (p * ${components} + ${c}) * ${width});
% else:
                    const vec_t y_${v} = *(__global const loose_t *)(b + p * line + column_${v});
% endif
% endfor
% for r in range(ROWS):
                    const real_t x_${r} = a_from[${r * components + c if A.transposed else f"{r} * k * {components} + {c}"}];
% for v in range(vectors):
                    sum_${r}_${v} = add_product(sum_${r}_${v}, x_${r}, y_${v});
% endfor
% endfor
                }
% endfor
                a_from += ${f"m * {components}" if A.transposed else components};
            }
% if in_vectors:
% for r in range(ROWS):
% for v in range(vectors):
            {
                const index_t row = first + ${r}, column = column_${v};
                vec_t value = sum_${r}_${v};
% if ELEMENT.complex:
                value = value * alpha.x + ${panels.module.swapped("value", width)} * alpha_cross;
% else:
${epilogue.apply(ELEMENT, EPILOGUE, "value", "row", "column", width, BLOCKING.load_width)}\
% endif
                *(__global loose_t *)((__global real_t *)result + row * line + column) = value;
            }
% endfor
% endfor
% else:
            const index_t columns[] = {${", ".join(f"column_{v}" for v in range(vectors))}};
            const vec_t sums[] = {${", ".join(f"sum_{r}_{v}" for r in range(ROWS) for v in range(vectors))}};
            for (uint i = 0; i < ${ROWS * vectors * width // components}; ++i) {
                const index_t row = first + i / ${vectors * width // components};
                const index_t column = columns[i / ${width // components} % ${vectors}] / ${components} + i % ${width // components};
                sum_t value = ((const sum_t *)sums)[i];
${epilogue.apply(ELEMENT, EPILOGUE, "value", "row", "column")}\
                store_element(value, result, row * n + column);
            }
% endif
        }
</%def>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemm_direct(${product.arguments(EPILOGUE, STACKS)},
% if PACK_B:
    __local real_t *restrict b_panel,
% endif
    const index_t tile_m)
{
${product.enter(EPILOGUE, STACKS, "get_global_id(2)")}\
    const index_t line = n * ${components}; /* real numbers in a row of B and of the result */
    const index_t column = get_global_id(0) * ${VECTORS * width};
    const index_t first_row = get_global_id(1) * tile_m;
    const index_t end_row = min(m, first_row + tile_m);
% if ELEMENT.complex:
    const vec_t alpha_cross = (vec_t)(${", ".join(("alpha.y" if l % 2 else "-alpha.y") for l in range(width))});
% endif
    const index_t left = line - column;
% for vectors in range(VECTORS, 0, -1):
    ${"if" if vectors == VECTORS else "} else if"} (left > ${(vectors - 1) * width}) {
${panel(vectors)}\
% endfor
    }
}
