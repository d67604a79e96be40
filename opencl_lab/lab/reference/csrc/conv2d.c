/*
 * 2D correlation of images with one filter, at any boundary condition.
 *
 * Images are batch x height x width x channels, results batch x out_height x out_width x
 * channels, both contiguous. The result at (y, x) is the sum of weight (j, i) times the pixel
 * at (y + j + offset_y, x + i + offset_x). Each function returns 0, or an errno.
 *
 *   conv2d_seq   row by row: for each tap one loop along the row, which vectorises; the
 *                columns whose windows reach beyond an edge one by one
 *   conv2d_omp   the same, rows shared among threads
 *
 * ELEMENT_T      type of the pixels
 * SUM_T          type of weights and sums
 * ELEMENT_MIN, ELEMENT_MAX   limits of an integer ELEMENT_T, as 64-bit integers; else undefined
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "export.h"

#ifndef ELEMENT_T
#define ELEMENT_T float
#define SUM_T float
#endif

enum { CONSTANT, NEAREST, REFLECT, MIRROR, WRAP };

typedef struct {
    const ELEMENT_T *image;
    const SUM_T *weights;
    ELEMENT_T *result;
    int64_t batch, height, width, channels, out_height, out_width;
    int64_t offset_y, offset_x, filter_height, filter_width;
    int64_t boundary, flip, saturate;
    SUM_T cval;
} convolution;

/* Return the coordinate whose value continues an image of n pixels at i, or -1 for cval. */
static int64_t extend(int64_t i, int64_t n, int64_t boundary)
{
    if (i >= 0 && i < n)
        return i;
    if (boundary == CONSTANT || n == 0)
        return -1;
    if (boundary == NEAREST)
        return i < 0 ? 0 : n - 1;
    const int64_t period = boundary == WRAP ? n : boundary == REFLECT ? 2 * n : n > 1 ? 2 * n - 2 : 1;
    const int64_t k = (i % period + period) % period;
    if (k < n)
        return k;
    return boundary == REFLECT ? period - 1 - k : period - k;
}

static ELEMENT_T to_element(SUM_T sum, int64_t saturate)
{
#ifdef ELEMENT_MAX
    const double whole = rint((double)sum);
    if (saturate)
        return (ELEMENT_T)(!(whole > ELEMENT_MIN) ? ELEMENT_MIN
                           : whole > ELEMENT_MAX  ? ELEMENT_MAX
                                                  : (int64_t)whole);
    return (ELEMENT_T)(int64_t)whole;
#else
    (void)saturate;
    return (ELEMENT_T)sum;
#endif
}

static SUM_T weight_at(const convolution *c, int64_t j, int64_t i)
{
    const int64_t tap = j * c->filter_width + i;
    return c->weights[c->flip ? c->filter_height * c->filter_width - 1 - tap : tap];
}

/* Compute row y of result number `which`; `sums` has room for it. */
static void row_of_result(const convolution *c, int64_t which, int64_t y, SUM_T *restrict sums)
{
    const int64_t channels = c->channels, length = c->out_width * channels;
    const ELEMENT_T *image = c->image + which * c->height * c->width * channels;
    int64_t first = -c->offset_x < 0 ? 0 : -c->offset_x;
    int64_t last = c->width - c->filter_width - c->offset_x + 1; /* one past the inner columns */
    first = first > c->out_width ? c->out_width : first;
    last = last > c->out_width ? c->out_width : last;
    last = last < first ? first : last;

    for (int64_t k = 0; k < length; k++)
        sums[k] = 0;
    for (int64_t j = 0; j < c->filter_height; j++) {
        const int64_t row = extend(y + j + c->offset_y, c->height, c->boundary);
        const ELEMENT_T *line = row < 0 ? NULL : image + row * c->width * channels;
        for (int64_t i = 0; i < c->filter_width; i++) {
            const SUM_T weight = weight_at(c, j, i);
            const int64_t shift = (i + c->offset_x) * channels;
            if (line)
                for (int64_t k = first * channels; k < last * channels; k++)
                    sums[k] += weight * (SUM_T)line[k + shift];
            else
                for (int64_t k = first * channels; k < last * channels; k++)
                    sums[k] += weight * c->cval;
            for (int64_t x = 0; x < c->out_width; x++) {
                if (x == first)
                    x = last; /* done above */
                if (x >= c->out_width)
                    break;
                const int64_t column = extend(x + i + c->offset_x, c->width, c->boundary);
                for (int64_t k = 0; k < channels; k++)
                    sums[x * channels + k] +=
                        weight * (!line || column < 0 ? c->cval
                                                      : (SUM_T)line[column * channels + k]);
            }
        }
    }
    ELEMENT_T *target = c->result + (which * c->out_height + y) * length;
    for (int64_t k = 0; k < length; k++)
        target[k] = to_element(sums[k], c->saturate);
}

#define ARGUMENTS                                                                                 \
    const ELEMENT_T *image, const SUM_T *weights, ELEMENT_T *result, int64_t batch,               \
        int64_t height, int64_t width, int64_t channels, int64_t out_height, int64_t out_width,   \
        int64_t offset_y, int64_t offset_x, int64_t filter_height, int64_t filter_width,          \
        int64_t boundary, int64_t flip, int64_t saturate, double cval
#define GATHER                                                                                    \
    {image,        weights,      result,   batch, height,   width,                                \
     channels,     out_height,   out_width, offset_y, offset_x, filter_height,                    \
     filter_width, boundary,     flip,     saturate, (SUM_T)cval}

EXPORT int conv2d_seq(ARGUMENTS)
{
    const convolution c = GATHER;
    SUM_T *sums = malloc((size_t)(out_width * channels + 1) * sizeof(SUM_T));
    if (!sums)
        return ENOMEM;
    for (int64_t row = 0; row < batch * out_height; row++)
        row_of_result(&c, row / out_height, row % out_height, sums);
    free(sums);
    return 0;
}

EXPORT int conv2d_omp(ARGUMENTS, int64_t threads)
{
    const convolution c = GATHER;
    int failed = 0;
    if (threads < 1)
        return EINVAL;
#ifdef _OPENMP
#pragma omp parallel num_threads((int)threads) reduction(| : failed)
#endif
    {
        SUM_T *sums = malloc((size_t)(out_width * channels + 1) * sizeof(SUM_T));
        failed = !sums;
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 8)
#endif
        for (int64_t row = 0; row < batch * out_height; row++)
            if (sums)
                row_of_result(&c, row / out_height, row % out_height, sums);
        free(sums);
    }
    return failed ? ENOMEM : 0;
}
