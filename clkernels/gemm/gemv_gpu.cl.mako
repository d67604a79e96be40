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
 * Neighbouring items read neighbouring vectors, UNROLL of them before the first is used: for lines
 * across those of UNROLL values of k in a row, so that their numbers of x are a few loads. The sums
 * of a group meet in a tree in local memory, whose order never changes. Where groups share k, the last
 * one of them adds up their sums with JOIN, see gemv_join.mako; else sum_parts.cl.mako does.
 *
 * Source: own; the two forms are those of BLAS libraries for GPUs, see N. Bell, M. Garland,
 * "Implementing sparse matrix-vector multiplication on throughput-oriented processors", SC 2009,
 * for a vector of items to a row. Cost: one read of the matrix; x comes from caches.
 *
 * The host guarantees: all matrices are row-major and contiguous; dimension 0 of the grid has
 * `blocks` groups for each of `products` products, dimension 1 one for each part of `depth` values of k,
 * a multiple of 16; where VECTOR or LINES > 1 are loaded at once they divide the rows of the
 * matrix, and VECTOR divides k; X_VECTOR divides what of x lies in a row, k or more; `result` overlaps no input. Where A and B must not be read it passes k = 0.
 * Arrays that are aligned to their elements only are read element by element. With JOIN `arrived` has a
 * zero for each group of dimension 0, and has it again afterwards.
 *
 * TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS: as of naive
 * SIDE        "a" or "b": which factor is the matrix
 * FEW         lines of the other one
 * SPLIT       whether sums of a part of k are stored in `partial`, and not results
 * JOIN        whether the last group to come adds these up, and stores results
 * LANES       items of a group across the lines
 * PIECES      items of a group along k, a power of two
 * LINES       lines of an item
 * VECTOR      values of k of a load; 1 for lines across
 * WIDE        whether the LINES of an item are one load, for lines across
 * UNROLL      loads along k that an item makes before it uses them, a power of two up to 16
 * X_VECTOR    numbers of x of a load, a power of two
 * PTX         whether the device takes inline PTX
 */
<%page args="TYPE, INDEX_T, TRANS_A, TRANS_B, CONJ_A, CONJ_B, HAS_C, BIAS, ACTIVATION, STACKS,
             SIDE, FEW, SPLIT, LANES, PIECES, LINES, VECTOR, WIDE, UNROLL, X_VECTOR,
             JOIN, PTX"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%namespace name="gemv" file="/gemm/gemv.mako"/>\
<%namespace name="join" file="/gemm/gemv_join.mako"/>\
${extensions.enable(fp64=TYPE.startswith('double'))}\
<%
    complex = TYPE in ("float2", "double2")
    along = gemv.attr.is_along(SIDE, TRANS_A, TRANS_B)
    x_along = gemv.attr.x_is_along(SIDE, FEW, TRANS_A, TRANS_B)
    conj_matrix, conj_x = (CONJ_A, CONJ_B) if SIDE == "a" else (CONJ_B, CONJ_A)
    width = VECTOR if along else (LINES if WIDE else 1)
    REAL = TYPE.rstrip("2")
    SUM_REAL = "float" if TYPE == "half" else REAL
    real_size = {"half": 2, "float": 4, "double": 8}[REAL] * (2 if complex else 1)
    HEX = "0123456789abcdef"
    PACKED = {2: "uint", 4: "uint2", 8: "uint4"}


    def element(name, i, of, conjugated=False):
        """Element i of a vector of so many."""
        if of > 1:
            name += f".s{HEX[2 * i : 2 * i + 2]}" if complex else f".s{HEX[i]}"
        return f"conjugate({name})" if conjugated else name


    def vector_of(width):
        lanes = width * (2 if complex else 1)
        return SUM_REAL if lanes == 1 else f"{SUM_REAL}{lanes}"


    def load(pointer, wide, width):
        """`width` elements in the type of sums."""
        if width == 1:
            return f"load_element({pointer}, 0)"
        if wide and TYPE == "half":
            return f"widened_{width}(*(__global const {PACKED[width]} *)({pointer}))"
        if wide:
            return f"*(__global const {vector_of(width)} *)({pointer})"
        if TYPE == "half":
            return parts.attr.load(TYPE, pointer, width, width)
        pieces = ", ".join(f"({pointer})[{i}]" for i in range(width))
        return f"({vector_of(width)})({pieces})"


    def x_loads(numbers, of_x, wide, first="p"):
        """Declarations of x at `numbers` values of k in a row from `first` on, and its (u, f)."""
        found, names = [], {}
        for f in range(FEW) if x_along else [0]:
            count = numbers if x_along else numbers * FEW
            for i in range(0, count, of_x):
                name = f"x_{f}_{i}"
                pointer = f"other + x_at({f}, {first}) + {i}"
                found.append(f"const {vector_of(of_x)} {name} = {load(f'({pointer})', wide, of_x)};")
                for e in range(of_x):
                    at = (i + e, f) if x_along else divmod(i + e, FEW)
                    names[at] = element(name, e, of_x, conj_x)
        return found, names
