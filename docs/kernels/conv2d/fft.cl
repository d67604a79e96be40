/*
 * An example of clkernels/conv2d/fft.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       conv2d size=1000 ksize=31
 *     algorithm     adaptive
 *     configuration BLOCK=256 PAIRS=291 WG_SIZE=64
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        load_filter, (15360,) items in groups of (64,)
 */
/*
 * 2D convolution by Fourier transforms: what is done around the transforms of blocks.
 *
 * Blocks of the image overlap by the filter's size less one. Of the periodic convolution of a
 * block with the filter, those values are valid whose windows stay inside the block:
 *
 *      image                        block                        its results
 *      +------------------+         +-------------+              +-----------+ -  VALID_Y rows of
 *      |  +-------------+ |         |             |   transform, |  valid    |    VALID_X values
 *      |  | block       | |         | ROWS x      |   multiply,  +-----------+ -
 *      |  |             | |   ->    | COLUMNS     |   back   ->   | periodic  |
 *      |  +-------------+ |         +-------------+              +-------------+
 *      +------------------+
 *
 * Two blocks a, b share a transform of complex numbers a + i b, as the weights are real.
 * Where the image ends a block continues it as the boundary condition says.
 *
 *     fft_numbers.mako    complex numbers in memory, and magnitudes as integers
 *     fft_blocks.mako     where blocks and weights lie
 *     fft_load.mako       load_blocks       two blocks of the image  ->  a + i b
 *                         load_filter       weights, 0 elsewhere     ->  a block that correlates
 *     fft_spectra.mako    find_peaks        the largest magnitudes of the filter's spectrum
 *                         multiply_spectra  blocks by the filter, and exchange of the components
 *     recheck.mako        which results are doubtful
 *     fft_look.mako       look_peaks, look_results   whether transforms are worth it
 *     fft_store.mako      store_blocks      b + i a  ->  what is valid of both, and marks
 *     recheck_sums.mako   sum_doubtful      image and weights  ->  marked results, summed directly
 *
 * With real and imaginary components exchanged before and after it, the transform back is the same
 * program as that forth.
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
 * beside a bright place, the results are marked as doubtful, LANES neighbours together. So are
 * those that are not finite, as an infinity or NaN spreads over the two blocks, too.
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
 * `columns` complex numbers; `pixel_peak` and `spectrum_peak` have a number for each row of the
 * pairs and of the block of weights; `marks` has a byte for LANES results of each row of each
 * block; a work-group of sum_doubtful owns ROWS rows of a block; `result` overlaps no input. Of the
 * look: the first `rows` work-groups of look_peaks own a row of the spectrum each, the others every
 * `row_step`-th row of every `pair_step`-th pair, and `looked_peak` has a number for these; there are
 * `samples` work-groups of look_results for each of these pairs, at most 511 in all; `arrived` is zero
 * before and after; `by_transforms` and `by_sums` are a word each.
 *
 * PIXELS    types, boundary condition and filter: see pixels.mako
 * CHANNELS  values of a pixel
 * WG_SIZE   work-items in a work-group
 * LANES     results beside each other that are judged and summed together
 * ROWS      rows of results that an item sums together
 * CONDITIONAL  whether a look at the image may call off the kernels that follow
 */
typedef float element_t;
typedef float result_t;
typedef float sum_t;
typedef __global const sum_t *weights_t;

static inline sum_t load_pixel(__global const element_t *p)
{
    return *p;
}

/* Round to the nearest, ties to even. Integers keep their low bits (none of them set for an
   infinity or NaN), or stop at the limits. In plain operators, of which compilers make vectors
   where rint and saturating conversions are calls. */
static inline result_t to_result(const sum_t sum)
{
    return (result_t)sum;
}

static inline void store_pixel(const sum_t sum, __global result_t *p)
{
    *p = to_result(sum);
}

