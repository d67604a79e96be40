/*
 * 2D convolution by Fourier transforms: what is done around the transforms of blocks.
 *
 * Blocks of the image overlap by the filter's size less one. Of the periodic convolution of a
 * block with the filter, the part whose windows stay inside the block is right:
 *
 *      image                        block                        its results
 *      +------------------+         +-------------+              +-----------+ -  STEP_Y rows of
 *      |  +-------------+ |         |             |   transform, |  right    |    STEP_X values
 *      |  | block       | |         | ROWS x      |   multiply,  +-----------+ -
 *      |  |             | |   ->    | COLUMNS     |   back   ->   | periodic  |
 *      |  +-------------+ |         +-------------+              +-------------+
 *      +------------------+
 *
 * Two blocks a, b share a transform of complex numbers a + i b, as the weights are real.
 * Where the image ends a block continues it as the boundary condition says.
 *
 *     blocks_in        two blocks of the image  ->  a + i b
 *     weights_in       weights, 0 elsewhere     ->  a block whose convolution correlates
 *     strengths_of     the spectrum of the weights, its largest magnitude in each row
 *     multiply         spectra of blocks by that of the weights, real and imaginary parts exchanged
 *     blocks_out       b + i a                  ->  what is right of both, and where it is not good
 *     sum_marked       image and weights        ->  results that are not good, summed directly
 *
 * With parts exchanged before and after it, the transform back is the same program as that forth.
 *
 * Rounding spreads over the two blocks, by a few units of the largest pixel times the largest
 * magnitude of the spectrum. Direct sums are off by the magnitudes of their own products alone:
 *
 *      sum |w p|  ------------------------------------------------->
 *                 |  direct sum needed  |  the transform is as good
 *                 0                   bound
 *
 * Results of at least `bound` are taken. Of the others, some products are added up, until their
 * magnitudes have reached it, for which a few do in most images; where they do not, in the dark
 * beside a bright place, the results are marked, LANES of them beside each other together. So
 * they are where they are not finite, as an infinity or NaN spreads over the two blocks, too.
 * A last launch goes over all tiles of ROWS rows of LANES results, and sums those directly that
 * have a mark, as conv2d_register does. It leaves out the products of pixels that are zero, so
 * that black areas cost little.
 *
 * Source: overlap-save, T. G. Stockham, "High-speed convolution and correlation", 1966; two real
 * sequences in one transform, J. W. Cooley, P. A. W. Lewis, P. D. Welch, 1970.
 *
 * The host guarantees: images and results are contiguous: batch, rows, pixels, channels; a
 * work-group owns a row of a pair of blocks, or of the block of weights, one after the other
 * from pair `first_pair` on; blocks are numbered along x, y, channel and image, and there are
 * blocks_x * blocks_y for each channel of an image, `blocks` in all; each block is `rows` x
 * `columns` complex numbers; `loudest` and `strongest` have a number for each row of the pairs and
 * of the block of weights; `marks` has a byte for LANES results of each row of each block; a
 * work-group of sum_marked owns ROWS rows of a block; `result` overlaps no input.
 *
 * ELEMENT_T, RESULT_T, SUM_T, BOUNDARY, FAR, SATURATE, CONSTANT_WEIGHTS: see pixels.cl.mako
 * FLIP      whether the filter is turned by 180 degrees
 * CHANNELS  values of a pixel
 * WG_SIZE   work-items in a work-group
 * LANES     results beside each other that are judged and summed together
 * ROWS      rows of results that an item sums together
 */
