## How blocked.cl.mako adds up sums of parts of k: those of items of a group, and of groups in one launch.
##
##     partial, of a tile    slice 0: vector 0 of all items | vector 1 | ...   slice 1: ...
##     arrived, of a tile    how many slices have come
##
## Every group leaves its sums as its items have them. The last one to come to a tile adds up those of
## all slices, in their order, so that the result is the same each time.
##
##   within_group(..)             sums of `shares` items become one: a part of them in each item, `mine_j`
##   by_last_group(sums, items)   leave the sums; what follows is for the last group, in braces
##   end()
##
## sums     names of the item's sums, of type vec_t
## items    of a group
## shares   items that have the same sums, of other values of k
## room     vectors of sums that the local memory `tiles` has room for
##
## Source: "threadFenceReduction" of NVIDIA's CUDA samples, see common/arrival.mako. The caller
## guarantees that all items come here, and declares partial, arrived, splits, item, number
## (product * splits + slice), counter (the tile, counted over all products). Cost: a write of the sums
## and a read, 16 vectors of an item under way.
<%namespace name="arrival" file="/common/arrival.mako"/>\
<%def name="by_last_group(sums, items)">\
    /* Leave the sums to the last group of this tile, which adds up those of all. */
    const size_t apart = ${len(sums) * items};
    __global vec_t *left = (__global vec_t *)partial + counter * splits * apart + item;
    __global vec_t *own = left + number % splits * apart;
% for j, sum in enumerate(sums):
    own[${j * items}] = ${sum};
% endfor
    __local uint before_me;
    ${arrival.arrive("arrived[counter]", "before_me")}
    if (before_me + 1 == splits) {
    if (item == 0)
        arrived[counter] = 0;
% for sum in sums:
    ${sum} = 0;
% endfor
#pragma unroll ${max(1, 16 // len(sums))}
    for (uint slice = 0; slice < splits; ++slice) {
% for j, sum in enumerate(sums):
        ${sum} += left[${j * items}];
% endfor
        left += apart;
    }
</%def>\
<%def name="end()">\
    }
</%def>\
## Item `share` of those that have the same sums gets numbers share, share + shares, .. of them. All sums
## go through local memory, some at a time.
<%def name="within_group(sums, items, shares, room)">\
<% together = min(len(sums), room // items // shares * shares) %>\
    __local vec_t *const added = (__local vec_t *)tiles;
% for begin in range(0, len(sums), together):
<% some = sums[begin : begin + together] %>\
    barrier(CLK_LOCAL_MEM_FENCE); /* the tiles, or sums, may be overwritten */
% for j, sum in enumerate(some):
    added[${j * items} + item] = ${sum};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE); /* all sums have come */
% for j in range(len(some) // shares):
    vec_t mine_${begin // shares + j} = 0;
    for (uint other = 0; other < ${shares}; ++other)
        mine_${begin // shares + j} += added[(${j * shares} + share) * ${items} + other * ${items // shares} + owner];
% endfor
% endfor
</%def>\
