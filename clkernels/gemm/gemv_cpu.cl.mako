/*
 * Matrix times few vectors, an item a work-group: for CPUs.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias), where m or n is FEW
 *
 * The matrix (one of A and B) is read once; x, the other one, has FEW lines of k numbers.
 *
 *   lines along k                              lines across
 *
 *   STEP_K of x, in the first cache            BLOCK sums a line of x, in the first cache
 *     x x x x x x x x                            s s s s s s s s
 *     | | | | | | | |  * and +                   + + + + + + + +
 *   > l l l l l l l l   ROWS lines at a time   > l l l l l l l l   ROWS values of k at a time,
 *   > l l l l l l l l   in vectors             > l l l l l l l l   each times its number of x
 *       ^ VECTOR real numbers
 *
 * Complex numbers are pairs of real ones: a line of x becomes two, its real parts r and its
 * imaginary parts i, each number twice. Of (re, im) * r and (re, im) * i the product is made at
 * the end.
 *
 * Source: own; reading several lines together is what BLAS libraries do, see K. Goto,
 * R. van de Geijn, "High-Performance Implementation of the Level-3 BLAS", ACM TOMS 35 (2008).
 * The rows that are read next are asked for early: so many streams of memory no processor follows.
 * Cost: one read of the matrix; x is read once for every BLOCK lines along k.
 *
 * The host guarantees: all matrices are row-major and contiguous; dimension 0 of the grid has
 * `blocks` items for each of `products` products, dimension 1 one for each part of `depth` values of k;
 * `result` overlaps no input. Where A and B must not be read it passes k = 0.
 *
 * TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS: as of naive
 * SIDE        "a" or "b": which factor is the matrix
 * FEW         lines of the other one
 * SPLIT       whether sums of a part of k are stored in `partial`, and not results
 * JOIN        whether the last item to come adds these up, and stores results: gemv_cpu_join.mako
 * VECTOR      real numbers of a vector
 * LOAD        real numbers that a built-in function takes at once
 * ROWS        rows of the matrix, as it is stored, that are read together
 * BLOCK       lines of an item
 * STEP_K      values of k a trip, for lines along k
 */
<%page args="TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS,
             SIDE, FEW, SPLIT, JOIN, VECTOR, LOAD, ROWS, BLOCK, STEP_K"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="fetch" file="/common/fetch.mako"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="gemv" file="/gemm/gemv.mako"/>\
<%namespace name="join" file="/gemm/gemv_cpu_join.mako"/>\
${extensions.enable(fp64=TYPE.startswith('double'))}\
<%
    complex = TYPE in ("float2", "double2")
    PARTS = 2 if complex else 1
    REAL = "half" if TYPE == "half" else TYPE.rstrip("2")
    SUM_REAL = "float" if TYPE == "half" else REAL
    vector = SUM_REAL if VECTOR == 1 else f"{SUM_REAL}{VECTOR}"
    along = gemv.attr.is_along(SIDE, TRANS_A, TRANS_B)
    # x may be read in place, where its numbers are in the type and the order of the sums.
    direct = TYPE in ("float", "double") and gemv.attr.x_is_along(SIDE, FEW, TRANS_A, TRANS_B)
    conj_matrix, conj_x = (CONJ_A, CONJ_B) if SIDE == "a" else (CONJ_B, CONJ_A)
    EXTRA = FEW * PARTS

    def load(pointer):
        if TYPE == "half" or VECTOR == 1:
            return parts.attr.load(REAL, pointer, VECTOR, LOAD)
        return f"*(__global const unaligned_t *)({pointer})"

    def load_private(pointer):
        return f"*(const vector_t *)({pointer})"
%>\
typedef ${INDEX_T} index_t;
${parts.types()}\
typedef ${REAL} real_t;
typedef ${SUM_REAL} sum_real_t;
typedef ${vector} vector_t;
% if TYPE != "half":
typedef ${vector} unaligned_t __attribute__((aligned(${8 if SUM_REAL == "double" else 4})));
% endif
${gemv.names()}\
${fetch.declare()}\
<%def name="combined(e1, e2)">\
% if complex:
(sum_t)(${e1}.x ${"+" if conj_matrix else "-"} ${e2}.y, ${"-" if conj_matrix else ""}${e1}.y + ${e2}.x)\
% else:
${e1}\
% endif
</%def>\
## Add up the lanes of a vector, those of real and of imaginary parts on their own.
<%def name="reduced(name)">\
<%
    width, value = VECTOR, name
