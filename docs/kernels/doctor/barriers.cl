/*
 * An example of clkernels/doctor/barriers.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    WG_SIZE=64
 */
/*
 * Probe: barriers in loops, in the three shapes that the kernels of this project use.
 *
 * Source: own; the shapes come from wrong-code reports against PoCL's work-item
 * loops (its issues 553, 1167, 1711 and 1990).
 *
 *   scan   log2 steps, each item reads its neighbour at 1, 2, 4, ... to the left
 *   sort   bitonic network over 2 * WG_SIZE keys; the barrier sits in a function
 *   tiles  load a tile | barrier | use all of it | barrier, `tile_count` times
 *
 * The host guarantees: x and out hold one element for each item (sort: two); for
 * `sort`, WG_SIZE is a power of two; for `tiles`, x holds tile_count * WG_SIZE elements.
 *
 *   WG_SIZE  work-items in a work-group
 */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void scan(__global const uint *restrict x, __global uint *restrict out) {
    __local uint tile[64];
    const uint l = (uint)get_local_id(0);
    uint sum = x[get_global_id(0)];
    tile[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < 64; step <<= 1) {
        const uint left = l >= step ? tile[l - step] : 0;
        // All must have read before anyone overwrites.
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += left;
        tile[l] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = sum;
}

void exchange(__local uint *tile, const uint l, const uint block, const uint distance) {
    const uint i = 2 * l - (l & (distance - 1));
    const uint a = tile[i], b = tile[i + distance];
    if ((a > b) == ((i & block) == 0)) {
        tile[i] = b;
        tile[i + distance] = a;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void sort(__global const uint *restrict x, __global uint *restrict out) {
    __local uint tile[128];
    const uint l = (uint)get_local_id(0);
    const size_t base = get_group_id(0) * 128;
    tile[l] = x[base + l];
    tile[l + 64] = x[base + l + 64];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint block = 2; block <= 128; block <<= 1)
        for (uint distance = block >> 1; distance > 0; distance >>= 1)
            exchange(tile, l, block, distance);
    out[base + l] = tile[l];
    out[base + l + 64] = tile[l + 64];
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void tiles(__global const uint *restrict x, __global uint *restrict out, const uint tile_count) {
    __local uint tile[64];
    const uint l = (uint)get_local_id(0);
    uint sums[4] = {0, 0, 0, 0};
    for (uint t = 0; t < tile_count; t++) {
        tile[l] = x[t * 64 + l];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < 64; i++)
            sums[i & 3] += tile[(l + i) % 64] * (i + 1);
        // The next round overwrites the tile.
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
}
