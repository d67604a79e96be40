/*
 * An example of clkernels/doctor/peak_copy.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    VECTOR_WIDTH=4, CHUNKED=False, UNROLL=4, WG_SIZE=256
 */
/*
 * Probe: the peak of copying, from memory or from a cache, and the data for it.
 *
 * Source: own.
 *
 *   CHUNKED      | item 0: 0 1 2 3 ... | item 1: ...          a stream of its own an item, for CPUs
 *   interleaved  | item 0 1 2 3 ... | item 0 1 2 3 ... |      neighbours touch neighbours, for GPUs
 *
 * Each round copies everything again, beginning `rotation` vectors further: the order changes
 * and the result does not. So a compiler can neither skip a round nor keep anything in registers,
 * and on a GPU other cores come to a vector than in the round before: their own caches do not help.
 *
 * The host guarantees: source and target hold global size * per_item vectors; both factors are
 * powers of two, per_item and (where CHUNKED) rotation multiples of UNROLL.
 *
 *   VECTOR_WIDTH  32-bit words in a vector
 *   CHUNKED       see above
 *   UNROLL        vectors that are loaded before they are stored
 *   WG_SIZE       work-items in a work-group
 */
uint word_at(const ulong position) {
    uint v = (uint)position * 0x9e3779b9u + (uint)(position >> 32);
    v = (v ^ (v >> 16)) * 0x7feb352du;
    return v ^ (v >> 15);
}

// By the same items as the copy: memory may lie near the core that touches it first.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void fill(__global uint *restrict source, __global uint *restrict target, const uint per_item) {
    const ulong words = (ulong)per_item * 4;
    for (ulong k = 0, i = get_global_id(0); k < words; k++, i += get_global_size(0)) {
        source[i] = word_at(i);
        target[i] = ~word_at(i);
    }
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void copy(__global const uint4 *restrict source, __global uint4 *restrict target,
          const uint per_item, const ulong rotation, const uint rounds) {
    const size_t stride = get_global_size(0), mask = stride * per_item - 1;
    size_t first = get_global_id(0);
    for (uint round = 0; round < rounds; round++, first += rotation)
        for (size_t k = 0; k < per_item; k += 4) {
            const size_t at0 = (first + (k + 0) * stride) & mask;
            const uint4 v0 = source[at0];
            const size_t at1 = (first + (k + 1) * stride) & mask;
            const uint4 v1 = source[at1];
            const size_t at2 = (first + (k + 2) * stride) & mask;
            const uint4 v2 = source[at2];
            const size_t at3 = (first + (k + 3) * stride) & mask;
            const uint4 v3 = source[at3];
            target[at0] = v0;
            target[at1] = v1;
            target[at2] = v2;
            target[at3] = v3;
        }
}
