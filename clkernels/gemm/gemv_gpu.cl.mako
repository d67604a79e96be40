/*
 * Matrix times few vectors, groups of items that share the sums along k: for GPUs.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias), where m or n is FEW
 *
 * The matrix (one of A and B) is read once; x, the other one, has FEW lines of k numbers. A group
 * is LANES items across the lines times PIECES items along k:
 *
 *   lines along k                                lines across, LINES of them a load
 *
 *          piece 0 piece 1 piece 0               lane 0  lane 1  lane 2
 *   lane 0 l l l l l l l l l l l l > k           l l l l l l l l l l l l  piece 0
 *   lane 1 l l l l l l l l l l l l               l l l l l l l l l l l l  piece 1
 *          ^ VECTOR values of k                  l l l l l l l l l l l l  piece 0
 *                                                v k
 *
 * Neighbouring items read neighbouring vectors, UNROLL of them before the first is used. Their
 * sums meet in a tree in local memory, whose order never changes.
 *
 * Source: own; the two forms are those of BLAS libraries for GPUs, see N. Bell, M. Garland,
 * "Implementing sparse matrix-vector multiplication on throughput-oriented processors", SC 2009,
 * for a vector of items to a row. Cost: one read of the matrix; x comes from caches.
 *
 * The host guarantees: all matrices are row-major and contiguous; dimension 0 of the grid has
 * `blocks` groups for each of `products` products, dimension 1 one for each part of `depth` values of k,
 * a multiple of VECTOR; where VECTOR or LINES > 1 are loaded at once they divide the rows of the
 * matrix, and VECTOR divides k; `result` overlaps no input. Where A and B must not be read it passes k = 0.
 * Arrays that are aligned to their elements only are read element by element.
 *
 * TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS: as of naive
 * SIDE        "a" or "b": which factor is the matrix
 * FEW         lines of the other one
 * SPLIT       whether sums of a part of k are stored in `partial`, and not results
 * LANES       items of a group across the lines
 * PIECES      items of a group along k, a power of two
 * LINES       lines of an item
 * VECTOR      values of k of a load; 1 for lines across
 * WIDE        whether the LINES of an item are one load, for lines across
 * UNROLL      loads along k that an item makes before it uses them
 */
<%page args="TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS,
             SIDE, FEW, SPLIT, LANES, PIECES, LINES, VECTOR, WIDE, UNROLL"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="gemv" file="/gemm/gemv.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=TYPE.startswith('double')"/>\
<%
    complex = TYPE in ("float2", "double2")
    along = gemv.attr.is_along(SIDE, TRANS_A, TRANS_B)
    x_along = gemv.attr.x_is_along(SIDE, FEW, TRANS_A, TRANS_B)
    conj_matrix, conj_x = (CONJ_A, CONJ_B) if SIDE == "a" else (CONJ_B, CONJ_A)
    width = VECTOR if along else (LINES if WIDE else 1)
    REAL = TYPE.rstrip("2")
    SUM_REAL = "float" if TYPE == "half" else REAL
    lanes = width * (2 if complex else 1)
    packed_t = {1: "ushort", 2: "uint", 4: "uint2", 8: "uint4"}.get(width) if TYPE == "half" else ""
    vector_t = SUM_REAL if lanes == 1 else f"{SUM_REAL}{lanes}"
    HEX = "0123456789abcdef"

    def element(name, i, conjugated=False):
        """Element i of a vector."""
        if width > 1:
            name += f".s{HEX[2 * i : 2 * i + 2]}" if complex else f".s{HEX[i]}"
        return f"conjugate({name})" if conjugated else name

    def load(pointer, wide):
        """`width` elements in the type of sums."""
        if wide and width > 1:
            if TYPE == "half":
                return f"widened(*(__global const packed_t *)({pointer}))"
            return f"*(__global const vector_t *)({pointer})"
        if TYPE == "half" or width == 1:
            return parts.attr.load(TYPE, pointer, width, width)
        pieces = ", ".join(f"({pointer})[{i}]" for i in range(width))
        return f"(vector_t)({pieces})"
%>\
typedef ${INDEX_T} index_t;
${parts.types()}\
typedef ${vector_t} vector_t;
% if TYPE == "half" and width > 1:
typedef ${packed_t} packed_t;

static inline vector_t widened(const packed_t bits)
{
    return vload_half${width}(0, (const half *)&bits);
}
% endif
${gemv.names()}\
## Multiply `times` loads of every line with x.
<%def name="dot(times, wide)">\
% for u in range(times):
% for l in range(LINES):
                const vector_t v_${u}_${l} = ${load(f"line_{l} + p + {u * PIECES * VECTOR}", wide)};
