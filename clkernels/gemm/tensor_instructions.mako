## What the kernels of matrix units share: instructions that multiply, the order of tiles, plain sums.
##
##     <%namespace name="tensor" file="/gemm/tensor_instructions.mako"/>
##
##   shapes(type)                       instruction of a warp: m16n8k8 or m16n8k16, its types
##   declare_warp_multiply(type)        multiply(d, a, b): 16 x 8 sums of a warp += fragments in registers
##   declare_group_multiply(type, n, across)  multiply(d, a, b, add): 64 x n sums of a warpgroup, tiles in
##                                      local memory; multiply_fence, multiply_commit, multiply_wait
##   tile_of_group(...)                 which tile of the result a group owns, bands of tiles together
##   enter_packed(...)                  move to a product of the stack
##   declare_plain_sum(a, b)            plain_sum(..): one sum by ordinary arithmetic
##
## type   of an element in memory: half, float or double
## a, b   `Factor`s of opencl_lab/ops/gemm/launches.py: how A and B are stored
##
## Instructions of the architecture sm_90a stand behind `//sm_90a: `, a comment in PTX, since OpenCL
## compiles for sm_90; `runtime/ptx.py` takes the comment marks away and loads the program again.
##
## Source: PTX ISA 9.0, sections on mma and wgmma. The caller guarantees: what product.mako declares.
<%namespace name="product" file="/gemm/product.mako"/>\
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
<%def name="declare_warp_multiply(type)">\
<% word, total = ("d", "d") if type == "double" else ("r", "f") %>\
#define multiply(d, a, b) \
    asm("mma.sync.aligned.${shapes(type)} ${listed(0, 4)}, ${listed(4, 4)}, ${listed(8, 2)}, ${listed(0, 4)};" \
        : ${bound("+" + total, "d", 4)} : ${bound(word, "a", 4)}, ${bound(word, "b", 2)})
</%def>\
## multiply(d, a, b, add): d[n / 2] = a * b, plus d if add; a and b describe tiles in local memory.
## `across` says for a and for b whether neighbours in memory lie across k; only halves may.
<%def name="declare_group_multiply(type, n, across=(False, False))">\
<%
    sums = n // 2
    kind = f"m64n{n}k16.f32.f16.f16" if type == "half" else f"m64n{n}k8.f32.tf32.tf32"
    sides = "".join(f", {int(side)}" for side in across) if type == "half" else ""
%>\
#define multiply(d, a, b, add) \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %${sums + 2}, 0;\n" \
        "${ONLY}wgmma.mma_async.sync.aligned.${kind} ${listed(0, sums)}, %${sums}, %${sums + 1}, p, 1, 1${sides};\n }" \
        : ${bound("+f", "d", sums)} : "l"(a), "l"(b), "r"(add) : "memory")
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
<%def name="enter_packed(epilogue, stacks, bytes_a, bytes_b)">\
    const ulong steps = (k + STEP - 1) / STEP;
    __global const element_t *const every_a = a;
    __global const element_t *const every_b = b;
${product.enter(epilogue, stacks, "get_group_id(1)")}\
    if (k != 0) {
        packed_a += ((ulong)(a - every_a) / ((ulong)m * k) * tiles_m + tile_row) * steps * ${bytes_a};
        packed_b += ((ulong)(b - every_b) / ((ulong)n * k) * tiles_n + tile_column) * steps * ${bytes_b};
    }
</%def>\
<%def name="declare_plain_sum(a, b)">\
static sum_t plain_sum(__global const element_t *a, __global const element_t *b, const index_t row,
                       const index_t column, const index_t m, const index_t n, const index_t k)
{
    sum_t sum = 0;
    for (index_t p = 0; p < k; p++)
        sum = fma(a[${"p * m + row" if a.transposed else "row * k + p"}],
                  b[${"column * k + p" if b.transposed else "p * n + column"}], sum);
    return sum;
}
</%def>\
