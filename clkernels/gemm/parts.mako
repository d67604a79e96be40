## What the kernels of the matrix product share: types, arguments, stacks of products, the epilogue.
##
##     <%namespace name="parts" file="/gemm/parts.mako"/>
##
##     a, b ---- enter: pointers move to one product of the stack
##      |
##     sums ---- finish: activation(alpha * sum + beta * c + bias)
##      |
##     result
##
## The names of these parameters are read from the page that calls:
##
##   TYPE        element in memory: half, float, double, or float2, double2 for complex numbers
##   HAS_C       whether there is a C; without one, beta is not used either
##   BIAS        "row", "column", or "" for none
##   ACTIVATION  "relu", "gelu", or "" for none
##   STACKS      dimensions of the stack of products, 0 for one product
##
## Functions and fragments:
##
##   sum_type(type)                          in what products are added up
##   load(type, pointer, width, most)        `width` elements as sums; a builtin takes `most` at once
##   store(type, value, pointer, width, most)  the statements that store a vector of sums
##   lanes(value, first, count, width)       some of the lanes of a vector
##   types()                                 element_t, sum_t, and the functions below in OpenCL C
##   arguments()                             of a kernel, in the order of `launches.arguments`
##   enter(number)                           move to product `number` of the stack
##   finish(value, row, column, width, most)  turn sums into results
##
## In OpenCL C: load_element(p, i), store_element(value, p, i), conjugate(x),
## multiply_add(sum, x, y), gelu_of(x).
##
## Source: own; GELU is that of D. Hendrycks, K. Gimpel, arXiv:1606.08415. Halves are read and written
## by vload_half and vstore_half, which are core OpenCL C. Cost: none but what is asked for.
<%!
    LETTERS = "0123456789abcdef"


    def sum_type(type):
        return "float" if type == "half" else type


    def is_complex(type):
        return type in ("float2", "double2")


    def vector(type, width):
        return type if width == 1 else f"{type}{width}"


    def lanes(value, first, count, width):
        if width == 1 or count == width:
            return value
        return f"{value}.s{LETTERS[first : first + count]}"


    def pieces(width, most):
        """Split a vector into what one builtin may take: pairs of first lane and width."""
        step = min(width, most)
        return [(first, step) for first in range(0, width, step)]


    def load_piece(type, pointer, first, width):
        if type == "half":
            suffix = "" if width == 1 else width
            return f"vload_half{suffix}(0, {pointer} + {first})"
        if width == 1:
            return f"({pointer})[{first}]"
        return f"vload{width}(0, {pointer} + {first})"


    def load(type, pointer, width, most):
        """`width` elements, aligned to one element only, in the type of sums."""
        parts = [load_piece(type, pointer, *piece) for piece in pieces(width, most)]
        if len(parts) == 1:
            return parts[0]
        return f"({vector(sum_type(type), width)})({', '.join(parts)})"


    def store_piece(type, value, pointer, first, width):
        suffix = "" if width == 1 else width
        if type == "half":
            return f"vstore_half{suffix}({value}, 0, {pointer} + {first});"
        if width == 1:
            return f"({pointer})[{first}] = {value};"
        return f"vstore{width}({value}, 0, {pointer} + {first});"


    def store(type, value, pointer, width, most):
        """Statements that store `width` elements, aligned to one element only."""
        return [
            store_piece(type, lanes(value, first, step, width), pointer, first, step)
            for first, step in pieces(width, most)
        ]
%>\
<%def name="types()">\
<% real = sum_type(TYPE).rstrip("2") if is_complex(TYPE) else sum_type(TYPE) %>\
typedef ${TYPE} element_t;
typedef ${sum_type(TYPE)} sum_t;

% if TYPE == "half":
#define load_element(p, i) vload_half(i, p)
#define store_element(value, p, i) vstore_half(value, i, p)
% else:
#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
% endif
% if is_complex(TYPE):
static inline sum_t conjugate(const sum_t x) { return (sum_t)(x.x, -x.y); }

static inline sum_t multiply_add(const sum_t sum, const sum_t x, const sum_t y)
{
    return (sum_t)(sum.x + x.x * y.x - x.y * y.y, sum.y + x.x * y.y + x.y * y.x);
}
% else:
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
% endif
% if ACTIVATION == "gelu":
static inline ${real} gelu_of(const ${real} x)
{
    /* Far below, where the error function is -1, an infinity times 0 would be NaN. */
    return x < -40 ? -(${real})0
                   : (${real})0.5 * x * (1 + erf(x * (${real})0.70710678118654752440));
}
% endif
</%def>\
<%def name="arguments()">\
__global const element_t *restrict a,
    __global const element_t *restrict b,