<%page args="ELEMENT_T, RESULT_T, SUM_T, BOUNDARY, FAR, SATURATE, CONSTANT_WEIGHTS, FLIP, CHANNELS,
             WG_SIZE, LANES, ROWS"/>\
<%
    TAPS = 8  # between two looks whether magnitudes are enough
    UNROLL = 4  # taps of a row that are written out
    PIECES = 4 if LANES > 1 else 0  # vectors of taps whose pixels are collected at a time


    def vec(type_name, width=LANES):
        return type_name if width == 1 else f"{type_name}{width}"


    def literal(lane_of):
        """A vector, or a number if there is one lane."""
        return lane_of(0) if LANES == 1 else f"({', '.join(map(lane_of, range(LANES)))})"


    def tree(term, first, last):
        """A sum whose terms do not wait for each other."""
        if last - first == 1:
            return term(first)
        middle = (first + last) // 2
        return f"({tree(term, first, middle)} + {tree(term, middle, last)})"


    def lane(vector, l):
        return vector if LANES == 1 else f"{vector}.s{l:x}"


    def at(l):
        return f"load_pixel(source + {l * CHANNELS})"


    def near(l):
        return f"value_at(row, x + {l}, width, cval)"


    packed = LANES > 1 and CHANNELS == 1 and ELEMENT_T == SUM_T
%>\
<%include file="/conv2d/pixels.cl.mako" args="ELEMENT_T=ELEMENT_T, RESULT_T=RESULT_T,
    SUM_T=SUM_T, BOUNDARY=BOUNDARY, FAR=FAR, SATURATE=SATURATE, CONSTANT_WEIGHTS=CONSTANT_WEIGHTS"/>\
#define GROUP __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
typedef ${SUM_T}2 complex_t;
/* PoCL calls what is long, and its own max, as functions, which keep loops from being vectors. */
#define INLINE static inline __attribute__((always_inline))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* Complex number x of a row. Items beside each other move whole ones; a compiler makes vectors of
   the loop of a single item if its numbers are scalars. */
% if WG_SIZE > 1:
#define PUT(row, x, a, b) ((__global complex_t *)(row))[x] = (complex_t)(a, b)
#define RE(row, x) ((__global const complex_t *)(row))[x].x
#define IM(row, x) ((__global const complex_t *)(row))[x].y
% else:
#define PUT(row, x, a, b) do { (row)[2 * (x)] = a; (row)[2 * (x) + 1] = b; } while (0)
#define RE(row, x) (row)[2 * (x)]
#define IM(row, x) (row)[2 * (x) + 1]
% endif

/* Magnitudes as integers, which have the same order and NaN beyond the infinity: compilers make
   vectors of them without leave to ignore NaN. */
% if SUM_T == "float":
typedef uint bits_t;
#define MAGNITUDE_MASK 0x7fffffffu
#define MAGNITUDE(x) (as_uint(x) & MAGNITUDE_MASK)
#define NUMBER(bits) as_float(bits)
#define INFINITE 0x7f800000u
#define SMALLEST FLT_MIN
#define ROUNDING FLT_EPSILON
% else:
typedef ulong bits_t;
#define MAGNITUDE_MASK 0x7ffffffffffffffful
#define MAGNITUDE(x) (as_ulong(x) & MAGNITUDE_MASK)
#define NUMBER(bits) as_double(bits)
#define INFINITE 0x7ff0000000000000ul
#define SMALLEST DBL_MIN
#define ROUNDING DBL_EPSILON
% endif
#define EACH(x, low, high) (int x = (low) + get_local_id(0); x < (high); x += ${WG_SIZE})

/* Where weight (j, i) is. */
INLINE long place_of(const int j, const int i, const int filter_height, const int filter_width)
{
    const long tap = (long)j * filter_width + i;
    return ${"(long)filter_height * filter_width - 1 - tap" if FLIP else "tap"};
}

/* A row of a block of the image: its pixels (0: none of the image), and how x counts in it. */
typedef struct {
    __global const element_t *line;
    int begin;  /* column of the image at which the row begins */
    int last;   /* value of x beyond which nothing is needed */
} row_t;

INLINE row_t row_of(__global const element_t *image, const uint block, const int y,
                    const int height, const int width, const int blocks_y, const int blocks_x,
                    const int step_y, const int step_x, const int last_row, const int last_column,
                    const int offset_y, const int offset_x)
{
    const int block_x = block % blocks_x;
    const int block_y = block / blocks_x % blocks_y;
    const uint plane = block / blocks_x / blocks_y;
    const int row = extend(min(block_y * step_y + y, last_row) + offset_y, height);
    row_t found = {0, block_x * step_x + offset_x, last_column - block_x * step_x};
    if (row >= 0)
        found.line = image + ((ulong)(plane / ${CHANNELS}) * height + row) * width * ${CHANNELS}
                     + plane % ${CHANNELS};
    return found;
}