/* Return the coordinate in an image of n pixels whose value continues it at i; -1: cval. */
static inline int extend(const int i, const int n)
{
    return i >= 0 && i < n ? i : -1;
}
#define GROUP __attribute__((reqd_work_group_size(64, 1, 1)))
typedef float2 complex_t;
/* PoCL calls what is long, which keeps loops from being vectors and arrays from being registers. */
#define INLINE static inline __attribute__((always_inline))
/* PoCL calls its own max as a function, too. */
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* Complex number x of a row. Items beside each other move whole ones; a compiler makes vectors of
   the loop of a single item if its numbers are scalars. */
#define PUT(row, x, a, b) ((__global complex_t *)(row))[x] = (complex_t)(a, b)
#define RE(row, x) ((__global const complex_t *)(row))[x].x
#define IM(row, x) ((__global const complex_t *)(row))[x].y

typedef uint bits_t;
#define MAGNITUDE_MASK 0x7fffffffu
#define MAGNITUDE(x) (as_uint(x) & MAGNITUDE_MASK)
#define NUMBER(bits) as_float(bits)
#define INFINITE 0x7f800000u
#define SMALLEST FLT_MIN
#define ROUNDING FLT_EPSILON

#define EACH(x, low, high) (int x = (low) + get_local_id(0); x < (high); x += 64)

/* Where weight (j, i) is. */
INLINE long place_of(const int j, const int i, const int filter_height, const int filter_width)
{
    const long tap = (long)j * filter_width + i;
    return tap;
}

/* A row of a block of the image: its pixels (0: none of the image), and how x counts in it. */
typedef struct {
    __global const element_t *line;
    int begin;  /* column of the image at which the row begins */
    int last;   /* value of x beyond which nothing is needed */
} row_t;

INLINE row_t row_of(__global const element_t *image, const uint block, const int y,
                    const int height, const int width, const int blocks_y, const int blocks_x,
                    const int valid_y, const int valid_x, const int last_row, const int last_column,
                    const int offset_y, const int offset_x)
{
    const int block_x = block % blocks_x;
    const int block_y = block / blocks_x % blocks_y;
    const uint plane = block / blocks_x / blocks_y;
    const int row = extend(min(block_y * valid_y + y, last_row) + offset_y, height);
    row_t found = {0, block_x * valid_x + offset_x, last_column - block_x * valid_x};
    if (row >= 0)
        found.line = image + ((ulong)(plane / 1) * height + row) * width * 1
                     + plane % 1;
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
    return row.line == 0 || column < 0 ? cval : load_pixel(row.line + (long)column * 1);
}

__kernel GROUP
void load_blocks(__global const uint *restrict wanted, __global const element_t *restrict image,
                 __global sum_t *restrict pairs,
                 __global bits_t *restrict pixel_peak,
                 const int height,
                 const int width,
                 const int rows,
                 const int columns,
                 const int blocks_y,
                 const int blocks_x,
                 const int valid_y,
                 const int valid_x,
                 const int last_row,
                 const int last_column,
                 const int offset_y,
                 const int offset_x,
                 const uint blocks,
                 const uint first_pair,
                 const sum_t cval)
{
    if (*wanted == 0)
        return;
    const uint group = get_group_id(0);
    const int y = group % rows;
    const uint first = 2 * (first_pair + group / rows);
    const uint second = min(first + 1, blocks - 1);
    __global sum_t *target = pairs + 2 * get_group_id(0) * columns;
    const row_t first_row =
        row_of(image, first, y, height, width, blocks_y, blocks_x, valid_y, valid_x, last_row,
               last_column, offset_y, offset_x);
    const row_t second_row =
        row_of(image, second, y, height, width, blocks_y, blocks_x, valid_y, valid_x, last_row,
               last_column, offset_y, offset_x);
    const int2 first_inside = inside(first_row, columns, width);
    const int2 second_inside = inside(second_row, columns, width);
    const int low = max(first_inside.x, second_inside.x);
    const int high = max(low, min(first_inside.y, second_inside.y));
    __global const element_t *a = first_row.line + (long)first_row.begin * 1;
    __global const element_t *b = second_row.line + (long)second_row.begin * 1;
    for EACH(x, 0, low)
        PUT(target, x, value_at(first_row, x, width, cval), value_at(second_row, x, width, cval));
    for EACH(x, low, high)
        PUT(target, x, load_pixel(a + x * 1), load_pixel(b + x * 1));
    for EACH(x, high, columns)
        PUT(target, x, value_at(first_row, x, width, cval), value_at(second_row, x, width, cval));

    barrier(CLK_GLOBAL_MEM_FENCE); /* other items may have put a pixel */
    bits_t largest = 0;
    for EACH(x, 0, columns)
    {
        const bits_t p = MAGNITUDE(RE(target, x)), q = MAGNITUDE(IM(target, x));
        const bits_t larger = LARGER(p, q);
        largest = LARGER(largest, larger);
    }
    __local bits_t all_largest[64];
    all_largest[get_local_id(0)] = largest;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 64; ++i)
        largest = max(largest, all_largest[i]);

    if (get_local_id(0) == 0)
        pixel_peak[get_group_id(0)] = largest;
}