%>\
% while width > PARTS:
<%
    width //= 2
    kind = SUM_REAL if width == 1 else f"{SUM_REAL}{width}"
%>\
            const ${kind} ${name}_${width} = ${name if 2 * width == VECTOR else f"{name}_{2 * width}"}.lo + ${name if 2 * width == VECTOR else f"{name}_{2 * width}"}.hi;
% endwhile
            sum_t ${name}_all = ${name if VECTOR == PARTS else f"{name}_{PARTS}"};
</%def>\
## Multiply `rows` lines with STEP_K values of x.
<%def name="dot(rows)">\
% for r in range(rows):
            __global const real_t *line_${r} = (__global const real_t *)matrix
                + ((first + line + ${r}) * k + p) * ${PARTS};
% for e in range(EXTRA):
            vector_t sum_${r}_${e} = 0;
% endfor
% endfor
            const size_t next = (size_t)k * ${rows * PARTS};
            for (uint q = 0; q < whole; q += ${VECTOR}) {
% for r in range(rows):
                const vector_t v_${r} = ${load(f"line_{r} + q")};
                FETCH_LINE(line_${r} + q + next, 0);
% endfor
% for e in range(EXTRA):
                {
% if direct:
                    const vector_t x_q = ${load(f"other + x_at({e}, p) + q")};
% else:
                    const vector_t x_q = ${load_private(f"&staged[{e}][q]")};
% endif
% for r in range(rows):
                    sum_${r}_${e} += v_${r} * x_q;
% endfor
                }
% endfor
            }
% for r in range(rows):
% for e in range(EXTRA):
${reduced(f"sum_{r}_{e}")}\
% endfor
% endfor
            for (uint q = whole / ${PARTS}; q < steps; ++q) {
% for r in range(rows):
                const sum_t v_${r} = load_element((__global const element_t *)line_${r}, q);
% for e in range(EXTRA):
                sum_${r}_${e}_all += v_${r} * ${f"other[x_at({e}, p) + q]" if direct else f"*(const sum_t *)&staged[{e}][q * {PARTS}]"};
% endfor
% endfor
            }
% for r in range(rows):
% for f in range(FEW):
            sums[(line + ${r}) * ${FEW} + ${f}] += ${combined(f"sum_{r}_{f * PARTS}_all", f"sum_{r}_{f * PARTS + 1}_all")};
% endfor
% endfor
</%def>\
## Add `rows` rows of the matrix, each times its numbers of x, to the sums.
<%def name="add(rows)">\
% for r in range(rows):
            __global const real_t *row_${r} = (__global const real_t *)matrix
                + ((p + ${r}) * lines + first) * ${PARTS};
% for f in range(FEW):
% if complex:
            const sum_t x_${r}_${f} = ${"conjugate" if conj_x else ""}(other[x_at(${f}, p + ${r})]);
            const sum_real_t x_${r}_${2 * f}_real = x_${r}_${f}.x;
            const sum_real_t x_${r}_${2 * f + 1}_real = x_${r}_${f}.y;
% else:
            const sum_real_t x_${r}_${f}_real = load_element(other, x_at(${f}, p + ${r}));
% endif
% endfor
% endfor
            const size_t next = (size_t)lines * ${rows * PARTS};
            for (uint j = 0; j < whole; j += ${VECTOR}) {
% for r in range(rows):
                const vector_t v_${r} = ${load(f"row_{r} + j")};
                FETCH_LINE(row_${r} + j + next, 0);
% endfor
% for e in range(EXTRA):
                *(vector_t *)&sums[${e}][j] = ${load_private(f"&sums[{e}][j]")}
% for r in range(rows):
                    + v_${r} * x_${r}_${e}_real${";" if r + 1 == rows else ""}
% endfor
% endfor
            }
            for (uint j = whole; j < count * ${PARTS}; ++j) {
% for r in range(rows):
                const sum_real_t v_${r} = ${parts.attr.load(REAL, f"row_{r} + j", 1, 1)};
% for e in range(EXTRA):
                sums[${e}][j] += v_${r} * x_${r}_${e}_real;
% endfor
% endfor
            }
