## Complex numbers: types, and what OpenCL C has no operators for.
##
##   inlined()                 INLINE, before functions that shall not be called
##   declare(element, index)   real_t, complex_t and index_t; ONE_HALF, which is 0.5 as a real_t; times(a, b)
##   declare_points()          points_t, whose components are apart; multiplied(x, w) and scaled(x, factor).
##                             It needs vec_t, a vector of real_t or one alone
##
## element  Element of core/kernels.py, of complex numbers
## index    type that counts elements
<%namespace name="types" file="/common/types.mako"/>\
<%def name="inlined()">\
/* PoCL calls what is long, which keeps loops from being vectors and arrays from being registers. */
#define INLINE static inline __attribute__((always_inline))
</%def>\
<%def name="declare(element, index)">\
typedef ${element.real} real_t;
typedef ${element.type} complex_t;
typedef ${index} index_t;
#define ONE_HALF ${types.module.literal(0.5, element.real)}

static inline complex_t times(const complex_t a, const complex_t b)
{
    return (complex_t)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
</%def>\
<%def name="declare_points()">\
/* A complex number, or one in each lane of vec_t. */
typedef struct {
    vec_t re, im;
} points_t;

INLINE points_t multiplied(const points_t x, const points_t w)
{
    const points_t product = {x.re * w.re - x.im * w.im, x.re * w.im + x.im * w.re};
    return product;
}

INLINE points_t scaled(const points_t x, const real_t factor)
{
    const points_t product = {x.re * factor, x.im * factor};
    return product;
}
</%def>\
