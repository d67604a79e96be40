/*
 * Matrix product with a block of the result in the registers of each work-item.
 *
 *     result = alpha * op(A) * op(B) + beta * C        op(X) is X or its transpose
 *
 * A work-group owns TILE_M x TILE_N elements of the result and walks along k in
 * steps of TILE_K. Each step is staged in local memory, k by k:
 *
 *     a_tile   TILE_K lines of TILE_M rows of op(A)      (so A is turned on its way)
 *     b_tile   TILE_K lines of TILE_N columns of op(B)
 *
 * An item owns WORK_M rows, one after the other, and WORK_N columns in vectors of
 * VECTOR_WIDTH, a group's width apart. Here WORK_M = 2, WORK_N = 4, VECTOR_WIDTH = 2,
 * two items beside each other, and what item 1 of the lower pair owns:
 *
 *                 b_tile line p:   | v0 v0 | w0 w0 | v1 v1 | w1 w1 |
 *     a_tile line p                   item 0  item 1  item 0  item 1
 *          r0                      +-------+-------+-------+-------+
 *          r1                      |       |       |       |       |
 *          r2  (y = 1)             |       |  x x  |       |  x x  |
 *          r3  (y = 1)             |       |  x x  |       |  x x  |
 *
 *     for each p:  sum[r][v] += a_tile[p][row r] * b_tile[p][vector v]
 *
 * Items beside each other so read vectors beside each other (no bank conflicts, and
 * coalesced stores), while a row is the same word for all of them (a broadcast).
 * The sums are scalars of their own, unrolled by Mako: they live in registers.
 *
 * A tile that lies inside its matrix is loaded in vectors. One that reaches over
 * an edge is loaded element by element, with zero outside. Matrices that are not
 * staged are read in place; rows and columns past the end read the last one
 * instead, and their sums are not stored.
 *
 * Source: V. Volkov, J. Demmel, "Benchmarking GPUs to tune dense linear algebra",
 * SC 2008 (register blocks over shared-memory tiles); R. Nath, S. Tomov, J. Dongarra,
 * "An improved MAGMA GEMM for Fermi", IJHPCA 2010 (strided ownership).
 *
 * The host guarantees: all matrices are row-major and contiguous, aligned to one
 * element; dimension 0 of the grid covers the columns and dimension 1 the rows, in
 * whole work-groups; `result` overlaps no input. Where A and B must not be read it
 * passes k = 0.
 *
 * REAL_T        float or double
 * INDEX_T       unsigned type that counts the elements of the largest matrix
 * TRANS_A       whether A is stored as k rows of m, and not as m rows of k
 * TRANS_B       whether B is stored as n rows of k, and not as k rows of n
 * HAS_C         whether there is a C; without one, beta is not used either
 * TILE_M        rows of the result in a work-group
 * TILE_N        columns of the result in a work-group
 * TILE_K        length of one step along k; a tile in local memory has as many elements
 *               for every item
 * WORK_M        rows of an item, a divisor of TILE_M
 * WORK_N        columns of an item, a divisor of TILE_N
 * VECTOR_WIDTH  columns in a vector, a divisor of WORK_N
 * VECTOR_ROWS   rows read at once from a_tile, a divisor of WORK_M and VECTOR_WIDTH
 * LOCAL_PAD     vectors between the lines of a tile in local memory
 * UNROLL        values of p a trip of the inner loop, a divisor of TILE_K
 * STAGE_A       whether A goes through local memory
 * STAGE_B       whether B goes through local memory
 * STAGE_UNROLL  loads that an item has under way while it stages a tile; 0: as the compiler likes
 * LOAD_WIDTH    widest vector to load from or store to global memory at once
 */
<%page args="REAL_T, INDEX_T, TRANS_A, TRANS_B, HAS_C, TILE_M, TILE_N, TILE_K, WORK_M, WORK_N,
             VECTOR_WIDTH, VECTOR_ROWS, LOCAL_PAD, UNROLL, STAGE_A, STAGE_B,
             STAGE_UNROLL, LOAD_WIDTH"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=REAL_T == 'double'"/>\
