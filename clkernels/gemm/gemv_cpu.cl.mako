/*
 * Matrix times few vectors, an item a work-group: for CPUs.
 *
 *     result = activation(alpha * op(A) * op(B) + beta * C + bias), where m or n is FEW
 *
 * The matrix (one of A and B) is read once; x, the other one, has FEW lines of k numbers.
 *
 *   lines along k: dot                         lines across: add
 *
 *   STEP_K of x, in the first cache            BLOCK sums a line of x, in the first cache
 *     x x x x x x x x                            s s s s s s s s
 *     | | | | | | | |  * and +                   + + + + + + + +
 *   > l l l l l l l l   ROWS lines at a time   > l l l l l l l l   ROWS values of k at a time,
 *   > l l l l l l l l   in vectors             > l l l l l l l l   each times its number of x
 *       ^ VECTOR real numbers
 *
 * Complex numbers are pairs of real ones: a line of x becomes two, its real components r and its
 * imaginary ones i, each number twice. Of (re, im) * r and (re, im) * i the product is made at
 * the end.
 *
 * Where k is split an item has one slice of it. Its sums are added up by the last item of a block to come
 * (gemv_cpu_reduction.mako), or by a second launch (split_k_reduction.cl.mako).
 *
 * Source: own; reading several lines together is what BLAS libraries do, see K. Goto,
 * R. van de Geijn, "High-Performance Implementation of the Level-3 BLAS", ACM TOMS 35 (2008).
 * The rows that are read next are prefetched: processors do not follow so many streams of memory.
 * Cost: one read of the matrix; x is read once for every BLOCK lines along k.
 *
 * The host guarantees: all matrices are row-major and contiguous; dimension 0 of the grid has
 * `blocks` items for each of `products` products, dimension 1 one for each slice of `depth` values of
 * k; `result` overlaps no input. Where A and B must not be read it passes k = 0.
 *
 * ELEMENT     `Element` of opencl_lab/core/kernels.py: types in memory and of sums
 * INDEX_T     unsigned type that counts the elements of the largest array
 * EPILOGUE    `Epilogue` of opencl_lab/ops/gemm/launches.py: C, bias, activation
 * STACKS      dimensions of the stack of products, 0 for a single product
 * THIN        `Thin` of opencl_lab/ops/gemm/thin/lines.py: the matrix and x, and how they lie
 * SPLIT_K     "none", or who adds up the sums of all slices: "last group" or "second launch"
 * VECTOR      real numbers of a vector
 * LOAD        real numbers that a built-in function takes at once
 * ROWS        rows of the matrix, as it is stored, that are read together
 * BLOCK       lines of an item
 * STEP_K      values of k a trip, for lines along k
 */
<%page args="ELEMENT, INDEX_T, EPILOGUE, STACKS, THIN, SPLIT_K, VECTOR, LOAD, ROWS, BLOCK, STEP_K"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="fetch" file="/common/fetch.mako"/>\
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="product" file="/gemm/product.mako"/>\
<%namespace name="epilogue" file="/gemm/epilogue.mako"/>\
<%namespace name="gemv" file="/gemm/gemv.mako"/>\
<%namespace name="reduction" file="/gemm/gemv_cpu_reduction.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
<%
    components = elements.module.components(ELEMENT)
    real = ELEMENT.type.removesuffix("2") if ELEMENT.complex else ELEMENT.type
    # x may be read in place, where its numbers are in the type and the order of the sums.
    in_place = ELEMENT.type in ("float", "double") and THIN.x_along
    space = "__global const" if in_place else "const"
    forms = sorted({ROWS, 1}, reverse=True)
%>\
typedef ${INDEX_T} index_t;
${elements.declare(ELEMENT)}\
${epilogue.declare(ELEMENT, EPILOGUE)}\
typedef ${real} real_t; /* of an element in memory, or of its components */
typedef ${ELEMENT.real} sum_real_t;
typedef ${elements.module.vector(ELEMENT.real, VECTOR)} vector_t;
typedef vector_t unaligned_t __attribute__((aligned(${8 if ELEMENT.double else 4})));
${gemv.declare(THIN)}\
${fetch.declare()}\
#define FEW ${THIN.few}
#define COMPONENTS ${components}
#define X_LINES (FEW * COMPONENTS) /* lines of x in real numbers */
#define VECTOR ${VECTOR}
#define BLOCK ${BLOCK}
#define STEP_K ${STEP_K}

static inline vector_t load_vector(__global const real_t *p)
{
% if ELEMENT.type == "half":
    return ${elements.module.load("half", "p", VECTOR, LOAD)};
% else:
    return *(__global const unaligned_t *)p;
% endif
}

