## The sample of an image that tells whether transforms are worth it: see fft.cl.mako.
##
##     image, in pairs of blocks        a pair             sample_results: a few results of it
##     +----+----+----+----+            +----------+       are summed directly. A result costs
##     | *       |    |    |   some     |..........|       nothing more if it is large enough; some
##     +----+----+----+----+   pairs    |          |       products, if their magnitudes reach the
##     |    |    |*        |   (*)  ->  |..........|       bound; else a direct sum of its own.
##     +----+----+----+----+            |          |       Direct sums are chosen if on average
##                                      +----------+       that takes longer than the transforms
##                              sample_peaks: some rows    save.
##                              -> bound
##
##   sample_peaks    the largest pixel of each of these rows, and the largest magnitudes of the spectrum
##   sample_results  what the recheck of some results would cost; the last group decides: by_transforms
##                   or by_sums becomes 1, the other one 0
##
## PIXELS    types and boundary condition: see pixels.mako
## CHANNELS  values of a pixel
## WG_SIZE   work-items in a work-group
## NUMBERS   the declarations of the numbers that each kernel takes
## LANES     results beside each other that an item judges
<%namespace name="numbers" file="fft_numbers.mako"/>\
<%namespace name="terms" file="terms.mako"/>\
<%def name="declare(PIXELS, CHANNELS, WG_SIZE, LANES, NUMBERS)">\
<%
    # Items whose results are beside each other, as in conv2d/adaptive.py; the others share their taps.
    ACROSS = min(WG_SIZE, 4)
    PARTS = WG_SIZE // ACROSS
    TAPS = 4  # products that are added at a time
    COST_BITS = 23  # of a word; the others count at most 511 groups
    MOST_COST = (1 << COST_BITS) // 512  # of a group
%>\
/* The first groups take the rows of the spectrum, as find_peaks does, the others those of the image. */
__kernel GROUP
void sample_peaks(__global const element_t *restrict image,
                  __global const sum_t *restrict spectrum,
                  __global bits_t *restrict sampled_peak,
                  __global bits_t *restrict spectrum_peak,
                  ${NUMBERS["sample_peaks"]})
{
    const bool of_image = get_group_id(0) >= rows;
    const uint group = get_group_id(0) - (of_image ? rows : 0);
    bits_t largest = 0;
    if (of_image) {
        const int y = group % sampled_rows * row_step;
        const uint first = 2 * (group / sampled_rows * pair_step);
        for (uint block = first; block < min(first + 2, blocks); ++block) {
            const row_t row = ROW_OF(block, y);
            const int2 within = inside(row, columns, width);
            __global const element_t *pixels = row.line + (long)row.begin * ${CHANNELS};
            for EACH(x, within.x, within.y) {
                const bits_t magnitude = MAGNITUDE(load_pixel(pixels + x * ${CHANNELS}));
                largest = LARGER(largest, magnitude);
            }
% if PIXELS.boundary == "constant":
            if (within.y - within.x < min(columns, row.last + 1))
                largest = LARGER(largest, MAGNITUDE(cval));
% endif
        }
    } else {
        largest = largest_square(spectrum, group, columns, size);
    }
    ${numbers.share_largest("largest", WG_SIZE)}
    if (get_local_id(0) == 0)
        (of_image ? sampled_peak : spectrum_peak)[group] = largest;
}

/* Costs are in products of a direct sum: `check` for one whose magnitude is added, `again` for one of
   a doubtful result, and `limit` of a result. `arrived` is zero before and after. */