<%
    from math import gcd

    group_m, group_n = TILE_M // WORK_M, TILE_N // WORK_N
    wg_size = group_m * group_n
    line_a = TILE_M + LOCAL_PAD * VECTOR_WIDTH
    line_b = TILE_N + LOCAL_PAD * VECTOR_WIDTH
    vectors = range(WORK_N // VECTOR_WIDTH)
    synchronise = wg_size > 1 and (STAGE_A or STAGE_B)


    def staging_width(extent, along):
        """Return the widest vectors that fill a tile without a rest, for any item."""
        share = TILE_K * extent // wg_size
        return gcd(gcd(VECTOR_WIDTH, extent if along else TILE_K), share)


    def vec(width):
        return "real_t" if width == 1 else f"{REAL_T}{width}"


    def lanes(value, first, count, width):
        """Lanes first to first + count of a vector `value` of `width` lanes."""
        if width == 1 or count == width:
            return value
        return f"{value}.s" + "0123456789abcdef"[first : first + count]


    def pieces(width):
        """Split a vector into what one load may take: pairs of first lane and width."""
        step = min(width, LOAD_WIDTH)
        return [(first, step) for first in range(0, width, step)]


    def load(pointer, width):
        """Load `width` elements that are aligned to one element only."""
        parts = [
            f"({pointer})[{first}]" if step == 1 else f"vload{step}({first // step}, {pointer})"
            for first, step in pieces(width)
        ]
        return parts[0] if len(parts) == 1 else f"({vec(width)})({', '.join(parts)})"


    def store(value, pointer, width):
        """Store `width` elements that are aligned to one element only; a statement a piece."""
        return [
            f"({pointer})[{first}] = {lanes(value, first, 1, width)};"
            if step == 1
            else f"vstore{step}({lanes(value, first, step, width)}, {first // step}, {pointer});"
            for first, step in pieces(width)
        ]
%>\
typedef ${REAL_T} real_t;
typedef ${vec(VECTOR_WIDTH)} vec_t;
typedef ${INDEX_T} index_t;

## Share `count` steps evenly among the items. All make the same trips, a constant: PoCL 5 fails
## to compile a barrier after a loop or a condition that depends on the item (its issue 1435).
<%def name="share(count)">\
% if STAGE_UNROLL:
#pragma unroll ${STAGE_UNROLL}
% endif
            for (uint trip = 0; trip < ${count // wg_size}; ++trip) {
                const uint i = item + trip * ${wg_size};
${caller.body()}\
            }
</%def>\
## Stage TILE_K x `extent` elements into `tile`. `along`: the lines of the tile lie along the
## rows of the stored matrix; if not, the tile is filled across them.
<%def name="stage(tile, source, extent, line, along, first_index, size)">\
<%
    width = staging_width(extent, along)
    across = TILE_K // width
%>\
        if (${first_index} + ${extent} <= ${size} && depth == ${TILE_K}) {
<%call expr="share(TILE_K * extent // width)">\
% if along:
                const uint p = i / ${extent // width};
                const uint e = i % ${extent // width} * ${width};
                *(__local ${vec(width)} *)(${tile} + p * ${line} + e) =
                    ${load(f"{source} + (first + p) * {size} + {first_index} + e", width)};
% else:
                const uint p = i % ${across} * ${width};
                const uint e = i / ${across};
                const ${vec(width)} v =
                    ${load(f"{source} + ({first_index} + e) * k + first + p", width)};
% for l in range(width):
                ${tile}[(p + ${l}) * ${line} + e] = ${lanes("v", l, 1, width)};
% endfor
% endif
</%call>\
        } else {
<%call expr="share(TILE_K * extent)">\
% if along:
                const uint p = i / ${extent};
                const uint e = i % ${extent};
                const index_t place = (first + p) * ${size} + ${first_index} + e;
% else:
                const uint p = i % ${TILE_K};
                const uint e = i / ${TILE_K};
                const index_t place = (${first_index} + e) * k + first + p;
% endif
                const bool inside = p < depth && ${first_index} + e < ${size};
                ${tile}[p * ${line} + e] = inside ? ${source}[place] : 0;
</%call>\
        }
</%def>\
## Add the products of one p. `inside`: whether no column lies past the end.
<%def name="step(p, inside)">\
            {
% for v in vectors:
<%
    column = f"first_column + x * {VECTOR_WIDTH} + {v * group_n * VECTOR_WIDTH}"
    clamped = [f"min({column} + {l}, n - 1)" for l in range(VECTOR_WIDTH)]
%>\
% if STAGE_B:
                const vec_t b_${v} = *(__local const vec_t *)(b_line + (${p}) * ${line_b} + \
${v * group_n * VECTOR_WIDTH});
% elif inside and not TRANS_B:
                const vec_t b_${v} = ${load(f"b + (first + {p}) * n + {column}", VECTOR_WIDTH)};
% else:
                const vec_t b_${v} = (vec_t)(${", ".join(
                    f"b[({one}) * k + first + {p}]" if TRANS_B else f"b[(first + {p}) * n + {one}]"
                    for one in clamped)});
% endif
% endfor
% for r in range(WORK_M):
% if not STAGE_A:
                const real_t a_${r} = a_${r}_first[${f"({p}) * m" if TRANS_A else p}];
% elif VECTOR_ROWS == 1:
                const real_t a_${r} = a_line[(${p}) * ${line_a} + ${r}];
% elif r % VECTOR_ROWS == 0:
                const ${vec(VECTOR_ROWS)} rows_${r} =
                    *(__local const ${vec(VECTOR_ROWS)} *)(a_line + (${p}) * ${line_a} + ${r});
% endif
<%
    group, lane = r - r % VECTOR_ROWS, r % VECTOR_ROWS
    factor = f"a_{r}" if VECTOR_ROWS == 1 else lanes(f"rows_{group}", lane, 1, VECTOR_ROWS)
%>\
% for v in vectors:
                sum_${r}_${v} += ${factor} * b_${v};
% endfor
% endfor
            }
</%def>\
/* Store what lies inside the matrix: a vector, or at the edge its elements. */
static inline void store_vector(const vec_t sum, const index_t row, const index_t column,
                                const index_t m, const index_t n,
                                const real_t alpha, const real_t beta,
% if HAS_C:
                                __global const real_t *restrict c,
% endif
                                __global real_t *restrict result)
{
    if (row < m) {
        const index_t place = row * n + column;
        if (column + ${VECTOR_WIDTH} <= n) {
            vec_t value = alpha * sum;
% if HAS_C:
            value += beta * ${load("c + place", VECTOR_WIDTH)};
% endif
% for line in store("value", "result + place", VECTOR_WIDTH):
            ${line}
% endfor
        } else {
% for l in range(VECTOR_WIDTH - 1):
            if (column + ${l} < n)
                result[place + ${l}] = alpha * ${lanes("sum", l, 1, VECTOR_WIDTH)}\
${f" + beta * c[place + {l}]" if HAS_C else ""};
% endfor
        }
    }
}

__kernel __attribute__((reqd_work_group_size(${wg_size}, 1, 1)))
void gemm_blocked(__global const real_t *restrict a,
                  __global const real_t *restrict b,
% if HAS_C:
                  __global const real_t *restrict c,
% endif
                  __global real_t *restrict result,
                  const index_t m,
                  const index_t n,
                  const index_t k,
                  const real_t alpha,
                  const real_t beta)
{
    const uint item = get_local_id(0);
    const uint x = item % ${group_n};
    const uint y = item / ${group_n};
    const index_t first_row = (index_t)get_group_id(1) * ${TILE_M};
    const index_t first_column = (index_t)get_group_id(0) * ${TILE_N};
## Vectors are read from the tiles, so these are aligned like the widest one.
% if STAGE_A:
    __local real_t a_tile[${TILE_K * line_a}] __attribute__((aligned(128)));
    __local const real_t *a_line = a_tile + y * ${WORK_M};
% else:
% for r in range(WORK_M):
    const index_t row_${r} = min(first_row + y * ${WORK_M} + ${r}, m - 1);
% endfor
% endif
% if STAGE_B:
    __local real_t b_tile[${TILE_K * line_b}] __attribute__((aligned(128)));
    __local const real_t *b_line = b_tile + x * ${VECTOR_WIDTH};
% endif
% for r in range(WORK_M):
% for v in vectors:
    vec_t sum_${r}_${v} = 0;
% endfor
% endfor

    for (index_t first = 0; first < k; first += ${TILE_K}) {
        const uint depth = min((index_t)${TILE_K}, k - first);
% if STAGE_A or STAGE_B:
        /* Stage the tiles. */
% endif
% if STAGE_A:
${stage("a_tile", "a", TILE_M, line_a, TRANS_A, "first_row", "m")}\
% endif
% if STAGE_B:
${stage("b_tile", "b", TILE_N, line_b, not TRANS_B, "first_column", "n")}\
% endif
% if synchronise:
        barrier(CLK_LOCAL_MEM_FENCE); /* the tiles are complete */
% endif
% if not STAGE_A:
% for r in range(WORK_M):
        __global const real_t *a_${r}_first =
            a + ${f"first * m + row_{r}" if TRANS_A else f"row_{r} * k + first"};
% endfor
% endif

        /* Add the products: whole steps unrolled, the rest one by one. */
        if (depth == ${TILE_K}\
${"" if STAGE_B or TRANS_B else f" && first_column + {TILE_N} <= n"}) {
            for (uint p = 0; p < ${TILE_K}; p += ${UNROLL}) {
% for u in range(UNROLL):
${step(f"p + {u}", True)}\
% endfor
            }
        } else {
            for (uint p = 0; p < depth; ++p) {
${step("p", False)}\
            }
        }
% if synchronise:
        barrier(CLK_LOCAL_MEM_FENCE); /* the tiles may be overwritten */
% endif
    }

    /* Store the block. */
% for r in range(WORK_M):
% for v in vectors:
    store_vector(sum_${r}_${v}, first_row + y * ${WORK_M} + ${r},
                 first_column + x * ${VECTOR_WIDTH} + ${v * group_n * VECTOR_WIDTH},
                 m, n, alpha, beta, ${"c, " if HAS_C else ""}result);
% endfor
% endfor
}
