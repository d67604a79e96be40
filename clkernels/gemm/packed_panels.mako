## Packing for the product by packed panels: how A and B are laid out, and how they come there.
##
##     <%namespace name="panels" file="/gemm/packed_panels.mako"/>
##
## All is done in real numbers: a complex matrix is one of twice as many columns, as it lies in
## memory. A complex product is then one real product of twice the depth. Each row p of B becomes
## two, and (re, im) pairs of A multiply them as they lie:
##
##     row 2p       ( re, im)     of every element of B
##     row 2p + 1   (-im, re)     the same times i
##
## Where factors count by their conjugates only these signs change, so that A is never touched.
##
##     B packed:   panels of NR columns, each [depth][NR], zero past the last column
##
##         columns 0..NR-1          columns NR..2 NR-1
##       | row 0 | row 1 | ...    | row 0 | row 1 | ...
##
##     A packed:   a block of rows, each [TILE_K] and a line of a cache as a gap; where A is stored
##                 transposed panels of ROWS rows, each [TILE_K][ROWS]
##
## element    the `Element` of the product
## a, b       `Factor`s of opencl_lab/ops/gemm/launches.py: how A and B are stored
## blocking   the `Blocking` of opencl_lab/ops/gemm/packed/tiles.py
## space      where a panel of B lies: "__local" or "__global"
##
##   declare(element, blocking)              real_t, vec_t, and loose_t, which may lie anywhere
##   declare_pack_b(element, a, b, blocking, space)  pack_b(..), which packs rows of one panel of B
##   pack_a(element, a, blocking)            statements that pack a block of A into local memory
##   swapped(value, width)                   a vector with the components of each number exchanged
##
## Source: K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
## 2008 (panels); F. Van Zee, T. Smith, "Implementing high-performance complex matrix multiplication
## via the 3m and 4m methods", ACM TOMS 2017 (pairs against doubled rows, its method 1M). The
## transposing network is that of perfect shuffles, H. Stone, IEEE TC 1971. The caller guarantees:
## what elements.mako declares, FETCH_LINE with it. Cost: a read and a write of what is packed.
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%!
    LETTERS = "0123456789abcdef"


    def swapped(value, width):
        """A vector with the components of each complex number exchanged."""
        return f"{value}.s{''.join(LETTERS[l ^ 1] for l in range(width))}"


    def woven(one, two, high, width):
        """The lower or the upper half of the lanes of two vectors, in turns."""
        first = width // 2 if high else 0
        names = (f"{vector}.s{LETTERS[l]}" for l in range(first, first + width // 2)
                 for vector in (one, two))
        return ", ".join(names)
%>\
<%def name="declare(element, blocking)">\
<% vec_t = elements.module.vector(element.real, blocking.width) %>\
typedef ${element.real} real_t;
typedef ${vec_t} vec_t;
typedef ${vec_t} __attribute__((aligned(${8 if element.double else 4}))) loose_t;
</%def>\
## Lines of the panel beside are prefetched, since a processor does not see what follows a few
## numbers of a row; the next thing to be packed into global memory is that panel.
<%def name="declare_pack_b(element, a, b, blocking, space)">\
<%
    width, panel, components = blocking.width, blocking.panel, blocking.components
    columns = panel // components  # elements in a row of a panel
    place = "(column + j) * k + first + done" if b.transposed else "(first + done) * n + column + j"
    from_t = "element_t" if element.type == "half" else "real_t"
    sign_a, sign_b = (-1 if factor.conjugated else 1 for factor in (a, b))


    def signs(even, odd):
        return "(vec_t)(" + ", ".join(str(odd if l % 2 else even) for l in range(width)) + ")"


    def loaded(pointer):
        if element.type == "half":
            return f"vload_half{'' if width == 1 else width}(0, {pointer})"
        return f"*(__global const loose_t *)({pointer})"
%>\
## Write a vector of one row of B, or its two rows where it is complex, at `place` of the panel.
<%def name="put(value, place)">\
% if element.complex:
                *(${space} vec_t *)(${place}) = ${f"{value} * {signs(1, -1)}" if b.conjugated else value};
                *(${space} vec_t *)(${place} + ${panel}) =
                    ${swapped(value, width)} * ${signs(-sign_a * sign_b, sign_a)};
% else:
                *(${space} vec_t *)(${place}) = ${value};
% endif
</%def>\
/* Write one element of B, or zero, at a column of the panel. */
static inline void put_element(${space} real_t *place, const sum_t value)
{
% if element.complex:
    place[0] = value.x;
    place[1] = ${sign_b} * value.y;
    place[${panel}] = ${-sign_a * sign_b} * value.y;
    place[${panel + 1}] = ${sign_a} * value.x;
% else:
    place[0] = value;
% endif
}

/* Pack rows first..first + count of the panel of B that begins at an element's column. */
static inline void pack_b(__global const element_t *restrict b, ${space} real_t *packed,
                             const index_t first, const uint count, const index_t column,
                             const index_t n, const index_t k)
{
    const uint columns = min((index_t)${columns}, n - column);
    uint done = 0;

% if not b.transposed:
    if (columns == ${columns}) {
        __global const ${from_t} *from = (__global const ${from_t} *)(b + first * n + column);
        for (; done < count; ++done) {
% for v in range(blocking.vectors):
            {
                const vec_t v = ${loaded(f"from + {v * width}")};
${put("v", f"packed + {v * width}")}\
            }
% endfor
% if space == "__global":
% for v in range(0, panel, 32 if element.type == "half" else blocking.cache_line):
            FETCH_LINE(from + ${panel + v}, 0);
% endfor
% endif
            from += n${" * 2" if element.complex else ""};
            packed += ${panel * components};
        }
    }
% elif width > 1:
    /* Turn blocks of rows and columns in registers: weave the halves, until all lie across. */
<% block = width // components %>\
    for (; done + ${block} <= count; done += ${block}) {
        for (uint j = 0; j + ${block} <= columns; j += ${block}) {
            __global const ${from_t} *from =
                (__global const ${from_t} *)(b + (column + j) * k + first + done);
            ${space} real_t *to = packed + j * ${components};
<% names = [f"r{l}" for l in range(block)] %>\
% for l in range(block):
            const vec_t ${names[l]} = ${loaded(f"from + {l} * k" + (" * 2" if element.complex else ""))};
% endfor
<% step = 0 %>\
% while 1 << step < block:
<% made = [f"s{step}_{l}" for l in range(block)] %>\
% for l in range(block):
<%
    one, two, high = names[l // 2], names[l // 2 + block // 2], l % 2
    if element.complex:
        first = width // 2 if high else 0
        lanes = ", ".join(f"{v}.s{LETTERS[e]}{LETTERS[e + 1]}"
                          for e in range(first, first + width // 2, 2) for v in (one, two))
    else:
        lanes = woven(one, two, high, width)
%>\
            const vec_t ${made[l]} = (vec_t)(${lanes});
% endfor
<%
    names = made
    step += 1
%>\
% endwhile
% for l in range(block):
${put(names[l], f"to + {l * panel * components}")}\
% endfor
        }
        for (uint j = columns / ${block} * ${block}; j < ${columns}; ++j)
            for (uint p = 0; p < ${block}; ++p)
                put_element(packed + (p * ${panel} + j) * ${components},
                            j < columns ? load_element(b, (column + j) * k + first + done + p)
                                        : (sum_t)0);
        packed += ${block * panel * components};
    }
% endif
    for (; done < count; ++done) {
        for (uint j = 0; j < ${columns}; ++j)
            put_element(packed + j * ${components},
                        j < columns ? load_element(b, ${place})
                                    : (sum_t)0);
        packed += ${panel * components};
    }
}
</%def>\
## Copy columns first..first + count of `rows` rows of A, which begin at `first_row`, to `a_block`: names
## of `multiply` in packed.cl.mako.
<%def name="pack_a(element, a, blocking)">\
<% rows, width, components = blocking.rows, blocking.width, blocking.components %>\
% if a.transposed:
        for (uint r = 0; r < rows; r += ${rows}) {
            __local real_t *to = a_block + r * ${blocking.tile_k * components};
            for (uint p = 0; p < count; ++p) {
                const index_t from = (first + p) * m + first_row + r;
                if (r + ${rows} <= rows) {
% for r in range(rows):
                    *(__local sum_t *)(to + ${r * components}) = load_element(a, from + ${r});
% endfor
                } else {
                    for (uint i = 0; i < ${rows}; ++i)
                        *(__local sum_t *)(to + i * ${components}) =
                            r + i < rows ? load_element(a, from + i) : (sum_t)0;
                }
                to += ${rows * components};
            }
        }
% else:
        for (uint r = 0; r < rows_filled; ++r) {
            const index_t from = (first_row + min(r, rows - 1)) * k + first;
            __local real_t *to = a_block + r * ${blocking.a_line};
            uint p = 0;
% if components * width > 1 and width % components == 0:
<% step = width // components %>\
            for (; p + ${step} <= count; p += ${step})
% if element.type == "half":
                *(__local loose_t *)(to + p) = vload_half${width}(0, a + from + p);
% else:
                *(__local loose_t *)(to + p * ${components}) = *(__global const loose_t *)(a + from + p);
% endif
% endif
            for (; p < count; ++p)
                *(__local sum_t *)(to + p * ${components}) = load_element(a, from + p);
        }
% endif
</%def>\
