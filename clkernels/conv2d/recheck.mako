## Which results of a transform are doubtful, and the vectors in which they are judged: see
## fft.cl.mako, which draws the bound.
##
##   bound_of       what the magnitudes of a sum have to come to for the transform to be as good
##   GOOD(sum)      whether that is certain from the result alone
##   lanes_t        LANES results beside each other, or their magnitudes
##   known_of       what is known of their magnitudes before any product is
##   MOST_PRODUCTS  how many magnitudes are added up before a result counts as doubtful
##   MARKS_OF       the marks of a row of a block, one for LANES results
##
## PIXELS    types: see pixels.mako
## CHANNELS  values of a pixel
## LANES     results beside each other that are judged and summed together
<%namespace name="terms" file="terms.mako"/>\
<%def name="declare(PIXELS, CHANNELS, LANES)">\
<%
    vec, listed = terms.module.vec, terms.module.listed
    bits_t = "uint" if PIXELS.sum_t == "float" else "ulong"
%>\
/* Return what the magnitudes of a sum have to come to for the transform to be as good.

   What is lost below the range of the type counts as well, at each of the `size` points of a
   block. A bound of up to `hidden` means errors that the last rounding hides. */
INLINE bits_t bound_of(const bits_t pixel_peak, const bits_t spectrum_peak, const sum_t share,
                       const sum_t size, const sum_t hidden)
{
    if (pixel_peak == 0)
        return 0;
    const sum_t least = SMALLEST / ROUNDING;
    const sum_t bound = share * (sqrt(NUMBER(spectrum_peak) + SMALLEST) * (NUMBER(pixel_peak) + least)
                                 + size * least);
    return bound <= hidden ? 0 : MAGNITUDE(bound);
}

/* More products than this, whose magnitudes are added up for a result, cost more than they save.
   Half of the middle row is left out. */
#define TAPS ((long)filter_height * filter_width)
#define MOST_PRODUCTS (int)min(max(256L, TAPS / 8), TAPS - filter_width / 2)

#define AT(j, i) place_of(j, i, filter_height, filter_width)
#define INSIDE_PRODUCT(i) (weights[AT(j, i)] * pixels_inside(row, x + (i)))
#define SIZE(lanes) LANE_NUMBERS(LANE_MAGNITUDES(lanes))

/* A result is good if its sum is, or if the magnitudes of some of its products are. */
#define GOOD(sum) (MAGNITUDE(sum) >= bound && MAGNITUDE(sum) < INFINITE)

/* Results beside each other, which are judged and summed together. */
typedef ${vec(PIXELS.sum_t, LANES)} lanes_t;
typedef ${vec(bits_t, LANES)} lane_bits_t;
#define LANE_BITS(lanes) __builtin_astype(lanes, lane_bits_t)
#define LANE_NUMBERS(bits) __builtin_astype(bits, lanes_t)
#define LANE_MAGNITUDES(lanes) (LANE_BITS(lanes) & MAGNITUDE_MASK)
% if LANES > 1:
typedef struct { lanes_t v; } __attribute__((packed, aligned(sizeof(sum_t)))) packed_t;
#define LOAD_LANES(p) ((__global const packed_t *)(p))->v
#define ALL_BITS(condition) LANE_BITS(condition)
% else:
#define ALL_BITS(condition) -(bits_t)(condition)
% endif

/* Whether any bit of any lane is set. */
INLINE bool any_of(const lane_bits_t any${LANES})
{
% for half in (LANES >> k for k in range(1, LANES.bit_length())):
    const ${vec(bits_t, half)} any${half} =
        any${2 * half}.lo | any${2 * half}.hi;
% endfor
    return any1 != 0;
}

/* Whether all are good, for a bound that is finite. */
INLINE bool all_good(const lanes_t sums, const bits_t bound)
{
    return !any_of(ALL_BITS(LANE_BITS(sums) - bound >= INFINITE - bound));
}

/* Return what is known of the magnitudes of sums before any product is: enough where a sum is
   good, or not needed as not the first `count`; never enough where it is not finite. */
INLINE lanes_t known_of(const lanes_t sums, const int count, const bits_t bound)
{
    const lane_bits_t numbers = (lane_bits_t)${listed([str(l) for l in range(LANES)])};
    const lane_bits_t needed = ALL_BITS(numbers < (uint)count);
    const lane_bits_t sizes = LANE_MAGNITUDES(sums);
    return LANE_NUMBERS(sizes & needed & ALL_BITS(sizes >= bound) | bound & ~needed);
}

/* Return sums of one of the two blocks from x on. */
% for component, half in (("RE", "even"), ("IM", "odd")):
INLINE lanes_t lanes_${component}(__global const sum_t *row, const int x)
{
% if LANES == 1:
    return ${component}(row, x);
% else:
    const lanes_t low = LOAD_LANES(row + 2 * x), high = LOAD_LANES(row + 2 * x + ${LANES});
    return (lanes_t)(low.${half}, high.${half});
% endif
}

% endfor
/* Return the pixels of a row from x on, all of which are inside the image. */
INLINE lanes_t pixels_inside(const row_t row, const int x)
{
    __global const element_t *source = row.line + (long)(row.begin + x) * ${CHANNELS};
% if LANES > 1 and CHANNELS == 1 and PIXELS.element_t == PIXELS.sum_t:
    return LOAD_LANES(source);
% else:
    return (lanes_t)${listed([f"load_pixel(source + {l * CHANNELS})" for l in range(LANES)])};
% endif
}

/* What `marks` say: fine; sum anew; also the products of zeros, as the factors may be NaN. */
enum { FINE, DOUBTFUL, DOUBTFUL_FACTORS };
#define MARKS_OF(block, y) (marks + ((size_t)(block) * valid_y + (y)) * ((valid_x + ${LANES - 1}) / ${LANES}))
</%def>\