__kernel GROUP
void sample_results(__global const element_t *restrict image,
                    const weights_t weights,
                    __global const bits_t *restrict sampled_peak,
                    __global const bits_t *restrict spectrum_peak,
                    volatile __global uint *restrict arrived,
                    __global uint *restrict by_transforms,
                    __global uint *restrict by_sums,
                    ${NUMBERS["sample_results"]})
{
    const uint group = get_group_id(0), sampled = group / samples;
    bits_t pixel_peak = 0, filter_peak = 0;
    for EACH(i, 0, sampled_rows)
        pixel_peak = LARGER(pixel_peak, sampled_peak[sampled * sampled_rows + i]);
    for EACH(i, 0, rows)
        filter_peak = LARGER(filter_peak, spectrum_peak[i]);
    ${numbers.share_largest("pixel_peak", WG_SIZE)}
    ${numbers.share_largest("filter_peak", WG_SIZE)}
    const bits_t bound = bound_of(pixel_peak, filter_peak, share, (sum_t)rows * columns, hidden);

    /* Places that cover the block evenly: multiples of the golden ratio, and of the plastic number. */
    const int last_row = out_height + filter_height - 2, last_column = out_width + filter_width - 2;
    const uint block = min(2 * sampled * pair_step + group % 2, blocks - 1);
    const int out_x = block % blocks_x * valid_x, out_y = block / blocks_x % blocks_y * valid_y;
    const int count_x = min(valid_x, out_width - out_x), count_y = min(valid_y, out_height - out_y);
    const int first_x = (group * 3242174889u >> 16) * (uint)max(1, count_x - ${LANES * ACROSS}) >> 16;
    const int x = first_x + (int)get_local_id(0) % ${ACROSS} * ${LANES};
    const int y = (group * 2654435769u >> 16) * (uint)count_y >> 16;
    lanes_t sum = 0, sizes = 0;
    const int part = get_local_id(0) / ${ACROSS};
    for (int j = part < ${PARTS} ? part : filter_height; j < filter_height; j += ${PARTS}) {
        const row_t row = ROW_OF(block, y + j);
        const int begin = x + row.begin;
        const int high = row.line == 0 ? 0 : min(filter_width, width - ${LANES - 1} - begin);
        int i = max(0, -begin);
% for together in (TAPS, 1):
        for (; i + ${together} <= high; i += ${together}) {
% for t in range(together):
            const lanes_t product_${t} = INSIDE_PRODUCT(i + ${t});
% endfor
            sum += ${terms.module.tree(lambda t: f"product_{t}", 0, together)};
            sizes += ${terms.module.tree(lambda t: f"SIZE(product_{t})", 0, together)};
        }
% endfor
    }

    /* The one of these neighbours that needs the most products decides, as vectors are judged as a
       whole, and items of a GPU wait for each other. */
% if WG_SIZE > 1:
    __local sum_t sums[${WG_SIZE}], all_sizes[${WG_SIZE}];
    sums[get_local_id(0)] = sum;
    all_sizes[get_local_id(0)] = sizes;
    barrier(CLK_LOCAL_MEM_FENCE);
% else:
    sum_t sums[${LANES}], all_sizes[${LANES}];
    ((__private packed_t *)sums)->v = sum;
    ((__private packed_t *)all_sizes)->v = sizes;
% endif
    if (get_local_id(0) == 0) {
        const sum_t most = MOST_PRODUCTS, taps = (sum_t)filter_height * filter_width;
        sum_t worst = 0;
        bool anew = false;
        for (int l = 0; l < min(${ACROSS * LANES}, count_x - first_x); ++l) {
            sum_t total = 0, size = 0;
            for (int k = l; k < ${WG_SIZE * LANES}; k += ${ACROSS * LANES}) {
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
        const sum_t unit = (most * check + taps * again) / ${MOST_COST};
        const uint mine = ${1 << COST_BITS} + (uint)(cost / unit);
        const uint all = atomic_add(arrived, mine) + mine;
        if (all >> ${COST_BITS} == get_num_groups(0)) {
            const bool worth = (all & ${(1 << COST_BITS) - 1}) * unit <= limit * get_num_groups(0);
            by_transforms[0] = worth;
            by_sums[0] = !worth;
            atomic_xchg(arrived, 0u);
        }
    }
}
</%def>\
