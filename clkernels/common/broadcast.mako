## One item of a group tells all others a value.
##
##     send(place, value, owner, item)   item number `owner` writes `value` to `place`, a word of local
##                                       memory; after it all items may read that
##
## Source: own. The caller guarantees: all items of the group come here, and a barrier is between
## the last read of `place` and the next `send`. Cost: one barrier.
##
## item   OpenCL C: the number of this item
<%def name="send(place, value, owner, item='item')">\
if (${item} == ${owner})
    ${place} = ${value};
barrier(CLK_LOCAL_MEM_FENCE);\
</%def>\