% endfor
% endfor
% for u in range(times):
                {
% if x_along:
% for f in range(FEW):
                    const vector_t x_${f} = ${load(f"other + x_at({f}, p + {u * PIECES * VECTOR})", wide)};
% endfor
% else:
% for f in range(FEW):
                    const vector_t x_${f} = ${load(f"other + x_at(0, p + {u * PIECES * VECTOR}) + {f * width}", wide)};
% endfor
% endif
% for i in range(width):
% for f in range(FEW):
<%
    flat = i * FEW + f
    number = element(f"x_{f}", i, conj_x) if x_along else element(f"x_{flat // width}", flat % width, conj_x)
%>\
% for l in range(LINES):
                    sum_${l}_${f} = multiply_add(sum_${l}_${f}, ${element(f"v_{u}_{l}", i, conj_matrix)}, ${number});
% endfor
% endfor
% endfor
                }
% endfor
</%def>\
## Multiply `times` rows with their numbers of x.
<%def name="add(times, wide)">\
% for u in range(times):
% if WIDE:
                const vector_t v_${u} = ${load(f"matrix + (p + {u * PIECES}) * lines + line_0", wide)};
% else:
% for l in range(LINES):
                const sum_t v_${u}_${l} = load_element(matrix, (p + ${u * PIECES}) * lines + line_${l});
% endfor
% endif
% endfor
% for u in range(times):
% for f in range(FEW):
                {
                    const sum_t x_f = ${"conjugate" if conj_x else ""}(load_element(other, x_at(${f}, p + ${u * PIECES})));
% for l in range(LINES):
<% value = element(f"v_{u}", l, conj_matrix) if WIDE else (f"conjugate(v_{u}_{l})" if conj_matrix else f"v_{u}_{l}") %>\
                    sum_${l}_${f} = multiply_add(sum_${l}_${f}, ${value}, x_f);
% endfor
                }
% endfor
% endfor
</%def>\
## Walk along k: UNROLL steps at once, then one by one.
<%def name="walk(wide)">\
<%
    body = dot if along else add
    step = PIECES * VECTOR
%>\
            index_t p = start + piece * ${VECTOR};
% if UNROLL > 1:
            for (; p + ${(UNROLL - 1) * step + VECTOR} <= stop; p += ${UNROLL * step}) {
${body(UNROLL, wide)}\
            }
% endif
            for (; p < stop; p += ${step}) {
${body(1, wide)}\
            }
</%def>\

__kernel __attribute__((reqd_work_group_size(${LANES * PIECES}, 1, 1)))
void gemv_gpu(${parts.arguments()},
% if SPLIT:
    __global sum_t *restrict partial,
% endif
    const index_t blocks,
    const index_t depth)
{
    const index_t number = get_group_id(0) / blocks;
    const index_t first = get_group_id(0) % blocks * ${LANES * LINES};
<% inner, outer = ("PIECES", "LANES") if along else ("LANES", "PIECES") %>\
% if along:
    const uint lane = get_local_id(0) / ${PIECES};
    const uint piece = get_local_id(0) % ${PIECES};
% else:
    const uint lane = get_local_id(0) % ${LANES};
    const uint piece = get_local_id(0) / ${LANES};
% endif
    const index_t start = min(k, (index_t)get_group_id(1) * depth);
    const index_t stop = min(k, start + depth);
${parts.enter("number")}\
    /* Lines behind the last one are the last one again, and not stored. */
% for l in range(LINES):
% if WIDE:
    const index_t line_${l}_at = first + lane * ${LINES} + ${l};
% else:
    const index_t line_${l}_at = first + lane + ${l * LANES};
% endif
% if along:
    __global const element_t *line_${l} = matrix + min(line_${l}_at, lines - 1) * k;
% elif not WIDE:
    const index_t line_${l} = min(line_${l}_at, lines - 1);
% elif l == 0:
    const index_t line_0 = min(line_0_at, lines - ${LINES});
% endif
% for f in range(FEW):
    sum_t sum_${l}_${f} = 0;
% endfor
% endfor
% if width > 1:
<% bytes = width * {"half": 2, "float": 4, "double": 8}[REAL] * (2 if complex else 1) %>\
    const bool aligned = (((ulong)matrix${" | (ulong)other" if along else ""}) & ${bytes - 1}) == 0;
    if (aligned) {
${walk(True)}\
    }
    else {
${walk(False)}\
    }
% else:
    {
${walk(False)}\
    }
% endif
% if PIECES > 1:
    /* Add up the sums of the items of a line. */
    __local sum_t tree[${LINES * FEW}][${LANES * PIECES}];
    const uint me = get_local_id(0);
% for l in range(LINES):
% for f in range(FEW):
    tree[${l * FEW + f}][me] = sum_${l}_${f};
% endfor
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
<% half, stride = PIECES // 2, (1 if along else LANES) %>\
% while half:
    if (piece < ${half}) {
% for s in range(LINES * FEW):
        tree[${s}][me] += tree[${s}][me + ${half * stride}];
% endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
<% half //= 2 %>\
% endwhile
% endif
    if (piece == 0) {
% for l in range(LINES):
        if (line_${l}_at < lines) {
% for f in range(FEW):
            {
                sum_t sum = ${f"tree[{l * FEW + f}][me]" if PIECES > 1 else f"sum_{l}_{f}"};
${gemv.keep("sum", f"line_{l}_at", f, "number * get_num_groups(1) + get_group_id(1)")}\
            }
% endfor
        }
% endfor
    }
}