/* Weight (j, i) stands at (-j, -i), modulo the block, and is divided by the size of the block,
   which the transforms forth and back multiply by. */
__kernel GROUP
void load_filter(const weights_t weights,
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

/* Return the largest square of a magnitude that an item finds in a row of the spectrum, of weights
   that are not divided by the size of the block. */
INLINE bits_t largest_square(__global const sum_t *spectrum, const int y, const int columns,
                             const sum_t size)
{
    __global const sum_t *source = spectrum + 2 * (size_t)y * columns;
    bits_t largest = 0;
    for EACH(x, 0, columns) {
        const sum_t a = size * RE(source, x), b = size * IM(source, x);
        const bits_t square = MAGNITUDE(a * a + b * b);
        largest = LARGER(largest, square);
    }
    return largest;
}

__kernel GROUP
void find_peaks(__global const sum_t *restrict spectrum,
                __global bits_t *restrict spectrum_peak,
                const int columns,
                const sum_t size)
{
    bits_t largest = largest_square(spectrum, get_group_id(0), columns, size);
    __local bits_t all_largest[64];
    all_largest[get_local_id(0)] = largest;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 64; ++i)
        largest = max(largest, all_largest[i]);

    if (get_local_id(0) == 0)
        spectrum_peak[get_group_id(0)] = largest;
}

__kernel GROUP
void multiply_spectra(__global const uint *restrict wanted, __global sum_t *restrict pairs,
                      __global const sum_t *restrict spectrum,
                      const int rows,
                      const int columns)
{
    if (*wanted == 0)
        return;
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

#define ROW(j) row_of(image, block, y + (j), height, width, blocks_y, blocks_x, valid_y, valid_x, \
    last_row, last_column, offset_y, offset_x)

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
typedef float lanes_t;
typedef uint lane_bits_t;
#define LANE_BITS(lanes) __builtin_astype(lanes, lane_bits_t)
#define LANE_NUMBERS(bits) __builtin_astype(bits, lanes_t)
#define LANE_MAGNITUDES(lanes) (LANE_BITS(lanes) & MAGNITUDE_MASK)
#define ALL_BITS(condition) -(bits_t)(condition)

/* Whether any bit of any lane is set. */
INLINE bool any_of(const lane_bits_t any1)
{
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
    const lane_bits_t numbers = (lane_bits_t)0;
    const lane_bits_t needed = ALL_BITS(numbers < (uint)count);
    const lane_bits_t sizes = LANE_MAGNITUDES(sums);
    return LANE_NUMBERS(sizes & needed & ALL_BITS(sizes >= bound) | bound & ~needed);
}

/* Return sums of one of the two blocks from x on. */
INLINE lanes_t lanes_RE(__global const sum_t *row, const int x)
{
    return RE(row, x);
}

INLINE lanes_t lanes_IM(__global const sum_t *row, const int x)
{
    return IM(row, x);
}

