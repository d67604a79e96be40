## What the direct sums of each kind of transform read and write. Rows have n elements, but
## n / 2 + 1 of them on the complex side where the other one is real.
##
## element  Element of core/kernels.py, of complex numbers
## index    unsigned type that holds 2n
## kind     c2c, r2c (real samples to frequencies) or c2r (back)
<%def name="declare(element, index, kind)">\
typedef ${element.real} real_t;
typedef ${element.type} complex_t;
typedef ${index} index_t;
typedef ${"real_t" if kind == "r2c" else "complex_t"} sample_t;
typedef ${"real_t" if kind == "c2r" else "complex_t"} result_t;
#define SAMPLES(n) ${"((n) / 2 + 1)" if kind == "c2r" else "(n)"}
#define POINTS(n) ${"((n) / 2 + 1)" if kind == "r2c" else "(n)"}

/* Return sample j of a row. A frequency of half a spectrum stands for its mirror image too, but
 * 0 and n / 2 are their own, and their imaginary components are taken for 0. */
static inline sample_t sample_at(__global const sample_t *row, const index_t j, const index_t n)
{
% if kind == "c2r":
    const complex_t x = row[j];
    return j == 0 || 2 * j == n ? (complex_t)(x.x, 0) : 2 * x;
% else:
    return row[j];
% endif
}
</%def>\
