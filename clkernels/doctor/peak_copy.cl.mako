<%page args="VECTOR_WIDTH, CHUNKED, UNROLL, WG_SIZE"/>\
<% VECTOR = "uint" if VECTOR_WIDTH == 1 else f"uint{VECTOR_WIDTH}" %>\
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
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void fill(__global uint *restrict source, __global uint *restrict target, const uint per_item) {
  const ulong words = (ulong)per_item * ${VECTOR_WIDTH};
% if CHUNKED:
  for (ulong i = get_global_id(0) * words, end = i + words; i < end; i++) {
% else:
  for (ulong k = 0, i = get_global_id(0); k < words; k++, i += get_global_size(0)) {
% endif
    source[i] = word_at(i);
    target[i] = ~word_at(i);
  }
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void copy(__global const ${VECTOR} *restrict source, __global ${VECTOR} *restrict target,
          const uint per_item, const ulong rotation, const uint rounds) {
% if CHUNKED:
  source += get_global_id(0) * per_item;
  target += get_global_id(0) * per_item;
  const size_t mask = per_item - 1;
  size_t first = 0;
% else:
  const size_t stride = get_global_size(0), mask = stride * per_item - 1;
  size_t first = get_global_id(0);
% endif
  for (uint round = 0; round < rounds; round++, first += rotation)
    for (size_t k = 0; k < per_item; k += ${UNROLL}) {
% if CHUNKED:
      // Both terms are multiples of UNROLL, so that the block does not wrap inside.
      const size_t at = (first + k) & mask;
% endif
% for u in range(UNROLL):
% if not CHUNKED:
      const size_t at${u} = (first + (k + ${u}) * stride) & mask;
      const ${VECTOR} v${u} = source[at${u}];
% else:
      const ${VECTOR} v${u} = source[at + ${u}];
% endif
% endfor
% for u in range(UNROLL):
      target[${f"at + {u}" if CHUNKED else f"at{u}"}] = v${u};
% endfor
    }
}
