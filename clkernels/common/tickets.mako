## Tickets: numbers that groups take in the order in which they start, so that what a group waits for
## belongs to one that has started. Whoever holds ticket t knows that 0 to t - 1 are held.
##
## take_ticket(counter, place) returns the next number of `counter`, the same for all items of the
## group; `place` is a word of local memory. The caller guarantees: each item of the group calls it,
## once per kernel; the host makes `counter` zero before. Source: S. Yan et al., "StreamScan", PPoPP
## 2013 (dynamic identifiers of groups). Cost: an atomic operation per group and a barrier.
<%namespace name="broadcast" file="broadcast.mako"/>\
<%def name="declare()">\
static inline uint take_ticket(volatile __global uint *counter, __local uint *place)
{
    ${broadcast.send("*place", "atomic_inc(counter)", 0, "get_local_id(0)")}
    return *place;
}
</%def>\
