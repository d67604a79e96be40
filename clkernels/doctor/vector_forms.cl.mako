<%page args="TYPE, PARTNER, WIDTHS, ITEMS, STORED"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
${extensions.enable(fp64=TYPE == "double", fp16=TYPE == "half" and not STORED)}\
/*
 * Probe: vectors of one type in arithmetic, comparisons and selections, conversions, loads and
 * stores.
 *
 *   a    | W = 2: item 0 | item 1 | ... | W = 3: item 0 | item 1 | ... | ...      and so all arrays
 *
 *   sums       a * b + a
 *   chosen     the greater one of a and b; loaded and stored through pointers to vectors, but for 3
 *   converted  a as PARTNER
 *   back       p as TYPE
 *
 * If STORED, halves are in memory only: sums is all there is, computed in float.
 *
 * Source: own. Written for Clover, which was wrong at widths from 2 to 8 (CLBlast, issue 387).
 *
 * The host guarantees: ITEMS items; all arrays hold W elements for each item and width W.
 *
 *   TYPE     element type
 *   PARTNER  type that it is converted to, and back
 *   WIDTHS   widths of vectors
 *   ITEMS    work-items, a multiple of all widths but 3
 *   STORED   whether vload_half and vstore_half read and write TYPE
 */
% if STORED:
__kernel void forms(__global const half *a, __global const half *b, __global half *sums) {
  const size_t i = get_global_id(0);
% for number, width in enumerate(WIDTHS):
<% base = ITEMS * sum(WIDTHS[:number]) %>\
  {
    const float${width} x = vload_half${width}(i, a + ${base}), y = vload_half${width}(i, b + ${base});
    vstore_half${width}_rte(x * y + x, i, sums + ${base});
  }
% endfor
}
% else:
__kernel void forms(__global const ${TYPE} *a, __global const ${TYPE} *b,
                    __global const ${PARTNER} *p, __global ${TYPE} *sums, __global ${TYPE} *chosen,
                    __global ${PARTNER} *converted, __global ${TYPE} *back) {
  const size_t i = get_global_id(0);
% for number, width in enumerate(WIDTHS):
<%
    base = ITEMS * sum(WIDTHS[:number])
    vector, partner = f"{TYPE}{width}", f"{PARTNER}{width}"
%>\
  {
    const ${vector} x = vload${width}(i, a + ${base});
% if width == 3:
    const ${vector} y = vload3(i, b + ${base});
    vstore3(select(x, y, x < y), i, chosen + ${base});
% else:
    const ${vector} y = ((__global const ${vector} *)(b + ${base}))[i];
    ((__global ${vector} *)(chosen + ${base}))[i] = select(x, y, x < y);
% endif
    vstore${width}(x * y + x, i, sums + ${base});
    vstore${width}(convert_${partner}(x), i, converted + ${base});
    vstore${width}(convert_${vector}(vload${width}(i, p + ${base})), i, back + ${base});
  }
% endfor
}
% endif
