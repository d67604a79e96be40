## Arguments of the kernels of the matrix product, and their way to one product of a stack.
##
##     <%namespace name="product" file="/gemm/product.mako"/>
##
##     result = activation(alpha * op(A) * op(B) + beta * C + bias), for each product of the stack
##
##       op(A)   m x k      op(B)   k x n      result, C   m x n      all row-major
##
## epilogue   the `Epilogue` of opencl_lab/ops/gemm/launches.py: whether there is a C, a bias
## stacks     dimensions of the stack of products, 0 for one product
##
##   arguments(epilogue, stacks)       of a kernel, in the order of `launches.arguments`
##   enter(epilogue, stacks, number)   a, b, c and result point to product `number` of the stack
##
## A dimension of the stack has count_d matrices, which lie a_step_d elements apart in a, b_step_d in b; the
## step is 0 where all products have the same matrix. Results lie side by side, the last dimension first.
##
## Source: own; steps of 0 are NumPy's broadcasting. The caller guarantees: element_t, sum_t, index_t.
<%def name="arguments(epilogue, stacks)">\
__global const element_t *restrict a,
    __global const element_t *restrict b,
% if epilogue.c:
    __global const element_t *restrict c,
% endif
% if epilogue.bias:
    __global const element_t *restrict bias,
% endif
    __global element_t *restrict result,
    const index_t m,
    const index_t n,
    const index_t k,
    const sum_t alpha,
    const sum_t beta\
% for d in range(stacks):
,
    const uint count_${d},
    const index_t a_step_${d},
    const index_t b_step_${d}\
% endfor
</%def>\
## number   OpenCL C: of the product in the stack, of type index_t
<%def name="enter(epilogue, stacks, number)">\
% if stacks:
    {
        index_t rest = ${number};
        result += rest * m * n;
% if epilogue.c:
        c += rest * m * n;
% endif
% for d in reversed(range(stacks)):
        a += rest${f" % count_{d}" if d else ""} * a_step_${d};
        b += rest${f" % count_{d}" if d else ""} * b_step_${d};
% if d:
        rest /= count_${d};
% endif
% endfor
    }
% endif
</%def>\
