## How the kernels of matrix units store a tile: what an item has lies two by two in 8 columns.
##
##     <%namespace name="stores" file="/gemm/tensor_stores.mako"/>
##
## element, epilogue   the `Element` and the `Epilogue` of the product
##
##   declare(element, width)   what stores of `width` elements need: halves(x, y), two floats as halves in
##                             a word; exchange(words, lane), 4 x 4 words transposed among four lanes
##   store_pair(...)           two neighbouring sums become results
##   store_chunk(...)          eight neighbouring sums become halves
##
## Source: own; PTX ISA 9.0, sections on cvt and shfl.sync. The caller declares row, column, lane. Cost: a
## tile of 128 x 256 took 13 us longer on an H200 where its elements were stored one by one.
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="epilogues" file="/gemm/epilogue.mako"/>\
## Store sums `x` and `y` of columns `column` and `column + 1`, where the result has them, at once if
## `width` is 2.
<%def name="store_pair(element, epilogue, x, y, width)">\
            if (row < m && column + 1 < n) {
                ${element.sum}2 pair = (${element.sum}2)(${x}, ${y});
${epilogues.apply(element, epilogue, "pair", "row", "column", 2, 2)}\
% if width == 1:
                ${" ".join(elements.module.store(element.type, "pair", "result + (row * n + column)", 2, 2))}
% elif element.type == "half":
                *(__global uint *)(result + row * n + column) = halves(pair.x, pair.y);
% else:
                *(__global ${element.type}2 *)(result + row * n + column) = pair;
% endif
            } else if (row < m && column < n) {
                sum_t single = ${x};
${epilogues.apply(element, epilogue, "single", "row", "column")}\
                store_element(single, result, row * n + column);
            }
</%def>\
<%def name="declare(element, width)">\
% if element.type == "half" and width > 1:
/* Two floats as halves, the first one low. */
static inline uint halves(const float x, const float y)
{
    uint both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}
% endif
% if width == 8:
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
% endif
</%def>\
## Four lanes have two neighbouring sums each of four blocks of 8 columns, `sums`, from `column` on. They
## swap them, so that each has all of one block, and stores 16 bytes.
<%def name="store_chunk(element, epilogue, sums)">\
            uint words[4];
% for i, (x, y) in enumerate(sums):
            {
                float2 pair = (float2)(${x}, ${y});
% if epilogue.c or epilogue.bias:
                if (row < m && column + ${8 * i} < n) {
% endif
${epilogues.apply(element, epilogue, "pair", "row", f"(column + {8 * i})", 2, 2)}\
% if epilogue.c or epilogue.bias:
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
