## Magnitudes of real numbers as integers, which have the same order and NaN beyond the infinity: compilers
## make vectors of their comparisons without leave to ignore NaN.
##
##   declare(real)   bits_t, MAGNITUDE(x), NUMBER(bits), MAGNITUDE_MASK and INFINITE
##
## real   float or double
<%def name="declare(real)">\
% if real == "float":
typedef uint bits_t;
#define MAGNITUDE_MASK 0x7fffffffu
#define MAGNITUDE(x) (as_uint(x) & MAGNITUDE_MASK)
#define NUMBER(bits) as_float(bits)
#define INFINITE 0x7f800000u
% else:
typedef ulong bits_t;
#define MAGNITUDE_MASK 0x7ffffffffffffffful
#define MAGNITUDE(x) (as_ulong(x) & MAGNITUDE_MASK)
#define NUMBER(bits) as_double(bits)
#define INFINITE 0x7ff0000000000000ul
% endif
</%def>\
