## What the kernels of matrix units share: PTX instructions, the order of tiles, the end of a tile.
##
##     <%namespace name="tensor" file="/gemm/tensor_parts.mako"/>
##
## Fragments of code, and functions in OpenCL C that they define:
##
##   shapes(type)              instruction of a warp: m16n8k8 or m16n8k16, its types
##   warp_multiply(type)       multiply(d, a, b): 16 x 8 sums of a warp += fragments in registers
##   group_multiply(type, n, turned)  multiply(d, a, b, add): 64 x n sums of a warpgroup, tiles in local memory
##   group_order()             the functions around it: multiply_fence, multiply_commit, multiply_wait
##   async_copies()            copy_16(to, from, bytes), copies_commit, copies_wait(left)
##   bulk_copies()             bulk_copy, and the barriers in local memory that count its bytes
##   copy_in_place(...)        copy a step of a tile of halves from the matrix itself
##   tile_of_group(...)        which tile of the result a group owns, bands of tiles together
##   plain_sum()               one sum by ordinary arithmetic
##   halves()                  halves(x, y): two floats as halves in a word
##   lane_exchange()           exchange(words, lane): transpose 4 x 4 words among four lanes
##   store_pair(...)           two neighbouring sums become results
##   store_chunk(...)          eight neighbouring sums become halves
##
## Instructions of the architecture sm_90a stand behind `//sm_90a: `, a comment in PTX, since OpenCL
## compiles for sm_90; `runtime/ptx.py` takes the comment marks away and loads the program again.
##
## Source: PTX ISA 9.0, sections on mma, wgmma, cp.async, cp.async.bulk and mbarrier.
<%!
    ONLY = "//sm_90a: "


    def listed(first, count):
        """Operands `first` and so on of inline assembly, in braces."""
        return "{" + ", ".join(f"%{i}" for i in range(first, first + count)) + "}"


    def bound(kind, name, count):
        """Elements of an array as operands."""
        return ", ".join(f'"{kind}"({name}[{i}])' for i in range(count))


    def shapes(type):
        """Shape and types of the instruction that multiplies fragments of a warp."""
        return {
            "half": "m16n8k16.row.col.f32.f16.f16.f32",
            "float": "m16n8k8.row.col.f32.tf32.tf32.f32",
            "double": "m16n8k8.row.col.f64.f64.f64.f64",
        }[type]
%>\
## multiply(d, a, b): d[4] += a[4] * b[2]; rows r and r + 8, columns 2c and 2c + 1 of lane 4r + c
<%def name="warp_multiply(type)">\
<% word, total = ("d", "d") if type == "double" else ("r", "f") %>\
#define multiply(d, a, b) \
    asm("mma.sync.aligned.${shapes(type)} ${listed(0, 4)}, ${listed(4, 4)}, ${listed(8, 2)}, ${listed(0, 4)};" \
        : ${bound("+" + total, "d", 4)} : ${bound(word, "a", 4)}, ${bound(word, "b", 2)})
</%def>\
## multiply(d, a, b, add): d[n / 2] = a * b, plus d if add; a and b describe tiles in local memory.
## `turned` says which of them has its rows along k, and not across it; only halves may.
<%def name="group_multiply(type, n, turned=(False, False))">\
<%
    sums = n // 2
    kind = f"m64n{n}k16.f32.f16.f16" if type == "half" else f"m64n{n}k8.f32.tf32.tf32"
    sides = "".join(f", {int(side)}" for side in turned) if type == "half" else ""
%>\
#define multiply(d, a, b, add) \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %${sums + 2}, 0;\n" \
        "${ONLY}wgmma.mma_async.sync.aligned.${kind} ${listed(0, sums)}, %${sums}, %${sums + 1}, p, 1, 1${sides};\n }" \
        : ${bound("+f", "d", sums)} : "l"(a), "l"(b), "r"(add) : "memory")