/* Return between which values of x a row is inside the image. */
INLINE int2 inside(const row_t row, const int columns, const int width)
{
    const int low = clamp(-row.begin, 0, columns);
    return (int2)(low, row.line == 0 ? low : clamp(width - row.begin, low, columns));
}

INLINE sum_t value_at(const row_t row, const int x, const int width, const sum_t cval)
{
    if (x > row.last)
        return 0;
    const int column = extend(x + row.begin, width);
    return row.line == 0 || column < 0 ? cval : load_pixel(row.line + (long)column * ${CHANNELS});
}

## Make `name` the largest that any item of the work-group has.
<%def name="share_largest(name)">\
% if WG_SIZE > 1:
    __local bits_t all_${name}[${WG_SIZE}];
    all_${name}[get_local_id(0)] = ${name};
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < ${WG_SIZE}; ++i)
        ${name} = max(${name}, all_${name}[i]);
% endif
</%def>\
__kernel GROUP
void blocks_in(__global const element_t *restrict image,
               __global sum_t *restrict pairs,
               __global bits_t *restrict loudest,
               const int height,
               const int width,
               const int rows,
               const int columns,
               const int blocks_y,
               const int blocks_x,
               const int step_y,
               const int step_x,
               const int last_row,
               const int last_column,
               const int offset_y,
               const int offset_x,
               const uint blocks,
               const uint first_pair,
               const sum_t cval)
{
    const uint group = get_group_id(0);
    const int y = group % rows;
    const uint first = 2 * (first_pair + group / rows);
    const uint second = min(first + 1, blocks - 1);
    __global sum_t *target = pairs + 2 * get_group_id(0) * columns;
% for name in ("first", "second"):
    const row_t ${name}_row =
        row_of(image, ${name}, y, height, width, blocks_y, blocks_x, step_y, step_x, last_row,
               last_column, offset_y, offset_x);
% endfor
    const int2 first_inside = inside(first_row, columns, width);
    const int2 second_inside = inside(second_row, columns, width);
    const int low = max(first_inside.x, second_inside.x);
    const int high = max(low, min(first_inside.y, second_inside.y));
    __global const element_t *a = first_row.line + (long)first_row.begin * ${CHANNELS};
    __global const element_t *b = second_row.line + (long)second_row.begin * ${CHANNELS};
    for EACH(x, 0, low)
        PUT(target, x, value_at(first_row, x, width, cval), value_at(second_row, x, width, cval));
    for EACH(x, low, high)
        PUT(target, x, load_pixel(a + x * ${CHANNELS}), load_pixel(b + x * ${CHANNELS}));
    for EACH(x, high, columns)
        PUT(target, x, value_at(first_row, x, width, cval), value_at(second_row, x, width, cval));

    bits_t largest = 0;
    for EACH(x, 0, columns)
    {
        const bits_t p = MAGNITUDE(RE(target, x)), q = MAGNITUDE(IM(target, x));
        const bits_t larger = LARGER(p, q);
        largest = LARGER(largest, larger);
    }
    ${share_largest("largest")}
    if (get_local_id(0) == 0)
        loudest[get_group_id(0)] = largest;
}

/* Weight (j, i) stands at (-j, -i), modulo the block, and is divided by the size of the block,
   which the transforms forth and back multiply by. */
__kernel GROUP
void weights_in(const weights_t weights,
                __global sum_t *restrict block,
                const int filter_height,
                const int filter_width,
                const int rows,
                const int columns,
                const sum_t scale)
{
    const int y = get_group_id(0);
    const int j = y == 0 ? 0 : rows - y;
    for EACH(x, 0, columns) {
        const int i = x == 0 ? 0 : columns - x;
        const bool there = j < filter_height && i < filter_width;
        PUT(block + 2 * (size_t)y * columns, x,
            there ? scale * weights[place_of(j, i, filter_height, filter_width)] : 0, 0);
    }
}