/* What a product has become: of (re, im) times the real and times the imaginary component of x. */
static inline sum_t product_of(const sum_t *by)
{
% if not ELEMENT.complex:
    return by[0];
% elif THIN.conjugated:
    return (sum_t)(by[0].x + by[1].y, by[1].x - by[0].y);
% else:
    return (sum_t)(by[0].x - by[1].y, by[0].y + by[1].x);
% endif
}
% if THIN.along:

/* Add up the lanes of a vector; those of real and of imaginary components apart. */
static inline sum_t add_lanes(const vector_t v_${VECTOR})
{
<% width = VECTOR %>\
% while width > components:
<% width //= 2 %>\
    const ${elements.module.vector(ELEMENT.real, width)} v_${width} = v_${2 * width}.lo + v_${2 * width}.hi;
% endwhile
    return v_${components};
}
% if not in_place:

/* Bring values p.. of x to `staged`, in the type of sums. */
static inline void stage_x(__global const element_t *other, const index_t p, const uint steps,
                           const index_t k, sum_real_t staged[X_LINES][STEP_K * COMPONENTS])
{
    for (uint q = 0; q < steps; ++q) {
        for (uint f = 0; f < FEW; ++f) {
% if ELEMENT.complex:
            const sum_t x = ${"conjugate" if THIN.x_conjugated else ""}(other[x_at(f, p + q)]);
            staged[2 * f][2 * q] = staged[2 * f][2 * q + 1] = x.x;
            staged[2 * f + 1][2 * q] = staged[2 * f + 1][2 * q + 1] = x.y;
% else:
            staged[f][q] = load_element(other, x_at(f, p + q));
% endif
        }
    }
}
% endif
% for rows in forms:

/* Multiply ${rows} lines, `apart` numbers from each other, with `steps` values of x. */
static inline void dot_${rows}(__global const real_t *line, const size_t apart,
                         ${space} sum_real_t *x, const size_t x_apart, const uint steps, sum_t *sums)
{
    const uint whole = steps * COMPONENTS / VECTOR * VECTOR;
    const size_t next = ${rows} * apart;
    vector_t sum[${rows}][X_LINES] = {{0}};
    for (uint q = 0; q < whole; q += VECTOR) {
        vector_t v[${rows}];
        #pragma unroll
        for (uint r = 0; r < ${rows}; ++r) {
            v[r] = load_vector(line + r * apart + q);
            FETCH_LINE(line + r * apart + q + next, 0);
        }
        #pragma unroll
        for (uint e = 0; e < X_LINES; ++e) {
            const vector_t x_q = *(${space} unaligned_t *)(x + e * x_apart + q);
            #pragma unroll
            for (uint r = 0; r < ${rows}; ++r)
                sum[r][e] += v[r] * x_q;
        }
    }
    sum_t all[${rows}][X_LINES];
    #pragma unroll
    for (uint r = 0; r < ${rows}; ++r)
        #pragma unroll
        for (uint e = 0; e < X_LINES; ++e)
            all[r][e] = add_lanes(sum[r][e]);
    for (uint q = whole / COMPONENTS; q < steps; ++q) {
        #pragma unroll
        for (uint r = 0; r < ${rows}; ++r) {
            const sum_t v = load_element((__global const element_t *)(line + r * apart), q);
            #pragma unroll
            for (uint e = 0; e < X_LINES; ++e)
                all[r][e] += v * *(${space} sum_t *)(x + e * x_apart + q * COMPONENTS);
        }
    }
    #pragma unroll
    for (uint r = 0; r < ${rows}; ++r)
        #pragma unroll
        for (uint f = 0; f < FEW; ++f)
            sums[r * FEW + f] += product_of(all[r] + f * COMPONENTS);
}
% endfor
% else:
% for rows in forms:

