## Where the blocks of an image and the weights of the filter lie: see fft.cl.mako.
##
## A row of a block at the left edge of the image: value x of it is pixel begin + x of `line`.
##
##      x = 0      -begin                       last
##      | extended | pixels of `line`           |  not needed: 0 |
##      +----------+----------------------------+----------------+
##        begin < 0  inside: load_pixel alone
##
## PIXELS    types and whether the filter is turned: see pixels.mako
## CHANNELS  values of a pixel
<%def name="declare(PIXELS, CHANNELS)">\
/* Where weight (j, i) is. */
INLINE long place_of(const int j, const int i, const int filter_height, const int filter_width)
{
    const long tap = (long)j * filter_width + i;
    return ${"(long)filter_height * filter_width - 1 - tap" if PIXELS.flip else "tap"};
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
        found.line = image + ((ulong)(plane / ${CHANNELS}) * height + row) * width * ${CHANNELS}
                     + plane % ${CHANNELS};
    return found;
}

/* The same of the arguments of a kernel. */
#define ROW_OF(block, y) row_of(image, block, y, height, width, blocks_y, blocks_x, valid_y, valid_x, \
                                last_row, last_column, offset_y, offset_x)

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
</%def>\