/* Return the pixels of a row from x on, all of which are inside the image. */
INLINE lanes_t pixels_inside(const row_t row, const int x)
{
    __global const element_t *source = row.line + (long)(row.begin + x) * 1;
    return (lanes_t)load_pixel(source + 0);
}

/* What `marks` say: fine; sum anew; also the products of zeros, as the factors may be NaN. */
enum { FINE, DOUBTFUL, DOUBTFUL_FACTORS };
#define MARKS_OF(block, y) (marks + ((size_t)(block) * valid_y + (y)) * ((valid_x + 0) / 1))

/* The first groups take the rows of the spectrum, as find_peaks does, the others those of the image. */
__kernel GROUP
void look_peaks(__global const element_t *restrict image,
                __global const sum_t *restrict spectrum,
                __global bits_t *restrict looked_peak,
                __global bits_t *restrict spectrum_peak,
                const int height,
                const int width,
                const int rows,
                const int columns,
                const int blocks_y,
                const int blocks_x,
                const int valid_y,
                const int valid_x,
                const int last_row,
                const int last_column,
                const int offset_y,
                const int offset_x,
                const uint blocks,
                const uint pair_step,
                const uint row_step,
                const uint looked_rows,
                const sum_t size,
                const sum_t cval)
{
    const bool of_image = get_group_id(0) >= rows;
    const uint group = get_group_id(0) - (of_image ? rows : 0);
    bits_t largest = 0;
    if (of_image) {
        const int y = group % looked_rows * row_step;
        const uint first = 2 * (group / looked_rows * pair_step);
        for (uint block = first; block < min(first + 2, blocks); ++block) {
            const row_t row = row_of(image, block, y, height, width, blocks_y, blocks_x, valid_y,
                                     valid_x, last_row, last_column, offset_y, offset_x);
            const int2 within = inside(row, columns, width);
            __global const element_t *pixels = row.line + (long)row.begin * 1;
            for EACH(x, within.x, within.y) {
                const bits_t magnitude = MAGNITUDE(load_pixel(pixels + x * 1));
                largest = LARGER(largest, magnitude);
            }
            if (within.y - within.x < min(columns, row.last + 1))
                largest = LARGER(largest, MAGNITUDE(cval));
        }
    } else {
        largest = largest_square(spectrum, group, columns, size);
    }
    __local bits_t all_largest[64];
    all_largest[get_local_id(0)] = largest;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 64; ++i)
        largest = max(largest, all_largest[i]);

    if (get_local_id(0) == 0)
        (of_image ? looked_peak : spectrum_peak)[group] = largest;
}

/* Costs are in products of a direct sum: `check` for one whose magnitude is added, `again` for one of
   a doubtful result, and `limit` of a result. `arrived` is zero before and after. */
