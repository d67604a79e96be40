## Vectors of conv2d_register in memory that is aligned to one element only: see register.cl.mako,
## which says what PIXELS and STRIP hold.
##
##   vec_t            a vector of sums
##   packed_t         one of these, or of elements of the same type
##   packed_piece_t   elements that are converted together
##   packed_result_t  a vector of results
<%namespace name="terms" file="terms.mako"/>\
<%def name="declare(PIXELS, STRIP)">\
<%
    vec = terms.module.vec
%>\
typedef ${vec(PIXELS.sum_t, STRIP.vector_width)} vec_t;
% if STRIP.vector_width > 1:
typedef struct { vec_t v; } __attribute__((packed, aligned(sizeof(sum_t)))) packed_t;
% if PIXELS.element_t not in ("half", "bool"):
typedef struct {
    ${vec(PIXELS.element_t, STRIP.piece)} v;
} __attribute__((packed, aligned(sizeof(element_t)))) packed_piece_t;
% endif
% if PIXELS.result_t != "half":
typedef struct {
    ${vec(PIXELS.result_t, STRIP.vector_width)} v;
} __attribute__((packed, aligned(sizeof(result_t)))) packed_result_t;
% endif
% endif
</%def>\
