## What the kernels of a convolution share: reading and writing pixels, and the image beyond
## its edges.
##
## PIXELS  what the host knows of pixels and weights, by these fields:
##   element_t  type of the values read: uchar, short, ushort, half, float, double, int or long
##   result_t   type of the values written, one of these
##   sum_t      type of weights and sums: float or double; uint where integers wrap around, as it
##              does so by definition; int or long where they stop at their limits
##   boundary   constant, nearest, reflect, mirror or wrap, as scipy.ndimage names them
##   far        whether windows reach so far beyond an edge that one reflection is not enough
##   saturate   whether integer results stop at the limits of their type
##   flip       whether the filter is turned by 180 degrees, which the kernels see to
##   constant_weights  whether the weights lie in constant memory
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="boundaries" file="boundaries.mako"/>\
<%def name="declare(PIXELS)">\
<%
    limits = {
        "uchar": ("0", "UCHAR_MAX"),
        "short": ("SHRT_MIN", "SHRT_MAX"),
        "ushort": ("0", "USHRT_MAX"),
    }.get(PIXELS.result_t)
    # What is left of a sum is rounded by adding 1.5 * 2^23, or is an integer.
    rounded = "(int)(rest + 0x1.8p23f - 0x1.8p23f)" if PIXELS.sum_t == "float" else "rest"
%>\
${extensions.enable(fp64=PIXELS.sum_t == 'double')}\
typedef ${PIXELS.element_t} element_t;
typedef ${PIXELS.result_t} result_t;
typedef ${PIXELS.sum_t} sum_t;
typedef ${"__constant" if PIXELS.constant_weights else "__global const"} sum_t *weights_t;

static inline sum_t load_pixel(__global const element_t *p)
{
    return ${"vload_half(0, p)" if PIXELS.element_t == "half" else "*p"};
}

% if PIXELS.result_t != "half":
/* Round to the nearest, ties to even. Integers keep their low bits (none of them set for an
   infinity or NaN), or stop at the limits. In plain operators, of which compilers make vectors
   where rint and saturating conversions are calls. */
static inline result_t to_result(const sum_t sum)
{
% if limits is None:
    return (result_t)sum;
% else:
% if PIXELS.saturate:
    const sum_t least = ${limits[0]}, most = ${limits[1]};
    const sum_t rest = sum > least ? sum < most ? sum : most : least;
% elif PIXELS.sum_t == "float":
    /* A sum of 2^39 is a multiple of 2^16; below, the remainder is exact. */
    const float high = sum * 0x1p-16f;
    const bool small = high > -0x1p23f && high < 0x1p23f;
    const float rest = small ? sum - 0x1p16f * (float)(int)(small ? high : 0) : 0;
% else:
    const sum_t rest = sum;
% endif
    return (result_t)${rounded};
% endif
}

% endif
static inline void store_pixel(const sum_t sum, __global result_t *p)
{
    ${"vstore_half_rte(sum, 0, p);" if PIXELS.result_t == "half" else "*p = to_result(sum);"}
}

/* Return the coordinate in an image of n pixels whose value continues it at i; -1: cval. */
static inline int extend(const int i, const int n)
{
${getattr(boundaries, PIXELS.boundary)(PIXELS.far)}\
}
</%def>\