</%def>\

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemv_cpu(${parts.arguments()},
% if SPLIT:
    __global sum_t *${"" if JOIN else "restrict "}partial,
% endif
% if JOIN:
    volatile __global uint *arrived,
% endif
    const index_t blocks,
    const index_t depth)
{
    const index_t number = get_global_id(0) / blocks;
    const index_t first = get_global_id(0) % blocks * ${BLOCK};
    const uint count = min(lines - first, (index_t)${BLOCK});
    const index_t start = min(k, (index_t)get_global_id(1) * depth);
    const index_t stop = min(k, start + depth);
${parts.enter("number")}\
% if along:
    sum_t sums[${BLOCK * FEW}];
    for (uint i = 0; i < count * ${FEW}; ++i) {
        sums[i] = 0;
    }
% if not direct:
    sum_real_t staged[${EXTRA}][${STEP_K * PARTS}] __attribute__((aligned(128)));
% endif
    for (index_t p = start; p < stop; p += ${STEP_K}) {
        const uint steps = min(stop - p, (index_t)${STEP_K});
        const uint whole = steps * ${PARTS} / ${VECTOR} * ${VECTOR};
% if not direct:
        for (uint q = 0; q < steps; ++q) {
% for f in range(FEW):
% if complex:
            const sum_t x_${f} = ${"conjugate" if conj_x else ""}(other[x_at(${f}, p + q)]);
            staged[${2 * f}][2 * q] = staged[${2 * f}][2 * q + 1] = x_${f}.x;
            staged[${2 * f + 1}][2 * q] = staged[${2 * f + 1}][2 * q + 1] = x_${f}.y;
% else:
            staged[${f}][q] = load_element(other, x_at(${f}, p + q));
% endif
% endfor
        }
% endif
        uint line = 0;
% if ROWS > 1:
        for (; line + ${ROWS} <= count; line += ${ROWS}) {
${dot(ROWS)}\
        }
% endif
        for (; line < count; ++line) {
${dot(1)}\
        }
    }
% else:
    sum_real_t sums[${EXTRA}][${BLOCK * PARTS}] __attribute__((aligned(128)));
    const uint whole = count * ${PARTS} / ${VECTOR} * ${VECTOR};
    for (uint j = 0; j < count * ${PARTS}; ++j) {
% for e in range(EXTRA):
        sums[${e}][j] = 0;
% endfor
    }
    {
        index_t p = start;
% if ROWS > 1:
        for (; p + ${ROWS} <= stop; p += ${ROWS}) {
${add(ROWS)}\
        }
% endif
        for (; p < stop; ++p) {
${add(1)}\
        }
    }
% endif
% if JOIN and along:
${join.begin(1, BLOCK * FEW * PARTS, f"count * {FEW * PARTS}")}\
% elif JOIN:
${join.begin(EXTRA, BLOCK * PARTS, f"count * {PARTS}")}\
% endif
    /* Store the sums of the block, in the order of the result. */
<% outer, inner = ("line", "f") if SIDE == "a" else ("f", "line") %>\
    for (uint ${outer} = 0; ${outer} < ${"count" if outer == "line" else FEW}; ++${outer}) {
        for (uint ${inner} = 0; ${inner} < ${"count" if inner == "line" else FEW}; ++${inner}) {
% if along:
            sum_t sum = sums[line * ${FEW} + f];
% elif complex:
            const sum_t sum_r = *(const sum_t *)&sums[2 * f][2 * line];
            const sum_t sum_i = *(const sum_t *)&sums[2 * f + 1][2 * line];
            sum_t sum = ${combined("sum_r", "sum_i")};
% else:
            sum_t sum = sums[f][line];
% endif
% if JOIN:
${gemv.result("sum", "first + line", "f")}\
% else:
${gemv.keep("sum", "first + line", "f", "number * get_num_groups(1) + get_group_id(1)")}\
% endif
        }
    }
}
