## What items keep in private arrays, and its exchange through local memory.
##
##     private array    item 0: v0 v1 v2 | item 1: v0 v1 v2 | ..      `count` values per item
##                                 \  write: value j to place places[j]
##     local memory     [ .  .  .  .  .  .  .  .  .  .  .  .  . ]     wait for all, then read
##
## A compiler keeps a private array in registers if all its indices are constants, that is, if loops
## over it are unrolled, which NVIDIA's compiler is told by a pragma: `unroll` says whether to.
##
##   unrolled(unroll)                                before a loop
##   each(j, count, unroll)                          the head of a loop over the array
##   first(j, some, count, unroll)                   the same, over its first `some` values at most
##   write(space, places, values, count, unroll)     values of an item to places of its own
##   read(values, space, number, count, unroll)      value j from place `number`(j)
##   exchange(..)                                    both, with what they wait for
##
## Source: own. The caller guarantees: all items of a group call `exchange`; places are different,
## and `space` has room for all; other uses of `space` are done. Cost of an exchange: a write and a
## read of local memory per value, and two barriers; after it `space` is free.
<%def name="unrolled(unroll)">\
% if unroll:
#pragma unroll
% endif
</%def>\
<%def name="each(j, count, unroll)">\
${unrolled(unroll)}\
for (uint ${j} = 0; ${j} < ${count}; ++${j})\
</%def>\
## some  how many of `count`, the same for all items of a group: there may be barriers in the loop
<%def name="first(j, some, count, unroll)">\
% if unroll:
${each(j, count, unroll)}
    if (${j} < ${some})\
% else:
for (uint ${j} = 0; ${j} < ${some}; ++${j})\
% endif
</%def>\
<%def name="write(space, places, values, count, unroll)">\
${each("j", count, unroll)}
    ${space}[${places}[j]] = ${values}[j];
</%def>\
<%def name="read(values, space, number, count, unroll)">\
${each("j", count, unroll)}
    ${values}[j] = ${space}[${number}(j)];
</%def>\
## type      of a value in OpenCL C
## name      of the variable by which local memory is known then
## memory    a pointer to local memory that is aligned for it
<%def name="exchange(type, name, memory, values, places, number, count, unroll)">\
__local ${type} *${name} = (__local ${type} *)${memory};
${write(name, places, values, count, unroll)}\
barrier(CLK_LOCAL_MEM_FENCE);
${read(values, name, number, count, unroll)}\
barrier(CLK_LOCAL_MEM_FENCE);
</%def>\