__kernel GROUP
void look_results(__global const element_t *restrict image,
                  const weights_t weights,
                  __global const bits_t *restrict looked_peak,
                  __global const bits_t *restrict spectrum_peak,
                  volatile __global uint *restrict arrived,
                  __global uint *restrict by_transforms,
                  __global uint *restrict by_sums,
                  const int height,
                  const int width,
                  const int filter_height,
                  const int filter_width,
                  const int rows,
                  const int columns,
                  const int blocks_y,
                  const int blocks_x,
                  const int valid_y,
                  const int valid_x,
                  const int out_height,
                  const int out_width,
                  const int offset_y,
                  const int offset_x,
                  const uint blocks,
                  const uint pair_step,
                  const uint looked_rows,
                  const uint samples,
                  const sum_t share,
                  const sum_t hidden,
                  const sum_t check,
                  const sum_t again,
                  const sum_t limit)
{
    const uint group = get_group_id(0), looked = group / samples;
    bits_t pixel_peak = 0, filter_peak = 0;
    for EACH(i, 0, looked_rows)
        pixel_peak = LARGER(pixel_peak, looked_peak[looked * looked_rows + i]);
    for EACH(i, 0, rows)
        filter_peak = LARGER(filter_peak, spectrum_peak[i]);
    __local bits_t all_pixel_peak[64];
    all_pixel_peak[get_local_id(0)] = pixel_peak;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 64; ++i)
        pixel_peak = max(pixel_peak, all_pixel_peak[i]);

    __local bits_t all_filter_peak[64];
    all_filter_peak[get_local_id(0)] = filter_peak;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 64; ++i)
        filter_peak = max(filter_peak, all_filter_peak[i]);

    const bits_t bound = bound_of(pixel_peak, filter_peak, share, (sum_t)rows * columns, hidden);

    /* Places that cover the block evenly: multiples of the golden ratio, and of the plastic number. */
    const int last_row = out_height + filter_height - 2, last_column = out_width + filter_width - 2;
    const uint block = min(2 * looked * pair_step + group % 2, blocks - 1);
    const int out_x = block % blocks_x * valid_x, out_y = block / blocks_x % blocks_y * valid_y;
    const int count_x = min(valid_x, out_width - out_x), count_y = min(valid_y, out_height - out_y);
    const int first_x = (group * 3242174889u >> 16) * (uint)max(1, count_x - 4) >> 16;
    const int x = first_x + (int)get_local_id(0) % 4 * 1;
    const int y = (group * 2654435769u >> 16) * (uint)count_y >> 16;
    lanes_t sum = 0, sizes = 0;
    const int part = get_local_id(0) / 4;
    for (int j = part < 16 ? part : filter_height; j < filter_height; j += 16) {
        const row_t row = ROW(j);
        const int begin = x + row.begin;
        const int high = row.line == 0 ? 0 : min(filter_width, width - 0 - begin);
        int i = max(0, -begin);
        for (; i + 4 <= high; i += 4) {
            const lanes_t product_0 = INSIDE_PRODUCT(i + 0);
            const lanes_t product_1 = INSIDE_PRODUCT(i + 1);
            const lanes_t product_2 = INSIDE_PRODUCT(i + 2);
            const lanes_t product_3 = INSIDE_PRODUCT(i + 3);
            sum += ((product_0 + product_1) + (product_2 + product_3));
            sizes += ((SIZE(product_0) + SIZE(product_1)) + (SIZE(product_2) + SIZE(product_3)));
        }
        for (; i + 1 <= high; i += 1) {
            const lanes_t product_0 = INSIDE_PRODUCT(i + 0);
            sum += product_0;
            sizes += SIZE(product_0);
        }
    }

    /* The one of these neighbours that needs the most products decides, as vectors are judged as a
       whole, and items of a GPU wait for each other. */
    __local sum_t sums[64], all_sizes[64];
    sums[get_local_id(0)] = sum;
    all_sizes[get_local_id(0)] = sizes;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        const sum_t most = MOST_PRODUCTS, taps = (sum_t)filter_height * filter_width;
        sum_t worst = 0;
        bool anew = false;
        for (int l = 0; l < min(4, count_x - first_x); ++l) {
            sum_t total = 0, size = 0;
            for (int k = l; k < 64; k += 4) {
                total += sums[k];
                size += all_sizes[k];
            }
            if (GOOD(total))
                continue;
            const bool finite = bound < INFINITE && MAGNITUDE(size) < INFINITE;
            const sum_t needed = finite ? NUMBER(bound) / size * taps : most + 1;
            worst = LARGER(worst, min(needed, most));
            /* Products of zeros are left out, unless weights are infinite or an infinity spreads. */
            anew |= needed > most && (size != 0 || bound >= INFINITE);
        }
        const sum_t cost = worst * check + (anew ? taps * again : 0);

        /* One number has the costs, as shares of the largest, and how many groups have come. */
        const sum_t unit = (most * check + taps * again) / 16384;
        const uint mine = 8388608 + (uint)(cost / unit);
        const uint all = atomic_add(arrived, mine) + mine;
        if (all >> 23 == get_num_groups(0)) {
            const bool worth = (all & 8388607) * unit <= limit * get_num_groups(0);
            by_transforms[0] = worth;
            by_sums[0] = !worth;
            atomic_xchg(arrived, 0u);
        }
    }
}

