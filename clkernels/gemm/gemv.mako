## What the kernels of `gemv` share: the matrix, the few lines of the other factor, the results.
##
##     <%namespace name="gemv" file="/gemm/gemv.mako"/>
##
##     op(A) has few columns: the matrix is A, its lines are its rows, x is B.
##     op(A) op(B) has few rows: the matrix is B, its lines are its columns, x is A.
##
##       matrix, along           matrix, across            x: FEW lines of k
##       a line  l l l l l > k   a line  l . . .           x x x x x x > k
##               . . . . .               l . . .           x x x x x x
##               . . . . .               l . . .
##                                       v k
##
## The names of these parameters are read from the page that calls:
##
##   SIDE      "a" or "b": which factor is the matrix
##   FEW       lines of the other factor, x
##   TRANS_A, TRANS_B, CONJ_A, CONJ_B   as of all kernels of the matrix product
##   SPLIT     whether sums of a part of k are stored, and not results
##
##   is_along(...)     whether the lines of the matrix lie along k
##   x_is_along(...)   whether those of x do
##   names()           in OpenCL C: matrix, other, lines, x_at(f, p), row_of(l, f), column_of(l, f)
##   keep(value)       store a sum, or make it a result and store that
##   result(value)     make a sum a result and store that
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%!
    def is_along(side, trans_a, trans_b):
        return not trans_a if side == "a" else trans_b


    def x_is_along(side, few, trans_a, trans_b):
        return few == 1 or (trans_b if side == "a" else not trans_a)
%>\
<%def name="names()">\
<% matrix, x = ("a", "b") if SIDE == "a" else ("b", "a") %>\
#define matrix ${matrix}
#define other ${x}
#define lines ${"m" if SIDE == "a" else "n"}
% if x_is_along(SIDE, FEW, TRANS_A, TRANS_B):
#define x_at(f, p) ((index_t)(f) * k + (p))
% else:
#define x_at(f, p) ((index_t)(p) * ${FEW} + (f))
% endif
#define row_of(l, f) ((index_t)(${"l" if SIDE == "a" else "f"}))
#define column_of(l, f) ((index_t)(${"f" if SIDE == "a" else "l"}))
</%def>\
## value     a variable of type sum_t
## l, f      its line of the matrix, and of x
## place     in `partial` the number of the product's part, an expression: see sum_parts.cl.mako
<%def name="keep(value, l, f, place)">\
% if SPLIT:
        partial[(${place}) * m * n + row_of(${l}, ${f}) * n
                + column_of(${l}, ${f})] = ${value};
% else:
${result(value, l, f)}\
% endif
</%def>\
<%def name="result(value, l, f)">\
${parts.finish(value, f"row_of({l}, {f})", f"column_of({l}, {f})")}\
        store_element(${value}, result, row_of(${l}, ${f}) * n + column_of(${l}, ${f}));
</%def>\
