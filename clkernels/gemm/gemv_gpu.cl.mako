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
 * of a group meet in a tree in local memory, whose order never changes. Where k is split a group has
 * one slice of it. The sums of all slices are added up by the last group of a block of lines to come
 * (gemv_gpu_reduction.mako), or by a second launch (split_k_reduction.cl.mako).
 *
 * Source: own; the two forms are those of BLAS libraries for GPUs, see N. Bell, M. Garland,
 * "Implementing sparse matrix-vector multiplication on throughput-oriented processors", SC 2009,
 * for a vector of items to a row. Cost: one read of the matrix; x comes from caches.
 *
 * The host guarantees: all matrices are row-major and contiguous; dimension 0 of the grid has
 * `blocks` groups for each of `products` products, dimension 1 one for each slice of `depth` values of
 * k, a multiple of 16; where VECTOR or LINES > 1 are loaded at once they divide the rows of the
 * matrix, and VECTOR divides k; X_VECTOR divides what of x lies in a row, k or more; `result` overlaps
 * no input. Where A and B must not be read it passes k = 0. Arrays that are aligned to their elements
 * only are read element by element. Where the last group adds up, `arrived` has a zero for each group
 * of dimension 0, and has it again afterwards.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T     unsigned type that counts the elements of the largest array
 * EPILOGUE    `Epilogue` of opencl_lab/ops/gemm/launches.py: C, bias, activation
 * STACKS      dimensions of the stack of products, 0 for a single product
 * THIN        `Thin` of opencl_lab/ops/gemm/thin/lines.py: the matrix and x, and how they lie
 * SPLIT_K     "none", or who adds up the sums of all slices: "last group" or "second launch"
 * LANES       items of a group across the lines
 * PIECES      items of a group along k, a power of two
 * LINES       lines of an item
 * VECTOR      values of k of a load; 1 for lines across
 * WIDE        whether the LINES of an item are one load, for lines across
 * UNROLL      loads along k that an item makes before it uses them, a power of two up to 16
 * X_VECTOR    numbers of x of a load, a power of two
 * PTX         whether the device takes inline PTX
 * SUB_GROUP   items of a sub-group, 0: the compiler chooses
 */
<%page args="ELEMENT, INDEX_T, EPILOGUE, STACKS, THIN, SPLIT_K, LANES, PIECES, LINES, VECTOR, WIDE,
             UNROLL, X_VECTOR, PTX, SUB_GROUP"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
<%namespace name="gemv" file="/gemm/gemv.mako"/>\
<%namespace name="reduction" file="/gemm/gemv_gpu_reduction.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
<%
    FEW, HALF = THIN.few, ELEMENT.type == "half"
    components = elements.module.components(ELEMENT)
    width = VECTOR if THIN.along else (LINES if WIDE else 1)
    element_bytes = 2 if HALF else (8 if ELEMENT.double else 4) * components
    HEX = "0123456789abcdef"
    PACKED = {2: "uint", 4: "uint2", 8: "uint4"}


    def element(name, i, of, conjugated=False):
        """Element i of a vector of so many."""
        if of > 1:
            name += f".s{HEX[2 * i : 2 * i + 2]}" if ELEMENT.complex else f".s{HEX[i]}"
        return f"conjugate({name})" if conjugated else name


    def vector_of(width):
        return elements.module.vector(ELEMENT.real, width * components)


    def load(pointer, wide, width):
        """`width` elements in the type of sums."""
        if width == 1:
            return f"load_element({pointer}, 0)"
        if wide and HALF:
            return f"widened_{width}(*(__global const {PACKED[width]} *)({pointer}))"
        if wide:
            return f"*(__global const {vector_of(width)} *)({pointer})"
        if HALF:
            return elements.module.load("half", pointer, width, width)
        each = ", ".join(f"({pointer})[{i}]" for i in range(width))
        return f"({vector_of(width)})({each})"


    def x_loads(numbers, of_x, wide, first="p"):
        """Declarations of x at `numbers` values of k in a row from `first` on, and its (u, f)."""
        found, names = [], {}
        for f in range(FEW) if THIN.x_along else [0]:
            count = numbers if THIN.x_along else numbers * FEW
            for i in range(0, count, of_x):
                name = f"x_{f}_{i}"
                pointer = f"other + x_at({f}, {first}) + {i}"
                found.append(f"const {vector_of(of_x)} {name} = {load(f'({pointer})', wide, of_x)};")
                for e in range(of_x):
                    at = (i + e, f) if THIN.x_along else divmod(i + e, FEW)
                    names[at] = element(name, e, of_x, THIN.x_conjugated)
        return found, names