__kernel GROUP
void store_blocks(__global const uint *restrict wanted, __global const sum_t *restrict pairs,
                  __global const element_t *restrict image,
                  const weights_t weights,
                  __global result_t *restrict result,
                  __global uchar *restrict marks,
                  __global const bits_t *restrict pixel_peak,
                  __global const bits_t *restrict spectrum_peak,
                  const int height,
                  const int width,
                  const int filter_height,
                  const int filter_width,
                  const int rows,
                  const int columns,
                  const int blocks_y,
                  const int blocks_x,
                  const int valid_y,
                  const int valid_x,
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
    if (*wanted == 0)
        return;
    const uint group = get_group_id(0);
    const int y = group % valid_y;
    const uint pair = group / valid_y;
    __global const sum_t *source = pairs + 2 * ((size_t)pair * rows + y) * columns;
    const int last_row = out_height + filter_height - 2, last_column = out_width + filter_width - 2;
    const int most = MOST_PRODUCTS;

    bits_t pair_peak = 0, filter_peak = 0;
    for EACH(i, 0, rows) {
        pair_peak = LARGER(pair_peak, pixel_peak[pair * rows + i]);
        filter_peak = LARGER(filter_peak, spectrum_peak[i]);
    }
    __local bits_t all_pair_peak[64];
    all_pair_peak[get_local_id(0)] = pair_peak;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 64; ++i)
        pair_peak = max(pair_peak, all_pair_peak[i]);

    __local bits_t all_filter_peak[64];
    all_filter_peak[get_local_id(0)] = filter_peak;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 64; ++i)
        filter_peak = max(filter_peak, all_filter_peak[i]);

    const bits_t bound = bound_of(pair_peak, filter_peak, share, (sum_t)rows * columns, hidden);
    {
        const uint block = 2 * (first_pair + pair) + 0;
        const int out_x = block % blocks_x * valid_x;
        const int out_y = block / blocks_x % blocks_y * valid_y + y;
        const uint plane = block / blocks_x / blocks_y;
        if (block < blocks && out_y < out_height) {
            __global result_t *target =
                result + plane % 1
                + (((ulong)(plane / 1) * out_height + out_y) * out_width + out_x)
                  * 1;
            const int count = min(valid_x, out_width - out_x);
            int good = 1;
            for EACH(x, 0, count) {
                const sum_t sum = IM(source, x);
                good &= GOOD(sum);
                store_pixel(sum, target + x * 1);
            }

            __global uchar *marked = MARKS_OF(block, y);
            for (int x = 1 * get_local_id(0); x < count; x += 64) {
                if (good) {
                    marked[x / 1] = FINE;
                    continue;
                }
                /* Row by row from the middle on, add magnitudes of some of the products. */
                bool enough = false;
                if (bound < INFINITE) {
                    lanes_t sums = known_of(lanes_IM(source, x), count - x, bound);
                    enough = all_good(sums, bound);
                    int added = 0, due = 8;
                    for (int k = 0; k < filter_height && added < most && !enough; ++k) {
                        const int j = filter_height / 2 + (k % 2 ? -(k + 1) / 2 : k / 2);
                        const row_t row = ROW(j);
                        if (row.line == 0)
                            continue;
                        /* The taps for which all lanes have a pixel of the image. */
                        const int begin = x + row.begin;
                        const int high = min(filter_width, width - 0 - begin);
                        int i = max(k == 0 ? filter_width / 2 : 0, -begin);
                        for (; i + 8 <= high && added < most && !enough; i += 8) {
                            sums += (((SIZE(INSIDE_PRODUCT(i + 0)) + SIZE(INSIDE_PRODUCT(i + 1))) + (SIZE(INSIDE_PRODUCT(i + 2)) + SIZE(INSIDE_PRODUCT(i + 3)))) + ((SIZE(INSIDE_PRODUCT(i + 4)) + SIZE(INSIDE_PRODUCT(i + 5))) + (SIZE(INSIDE_PRODUCT(i + 6)) + SIZE(INSIDE_PRODUCT(i + 7)))));
                            added += 8;
                            if (added >= due) {
                                due *= 2;
                                enough = all_good(sums, bound);
                            }
                        }
                        for (; i + 1 <= high && added < most && !enough; i += 1) {
                            sums += SIZE(INSIDE_PRODUCT(i + 0));
                            added += 1;
                            if (added >= due) {
                                due *= 2;
                                enough = all_good(sums, bound);
                            }
                        }
                    }
                    enough |= all_good(sums, bound);
                }
                marked[x / 1] = enough ? FINE : bound < INFINITE ? DOUBTFUL : DOUBTFUL_FACTORS;
            }
        }
    }
    {
        const uint block = 2 * (first_pair + pair) + 1;
        const int out_x = block % blocks_x * valid_x;
        const int out_y = block / blocks_x % blocks_y * valid_y + y;
        const uint plane = block / blocks_x / blocks_y;
        if (block < blocks && out_y < out_height) {
            __global result_t *target =
                result + plane % 1
                + (((ulong)(plane / 1) * out_height + out_y) * out_width + out_x)
                  * 1;
            const int count = min(valid_x, out_width - out_x);
            int good = 1;
            for EACH(x, 0, count) {
                const sum_t sum = RE(source, x);
                good &= GOOD(sum);
                store_pixel(sum, target + x * 1);
            }

            __global uchar *marked = MARKS_OF(block, y);
            for (int x = 1 * get_local_id(0); x < count; x += 64) {
                if (good) {
                    marked[x / 1] = FINE;
                    continue;
                }
                /* Row by row from the middle on, add magnitudes of some of the products. */
                bool enough = false;
                if (bound < INFINITE) {
                    lanes_t sums = known_of(lanes_RE(source, x), count - x, bound);
                    enough = all_good(sums, bound);
                    int added = 0, due = 8;
                    for (int k = 0; k < filter_height && added < most && !enough; ++k) {
                        const int j = filter_height / 2 + (k % 2 ? -(k + 1) / 2 : k / 2);
                        const row_t row = ROW(j);
                        if (row.line == 0)
                            continue;
                        /* The taps for which all lanes have a pixel of the image. */
                        const int begin = x + row.begin;
                        const int high = min(filter_width, width - 0 - begin);
                        int i = max(k == 0 ? filter_width / 2 : 0, -begin);
                        for (; i + 8 <= high && added < most && !enough; i += 8) {
                            sums += (((SIZE(INSIDE_PRODUCT(i + 0)) + SIZE(INSIDE_PRODUCT(i + 1))) + (SIZE(INSIDE_PRODUCT(i + 2)) + SIZE(INSIDE_PRODUCT(i + 3)))) + ((SIZE(INSIDE_PRODUCT(i + 4)) + SIZE(INSIDE_PRODUCT(i + 5))) + (SIZE(INSIDE_PRODUCT(i + 6)) + SIZE(INSIDE_PRODUCT(i + 7)))));
                            added += 8;
                            if (added >= due) {
                                due *= 2;
                                enough = all_good(sums, bound);
                            }
                        }
                        for (; i + 1 <= high && added < most && !enough; i += 1) {
                            sums += SIZE(INSIDE_PRODUCT(i + 0));
                            added += 1;
                            if (added >= due) {
                                due *= 2;
                                enough = all_good(sums, bound);
                            }
                        }
                    }
                    enough |= all_good(sums, bound);
                }
                marked[x / 1] = enough ? FINE : bound < INFINITE ? DOUBTFUL : DOUBTFUL_FACTORS;
            }
        }
    }
}

