/*
 * Elements of rows in another order, or the first of it, whatever they are: words are moved as they
 * are.
 *
 *     source   a0 a1 | b0 b1 | c0 c1      elements of WORDS words
 *     order    2 0 1
 *     target   c0 c1 | a0 a1 | b0 b1      an item each word
 *     places   2 0 1                      the order again, of as many as are taken
 *
 * Source: none. The host guarantees: `order` holds numbers below n, of which the first k
 * of each row are taken; source and target do not overlap.
 *
 * WORD_T   OpenCL C type of a word, which divides an element
 * WORDS    words of an element
 * PLACES   whether the places of what is taken are wanted too
 * WG_SIZE  work-items in a work-group
 */
<%page args="WORD_T, WORDS, PLACES, WG_SIZE"/>\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void gather(__global const ${WORD_T} *restrict source,
          __global const long *restrict order,
          __global ${WORD_T} *restrict target,
% if PLACES:
          __global long *restrict places,
% endif
          const ulong n,
          const ulong k,
          const ulong count)
{
    const ulong i = get_global_id(0), element = i / ${WORDS};
    if (element < count) {
        const ulong row = element / k * n;
        const long place = order[row + element % k];
        target[i] = source[(row + (ulong)place) * ${WORDS} + i % ${WORDS}];
% if PLACES:
        if (i % ${WORDS} == 0)
            places[element] = place;
% endif
    }
}
