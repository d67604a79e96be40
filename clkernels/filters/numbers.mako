## What the kernels of filters share: types of numbers, how results are stored, and how lines go on.
##
## NUMBERS  what the host knows of the numbers (`Numbers` of opencl_lab/ops/filters/numbers.py):
##   element, sum, result  OpenCL C types of what is read, reduced and written; a result may be bool
##   double    whether any of them is double, or needs it
##   width     lanes of a vector; 1: a scalar
##   reduce    sum (of products with weights), mean, min, max or rank
##   combine   what becomes of results: words of "square", "add" (what an earlier launch found), "root"
##   complex   whether numbers are parts of complex ones, the real and the imaginary one by turns
##   exact     whether sums of doubles are those of SciPy to the last bit, as results are whole
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="boundaries" file="/conv2d/boundaries.mako"/>\
<%namespace name="types" file="/common/types.mako"/>\
<%!
    BOUNDARIES = ("constant", "nearest", "reflect", "mirror", "wrap")
    REALS = ("float", "double")


    def at(NUMBERS, space, kind, pointer):
        """A vector in memory, aligned to one number only."""
        return f"((__{space} {kind}_packed_t *)({pointer}))->v" if NUMBERS.width > 1 else f"*({pointer})"


    def cval(NUMBERS, place):
        """What lies beyond the edges, at a place in a row."""
        return f"(({place}) & 1 ? cval_1 : cval_0)" if NUMBERS.complex else "cval_0"
%>\
##
##   declare(NUMBERS)   types element_t, sum_t, result_t and vectors of them; REDUCE, to_sum, extend, and
##                      store(v, to, before, count): `count` numbers of a vector, or all its lanes
<%def name="declare(NUMBERS)">\
<%
    width, vector, size = NUMBERS.width, types.module.vector, types.module.size
    result = "uchar" if NUMBERS.result == "bool" else NUMBERS.result
    real, whole = NUMBERS.sum in REALS, result not in REALS

    def converted(kind, v="v"):
        return f"convert_{vector(kind, width)}({v})"
%>\
${extensions.enable(fp64=NUMBERS.double)}\
% if NUMBERS.exact:
#pragma OPENCL FP_CONTRACT OFF
% endif
#define WIDTH ${width}
% for kind, name in (("element", NUMBERS.element), ("sum", NUMBERS.sum), ("result", result)):
typedef ${name} ${kind}_t;
typedef ${vector(name, width)} ${kind}_vec_t;
% if width > 1:
typedef struct __attribute__((packed, aligned(${size(name)}))) { ${kind}_vec_t v; } ${kind}_packed_t;
% endif
% endfor
% if NUMBERS.reduce in ("sum", "mean"):
#define REDUCE(a, b) ((a) + (b))
% elif NUMBERS.reduce in ("min", "max"):
/* Of a number and NaN it is NaN. */
#define REDUCE(a, b) ((a) ${"<" if NUMBERS.reduce == "min" else ">"} (b)${" | (a) != (a)" if real else ""} ? (a) : (b))
% endif

static inline sum_vec_t to_sum(const element_vec_t v)
{
    return ${converted(NUMBERS.sum)};
}

static inline result_vec_t to_result(const sum_vec_t v)
{
% if NUMBERS.result == "bool":
    return ${converted("uchar", "fabs(v) >= (sum_t)1" if real else "v != (sum_t)0")} & (uchar)1;
% elif real and whole:
    /* Cut to an integer, of which the low bits are kept; zero for NaN and what 64 bits cannot hold. */
% if result == "ulong":
    const sum_vec_t top = v >= (sum_t)0x1p63f & v < (sum_t)0x1p64f ? (sum_vec_t)0x1p63f : (sum_vec_t)0;
    const sum_vec_t rest = v - top;
    return ${converted(result, "top")} + ${converted(result, converted("long", "fabs(rest) < (sum_t)0x1p63f ? rest : (sum_vec_t)0"))};
% else:
    return ${converted(result, converted("long", "fabs(v) < (sum_t)0x1p63f ? v : (sum_vec_t)0"))};
% endif
% else:
    return ${converted(result)};
% endif
}

% if NUMBERS.reduce == "mean":
/* Return sums of `size` numbers divided by it, and cut towards zero if they are integers. */
static inline sum_vec_t mean_of(const sum_vec_t v, const int size)
{
% if NUMBERS.sum == "int":
    /* Quotients of 17 bits are right in float but for one. */
    const sum_vec_t positive = v < 0 ? -v : v;
    sum_vec_t quotient = ${converted("int", f"{converted('float', 'positive')} * (1.0f / size)")};
    const sum_vec_t rest = positive - quotient * size;
    quotient = rest < 0 ? quotient - 1 : rest >= size ? quotient + 1 : quotient;
    return v < 0 ? -quotient : quotient;
% else:
    return v / (sum_t)size;
% endif
}

% endif
/* Return what becomes of sums: `count` numbers of a vector, or all its lanes. */
static inline result_vec_t finish(const sum_vec_t v, __global const result_t *before, const long count)
{
    result_vec_t r = to_result(v);
% if "square" in NUMBERS.combine:
    r *= r;
% endif
% if "add" in NUMBERS.combine:
<% plus = "|=" if NUMBERS.result == "bool" else "+=" %>\
    if (count >= WIDTH) {
        r ${plus} ${at(NUMBERS, "global const", "result", "before")};
    } else {
        for (int l = 0; l < count; ++l)
            ((__private result_t *)&r)[l] ${plus} before[l];
    }
% endif
% if "root" in NUMBERS.combine:
    r = ${"sqrt(r)" if not whole else converted(result, f"sqrt({converted('double' if size(result) > 2 and NUMBERS.double else 'float', 'r')})")};
% endif
    return r;
}

static inline void store(const sum_vec_t v, __global result_t *to, __global const result_t *before, const long count)
{
    const result_vec_t r = finish(v, before, count);
% if width > 1:
    if (count >= WIDTH) {
        ${at(NUMBERS, "global", "result", "to")} = r;
    } else {
        for (int l = 0; l < count; ++l)
            to[l] = ((__private const result_t *)&r)[l];
    }
% else:
    if (count > 0)
        *to = r;
% endif
}

/* Return the place in a line of n numbers whose value continues it at i; -1: cval. */
static inline int extend(const int i, const int n, const int mode)
{
    if (i >= 0 && i < n)
        return i;
    switch (mode) {
% for number, name in enumerate(BOUNDARIES):
    ${f"case {number}" if number else "default"}: {
    ${getattr(boundaries, name)(True)}\
    }
% endfor
    }
}
</%def>\
