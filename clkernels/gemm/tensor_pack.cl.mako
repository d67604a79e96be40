/*
 * Packs matrices for the kernels of matrix units.
 *
 *       op(X), rows x k                       packed: tiles one after the other
 *      +------+------+----+               +--------+--------+-- -+--------+--------+
 *      | tile | tile | .. | TILE rows     | step 0 | step 1 | .. | step 0 | step 1 | ..
 *      | 0, 0 | 0, 1 |    |          ->   +--------+--------+-- -+--------+--------+
 *      +------+------+----+                | high limbs | low limbs |
 *      | 1, 0 | ..                         each in 16-byte chunks, ordered by LAYOUT
 *        STEP of k
 *
 * So the kernels copy whole steps, whatever the shape, the alignment and the transposition of X:
 * what lies outside of X is zero. A group packs 64 rows of one step through local memory. It reads
 * along the rows of X in memory, and writes whole chunks.
 *
 * LAYOUT "rows", for wgmma of float: a row of 128 bytes, its 8 chunks in the order c ^ (row % 8).
 * LAYOUT "fragments", for mma.sync: what the 32 lanes of a warp hold of 16 rows, lane by lane:
 * lane 4r + c has the words of rows r and r + 8 at places c and c + 4 of k.
 *
 * LIMBS 2 splits a float32 x: high = x rounded to TF32 (11 bits), low = x - high rounded so. An
 * infinity or NaN has low 0, and what would round to infinity is cut instead.
 *
 * Source: own; splitting as in H. Ootomo, R. Yokota, "Recovering single precision accuracy from
 * Tensor Cores while surpassing the FP32 theoretical peak performance", 2022.
 * Cost: one read and LIMBS writes of A and B.
 *
 * The host guarantees: dimension 0 of the grid has a group for every step of every 64 rows of
 * whole tiles, of A and then of B; dimension 1 covers the larger stack. Tiles are multiples of 64.
 *
 * ELEMENT   `Element` of opencl_lab/core/kernels.py: half, float or double
 * A, B      `Factor` of opencl_lab/ops/gemm/launches.py: how each is stored
 * LIMBS     1, or 2 for float32 in two limbs of TF32
 * LAYOUT    "rows" or "fragments"
 * TILE_M    rows of a tile of A
 * TILE_N    columns of a tile of B
 * STEP      elements of k in a step
 */
