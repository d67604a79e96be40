## Complex numbers as pairs: types, and what OpenCL C has no operators for.
<%def name="types(real, index)">\
typedef ${real} real_t;
typedef ${real}2 complex_t;
typedef ${index} index_t;
</%def>\
<%def name="times()">\
static inline complex_t times(const complex_t a, const complex_t b)
{
    return (complex_t)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
</%def>\
