## The epilogue: what is done with a finished sum of products before it is stored.
##
##     <%namespace name="epilogue" file="/gemm/epilogue.mako"/>
##
##     result = activation(alpha * sum + beta * c + bias)
##
## element    the `Element` of the product
## epilogue   its `Epilogue`, of opencl_lab/ops/gemm/launches.py
##
##   declare(element, epilogue)   gelu_of(x), if that is the activation
##   apply(element, epilogue, value, row, column, width, most, c)
##                                statements by which sums in a variable become results
##
## Source: own; the epilogues of CUTLASS do as much. GELU is that of D. Hendrycks, K. Gimpel,
## arXiv:1606.08415. The caller guarantees: what elements.mako declares, and the arguments of
## product.mako. Cost: C and the bias are read once.
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%namespace name="types" file="/common/types.mako"/>\
<%def name="declare(element, epilogue)">\
% if epilogue.activation == "gelu":
<% half, root = (types.module.literal(value, element.real) for value in (0.5, 0.5**0.5)) %>\
static inline ${element.real} gelu_of(const ${element.real} x)
{
    /* Far below, where the error function is -1, an infinity times 0 would be NaN. */
    return x < -40 ? -(${element.real})0
                   : ${half} * x * (1 + erf(x * ${root}));
}
% endif
</%def>\
## value        variable with `width` sums of one row; it becomes the results
## row, column  where the first of them lies in the result
## most         elements that a built-in function may take at once
## c            OpenCL C: where the C of this product begins
<%def name="apply(element, epilogue, value, row, column, width=1, most=1, c='c')">\
% if element.complex:
            ${value} = multiply_add((sum_t)0, alpha, ${value});
% if epilogue.c:
            /* As in BLAS, a C that counts once is added as it is: an infinity times 0 is NaN. */
            ${value} = beta.x == 1 && beta.y == 0 ? ${value} + ${c}[${row} * n + ${column}]
                                                  : multiply_add(${value}, beta, ${c}[${row} * n + ${column}]);
% endif
% else:
            ${value} *= alpha;
% if epilogue.c:
            ${value} += beta * ${elements.module.load(element.type, f"{c} + (({row}) * n + {column})", width, most)};
% endif
% endif
% if epilogue.bias == "row":
            ${value} += load_element(bias, ${row});
% elif epilogue.bias == "column":
            ${value} += ${elements.module.load(element.type, f"bias + ({column})", width, most)};
% endif
% if epilogue.activation == "relu":
            ${value} = ${value} < 0 ? 0 : ${value}; /* so that NaN stays */
% elif epilogue.activation == "gelu":
% if width > 1 and element.sum == "float":
${gelu_lanes(value, width)}\
% else:
% for l in range(width):
            ${elements.module.lanes(value, l, 1, width)} = gelu_of(${elements.module.lanes(value, l, 1, width)});
% endfor
% endif
% endif
</%def>\
## GELU of all lanes at once, since compilers call the error function for each lane. With
## `above`, the probability that a normal number is above |x|, it is x (1 - above), or x above below
## zero, where nothing cancels: within 4e-7 |x|, and within 4e-6 of itself above -4. Own minimax polynomials, of
## `above` near zero and of its 16th root inverted elsewhere, the form of C. Hastings, "Approximations for
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


    vec = elements.module.vector("float", width)
%>\
            {
                const ${vec} gelu_x = ${value};
                const ${vec} size = gelu_x < 0 ? -gelu_x : gelu_x;
                const ${vec} square = gelu_x * gelu_x;
                ${vec} above = ${horner("size", far)};
% for _ in range(4):
                above *= above;
% endfor
                above = size < 1 ? 0.5f - size * ${horner("square", near)} : 1 / above;
                above = gelu_x < 0 ? above : 1 - above;
                /* An infinity times 0 would be NaN. */
                ${value} = gelu_x < -40 ? -0.0f : gelu_x * above;
            }
</%def>\
