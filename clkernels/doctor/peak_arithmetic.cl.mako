<%page args="REAL_T, VECTOR_WIDTH, CHAINS, UNROLL, WG_SIZE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
${extensions.enable(fp64=REAL_T == 'double')}\
<% VECTOR = REAL_T if VECTOR_WIDTH == 1 else f"{REAL_T}{VECTOR_WIDTH}" %>\
/*
 * Probe: the peak of multiply-add arithmetic.
 *
 * Source: own. A multiply-add waits for the one before it in its chain, so that it takes
 * several independent chains, all in registers, to keep the pipelines of a core full.
 *
 *   chain 0     x0 -> x0*scale + shift -> ...          CHAINS vectors an item; all of them
 *   chain 1     x1 -> x1*scale + shift -> ...          make `rounds` * UNROLL steps
 *   ...                                                sums[item] = x0 + x1 + ...
 *
 * Plain operators, which compilers contract: built-ins on wide vectors crash some drivers.
 * With scale = shift = 1 a chain counts its own steps exactly, as long as they are fewer than
 * 2**23, so that the result shows whether all of them were made.
 *
 * The host guarantees: start holds CHAINS vectors, sums one for each item.
 *
 *   REAL_T        float or double
 *   VECTOR_WIDTH  numbers in a vector
 *   CHAINS        independent vectors of an item
 *   UNROLL        steps of each chain in one round
 *   WG_SIZE       work-items in a work-group
 */
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void multiply_add(__global const ${VECTOR} *restrict start, __global ${VECTOR} *restrict sums,
                  const ${REAL_T} scale, const ${REAL_T} shift, const uint rounds) {
  // Items differ, or a compiler could do the work of all of them once.
  const ${REAL_T} own = (${REAL_T})(get_global_id(0) & 15);
% for chain in range(CHAINS):
  ${VECTOR} x${chain} = start[${chain}] + own;
% endfor
  for (uint round = 0; round < rounds; round++) {
% for step in range(UNROLL):
% for chain in range(CHAINS):
    x${chain} = x${chain} * scale + shift;
% endfor
% endfor
  }
  sums[get_global_id(0)] = ${" + ".join(f"x{chain}" for chain in range(CHAINS))};
}