/* Squares of magnitudes, of weights that are not divided by the size of the block. */
__kernel GROUP
void strengths_of(__global const sum_t *restrict spectrum,
                  __global bits_t *restrict strongest,
                  const int columns,
                  const sum_t size)
{
    __global const sum_t *source = spectrum + 2 * (size_t)get_group_id(0) * columns;
    bits_t largest = 0;
    for EACH(x, 0, columns) {
        const sum_t a = size * RE(source, x), b = size * IM(source, x);
        const bits_t square = MAGNITUDE(a * a + b * b);
        largest = LARGER(largest, square);
    }
    ${share_largest("largest")}
    if (get_local_id(0) == 0)
        strongest[get_group_id(0)] = largest;
}

__kernel GROUP
void multiply(__global sum_t *restrict pairs,
              __global const sum_t *restrict spectrum,
              const int rows,
              const int columns)
{
    __global sum_t *target = pairs + 2 * get_group_id(0) * columns;
    __global const sum_t *factor = spectrum + 2 * (size_t)((uint)get_group_id(0) % rows) * columns;
    for EACH(x, 0, columns) {
        const sum_t a = RE(target, x), b = IM(target, x);
        const sum_t c = RE(factor, x), d = IM(factor, x);
        PUT(target, x, a * d + b * c, a * c - b * d);
    }
}

/* Return what the magnitudes of a sum have to come to for the transform to be as good.

   What is lost below the range of the type counts as well, at each of the `size` points of a
   block. A bound of up to `hidden` means errors that the last rounding hides. */
INLINE bits_t bound_of(const bits_t loudest, const bits_t strongest, const sum_t share,
                       const sum_t size, const sum_t hidden)
{
    if (loudest == 0)
        return 0;
    const sum_t least = SMALLEST / ROUNDING;
    const sum_t bound = share * (sqrt(NUMBER(strongest) + SMALLEST) * (NUMBER(loudest) + least)
                                 + size * least);
    return bound <= hidden ? 0 : MAGNITUDE(bound);
}

#define ROW(j) row_of(image, block, y + (j), height, width, blocks_y, blocks_x, step_y, step_x, \
                      last_row, last_column, offset_y, offset_x)
#define WHOLE(row) ((row).line != 0 && x + (row).begin >= 0 \
                    && x + (row).begin + ${LANES} + filter_width - 1 <= width \
                    && x + ${LANES} + filter_width - 2 <= (row).last)

#define AT(j, i) place_of(j, i, filter_height, filter_width)
#define INSIDE_PRODUCT(i) (weights[AT(j, i)] * pixels_inside(row, x + (i)))
#define SIZE(lanes) LANE_NUMBERS(LANE_MAGNITUDES(lanes))

/* A result is good if its sum is, or if the magnitudes of some of its products are. */
#define GOOD(sum) (MAGNITUDE(sum) >= bound && MAGNITUDE(sum) < INFINITE)

/* Results beside each other, which are judged and summed together. */
typedef ${vec(SUM_T)} lanes_t;
typedef ${vec("uint" if SUM_T == "float" else "ulong")} lane_bits_t;
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
    const ${vec("uint" if SUM_T == "float" else "ulong", half)} any${half} =
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
    const lane_bits_t numbers = (lane_bits_t)${literal(str)};
    const lane_bits_t needed = ALL_BITS(numbers < (uint)count);
    const lane_bits_t sizes = LANE_MAGNITUDES(sums);
    return LANE_NUMBERS(sizes & needed & ALL_BITS(sizes >= bound) | bound & ~needed);
}

/* Return sums of one of the two blocks from x on. */
% for part, half in (("RE", "even"), ("IM", "odd")):
INLINE lanes_t lanes_${part}(__global const sum_t *row, const int x)
{
% if LANES == 1:
    return ${part}(row, x);
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
% if packed:
    return LOAD_LANES(source);
% else:
    return (lanes_t)${literal(at)};
% endif
}

