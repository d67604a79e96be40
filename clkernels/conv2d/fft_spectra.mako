## Kernels before and between the transforms: see fft.cl.mako, which draws the blocks.
##
##   load_blocks       two blocks of the image  ->  a + i b, and the largest pixel of each row
##   load_filter       weights, 0 elsewhere     ->  a block whose convolution correlates
##   find_peaks        the spectrum of the filter, its largest magnitude in each row
##   multiply_spectra  spectra of blocks by that of the filter, real and imaginary components exchanged
##
## CHANNELS  values of a pixel
## WG_SIZE   work-items in a work-group
## NUMBERS   the declarations of the numbers that each kernel takes
## CONDITIONAL  whether a launch before may have called it off
<%namespace name="condition" file="/common/condition.mako"/>\
<%namespace name="numbers" file="fft_numbers.mako"/>\
<%def name="declare(CHANNELS, WG_SIZE, CONDITIONAL, NUMBERS)">\
__kernel GROUP
void load_blocks(${condition.first(CONDITIONAL)}__global const element_t *restrict image,
                 __global sum_t *restrict pairs,
                 __global bits_t *restrict pixel_peak,
                 ${NUMBERS["load_blocks"]})
{
${condition.check(CONDITIONAL)}\
    const uint group = get_group_id(0);
    const int y = group % rows;
    const uint first = 2 * (first_pair + group / rows);
    const uint second = min(first + 1, blocks - 1);
    __global sum_t *target = pairs + 2 * get_group_id(0) * columns;
    const row_t first_row = ROW_OF(first, y), second_row = ROW_OF(second, y);
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

% if WG_SIZE > 1:
    barrier(CLK_GLOBAL_MEM_FENCE); /* other items may have put a pixel */
% endif
    bits_t largest = 0;
    for EACH(x, 0, columns)
    {
        const bits_t p = MAGNITUDE(RE(target, x)), q = MAGNITUDE(IM(target, x));
        const bits_t larger = LARGER(p, q);
        largest = LARGER(largest, larger);
    }
    ${numbers.share_largest("largest", WG_SIZE)}
    if (get_local_id(0) == 0)
        pixel_peak[get_group_id(0)] = largest;
}

/* Weight (j, i) stands at (-j, -i), modulo the block, and is divided by the size of the block,
   which the transforms forth and back multiply by. */
__kernel GROUP
void load_filter(const weights_t weights,
                 __global sum_t *restrict block,
                 ${NUMBERS["load_filter"]})
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
                ${NUMBERS["find_peaks"]})
{
    bits_t largest = largest_square(spectrum, get_group_id(0), columns, size);
    ${numbers.share_largest("largest", WG_SIZE)}
    if (get_local_id(0) == 0)
        spectrum_peak[get_group_id(0)] = largest;
}

__kernel GROUP
void multiply_spectra(${condition.first(CONDITIONAL)}__global sum_t *restrict pairs,
                      __global const sum_t *restrict spectrum,
                      ${NUMBERS["multiply_spectra"]})
{
${condition.check(CONDITIONAL)}\
    __global sum_t *target = pairs + 2 * get_group_id(0) * columns;
    __global const sum_t *factor = spectrum + 2 * (size_t)((uint)get_group_id(0) % rows) * columns;
    for EACH(x, 0, columns) {
        const sum_t a = RE(target, x), b = IM(target, x);
        const sum_t c = RE(factor, x), d = IM(factor, x);
        PUT(target, x, a * d + b * c, a * c - b * d);
    }
}
</%def>\
