## How warpgroups that have slices of the k of a tile add up their sums in the same launch.
##
##     partial, of a tile    slice 0: four sums of all items | the next four | ...    slice 1: ...
##     arrived, of a tile    how many slices have come
##
## Every group leaves its sums as its items have them. The last one to come to a tile adds up those of
## all slices, in their order, so that the result is the same each time. Items that copied have returned,
## so the others meet at a barrier of their own.
##
##   by_last_group(sums, count, items)   leave the sums; what follows is for the last group
##
## sums    names of the item's arrays of sums
## count   sums in each
## items   that multiply
##
## Source: "threadFenceReduction" of NVIDIA's CUDA samples; PTX ISA 9.0, section on barrier. The caller
## guarantees: `arrived` is zero at first; `splits` groups come to each tile; DEVICE_FENCE of fence.mako.
## Cost: a write of the sums and a read.
<%def name="by_last_group(sums, count, items)">\
<%
    quarter = count // 4
    apart = len(sums) * quarter * items
%>\
#define multipliers_meet() asm volatile("barrier.sync 1, ${items};" ::: "memory")
    const ulong tile_number = (ulong)get_group_id(1) * tiles_m * tiles_n + group;
    __global float4 *all_sums = partial + tile_number * splits * ${apart} + item;
    __global float4 *own = all_sums + (ulong)get_group_id(2) * ${apart};
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
    for (uint slice = 0; slice < splits; slice++) {
% for number, name in enumerate(sums):
        #pragma unroll
        for (uint i = 0; i < ${quarter}; i++) {
            const float4 four = all_sums[(i + ${number * quarter}) * ${items}];
% for e in range(4):
            ${name}[4 * i + ${e}] += four.s${e};
% endfor
        }
% endfor
        all_sums += ${apart};
    }
</%def>\