<%page args="ELEMENT, A, B, LIMBS, LAYOUT, TILE_M, TILE_N, STEP"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
<%
    size = {"half": 2, "float": 4, "double": 8}[ELEMENT.type]
    per_chunk = 16 // size
    words = 2 if ELEMENT.type == "half" else 1  # of k in a word of a fragment
    fragment_k = 8 * words
    halves = 2 if ELEMENT.type == "double" else 1
    chunks = 64 * STEP // per_chunk  # of a group


    def place(left, e):
        """Row and k in a fragment of 16 rows that element `e` of a lane's chunk is."""
        if ELEMENT.type == "double":
            return (f"r + {8 * e}", "c + 4 * half_of") if left else ("r + 8 * half_of", f"c + {4 * e}")
        word, odd = divmod(e, words)
        rows, places = (word % 2, word // 2) if left else (word // 2, word % 2)
        return f"r + {8 * rows}", f"{words} * (c + {4 * places}) + {odd}"
%>\
<%def name="pack(left, name, extent, trans, tile)">\
        /* 64 rows of one step, zero outside; neighbours in memory by neighbouring items. */
        const ulong first_row = (ulong)block * 64;
        const ulong first = (ulong)step * ${STEP};
        __global const element_t *from = ${name} + (ulong)number * ${extent} * k;
        for (uint i = item; i < ${STEP * 64}; i += 256) {
% if trans == left:
            const uint row = i % 64, p = i / 64;
            const ulong where = (first + p) * ${extent} + first_row + row;
% else:
            const uint row = i / ${STEP}, p = i % ${STEP};
            const ulong where = (first_row + row) * k + first + p;
% endif
            values[p][row] = first_row + row < ${extent} && first + p < k
                ? load_element(from, where) : (sum_t)0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const ulong tiles = (${extent} + ${tile - 1}) / ${tile};
        __global uchar *to = packed_${name}
            + (((ulong)number * tiles + first_row / ${tile}) * steps + step) * ${LIMBS * tile * STEP * size};
        const uint inside = (uint)(first_row % ${tile});
        for (uint i = item; i < ${chunks}; i += 256) {
% if LAYOUT == "rows":
            const uint row = i / 8, c = i % 8;
            const uint at = (inside + row) * 128 + ((c ^ row % 8) << 4);
% for e in range(per_chunk):
            const sum_t x${e} = values[c * ${per_chunk} + ${e}][row];
% endfor
% else:
            /* Chunks of a step: fragment of k, 16 rows, half, lane. */
            const uint r = i % 32 / 4, c = i % 4;
            const uint half_of = i / 32 % ${halves};
            const uint rows = i / ${32 * halves} % 4, fragment = i / ${128 * halves};
            const uint at = (((fragment * ${tile // 16} + inside / 16 + rows) * ${halves} + half_of) * 32
                + i % 32) * 16;
% for e in range(per_chunk):
<% row, p = place(left, e) %>\
            const sum_t x${e} = values[fragment * ${fragment_k} + ${p}][rows * 16 + ${row}];
% endfor
% endif
% if ELEMENT.type == "half":
            ushort word[8];
% for e in range(8):
            vstore_half(x${e}, ${e}, (__private half *)word);
% endfor
            *(__global uint4 *)(to + at) = (uint4)(${", ".join(f"word[{e}] | (uint)word[{e + 1}] << 16" for e in (0, 2, 4, 6))});
% elif ELEMENT.type == "double":
            *(__global double2 *)(to + at) = (double2)(x0, x1);
% else:
% for e in range(4):
            const uint high${e} = high_limb(x${e});
% endfor
            *(__global uint4 *)(to + at) = (uint4)(high0, high1, high2, high3);
% if LIMBS == 2:
            *(__global uint4 *)(to + ${tile * STEP * size} + at) =
                (uint4)(${", ".join(f"low_limb(x{e}, high{e})" for e in range(4))});
% endif
% endif
        }
</%def>\
typedef ${ELEMENT.type} element_t;
typedef ${ELEMENT.sum} sum_t;
#define load_element(p, i) ${"vload_half(i, p)" if ELEMENT.type == "half" else "((p)[i])"}

% if ELEMENT.type == "float":
/* TF32 has the exponent of float32 and 10 bits after the point: round to even. */
static inline uint rounded(const uint bits)
{
    return (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}

static inline uint high_limb(const float x)
{
    const uint bits = as_uint(x);
    if (isnan(x))
        return 0x7fc00000;
    const uint near = rounded(bits);
    return (near & 0x7f800000) == 0x7f800000 ? bits & 0xffffe000 : near;
}

static inline uint low_limb(const float x, const uint high)
{
    const uint bits = as_uint(x - as_float(high));
    if ((high & 0x7fffffff) == 0x7f7fe000) /* rounded up, both limbs would make an infinity */
        return bits & 0xffffe000;
    return (high & 0x7f800000) == 0x7f800000 ? 0 : rounded(bits);
}
% endif

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void gemm_tensor_pack(__global const element_t *restrict a, __global const element_t *restrict b,
                      __global uchar *restrict packed_a, __global uchar *restrict packed_b,
                      const ulong m, const ulong n, const ulong k, const uint count_a,
                      const uint count_b)
{
    __local sum_t values[${STEP}][65]; /* k, then row: 65 so that chunks come from all banks */
    const uint item = get_local_id(0);
    const uint number = get_group_id(1);
    const uint steps = (uint)((k + ${STEP - 1}) / ${STEP});
    const uint step = get_group_id(0) % steps;
    const uint blocks_a = (uint)((m + ${TILE_M - 1}) / ${TILE_M}) * ${TILE_M // 64};
    uint block = get_group_id(0) / steps;
    if (block < blocks_a) {
        if (number >= count_a)
            return;
${pack(True, "a", "m", A.transposed, TILE_M)}\
    } else {
        block -= blocks_a;
        if (number >= count_b)
            return;
${pack(False, "b", "n", B.transposed, TILE_N)}\
    }
}
