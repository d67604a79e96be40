/*
 * An example of clkernels/common/fingerprint.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    CHUNKED=False
 */
/*
 * Fingerprint of a buffer: what it holds, in a number that changes with any of its bits.
 *
 *   word 0   word 1   word 2  ...        each mixed with its place, and all of them summed:
 *     |        |        |                fingerprint = sum of mix(word, place) modulo 2^64
 *     v        v        v
 *   mix  +   mix  +   mix  + ...         one sum an item; the host adds those
 *
 *   CHUNKED      | item 0: 0 1 2 3 ... | item 1: ...          a stream of its own an item, for CPUs
 *   interleaved  | item 0 1 2 3 ... | item 0 1 2 3 ... |      neighbours touch neighbours, for GPUs
 *
 * Source: the mixing is the finalizer of MurmurHash3 (Appleby), of 64 bits.
 *
 * The host guarantees: words holds `count` words, sums one element for each item, and
 * per_item * global size >= count.
 *
 *   CHUNKED  see above
 */
ulong mixed(ulong x) {
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdUL;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53UL;
    return x ^ (x >> 33);
}

__kernel void fingerprint(__global const uint *restrict words, __global ulong *restrict sums,
                          const ulong count, const ulong per_item) {
    const ulong first = get_global_id(0), end = count, stride = get_global_size(0);
    ulong sum = 0;
    for (ulong i = first; i < end; i += stride)
        sum += mixed(((ulong)words[i] << 32) ^ (i * 0x9e3779b97f4a7c15UL));
    sums[get_global_id(0)] = sum;
}
