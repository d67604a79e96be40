## Kernels between the transforms: see fft.cl.mako.
##
##   find_peaks        the spectrum of the filter, its largest magnitude in each row
##   multiply_spectra  spectra of blocks by that of the filter, real and imaginary components exchanged
##
## WG_SIZE   work-items in a work-group
## NUMBERS   the declarations of the numbers that each kernel takes
## CONDITIONAL  whether a launch before may have called it off
<%namespace name="condition" file="/common/condition.mako"/>\
<%namespace name="numbers" file="fft_numbers.mako"/>\
<%def name="declare(WG_SIZE, CONDITIONAL, NUMBERS)">\
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
