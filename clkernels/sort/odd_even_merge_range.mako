## Where the elements of two sorted blocks go, for odd_even_merge.cl.mako: by a binary search for each
## element, or by merging from where a search says that an item's outputs begin.
##
##   searches      the function that searches: corank_* for BLOCKED items, search_* for others
##   merge_range   a loop that merges what lies under the outputs of an item
##   value_at      the value of an element
##
## suffix       local or global: where keys lie, and the end of the function's name
## space        __local or __global
## value_t      type of a value in the target, or None if there are no values
## positions    whether the value of an element is its position
<%def name="searches(space, suffix, blocked)">
% if blocked:
/*
 * Count how many of the first `rank` elements of the merged blocks a and b come from a.
 * Source: C. Siebert, J. L. Traeff, "Perfectly load-balanced, stable,
 * synchronization-free parallel merge", 2013 (co-ranks).
 */
static inline index_t corank_${suffix}(${space} const key_t *a, const index_t a_length,
                                       ${space} const key_t *b, const index_t b_length,
                                       const index_t rank)
{
    index_t low = max(rank, b_length) - b_length;
    index_t high = min(rank, a_length);
    while (low < high) {
        const index_t middle = low + (high - low) / 2;
        if (before(b[rank - 1 - middle], a[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
% else:
/* Count the first elements of a block, of `high`, that go before key. */
static inline index_t search_${suffix}(${space} const key_t *block, const key_t key,
                                       const bool count_equal, index_t high)
{
    index_t low = 0;
    while (low < high) {
        const index_t middle = low + (high - low) / 2;
        const key_t other = block[middle];
        if (count_equal ? !before(key, other) : before(other, key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
% endif
</%def>\
## Merge what lies under the outputs [begin, end) of pairs of blocks, in a row or tile of `count`.
<%def name="merge_range(suffix, count, from_keys, to_keys, to_values, value_t, positions)">\
    for (index_t pair = begin & ~(2 * width - 1); pair < end; pair += 2 * width) {
        const index_t first_output = max(begin, pair);
        const index_t last_output = min(end, pair + 2 * width);
        const index_t b_start = min(pair + width, ${count});
        const index_t a_length = b_start - pair;
        const index_t b_length = min(width, ${count} - b_start);
        index_t a = corank_${suffix}(${from_keys} + pair, a_length, ${from_keys} + b_start, b_length,
                                     first_output - pair);
        index_t b = b_start + (first_output - pair - a);
        const index_t a_end = pair + a_length;
        const index_t b_end = b_start + b_length;
        a += pair;
        index_t output = first_output;
        for (; output < last_output && a < a_end && b < b_end; ++output) {
            const key_t left = ${from_keys}[a];
            const key_t right = ${from_keys}[b];
            const bool take_right = before(right, left);
            ${to_keys}[output] = take_right ? right : left;
% if value_t:
            ${to_values}[output] = (${value_t})${value_at(suffix, "(take_right ? b : a)", positions)};
% endif
            b += take_right;
            a += !take_right;
        }
        for (; output < last_output; ++output) {
            const index_t rest = a < a_end ? a++ : b++;
            ${to_keys}[output] = ${from_keys}[rest];
% if value_t:
            ${to_values}[output] = (${value_t})${value_at(suffix, "rest", positions)};
% endif
        }
    }
</%def>\
<%def name="value_at(suffix, index, positions)">\
% if suffix == "local":
values[from + ${index}]\
% elif positions:
${index}\
% else:
source_values[row + ${index}]\
% endif
</%def>\
