## Rows that are cut into slices, one per group, and sums of counts over items and slices.
##
##     row      |<- slice 0 ->|<- slice 1 ->|<- slice 2 ->|..|   whole tiles each, but for the last one
##     counts         c0            c1            c2             a word each, by the group of the slice
##
##   slice_begin(..)   where a slice of a row begins; the last one ends with the row
##   scan_index(..)    like scan_group of scan.mako, but of index_t: sums of items before this one
##   sum_before(..)    the sum of the words of all slices before one, the same for all items
##
## The caller guarantees: each item of a group calls the last two; `space` has SPACE words of local
## memory, which may be used again at once.
##
## Source: W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 1986. Cost of a scan: log2 of
## WG_SIZE rounds, of two accesses to local memory and a barrier; of `sum_before`: a scan, and a read
## of each word per group.
##
## WIDE      whether index_t needs 64 bits
## WG_SIZE   items of a group
<%namespace name="scan" file="scan.mako"/>\
<%namespace name="broadcast" file="broadcast.mako"/>\
<%def name="declare(WIDE, WG_SIZE)">\
typedef ${"ulong" if WIDE else "uint"} index_t;
#define SPACE ${2 * WG_SIZE}

static inline index_t slice_begin(const index_t count, const uint slice, const uint slices, const uint tile)
{
    const index_t tiles = count / tile + (count % tile != 0);
    const index_t each = tiles / slices + (tiles % slices != 0);
    const ulong begin = (ulong)each * tile * slice;
    return begin < count ? (index_t)begin : count;
}

static inline index_t scan_index(const index_t value, __local index_t *space)
{
    const uint item = (uint)get_local_id(0);
    index_t sum = value;
    uint half_ = 0;
    ${scan.add_up(WG_SIZE)}\
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum - value;
}

static inline index_t sum_before(__global const uint *words, const uint slice, __local index_t *space)
{
    const uint item = (uint)get_local_id(0);
    index_t own = 0;
    for (uint first = 0; first < slice; first += ${WG_SIZE}) {
        const uint p = first + item;
        own += p < slice ? words[p] : 0;
    }
    const index_t before = scan_index(own, space);
    ${broadcast.send("space[0]", "before + own", WG_SIZE - 1)}
    const index_t sum = space[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}
</%def>\
