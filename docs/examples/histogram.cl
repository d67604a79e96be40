/* Adds to the counts of the values from 0 to 255.
 *
 * A group counts in local memory, and then adds what it has to the counts of all.
 *
 *   WG_SIZE  items in a work-group
 *   WORK     values of one item
 */
__kernel __attribute__((reqd_work_group_size(WG_SIZE, 1, 1)))
void histogram(__global const uchar *values, __global uint *counts, const uint n)
{
    __local uint own[256];
    const uint item = get_local_id(0), first = get_group_id(0) * WG_SIZE * WORK;
    for (uint value = item; value < 256; value += WG_SIZE)
        own[value] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 0; step < WORK; step++) {
        const uint i = first + step * WG_SIZE + item;
        if (i < n)
            atomic_inc(&own[values[i]]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint value = item; value < 256; value += WG_SIZE)
        atomic_add(&counts[value], own[value]);
}