%>\
typedef ${INDEX_T} index_t;
${parts.types()}\
% for w in sorted({width, X_VECTOR} - {1}) if TYPE == "half" else []:

static inline float${w} widened_${w}(const ${PACKED[w]} bits)
{
    return vload_half${w}(0, (const half *)&bits);
}
% endfor
% if JOIN:
${fence.declare(PTX=PTX)}\
% endif
${gemv.names()}\
## Multiply `times` loads of every line with x.
<%def name="dot(times, wide)">\
% for u in range(times):
% for l in range(LINES):
                const ${vector_of(width)} v_${u}_${l} = ${load(f"(line_{l} + p + {u * PIECES * VECTOR})", wide, width)};
% endfor
% endfor
% for u in range(times):
                {
<% found, x = x_loads(width, X_VECTOR, wide, f"(p + {u * PIECES * VECTOR})") %>\
% for text in found:
                    ${text}
% endfor
% for i in range(width):
% for f in range(FEW):
% for l in range(LINES):
                    sum_${l}_${f} = multiply_add(sum_${l}_${f}, ${element(f"v_{u}_{l}", i, width, conj_matrix)}, ${x[i, f]});
% endfor
% endfor
% endfor
                }
% endfor
</%def>\
## Multiply `times` rows, one after the other in memory, with their numbers of x.
<%def name="add(times, wide)">\
% for u in range(times):
% if WIDE:
                const ${vector_of(width)} v_${u} = ${load(f"(matrix + (p + {u}) * lines + line_0)", wide, width)};
% else:
% for l in range(LINES):
                const sum_t v_${u}_${l} = load_element(matrix, (p + ${u}) * lines + line_${l});
% endfor
% endif
% endfor
<% found, x = x_loads(times, X_VECTOR if times > 1 else 1, wide) %>\
% for text in found:
                ${text}
% endfor
% for u in range(times):
% for f in range(FEW):
% for l in range(LINES):
<% value = element(f"v_{u}", l, width, conj_matrix) if WIDE else (f"conjugate(v_{u}_{l})" if conj_matrix else f"v_{u}_{l}") %>\
                sum_${l}_${f} = multiply_add(sum_${l}_${f}, ${value}, ${x[u, f]});
% endfor
% endfor
% endfor
</%def>\
## Walk along k: UNROLL steps at once, then one by one. Lines across have these steps in a row.
<%def name="walk(wide)">\
<%
    body = dot if along else add
    step = PIECES * VECTOR
    reach = (UNROLL - 1) * step + VECTOR if along else UNROLL
%>\
            index_t p = start + piece * ${VECTOR if along else UNROLL};
% if UNROLL > 1:
            for (; p + ${reach} <= stop; p += ${UNROLL * step}) {
${body(UNROLL, wide)}\
            }
% endif
            for (; p < stop; p += ${step if along or UNROLL == 1 else 1}) {
${body(1, wide)}\
            }
</%def>\

__kernel __attribute__((reqd_work_group_size(${LANES * PIECES}, 1, 1)))
void gemv_gpu(${parts.arguments()},
% if SPLIT:
    __global sum_t *${"" if JOIN else "restrict "}partial,
% endif
% if JOIN:
    volatile __global uint *arrived,
% endif
    const index_t blocks,
    const index_t depth)
{
    const index_t number = get_group_id(0) / blocks;
    const index_t first = get_group_id(0) % blocks * ${LANES * LINES};
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
% if width > 1 or X_VECTOR > 1:
    const bool aligned = ((ulong)matrix & ${width * real_size - 1}) == 0 && ((ulong)other & ${X_VECTOR * real_size - 1}) == 0;
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
    const uint me = get_local_id(0);
% if PIECES > 1:
    /* Add up the sums of the items of a line. */
    __local sum_t tree[${LINES * FEW}][${LANES * PIECES}];
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
<% own = lambda l, f: f"tree[{l * FEW + f}][me]" if PIECES > 1 else f"sum_{l}_{f}" %>\
% if JOIN:
${join.finish([own(l, f) for l in range(LINES) for f in range(FEW)], "tree[0]")}\
% else:
    if (piece == 0) {
% for l in range(LINES):
        if (line_${l}_at < lines) {
% for f in range(FEW):
            {
                sum_t sum = ${own(l, f)};
${gemv.keep("sum", f"line_{l}_at", f, "number * get_num_groups(1) + get_group_id(1)")}\
            }
% endfor
        }
% endfor
    }
% endif
}