%>\
typedef ${INDEX_T} index_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\
% for w in sorted({width, X_VECTOR} - {1}) if HALF else []:

static inline float${w} widened_${w}(const ${PACKED[w]} bits)
{
    return vload_half${w}(0, (const half *)&bits);
}
% endfor
% if SPLIT_K == "last group":
${fence.declare(PTX=PTX)}\
% endif
${gemv.declare(THIN)}\
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
                    sum_${l}_${f} = multiply_add(sum_${l}_${f}, ${element(f"v_{u}_{l}", i, width, THIN.conjugated)}, ${x[i, f]});
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
<% value = element(f"v_{u}", l, width, THIN.conjugated) if WIDE else (f"conjugate(v_{u}_{l})" if THIN.conjugated else f"v_{u}_{l}") %>\
                sum_${l}_${f} = multiply_add(sum_${l}_${f}, ${value}, ${x[u, f]});
% endfor
% endfor
% endfor
</%def>\
## Walk along k: UNROLL steps at once, then one by one. Lines across have these steps in a row.
<%def name="walk(wide)">\
<%
    body = dot if THIN.along else add
    step = PIECES * VECTOR
    reach = (UNROLL - 1) * step + VECTOR if THIN.along else UNROLL
%>\
            index_t p = start + piece * ${VECTOR if THIN.along else UNROLL};
% if UNROLL > 1:
            for (; p + ${reach} <= stop; p += ${UNROLL * step}) {
${body(UNROLL, wide)}\
            }
% endif
            for (; p < stop; p += ${step if THIN.along or UNROLL == 1 else 1}) {
${body(1, wide)}\
            }
</%def>\

__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(${LANES * PIECES}, 1, 1)))
void gemv_gpu(${product.arguments(EPILOGUE, STACKS)},
% if SPLIT_K != "none":
    __global sum_t *${"" if SPLIT_K == "last group" else "restrict "}partial,
% endif
% if SPLIT_K == "last group":
    volatile __global uint *arrived,
% endif
    const index_t blocks,
    const index_t depth)
{
    const index_t number = get_group_id(0) / blocks;
    const index_t first = get_group_id(0) % blocks * ${LANES * LINES};
% if THIN.along:
    const uint lane = get_local_id(0) / ${PIECES};
    const uint piece = get_local_id(0) % ${PIECES};
% else:
    const uint lane = get_local_id(0) % ${LANES};
    const uint piece = get_local_id(0) / ${LANES};
% endif
    const index_t start = min(k, (index_t)get_group_id(1) * depth);
    const index_t stop = min(k, start + depth);
${product.enter(EPILOGUE, STACKS, "number")}\
    /* Lines behind the last one are the last one again, and not stored. */
% for l in range(LINES):
% if WIDE:
    const index_t line_${l}_at = first + lane * ${LINES} + ${l};
% else:
    const index_t line_${l}_at = first + lane + ${l * LANES};
% endif
% if THIN.along:
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
    const bool aligned = ((ulong)matrix & ${width * element_bytes - 1}) == 0 && ((ulong)other & ${X_VECTOR * element_bytes - 1}) == 0;
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
<% half, stride = PIECES // 2, (1 if THIN.along else LANES) %>\
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
% if SPLIT_K == "last group":
${reduction.by_last_group(ELEMENT, EPILOGUE, THIN, LANES, PIECES, LINES, WIDE,
                          [own(l, f) for l in range(LINES) for f in range(FEW)], "tree[0]")}\
% else:
    if (piece == 0) {
% for l in range(LINES):
        if (line_${l}_at < lines) {
% for f in range(FEW):
            {
                sum_t sum = ${own(l, f)};
% if SPLIT_K == "second launch":
${gemv.partial_sum("sum", f"line_{l}_at", f, "number * get_num_groups(1) + get_group_id(1)")}\
% else:
${gemv.result(ELEMENT, EPILOGUE, "sum", f"line_{l}_at", f)}\
% endif
            }
% endfor
        }
% endfor
    }
% endif
}