/* What `marks` say: fine; sum anew; also the products of zeros, as the factors may be NaN. */
enum { FINE, BAD, BAD_FACTORS };
#define MARKS_OF(block, y) (marks + ((size_t)(block) * step_y + (y)) * ((step_x + ${LANES - 1}) / ${LANES}))

__kernel GROUP
void blocks_out(__global const sum_t *restrict pairs,
                __global const element_t *restrict image,
                const weights_t weights,
                __global result_t *restrict result,
                __global uchar *restrict marks,
                __global const bits_t *restrict loudest,
                __global const bits_t *restrict strongest,
                const int height,
                const int width,
                const int filter_height,
                const int filter_width,
                const int rows,
                const int columns,
                const int blocks_y,
                const int blocks_x,
                const int step_y,
                const int step_x,
                const int out_height,
                const int out_width,
                const int offset_y,
                const int offset_x,
                const uint blocks,
                const uint first_pair,
                const sum_t cval,
                const sum_t share,
                const sum_t hidden)
{
    const uint group = get_group_id(0);
    const int y = group % step_y;
    const uint pair = group / step_y;
    __global const sum_t *source = pairs + 2 * ((size_t)pair * rows + y) * columns;
    const int last_row = out_height + filter_height - 2, last_column = out_width + filter_width - 2;
    const int most = 3 + filter_height / 32;  /* rows: more cost more than they save */

    bits_t loud = 0, strong = 0;
    for EACH(i, 0, rows) {
        loud = LARGER(loud, loudest[pair * rows + i]);
        strong = LARGER(strong, strongest[i]);
    }
    ${share_largest("loud")}
    ${share_largest("strong")}
    const bits_t bound = bound_of(loud, strong, share, (sum_t)rows * columns, hidden);
% for part, value in enumerate(("IM", "RE")):
    {
        const uint block = 2 * (first_pair + pair) + ${part};
        const int out_x = block % blocks_x * step_x;
        const int out_y = block / blocks_x % blocks_y * step_y + y;
        const uint plane = block / blocks_x / blocks_y;
        if (block < blocks && out_y < out_height) {
            __global result_t *target =
                result + plane % ${CHANNELS}
                + (((ulong)(plane / ${CHANNELS}) * out_height + out_y) * out_width + out_x)
                  * ${CHANNELS};
            const int count = min(step_x, out_width - out_x);
            int good = 1;
            for EACH(x, 0, count) {
                const sum_t sum = ${value}(source, x);
                good &= GOOD(sum);
                store_pixel(sum, target + x * ${CHANNELS});
            }

            __global uchar *marked = MARKS_OF(block, y);
            for (int x = ${LANES} * get_local_id(0); x < count; x += ${LANES * WG_SIZE}) {
                if (good) {
                    marked[x / ${LANES}] = FINE;
                    continue;
                }
                /* From the middle on, add magnitudes of some of the products. */
                bool enough = false;
                if (bound < INFINITE) {
                    lanes_t sums = known_of(lanes_${value}(source, x), count - x, bound);
                    enough = all_good(sums, bound);
                    for (int k = 0; k <= most && !enough; ++k) {
                        const int down = filter_height / 2 + k;
                        const int j = down < filter_height ? down : down - filter_height;
                        const row_t row = ROW(j);
                        if (!WHOLE(row))
                            continue;
                        int i = k == 0 ? filter_width / 2 : 0;
                        for (; i + ${TAPS} <= filter_width && !enough; i += ${TAPS}) {
                            sums += ${tree(lambda t: f"SIZE(INSIDE_PRODUCT(i + {t}))", 0, TAPS)};
                            enough = all_good(sums, bound);
                        }
                    }
                }
                marked[x / ${LANES}] = enough ? FINE : bound < INFINITE ? BAD : BAD_FACTORS;
            }
        }
    }
% endfor
}

## Add the products of the pixels that are collected to the results of rows `chosen`.
<%def name="products(chosen)">\
                    int i = 0;