/* Add ${rows} rows from value p of k on, each times its numbers of x, to the sums. */
static inline void add_${rows}(__global const real_t *row, const size_t apart,
                         __global const element_t *other, const index_t p, const index_t k,
                         const uint count, sum_real_t sums[X_LINES][BLOCK * COMPONENTS])
{
    sum_real_t x[${rows}][X_LINES];
    #pragma unroll
    for (uint r = 0; r < ${rows}; ++r)
        #pragma unroll
        for (uint f = 0; f < FEW; ++f) {
% if ELEMENT.complex:
            const sum_t number = ${"conjugate" if THIN.x_conjugated else ""}(other[x_at(f, p + r)]);
            x[r][2 * f] = number.x;
            x[r][2 * f + 1] = number.y;
% else:
            x[r][f] = load_element(other, x_at(f, p + r));
% endif
        }
    const uint whole = count * COMPONENTS / VECTOR * VECTOR;
    for (uint j = 0; j < whole; j += VECTOR) {
        vector_t v[${rows}];
        #pragma unroll
        for (uint r = 0; r < ${rows}; ++r) {
            v[r] = load_vector(row + r * apart + j);
            FETCH_LINE(row + (r + ${rows}) * apart + j, 0);
        }
        #pragma unroll
        for (uint e = 0; e < X_LINES; ++e) {
            vector_t sum = *(const unaligned_t *)&sums[e][j];
            #pragma unroll
            for (uint r = 0; r < ${rows}; ++r)
                sum += v[r] * x[r][e];
            *(unaligned_t *)&sums[e][j] = sum;
        }
    }
    for (uint j = whole; j < count * COMPONENTS; ++j) {
        #pragma unroll
        for (uint r = 0; r < ${rows}; ++r) {
            const sum_real_t v = ${elements.module.load(real, "row + r * apart + j", 1, 1)};
            #pragma unroll
            for (uint e = 0; e < X_LINES; ++e)
                sums[e][j] += v * x[r][e];
        }
    }
}
% endfor
% endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemv_cpu(${product.arguments(EPILOGUE, STACKS)},
% if SPLIT_K != "none":
    __global sum_t *${"" if SPLIT_K == "last group" else "restrict "}partial,
% endif
% if SPLIT_K == "last group":
    volatile __global uint *arrived,
% endif
    const index_t blocks,
    const index_t depth)
{
    const index_t number = get_global_id(0) / blocks;
    const index_t first = get_global_id(0) % blocks * BLOCK;
    const uint count = min(lines - first, (index_t)BLOCK);
    const index_t start = min(k, (index_t)get_global_id(1) * depth);
    const index_t stop = min(k, start + depth);
${product.enter(EPILOGUE, STACKS, "number")}\
% if THIN.along:
    sum_t sums[BLOCK * FEW];
    for (uint i = 0; i < count * FEW; ++i)
        sums[i] = 0;
% if not in_place:
    sum_real_t staged[X_LINES][STEP_K * COMPONENTS] __attribute__((aligned(128)));
% endif
    const size_t apart = (size_t)k * COMPONENTS;
    for (index_t p = start; p < stop; p += STEP_K) {
        const uint steps = min(stop - p, (index_t)STEP_K);
% if in_place:
        __global const sum_real_t *x = other + p;
        const size_t x_apart = k;
% else:
        stage_x(other, p, steps, k, staged);
        const sum_real_t *x = staged[0];
        const size_t x_apart = STEP_K * COMPONENTS;
% endif
        uint line = 0;
% for rows in forms:
        for (; line + ${rows} <= count; line += ${rows})
            dot_${rows}((__global const real_t *)(matrix + (first + line) * k + p), apart, x, x_apart, steps,
                  sums + line * FEW);
% endfor
    }
% else:
    sum_real_t sums[X_LINES][BLOCK * COMPONENTS] __attribute__((aligned(128)));
    for (uint e = 0; e < X_LINES; ++e)
        for (uint j = 0; j < count * COMPONENTS; ++j)
            sums[e][j] = 0;
    const size_t apart = (size_t)lines * COMPONENTS;
    index_t p = start;
% for rows in forms:
    for (; p + ${rows} <= stop; p += ${rows})
        add_${rows}((__global const real_t *)(matrix + p * lines + first), apart, other, p, k, count, sums);
% endfor
% endif
% if SPLIT_K == "last group" and THIN.along:
${reduction.by_last_item(1, "(BLOCK * X_LINES)", "count * X_LINES")}\
% elif SPLIT_K == "last group":
${reduction.by_last_item("X_LINES", "(BLOCK * COMPONENTS)", "count * COMPONENTS")}\
% endif
    /* Store the sums of the block, in the order of the result. */
<% outer, inner = ("line", "f") if THIN.side == "a" else ("f", "line") %>\
    for (uint ${outer} = 0; ${outer} < ${"count" if outer == "line" else "FEW"}; ++${outer}) {
        for (uint ${inner} = 0; ${inner} < ${"count" if inner == "line" else "FEW"}; ++${inner}) {
% if THIN.along:
            sum_t sum = sums[line * FEW + f];
% elif ELEMENT.complex:
            const sum_t by[] = {*(const sum_t *)&sums[2 * f][2 * line], *(const sum_t *)&sums[2 * f + 1][2 * line]};
            sum_t sum = product_of(by);
% else:
            sum_t sum = sums[f][line];
% endif
% if SPLIT_K == "second launch":
${gemv.partial_sum("sum", "first + line", "f", "number * get_num_groups(1) + get_group_id(1)")}\
% else:
${gemv.result(ELEMENT, EPILOGUE, "sum", "first + line", "f")}\
% endif
        }
    }
}
