## Tickets: numbers that groups take in the order in which they start, so that what a group waits for
## belongs to one that has started. Whoever holds ticket t knows that 0 to t - 1 are held.
##
## take_ticket(counter, place) returns the next number of `counter`, the same for all items of the
## group; `place` is a word of local memory. Each item of the group must call it.
static inline uint take_ticket(volatile __global uint *counter, __local uint *place)
{
    if (get_local_id(0) == 0)
        *place = atomic_inc(counter);
    barrier(CLK_LOCAL_MEM_FENCE);
    return *place;
}