__kernel GROUP
void sum_doubtful(__global const uint *restrict wanted, __global const element_t *restrict image,
                  const weights_t weights,
                  __global result_t *restrict result,
                  __global const uchar *restrict marks,
                  const int height,
                  const int width,
                  const int filter_height,
                  const int filter_width,
                  const int blocks_y,
                  const int blocks_x,
                  const int valid_y,
                  const int valid_x,
                  const int out_height,
                  const int out_width,
                  const int offset_y,
                  const int offset_x,
                  const uint blocks,
                  const sum_t cval)
{
    if (*wanted == 0)
        return;
    const int tiles = (valid_y + 3) / 4;
    const uint block = get_group_id(0) / tiles;
    const int y = get_group_id(0) % tiles * 4;
    const int out_x = block % blocks_x * valid_x;
    const int out_y = block / blocks_x % blocks_y * valid_y;
    const uint plane = block / blocks_x / blocks_y;
    const int last_row = out_height + filter_height - 2, last_column = out_width + filter_width - 2;
    const int count = min(valid_x, out_width - out_x);
    const int rows = min(4, min(valid_y, out_height - out_y) - y);
    __global result_t *target =
        result + plane % 1
        + (((ulong)(plane / 1) * out_height + out_y + y) * out_width + out_x)
          * 1;

    for (int x = 1 * get_local_id(0); x < count; x += 64) {
        uchar mark = FINE;
        for (int o = 0; o < rows; ++o)
            mark |= MARKS_OF(block, y + o)[x / 1];
        if (mark == FINE)
            continue;
        lanes_t sum_0 = 0;
        lanes_t sum_1 = 0;
        lanes_t sum_2 = 0;
        lanes_t sum_3 = 0;
        for (int r = 0; r < filter_height + rows - 1; ++r) {
            const row_t row = ROW(r);
            for (int first = 0; first < filter_width; first += 1) {
                const int taps = min(1, filter_width - first);
                const sum_t strip = value_at(row, x + first, width, cval);
                const bool dark = strip == 0;
                if (dark && !(mark & DOUBTFUL_FACTORS))
                    continue;
                const weights_t w_0 = weights + AT(r - 0, first);
                const weights_t w_1 = weights + AT(r - 1, first);
                const weights_t w_2 = weights + AT(r - 2, first);
                const weights_t w_3 = weights + AT(r - 3, first);
                if (r >= 3 && r < filter_height) {
                    int i = 0;
                    for (; i + 1 <= taps; i += 1) {
                        {
                            const lanes_t p = strip;
                            sum_0 += w_0[(i + 0)] * p;
                            sum_1 += w_1[(i + 0)] * p;
                            sum_2 += w_2[(i + 0)] * p;
                            sum_3 += w_3[(i + 0)] * p;
                        }
                    }
                } else {
                    if (r >= 0 && r < filter_height + 0) {
                        int i = 0;
                        for (; i + 1 <= taps; i += 1) {
                            {
                                const lanes_t p = strip;
                                sum_0 += w_0[(i + 0)] * p;
                            }
                        }
                    }
                    if (r >= 1 && r < filter_height + 1) {
                        int i = 0;
                        for (; i + 1 <= taps; i += 1) {
                            {
                                const lanes_t p = strip;
                                sum_1 += w_1[(i + 0)] * p;
                            }
                        }
                    }
                    if (r >= 2 && r < filter_height + 2) {
                        int i = 0;
                        for (; i + 1 <= taps; i += 1) {
                            {
                                const lanes_t p = strip;
                                sum_2 += w_2[(i + 0)] * p;
                            }
                        }
                    }
                    if (r >= 3 && r < filter_height + 3) {
                        int i = 0;
                        for (; i + 1 <= taps; i += 1) {
                            {
                                const lanes_t p = strip;
                                sum_3 += w_3[(i + 0)] * p;
                            }
                        }
                    }
                }
            }
        }
        if (0 < rows && x + 0 < count)
            store_pixel(sum_0, target + (0 * (long)out_width + x + 0) * 1);
        if (1 < rows && x + 0 < count)
            store_pixel(sum_1, target + (1 * (long)out_width + x + 0) * 1);
        if (2 < rows && x + 0 < count)
            store_pixel(sum_2, target + (2 * (long)out_width + x + 0) * 1);
        if (3 < rows && x + 0 < count)
            store_pixel(sum_3, target + (3 * (long)out_width + x + 0) * 1);
    }
}
