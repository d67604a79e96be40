## How warpgroups that share the k of a tile add up their sums in the same launch.
##
##     partial, of a tile    part 0: four sums of all items | the next four | ...    part 1: ...
##     arrived, of a tile    how many parts have come
##
## Every group leaves its sums as its items have them. The last one to come to a tile adds up those of
## all parts, in their order, so that the result is the same each time. Items that copied have returned, so
## the others meet at a barrier of their own.
##
## Source: "threadFenceReduction" of NVIDIA's CUDA samples; PTX ISA 9.0, section on barrier. The caller
## guarantees: `arrived` is zero at first; `splits` groups come to each tile. Uses DEVICE_FENCE. Cost: a
## write of the sums and a read.
##
## sums    names of the item's arrays of sums
## count   sums in each
## items   that multiply
<%def name="parts_of_tile(sums, count, items)">\
<%
    quarter = count // 4
    apart = len(sums) * quarter * items
%>\
#define multipliers_meet() asm volatile("barrier.sync 1, ${items};" ::: "memory")
    const ulong tile_number = (ulong)get_group_id(1) * tiles_m * tiles_n + group;
    __global float4 *kept = partial + tile_number * splits * ${apart} + item;
    __global float4 *own = kept + (ulong)get_group_id(2) * ${apart};
% for number, name in enumerate(sums):
    #pragma unroll
    for (uint i = 0; i < ${quarter}; i++)
        own[(i + ${number * quarter}) * ${items}] =
            (float4)(${", ".join(f"{name}[4 * i + {e}]" for e in range(4))});
% endfor
    __local uint before_me;
    DEVICE_FENCE();
    multipliers_meet();
    if (item == 0)
        before_me = atomic_inc(arrived + tile_number);
    multipliers_meet();
    DEVICE_FENCE();
    if (before_me + 1 != splits)
        return;
    if (item == 0)
        arrived[tile_number] = 0;
% for name in sums:
    #pragma unroll
    for (uint i = 0; i < ${count}; i++)
        ${name}[i] = 0;
% endfor
    #pragma unroll 1
    for (uint part = 0; part < splits; part++) {
% for number, name in enumerate(sums):
        #pragma unroll
        for (uint i = 0; i < ${quarter}; i++) {
            const float4 four = kept[(i + ${number * quarter}) * ${items}];
% for e in range(4):
            ${name}[4 * i + ${e}] += four.s${e};
% endfor
        }
% endfor
        kept += ${apart};
    }
</%def>\
