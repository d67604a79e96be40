## What the kernels of a convolution share: reading and writing pixels, and the image beyond
## its edges.
##
## PIXELS  what the host knows of pixels and weights, by these fields:
##   element_t  type of the values read: OpenCL C's name of it, or bool
##   result_t   type of the values written, likewise
##   sum_t      type of weights and sums: float or double; uint or ulong where integers wrap around,
##              as they do so by definition; int or long where they stop at their limits
##   long_sums  whether sums of long weights take 128 bits
##   boundary   constant, nearest, reflect, mirror or wrap, as scipy.ndimage names them
##   far        whether windows reach so far beyond an edge that one reflection is not enough
##   saturate   whether integer results stop at the limits of their type
##   flip       whether the filter is turned by 180 degrees, which the kernels see to
##   constant_weights  whether the weights lie in constant memory
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="boundaries" file="boundaries.mako"/>\
<%namespace name="terms" file="terms.mako"/>\
<%namespace name="types" file="/common/types.mako"/>\
##
##   declare(PIXELS)          types, load_pixel, store_pixel, extend
##   parameters(own, sized)   the parameters of a kernel, in the order in which conv2d/launch.py passes
##                            them; `own` are those of this kernel alone, `sized` says whether the
##                            size of the filter is among them
<%def name="parameters(own=(), sized=False)">\
<%
    sizes = ["height", "width"], ["out_height", "out_width", "offset_y", "offset_x"]
    sizes[1].extend(["filter_height", "filter_width"] * sized)
    before, after = ([f"const int {size}" for size in names] for names in sizes)
    buffers = "__global const element_t *restrict image", "const weights_t weights", "__global result_t *restrict result"
%>\
${",\n    ".join([*buffers, *before, *own, *after, "const ulong first_image", "const sum_t cval"])}\
</%def>\
<%def name="declare(PIXELS)">\
<%
    limits = {
        "char": ("SCHAR_MIN", "SCHAR_MAX"),
        "uchar": ("0", "UCHAR_MAX"),
        "short": ("SHRT_MIN", "SHRT_MAX"),
        "ushort": ("0", "USHRT_MAX"),
        "int": ("INT_MIN", "INT_MAX"),
        "uint": ("0", "UINT_MAX"),
        "long": ("LONG_MIN", "LONG_MAX"),
        "ulong": ("0", "ULONG_MAX"),
    }.get(PIXELS.result_t)
    vec = terms.module.vec
    # What is left of a sum is rounded by adding 1.5 * 2^23, or is an integer.
    rounded = "(int)(rest + 0x1.8p23f - 0x1.8p23f)" if PIXELS.sum_t == "float" else "rest"
%>\
${extensions.enable(fp64=PIXELS.sum_t == 'double')}\
typedef ${vec(PIXELS.element_t, 1)} element_t;
typedef ${vec(PIXELS.result_t, 1)} result_t;
typedef ${PIXELS.sum_t} sum_t;
typedef ${"__constant" if PIXELS.constant_weights else "__global const"} sum_t *weights_t;

static inline sum_t load_pixel(__global const element_t *p)
{
    return ${{"half": "vload_half(0, p)", "bool": "*p != 0"}.get(PIXELS.element_t, "*p")};
}

% if PIXELS.long_sums:
/* A sum: high * 2^64 + low, as a signed number of 128 bits. */
typedef struct {
    ulong low;
    ulong high;
} wide_t;

static inline wide_t plus_product(wide_t sum, const sum_t weight, const sum_t value)
{
    const ulong low = (ulong)weight * (ulong)value;
    sum.low += low;
    sum.high += (ulong)mul_hi(weight, value) + (sum.low < low);
% if PIXELS.element_t == "ulong":
    sum.high += value < 0 ? (ulong)weight : 0; /* pixels have no sign */
% endif
    return sum;
}

static inline result_t to_result(const wide_t sum)
{
% if PIXELS.result_t == "bool":
    return (sum.low | sum.high) != 0;
% elif PIXELS.result_t == "ulong":
    return (long)sum.high < 0 ? 0 : sum.high != 0 ? ULONG_MAX : sum.low;
% else:
    const long low = (long)sum.low, high = (long)sum.high;
    const long rest = high == low >> 63 ? low : high < 0 ? LONG_MIN : LONG_MAX;
    return (result_t)clamp(rest, (long)${limits[0]}, (long)${limits[1]});
% endif
}

% elif PIXELS.result_t == "bool":
/* Whether the sum, rounded to the nearest integer, is not zero; NaN is not. */
static inline result_t to_result(const sum_t sum)
{
    return ${f"!(fabs(sum) <= {types.module.literal(0.5, PIXELS.sum_t)})" if PIXELS.sum_t in ("float", "double") else "sum != 0"};
}

% elif limits is not None and PIXELS.sum_t == "double":
/* Round to the nearest, ties to even. Integers keep their low bits (none of them set for an
   infinity or NaN), or stop at the limits. */
static inline result_t to_result(const sum_t sum)
{
% if PIXELS.saturate:
    return convert_${PIXELS.result_t}_sat_rte(sum);
% else:
    const double whole = rint(sum);
    const double rest = isfinite(whole) ? fabs(whole - 0x1p64 * trunc(whole * 0x1p-64)) : 0;
    return (result_t)(whole < 0 ? 0 - (ulong)rest : (ulong)rest);
% endif
}

% elif PIXELS.result_t != "half":
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
static inline void store_pixel(const ${"wide_t" if PIXELS.long_sums else "sum_t"} sum, __global result_t *p)
{
    ${"vstore_half_rte(sum, 0, p);" if PIXELS.result_t == "half" else "*p = to_result(sum);"}
}

/* Return the coordinate in an image of n pixels whose value continues it at i; -1: cval. */
static inline int extend(const int i, const int n)
{
${getattr(boundaries, PIXELS.boundary)(PIXELS.far)}\
}
</%def>\