% for together in (UNROLL, 1) if LANES > 1 else (1,):
                    for (; i + ${together} <= taps; i += ${together}) {
% for t in range(together):
                        {
                            const lanes_t p = ${"strip" if LANES == 1 else f"((__private const packed_t *)(strip + i + {t}))->v"};
% for o in chosen:
                            sum_${o} += w_${o}[${"-" if FLIP else ""}(i + ${t})] * p;
% endfor
                        }
% endfor
                    }
% endfor
</%def>\
__kernel GROUP
void sum_marked(__global const element_t *restrict image,
                const weights_t weights,
                __global result_t *restrict result,
                __global const uchar *restrict marks,
                const int height,
                const int width,
                const int filter_height,
                const int filter_width,
                const int blocks_y,
                const int blocks_x,
                const int step_y,
                const int step_x,
                const int out_height,
                const int out_width,
                const int offset_y,
                const int offset_x,
                const uint blocks,
                const sum_t cval)
{
    const int tiles = (step_y + ${ROWS - 1}) / ${ROWS};
    const uint block = get_group_id(0) / tiles;
    const int y = get_group_id(0) % tiles * ${ROWS};
    const int out_x = block % blocks_x * step_x;
    const int out_y = block / blocks_x % blocks_y * step_y;
    const uint plane = block / blocks_x / blocks_y;
    const int last_row = out_height + filter_height - 2, last_column = out_width + filter_width - 2;
    const int count = min(step_x, out_width - out_x);
    const int rows = min(${ROWS}, min(step_y, out_height - out_y) - y);
    __global result_t *target =
        result + plane % ${CHANNELS}
        + (((ulong)(plane / ${CHANNELS}) * out_height + out_y + y) * out_width + out_x)
          * ${CHANNELS};

    for (int x = ${LANES} * get_local_id(0); x < count; x += ${LANES * WG_SIZE}) {
        uchar mark = FINE;
        for (int o = 0; o < rows; ++o)
            mark |= MARKS_OF(block, y + o)[x / ${LANES}];
        if (mark == FINE)
            continue;
% for o in range(ROWS):
        lanes_t sum_${o} = 0;
% endfor
        for (int r = 0; r < filter_height + rows - 1; ++r) {
            const row_t row = ROW(r);
            for (int first = 0; first < filter_width; first += ${max(1, PIECES * LANES)}) {
                const int taps = min(${max(1, PIECES * LANES)}, filter_width - first);
% if LANES == 1:
                const sum_t strip = value_at(row, x + first, width, cval);
                const bool dark = strip == 0;
% else:
                /* Collect the pixels under the results, for these taps. */
                sum_t strip[${(PIECES + 1) * LANES}];
                const int vectors = (taps + ${2 * LANES - 2}) / ${LANES};
                const int from = x + first, past = from + vectors * ${LANES};
                lane_bits_t any = 0;
                if (row.line != 0 && from + row.begin >= 0 && past + row.begin <= width
                    && past <= row.last + 1) {
                    for (int v = 0; v < vectors; ++v) {
                        const lanes_t some = pixels_inside(row, from + v * ${LANES});
                        ((__private packed_t *)(strip + v * ${LANES}))->v = some;
                        any |= LANE_MAGNITUDES(some);
                    }
                } else {
                    bits_t bits = 0;
                    for (int k = 0; k < vectors * ${LANES}; ++k) {
                        strip[k] = value_at(row, from + k, width, cval);
                        bits |= MAGNITUDE(strip[k]);
                    }
                    any = bits;
                }
                const bool dark = !any_of(any);
% endif
                if (dark && !(mark & BAD_FACTORS))
                    continue;
% for o in range(ROWS):
                const weights_t w_${o} = weights + AT(r - ${o}, first);
% endfor
                if (r >= ${ROWS - 1} && r < filter_height) {
${products(range(ROWS))}\
                } else {
% for o in range(ROWS):
                    if (r >= ${o} && r < filter_height + ${o}) {
${products([o])}\
                    }
% endfor
                }
            }
        }
% for o in range(ROWS):
% for l in range(LANES):
        if (${o} < rows && x + ${l} < count)
            store_pixel(${lane(f"sum_{o}", l)}, target + (${o} * (long)out_width + x + ${l}) * ${CHANNELS});
% endfor
% endfor
    }
}
