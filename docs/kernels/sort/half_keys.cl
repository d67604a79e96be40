/*
 * An example of clkernels/sort/half_keys.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       sort n=5000 dtype=float16
 *     algorithm     odd-even-merge
 *     configuration WG_SIZE=512 TILE=2048 WORK_PER_ITEM=4 BLOCKED=True NARROW=False
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        widen_keys, (5056,) items in groups of (64,)
 */
/*
 * Keys of half precision as those of single precision, and back, bit for bit: exact for every
 * number, and a NaN keeps its sign and payload, which conversions of the device may change.
 *
 *     half     s eeeee ffffffffff
 *     single   s eeeeeeee ffffffffff0000000000000     e + 112; infinities, NaN: all ones
 *
 * Needs no arithmetic in halfs of the device.
 *
 * widen_keys    half to single
 * narrow_keys   back, for what widen_keys made
 *
 * The host guarantees: the arrays do not overlap; there is an item for each key.
 *
 * WG_SIZE  work-items in a work-group
 */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void widen_keys(__global const ushort *restrict source,
                __global uint *restrict target,
                const ulong count)
{
    const size_t i = get_global_id(0);
    if (i < count) {
        const uint half_size = source[i] & 0x7fff, sign = source[i] >> 15;
        const uint normal = (half_size << 13) + (112 << 23);
        const uint subnormal = as_uint((float)half_size * 0x1p-24f);
        const uint special = (half_size << 13) + (224 << 23);
        target[i] = sign << 31
                    | (half_size < 0x400 ? subnormal : half_size < 0x7c00 ? normal : special);
    }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void narrow_keys(__global const uint *restrict source,
                 __global ushort *restrict target,
                 const ulong count)
{
    const size_t i = get_global_id(0);
    if (i < count) {
        const uint size = source[i] & 0x7fffffff, sign = source[i] >> 31;
        const uint normal = (size - (112 << 23)) >> 13;
        const uint subnormal = (uint)(as_float(size) * 0x1p24f);
        const uint special = (size - (224 << 23)) >> 13;
        target[i] = sign << 15
                    | (size < 113 << 23 ? subnormal : size < 255u << 23 ? normal : special);
    }
}
