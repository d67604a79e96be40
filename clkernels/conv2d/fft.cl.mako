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
 *     multiply         spectra of blocks by that of the weights
 *     blocks_out       a + i b                  ->  what is right of both
 *
 * An infinity or NaN spreads over the two blocks, as does what exceeds the range of their sums.
 * Results that are not finite are therefore summed anew, one by one.
 *
 * Source: overlap-save, T. G. Stockham, "High-speed convolution and correlation", 1966; two real
 * sequences in one transform, J. W. Cooley, P. A. W. Lewis, P. D. Welch, 1970.
 *
 * The host guarantees: images and results are contiguous: batch, rows, pixels, channels; a
 * work-group owns a row of a pair of blocks, or of the block of weights, one after the other
 * from pair `first_pair` on; blocks are numbered along x, y, channel and image, and there are
 * blocks_x * blocks_y for each channel of an image, `blocks` in all; each block is `rows` x
 * `columns` complex numbers; `result` overlaps no input.
 *
 * ELEMENT_T, RESULT_T, SUM_T, BOUNDARY, FAR, SATURATE, CONSTANT_WEIGHTS: see pixels.cl.mako
 * FLIP      whether the filter is turned by 180 degrees
 * CHANNELS  values of a pixel
 * WG_SIZE   work-items in a work-group
 */
<%page args="ELEMENT_T, RESULT_T, SUM_T, BOUNDARY, FAR, SATURATE, CONSTANT_WEIGHTS, FLIP, CHANNELS,
             WG_SIZE"/>\
<%include file="/conv2d/pixels.cl.mako" args="ELEMENT_T=ELEMENT_T, RESULT_T=RESULT_T,
    SUM_T=SUM_T, BOUNDARY=BOUNDARY, FAR=FAR, SATURATE=SATURATE, CONSTANT_WEIGHTS=CONSTANT_WEIGHTS"/>\
#define GROUP __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
typedef ${SUM_T}2 complex_t;

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

#define FINITE(x) (-INFINITY < (x) && (x) < INFINITY)
#define EACH(x, low, high) (int x = (low) + get_local_id(0); x < (high); x += ${WG_SIZE})

static inline sum_t weight_at(const weights_t weights, const int j, const int i,
                              const int filter_height, const int filter_width)
{
    const int tap = j * filter_width + i;
    return weights[${"filter_height * filter_width - 1 - tap" if FLIP else "tap"}];
}

/* A row of a block of the image: its pixels (0: none of the image), and how x counts in it. */
typedef struct {
    __global const element_t *line;
    int begin;  /* column of the image at which the row begins */
    int last;   /* value of x beyond which nothing is needed */
} row_t;

static inline row_t row_of(__global const element_t *image, const uint block, const int y,
                           const int height, const int width, const int blocks_y,
                           const int blocks_x, const int step_y, const int step_x,
                           const int last_row, const int last_column, const int offset_y,
                           const int offset_x)
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
static inline int2 inside(const row_t row, const int columns, const int width)
{
    const int low = clamp(-row.begin, 0, columns);
    return (int2)(low, row.line == 0 ? low : clamp(width - row.begin, low, columns));
}

static inline sum_t value_at(const row_t row, const int x, const int width, const sum_t cval)
{
    if (x > row.last)
        return 0;
    const int column = extend(x + row.begin, width);
    return row.line == 0 || column < 0 ? cval : load_pixel(row.line + (long)column * ${CHANNELS});
}

__kernel GROUP
void blocks_in(__global const element_t *restrict image,
               __global sum_t *restrict pairs,
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
            there ? scale * weight_at(weights, j, i, filter_height, filter_width) : 0, 0);
    }
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
        PUT(target, x, a * c - b * d, a * d + b * c);
    }
}

__kernel GROUP
void blocks_out(__global const sum_t *restrict pairs,
                __global const element_t *restrict image,
                const weights_t weights,
                __global result_t *restrict result,
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
                const sum_t cval)
{
    const uint group = get_group_id(0);
    const int y = group % step_y;
    const uint pair = group / step_y;
    __global const sum_t *source = pairs + 2 * ((size_t)pair * rows + y) * columns;
    const int last_row = out_height + filter_height - 2, last_column = out_width + filter_width - 2;
% for part, value in enumerate(("RE(source, x)", "IM(source, x)")):
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
            int strange = 0;
            for EACH(x, 0, count) {
                const sum_t sum = ${value};
                strange |= !FINITE(sum);
                store_pixel(sum, target + x * ${CHANNELS});
            }

            /* Sum anew what is not finite. */
            if (strange) {
                for EACH(x, 0, count) {
                    if (FINITE(${value}))
                        continue;
                    sum_t sum = 0;
                    for (int j = 0; j < filter_height; ++j) {
                        const row_t row =
                            row_of(image, block, y + j, height, width, blocks_y, blocks_x, step_y,
                                   step_x, last_row, last_column, offset_y, offset_x);
                        for (int i = 0; i < filter_width; ++i)
                            sum += weight_at(weights, j, i, filter_height, filter_width)
                                   * value_at(row, x + i, width, cval);
                    }
                    store_pixel(sum, target + x * ${CHANNELS});
                }
            }
        }
    }
% endfor
}