% if HAS_C:
    __global const element_t *restrict c,
% endif
% if BIAS:
    __global const element_t *restrict bias,
% endif
    __global element_t *restrict result,
    const index_t m,
    const index_t n,
    const index_t k,
    const sum_t alpha,
    const sum_t beta\
% for d in range(STACKS):
,
    const uint count_${d},
    const index_t a_step_${d},
    const index_t b_step_${d}\
% endfor
</%def>\
## number   of the product in the stack, an expression of type index_t
<%def name="enter(number)">\
% if STACKS:
    {
        index_t rest = ${number};
        result += rest * m * n;
% if HAS_C:
        c += rest * m * n;
% endif
% for d in reversed(range(STACKS)):
        a += rest${f" % count_{d}" if d else ""} * a_step_${d};
        b += rest${f" % count_{d}" if d else ""} * b_step_${d};
% if d:
        rest /= count_${d};
% endif
% endfor
    }
% endif
</%def>\
## value        variable with `width` sums of one row; it becomes the results
## row, column  where the first of them lies in the result
## most         elements that a builtin may take at once
<%def name="finish(value, row, column, width=1, most=1)">\
% if is_complex(TYPE):
            ${value} = multiply_add((sum_t)0, alpha, ${value});
% if HAS_C:
            /* As in BLAS, a C that counts once is added as it is: an infinity times 0 is NaN. */
            ${value} = beta.x == 1 && beta.y == 0 ? ${value} + c[${row} * n + ${column}]
                                                  : multiply_add(${value}, beta, c[${row} * n + ${column}]);
% endif
% else:
            ${value} *= alpha;
% if HAS_C:
            ${value} += beta * ${load(TYPE, f"c + (({row}) * n + {column})", width, most)};
% endif
% endif
% if BIAS == "row":
            ${value} += load_element(bias, ${row});
% elif BIAS == "column":
            ${value} += ${load(TYPE, f"bias + ({column})", width, most)};
% endif
% if ACTIVATION == "relu":
            ${value} = ${value} < 0 ? 0 : ${value}; /* so that NaN stays */
% elif ACTIVATION == "gelu":
% if width > 1 and sum_type(TYPE) == "float":
${gelu_lanes(value, width)}\
% else:
% for l in range(width):
            ${lanes(value, l, 1, width)} = gelu_of(${lanes(value, l, 1, width)});
% endfor
% endif
% endif
</%def>\
## GELU of all lanes at once, since compilers call the error function for each lane. With `part`,
## the probability that a normal number is above |x|, it is x (1 - part), or x part below zero, where
## nothing cancels: within 4e-7 |x|, and within 4e-6 of itself above -4. Own minimax polynomials, of
## part near zero and of its 16th root inverted elsewhere, the form of C. Hastings, "Approximations for
## Digital Computers", 1955.
<%def name="gelu_lanes(value, width)">\
<%
    near = (0.39894228, -0.06649036, 0.0099733234, -0.00118632993, 1.13486356e-4, -7.65420233e-6)
    far = (1.04430599, 0.051937990, 0.0223197046, 0.00319114959, 1.71731898e-4, 2.11474148e-6,
           1.85768957e-5, -2.40955186e-6, 2.23102059e-7)


    def horner(x, factors):
        text = f"{factors[-1]:.9g}f"
        for factor in reversed(factors[:-1]):
            text = f"({factor:.9g}f + {x} * {text})"
        return text
%>\
            {
                const ${vector("float", width)} gelu_x = ${value};
                const ${vector("float", width)} size = gelu_x < 0 ? -gelu_x : gelu_x;
                const ${vector("float", width)} square = gelu_x * gelu_x;
                ${vector("float", width)} part = ${horner("size", far)};
% for _ in range(4):
                part *= part;
% endfor
                part = size < 1 ? 0.5f - size * ${horner("square", near)} : 1 / part;
                part = gelu_x < 0 ? part : 1 - part;
                /* An infinity times 0 would be NaN. */
                ${value} = gelu_x < -40 ? -0.0f : gelu_x * part;
            }
</%def>\
