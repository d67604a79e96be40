/*
 * An example of clkernels/sort/gather.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       7 elements of 8 bytes of each of 3 rows of 1000
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        gather, (256,) items in groups of (256,)
 */
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
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void gather(__global const ulong *restrict source,
            __global const long *restrict order,
            __global ulong *restrict target,
            __global long *restrict places,
            const ulong n,
            const ulong k,
            const ulong count)
{
    const ulong i = get_global_id(0), element = i / 1;
    if (element < count) {
        const ulong row = element / k * n;
        const long place = order[row + element % k];
        target[i] = source[(row + (ulong)place) * 1 + i % 1];
        if (i % 1 == 0)
            places[element] = place;
    }
}
