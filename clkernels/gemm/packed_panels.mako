## How the product by packed panels lays out its factors, and the vectors that it does this in.
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
## The names of these parameters are read from the page: TYPE, TRANS_B, CONJ_A, CONJ_B,
## VECTOR_WIDTH, VECTORS; for pack_a TRANS_A, ROWS, TILE_K; see packed.cl.mako.
##
## Functions and fragments:
##
##   real(type)        the type of the parts of a number, as sums have it
##   parts_of(type)    how many parts a number has
##   vectors(type)     real_t, vec_t, loose_t, which may lie anywhere, and helpers, in OpenCL C
##   pad(type)         numbers between the rows of a block of A
##   pack_a()          statements that copy a block of A into local memory
##   pack_rows(space)  a function that packs rows of one panel of B into memory of a space
##
## Source: K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
## 2008 (panels); F. Van Zee, T. Smith, "Implementing high-performance complex matrix multiplication
## via the 3m and 4m methods", ACM TOMS 2017 (pairs against doubled rows, its method 1M). The
## transposing network is that of perfect shuffles, H. Stone, IEEE TC 1971.
<%!
    LETTERS = "0123456789abcdef"


    def real(type):
        return {"half": "float", "float2": "float", "double2": "double"}.get(type, type)


    def parts_of(type):
        return 2 if type.endswith("2") else 1


    def pad(type):
        """Numbers between the rows of a block of A: a line of a cache."""
        return 64 // (8 if type.startswith("double") else 4)


    def swapped(value, width):
        """A vector with the parts of each complex number exchanged."""
        return f"{value}.s{''.join(LETTERS[l ^ 1] for l in range(width))}"


    def woven(one, two, high, width):
        """The lower or the upper half of the lanes of two vectors, in turns."""
        first = width // 2 if high else 0
        names = (f"{vector}.s{LETTERS[l]}" for l in range(first, first + width // 2)
                 for vector in (one, two))
        return ", ".join(names)
%>\
<%def name="vectors()">\
<%
    real_t, width = real(TYPE), VECTOR_WIDTH
    vec_t = real_t if width == 1 else f"{real_t}{width}"
%>\
typedef ${real_t} real_t;
typedef ${vec_t} vec_t;
typedef ${vec_t} __attribute__((aligned(${8 if real_t == "double" else 4}))) loose_t;
</%def>\
## Lines of the panel beside are asked for, since a processor does not see what follows a few
## numbers of a row; the next thing to be packed into global memory is that panel.
##
## width   vectors of B: the columns of the panel, of which `columns` are there
<%def name="pack_rows(space)">\
<%
    width, complex = VECTOR_WIDTH, parts_of(TYPE) == 2
    panel = VECTORS * width
    place = "(column + j) * k + first + done" if TRANS_B else "(first + done) * n + column + j"
    element = "real_t" if TYPE != "half" else "element_t"
    sign_b, sign_a = -1 if CONJ_B else 1, -1 if CONJ_A else 1


    def signs(even, odd):
        return "(vec_t)(" + ", ".join(str(odd if l % 2 else even) for l in range(width)) + ")"


    def loaded(pointer):
        if TYPE == "half":
            return f"vload_half{'' if width == 1 else width}(0, {pointer})"
        return f"*(__global const loose_t *)({pointer})"
%>\
## Write a vector of one row of B, or its two rows where it is complex, at `place` of the panel.
<%def name="put(value, place)">\
% if complex:
                *(${space} vec_t *)(${place}) = ${f"{value} * {signs(1, -1)}" if CONJ_B else value};
                *(${space} vec_t *)(${place} + ${panel}) =
                    ${swapped(value, width)} * ${signs(-sign_a * sign_b, sign_a)};
% else:
                *(${space} vec_t *)(${place}) = ${value};
% endif
</%def>\
/* Write one element of B, or zero, at a column of the panel. */
static inline void put_element(${space} real_t *place, const sum_t value)
{
% if complex:
    place[0] = value.x;
    place[1] = ${sign_b} * value.y;
    place[${panel}] = ${-sign_a * sign_b} * value.y;
    place[${panel + 1}] = ${sign_a} * value.x;
% else:
    place[0] = value;
% endif
}

/* Pack rows first..first + count of the panel of B that begins at an element's column. */
static inline void pack_rows(__global const element_t *restrict b, ${space} real_t *packed,
                             const index_t first, const uint count, const index_t column,
                             const index_t n, const index_t k)
{
    const uint columns = min((index_t)${panel // (2 if complex else 1)}, n - column);
    uint done = 0;

% if not TRANS_B:
    if (columns == ${panel // (2 if complex else 1)}) {
        __global const ${element} *from = (__global const ${element} *)(b + first * n + column);
        for (; done < count; ++done) {
% for v in range(VECTORS):
            {
                const vec_t v = ${loaded(f"from + {v * width}")};
${put("v", f"packed + {v * width}")}\
            }
% endfor
% if space == "__global":
% for v in range(0, panel, 32 if TYPE == "half" else pad(TYPE)):
            FETCH_LINE(from + ${panel + v}, 0);
% endfor
% endif
            from += n${" * 2" if complex else ""};
            packed += ${panel * (2 if complex else 1)};
        }
    }
% elif width > 1:
    /* Turn blocks of rows and columns in registers: weave the halves, until all lie across. */
<% block = width // (2 if complex else 1) %>\
    for (; done + ${block} <= count; done += ${block}) {
        for (uint j = 0; j + ${block} <= columns; j += ${block}) {
            __global const ${element} *from =
                (__global const ${element} *)(b + (column + j) * k + first + done);
            ${space} real_t *to = packed + j * ${2 if complex else 1};
<% names = [f"r{l}" for l in range(block)] %>\
% for l in range(block):
            const vec_t ${names[l]} = ${loaded(f"from + {l} * k" + (" * 2" if complex else ""))};
% endfor
<% step = 0 %>\
% while 1 << step < block:
<% made = [f"s{step}_{l}" for l in range(block)] %>\
% for l in range(block):
<%
    one, two, high = names[l // 2], names[l // 2 + block // 2], l % 2
    if complex:
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
${put(names[l], f"to + {l * panel * (2 if complex else 1)}")}\
% endfor
        }
        for (uint j = columns / ${block} * ${block}; j < ${panel // (2 if complex else 1)}; ++j)
            for (uint p = 0; p < ${block}; ++p)
                put_element(packed + (p * ${panel} + j) * ${2 if complex else 1},
                            j < columns ? load_element(b, (column + j) * k + first + done + p)
                                        : (sum_t)0);
        packed += ${block * panel * (2 if complex else 1)};
    }
% endif
    for (; done < count; ++done) {
        for (uint j = 0; j < ${panel // (2 if complex else 1)}; ++j)
            put_element(packed + j * ${2 if complex else 1},
                        j < columns ? load_element(b, ${place})
                                    : (sum_t)0);
        packed += ${panel * (2 if complex else 1)};
    }
}
</%def>\
## Copy `count` columns of `rows` rows of A, from p on.
<%def name="pack_a()">\
<%
    P, width = parts_of(TYPE), VECTOR_WIDTH
    LINE = TILE_K * P + pad(TYPE)
%>\
% if TRANS_A:
        for (uint r = 0; r < rows; r += ${ROWS}) {
            __local real_t *to = a_block + r * ${TILE_K * P};
            for (uint p = 0; p < count; ++p) {
                const index_t from = (first + p) * m + first_row + r;
                if (r + ${ROWS} <= rows) {
% for r in range(ROWS):
                    *(__local sum_t *)(to + ${r * P}) = load_element(a, from + ${r});
% endfor
                } else {
                    for (uint i = 0; i < ${ROWS}; ++i)
                        *(__local sum_t *)(to + i * ${P}) =
                            r + i < rows ? load_element(a, from + i) : (sum_t)0;
                }
                to += ${ROWS * P};
            }
        }
% else:
        for (uint r = 0; r < rows_filled; ++r) {
            const index_t from = (first_row + min(r, rows - 1)) * k + first;
            __local real_t *to = a_block + r * ${LINE};
            uint p = 0;
% if P * width > 1 and width % P == 0:
<% step = width // P %>\
            for (; p + ${step} <= count; p += ${step})
% if TYPE == "half":
                *(__local loose_t *)(to + p) = vload_half${width}(0, a + from + p);
% else:
                *(__local loose_t *)(to + p * ${P}) = *(__global const loose_t *)(a + from + p);
% endif
% endif
            for (; p < count; ++p)
                *(__local sum_t *)(to + p * ${P}) = load_element(a, from + p);
        }
% endif
</%def>\