</%def>\
<%def name="group_order()">\
/* Sums in registers, and the local memory that is read, are ready for products. */
#define multiply_fence() asm volatile("${ONLY}wgmma.fence.sync.aligned;\n" ::: "memory")
/* The products so far are one batch. */
#define multiply_commit() asm volatile("${ONLY}wgmma.commit_group.sync.aligned;\n" ::: "memory")
/* Wait until at most `left` batches are under way. */
#define multiply_wait(left) \
    asm volatile("${ONLY}wgmma.wait_group.sync.aligned " #left ";\n" ::: "memory")
/*
 * Describe a tile in rows of 128 bytes, chunks swizzled, eight rows 1024 bytes apart from the next.
 * Rows along k may be any number. Rows across k are 64 wide, and the next 64 lie `block` bytes behind.
 */
#define describe(address, block) \
    ((1ul << 62) | (64ul << 32) | ((ulong)(block) << 12) | (ulong)(((address) & 0x3ffff) >> 4))
</%def>\
<%def name="async_copies()">\
/* Copy so many bytes to local memory, without registers, and zeros behind them up to 16. */
#define copy_16(to, from, bytes) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \
        :: "r"(to), "l"((ulong)(from)), "r"(bytes) : "memory")
/* The copies so far are one batch. */
#define copies_commit() asm volatile("cp.async.commit_group;" ::: "memory")
/* Wait until at most `left` batches of this item are under way. */
#define copies_wait(left) asm volatile("cp.async.wait_group %0;" :: "n"(left) : "memory")
</%def>\
<%def name="bulk_copies()">\
/* A barrier in local memory that `count` arrivals complete. */
#define barrier_start(bar, count) \
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory")
/* What was written to local memory so far is there for the units that copy and multiply, too. */
#define memory_fence() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define barrier_arrive(bar) \
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory")
/* Arrive, and let the barrier wait for so many bytes besides. */
#define barrier_expect(bar, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" \
        :: "r"(bar), "r"(bytes) : "memory")
/* Wait for the end of the phase of this parity. */
#define barrier_wait(bar, parity) \
    asm volatile("{ .reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n" \
        "@p bra DONE;\nbra AGAIN;\nDONE: }" :: "r"(bar), "r"(parity) : "memory")
/* One item copies many bytes to local memory; they count at the barrier. */
#define bulk_copy(to, from, bytes, bar) \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
        :: "r"(to), "l"((ulong)(from)), "r"(bytes), "r"(bar) : "memory")
