## What the kernels of a convolution share: reading and writing pixels, and the image beyond
## its edges.
##
## ELEMENT_T  type of the values read: uchar, short, ushort, half, float, double, int or long
## RESULT_T   type of the values written, one of these
## SUM_T      type of weights and sums: float or double; uint where integers wrap around, as it
##            does so by definition; int or long where they stop at their limits
## BOUNDARY   constant, nearest, reflect, mirror or wrap, as scipy.ndimage names them
## FAR        whether windows reach so far beyond an edge that one reflection is not enough
## SATURATE   whether integer results stop at the limits of their type
## CONSTANT_WEIGHTS  whether the weights lie in constant memory
<%page args="ELEMENT_T, RESULT_T, SUM_T, BOUNDARY, FAR, SATURATE, CONSTANT_WEIGHTS"/>\
<%
    LIMITS = {
        "uchar": ("0", "UCHAR_MAX"), "short": ("SHRT_MIN", "SHRT_MAX"), "ushort": ("0", "USHRT_MAX"),
    }
%>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=SUM_T == 'double'"/>\
typedef ${ELEMENT_T} element_t;
typedef ${RESULT_T} result_t;
typedef ${SUM_T} sum_t;
typedef ${"__constant" if CONSTANT_WEIGHTS else "__global const"} sum_t *weights_t;

static inline sum_t load_pixel(__global const element_t *p)
{
    return ${"vload_half(0, p)" if ELEMENT_T == "half" else "*p"};
}

% if RESULT_T != "half":
/* Round to the nearest, ties to even. Integers keep their low bits (none of them set for an
   infinity or NaN), or stop at the limits. In plain operators, of which compilers make vectors
   where rint and saturating conversions are calls. */
static inline result_t to_result(const sum_t sum)
{
% if RESULT_T not in LIMITS:
    return (result_t)sum;
% else:
% if SATURATE:
    const sum_t least = ${LIMITS[RESULT_T][0]}, most = ${LIMITS[RESULT_T][1]};
    const sum_t rest = sum > least ? sum < most ? sum : most : least;
% elif SUM_T == "float":
    /* A sum of 2^39 is a multiple of 2^16; below, the remainder is exact. */
    const float high = sum * 0x1p-16f;
    const bool small = high > -0x1p23f && high < 0x1p23f;
    const float rest = small ? sum - 0x1p16f * (float)(int)(small ? high : 0) : 0;
% else:
    const sum_t rest = sum;
% endif
    return (result_t)${"(int)(rest + 0x1.8p23f - 0x1.8p23f)" if SUM_T == "float" else "rest"};
% endif
}

% endif
static inline void store_pixel(const sum_t sum, __global result_t *p)
{
    ${"vstore_half_rte(sum, 0, p);" if RESULT_T == "half" else "*p = to_result(sum);"}
}

/* Return the coordinate in an image of n pixels whose value continues it at i; -1: cval. */
static inline int extend(const int i, const int n)
{
% if BOUNDARY == "constant":
    return i >= 0 && i < n ? i : -1;
% elif BOUNDARY == "nearest":
    return clamp(i, 0, n - 1);
% elif BOUNDARY == "wrap":
% if FAR:
    const int k = i % n;
    return k < 0 ? k + n : k;
% else:
    return i < 0 ? i + n : i >= n ? i - n : i;
% endif
% elif BOUNDARY == "reflect":
% if FAR:
    const int r = i % (2 * n);
    const int k = r < 0 ? r + 2 * n : r;
% else:
    const int k = i < 0 ? -1 - i : i;
% endif
    return k < n ? k : 2 * n - 1 - k;
% else:
% if FAR:
    const int period = max(2 * n - 2, 1);
    const int k = abs(i % period);
% else:
    const int k = abs(i);
% endif
    return k < n ? k : 2 * n - 2 - k;
% endif
}
