## What the kernels of `gemv` share: the matrix, the few lines of the other factor, the results.
##
##     <%namespace name="gemv" file="/gemm/gemv.mako"/>
##
##     op(A) has few columns: the matrix is A, its lines are its rows, x is B.
##     op(A) op(B) has few rows: the matrix is B, its lines are its columns, x is A.
##
##       matrix, along           matrix, across            x: `few` lines of k
##       a line  l l l l l > k   a line  l . . .           x x x x x x > k
##               . . . . .               l . . .           x x x x x x
##               . . . . .               l . . .
##                                       v k
##
## element    the `Element` of the product
## epilogue   its `Epilogue`
## thin       the `Thin` of opencl_lab/ops/gemm/thin/lines.py: which factor is the matrix, how both lie
##
##   declare(thin)      in OpenCL C: matrix, other, lines, x_at(f, p), row_of(l, f), column_of(l, f)
##   result(..)         make a sum a result, and store that
##   partial_sum(..)    store a sum of one slice of k, for split_k_reduction.cl.mako
##
## Source: own. The caller guarantees: what product.mako declares. Cost: that of the code that is inserted.
<%namespace name="epilogues" file="/gemm/epilogue.mako"/>\
<%def name="declare(thin)">\
<% matrix, x = ("a", "b") if thin.side == "a" else ("b", "a") %>\
#define matrix ${matrix}
#define other ${x}
#define lines ${"m" if thin.side == "a" else "n"}
% if thin.x_along:
#define x_at(f, p) ((index_t)(f) * k + (p))
% else:
#define x_at(f, p) ((index_t)(p) * ${thin.few} + (f))
% endif
#define row_of(l, f) ((index_t)(${"l" if thin.side == "a" else "f"}))
#define column_of(l, f) ((index_t)(${"f" if thin.side == "a" else "l"}))
</%def>\
## value     a variable of type sum_t
## l, f      its line of the matrix, and of x
<%def name="result(element, epilogue, value, l, f)">\
${epilogues.apply(element, epilogue, value, f"row_of({l}, {f})", f"column_of({l}, {f})")}\
        store_element(${value}, result, row_of(${l}, ${f}) * n + column_of(${l}, ${f}));
</%def>\
## slice     number of the slice in `partial`, over all products
<%def name="partial_sum(value, l, f, slice)">\
        partial[(${slice}) * m * n + row_of(${l}, ${f}) * n
                + column_of(${l}, ${f})] = ${value};
</%def>\