</%def>\
## Copy one step of `tile` rows of `name`, 64 halves along k, to local memory, each chunk of 16 bytes to
## where the matrix unit looks for it. In memory neighbours lie along k, or `across` it. 128 items, of
## which this one has line `line` of every 16 and chunk `chunk` of every 8; `rows` and `left` are what
## the matrix has of the tile and of k. `from` and `to` are those of the item's first chunk.
<%def name="copy_in_place(extent, tile, across, rows, left, start, to)">\
% for i in range(tile // 16):
<%
    part, block = (i % 4, i // 4) if across else (i, 0)
    steps = f"line + {16 * part} < {left} && chunk * 8 + {64 * block} < {rows}"
    lines = f"line + {16 * part} < {rows} && chunk * 8 < {left}"
    offset = f"(ulong){16 * part} * {extent if across else 'k'} + {64 * block}"
%>\
                copy_16(${to} + ${i * 2048}, ${start} + ${offset}, ${steps if across else lines} ? 16 : 0);
% endfor
</%def>\
## Bands of `band` rows of tiles go column by column, so that groups that run together share tiles.
<%def name="tile_of_group(tile_m, tile_n, band)">\
    const uint tiles_m = (uint)((m + ${tile_m - 1}) / ${tile_m});
    const uint tiles_n = (uint)((n + ${tile_n - 1}) / ${tile_n});
    const uint group = (uint)get_group_id(0);
    const uint first_band = group / (${band} * tiles_n) * ${band};
    const uint bands = min((uint)${band}, tiles_m - first_band);
    const uint tile_row = first_band + group % (${band} * tiles_n) % bands;
    const uint tile_column = group % (${band} * tiles_n) / bands;
</%def>\
## Move to a product of the stack: `a` and `b` themselves, and their packed tiles, step by step of k.
<%def name="enter_packed(parts, bytes_a, bytes_b)">\
    const ulong steps = (k + STEP - 1) / STEP;
    __global const element_t *const every_a = a;
    __global const element_t *const every_b = b;
${parts.enter("get_group_id(1)")}\
    if (k != 0) {
        packed_a += ((ulong)(a - every_a) / ((ulong)m * k) * tiles_m + tile_row) * steps * ${bytes_a};
        packed_b += ((ulong)(b - every_b) / ((ulong)n * k) * tiles_n + tile_column) * steps * ${bytes_b};
    }
</%def>\
<%def name="plain_sum(trans_a, trans_b)">\
static sum_t plain_sum(__global const element_t *a, __global const element_t *b, const index_t row,
                       const index_t column, const index_t m, const index_t n, const index_t k)
{
    sum_t sum = 0;
    for (index_t p = 0; p < k; p++)
        sum = fma(a[${"p * m + row" if trans_a else "row * k + p"}],
                  b[${"column * k + p" if trans_b else "p * n + column"}], sum);
    return sum;
}
</%def>\
## Store sums `x` and `y` of columns `column` and `column + 1`, where the result has them, `together` if 2.
<%def name="store_pair(parts, type, x, y, together)">\
            if (row < m && column + 1 < n) {
                ${parts.module.sum_type(type)}2 pair = (${parts.module.sum_type(type)}2)(${x}, ${y});
${parts.finish("pair", "row", "column", 2, 2)}\
% if together == 1:
                ${" ".join(parts.module.store(type, "pair", "result + (row * n + column)", 2, 2))}
% elif type == "half":
                *(__global uint *)(result + row * n + column) = halves(pair.x, pair.y);
% else:
                *(__global ${type}2 *)(result + row * n + column) = pair;
% endif
            } else if (row < m && column < n) {
                sum_t single = ${x};
${parts.finish("single", "row", "column")}\
                store_element(single, result, row * n + column);
            }
</%def>\
<%def name="halves()">\
/* Two floats as halves, the first one low. */
static inline uint halves(const float x, const float y)
{
    uint both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}
</%def>\
<%def name="lane_exchange()">\
/* What the lane whose number differs in bit `bit` gives. */
static inline uint swapped(const uint given, const int bit)
{
    uint taken;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(taken) : "r"(given), "r"(bit));
    return taken;
}

/* Transpose 4 x 4 words among four lanes: then word i is the one that lane i had of this lane. */
static inline uint4 exchange(uint4 w, const uint lane)
{
    const bool odd = lane & 1, high = lane & 2;
    const uint x = swapped(odd ? w.x : w.y, 1), y = swapped(odd ? w.z : w.w, 1);
    w = odd ? (uint4)(x, w.y, y, w.w) : (uint4)(w.x, x, w.z, y);
    const uint z = swapped(high ? w.x : w.z, 2), u = swapped(high ? w.y : w.w, 2);
    return high ? (uint4)(z, u, w.z, w.w) : (uint4)(w.x, w.y, z, u);
}
</%def>\
## Four lanes have two neighbouring sums each of four blocks of 8 columns, `sums`, from `column` on. They
## swap them, so that each has all of one block, and stores 16 bytes.
<%def name="store_chunk(parts, sums)">\
            uint words[4];
% for i, (x, y) in enumerate(sums):
            {
                float2 pair = (float2)(${x}, ${y});
% if HAS_C or BIAS:
                if (row < m && column + ${8 * i} < n) {
% endif
${parts.finish("pair", "row", f"(column + {8 * i})", 2, 2)}\
% if HAS_C or BIAS:
                }
% endif
                words[${i}] = halves(pair.x, pair.y);
            }
% endfor
            const uint4 chunk = exchange((uint4)(words[0], words[1], words[2], words[3]), lane);
            const index_t begin = column + 6 * (lane % 4); /* 8 a lane instead of 2 */
            if (row < m && begin < n)
                *(__global uint4 *)(result + row * n + begin) = chunk;
</%def>\
