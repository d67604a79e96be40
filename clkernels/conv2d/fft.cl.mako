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
 *     fft_spectra.mako    load_blocks       two blocks of the image  ->  a + i b
 *                         load_filter       weights, 0 elsewhere     ->  a block that correlates
 *                         find_peaks        the largest magnitudes of the filter's spectrum
 *                         multiply_spectra  blocks by the filter, and exchange of the components
 *     recheck.mako        which results are doubtful
 *     fft_sample.mako     sample_peaks, sample_results   whether transforms are worth it
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
 * sample: the first `rows` work-groups of sample_peaks own a row of the spectrum each, the others every
 * `row_step`-th row of every `pair_step`-th pair, and `sampled_peak` has a number for these; there are
 * `samples` work-groups of sample_results for each of these pairs, at most 511 in all; `arrived` is zero
 * before and after; `by_transforms` and `by_sums` are a word each.
 *
 * PIXELS    types, boundary condition and filter: see pixels.mako
 * CHANNELS  values of a pixel
 * WG_SIZE   work-items in a work-group
 * LANES     results beside each other that are judged and summed together
 * ROWS      rows of results that an item sums together
 * NUMBERS   declarations of the numbers that each kernel takes, by its name
 * CONDITIONAL  whether a sample of the image may call off the kernels that follow
 */
<%page args="PIXELS, CHANNELS, WG_SIZE, LANES, ROWS, NUMBERS, CONDITIONAL=False"/>\
<%namespace name="pixels" file="pixels.mako"/>\
<%namespace name="fft_numbers" file="fft_numbers.mako"/>\
<%namespace name="fft_blocks" file="fft_blocks.mako"/>\
<%namespace name="fft_spectra" file="fft_spectra.mako"/>\
<%namespace name="recheck" file="recheck.mako"/>\
<%namespace name="fft_sample" file="fft_sample.mako"/>\
<%namespace name="fft_store" file="fft_store.mako"/>\
<%namespace name="recheck_sums" file="recheck_sums.mako"/>\
${pixels.declare(PIXELS=PIXELS)}\
${fft_numbers.declare(PIXELS=PIXELS, WG_SIZE=WG_SIZE)}\

${fft_blocks.declare(PIXELS=PIXELS, CHANNELS=CHANNELS)}\

${fft_spectra.declare(CHANNELS=CHANNELS, WG_SIZE=WG_SIZE, CONDITIONAL=CONDITIONAL, NUMBERS=NUMBERS)}\

${recheck.declare(PIXELS=PIXELS, CHANNELS=CHANNELS, LANES=LANES)}\

% if CONDITIONAL:
${fft_sample.declare(PIXELS=PIXELS, CHANNELS=CHANNELS, WG_SIZE=WG_SIZE, LANES=LANES, NUMBERS=NUMBERS)}\

% endif
${fft_store.declare(CHANNELS=CHANNELS, WG_SIZE=WG_SIZE, LANES=LANES, CONDITIONAL=CONDITIONAL, NUMBERS=NUMBERS)}\

${recheck_sums.declare(PIXELS=PIXELS, CHANNELS=CHANNELS, WG_SIZE=WG_SIZE,
    LANES=LANES, ROWS=ROWS, CONDITIONAL=CONDITIONAL, NUMBERS=NUMBERS)}\
