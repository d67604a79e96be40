## How tensor_warp.cl.mako reads matrices of float64 where they lie, without packing.
##
##     <%namespace name="doubles" file="/gemm/tensor_doubles.mako"/>
##
## A step of a factor is a tile in local memory, in lines as they lie in memory:
##
##     along    a line for each row of op(A), or column of op(B), with all of the step's k
##     across   a line for each k, with all rows or columns of the tile
##
## Groups of four numbers change their places in a line by its number modulo 4. So the 16 lanes that read
## at once, four numbers of each of four lines, read all banks.
##
##   declare_step(...)   copy_step(stage, step): all items copy the next step, zero outside of the matrices
##   number(...)         OpenCL C: what this lane has of a block of 16 rows, or columns, and 8 of k
##
## along   whether lines lie along k       tile    rows or columns of the tile
## step    values of k in a step           block   OpenCL C: which block of 16 rows or columns
## p       which 8 of these values         later   whether it is the lane's second row, and second k
##
## Source: own. The caller declares a, b, m, n, k, item, lane, memory, tile_row, tile_column, copy_16, and
## guarantees that rows in memory are multiples of 16 bytes, that steps are of 16 numbers or more, and
## that items copy whole lines at a time. Cost: each step of a tile is read from L2 once. Pairs of
## numbers, read at once, would have to be moved to where the matrix unit wants them.
<%!
    def number(source, along, tile, step, block, p, later):
        row, k = (8 * later[0], f"{block} * 4 + {2 * later[0]} + lane / 16"), (8 * p + 4 * later[1], 2 * p + later[1])
        if along:
            line, group, moved, beside = f"{block} * 16 + {row[0]} + lane / 4", k[1], "lane / 4 % 4", "lane % 4"
        else:
            line, group, moved, beside = f"{k[0]} + lane % 4", row[1], "lane % 4", "lane / 4 % 4"
        at = f"({line}) * {8 * (step if along else tile)} + (({group}) ^ {moved}) * 32 + {beside} * 8"
        return f"*(__local const double *)({source} + {at})"
%>\
<%def name="begin(name, extent, tile_number, along, tile, step, items)">\
<%
    beside = (step if along else tile) // 2  # copies of 16 bytes in a line
    first = f"(index_t){tile_number} * {tile}"
    at = f"({first} + line_{name}) * k + place_{name}" if along else f"line_{name} * {extent} + {first} + place_{name}"
%>\
    const uint line_${name} = item / ${beside}, place_${name} = item % ${beside} * 2;
    const uint extent_${name} = (uint)min((ulong)(${extent} - ${first}), (ulong)${tile});
    __global const double *from_${name} = ${name} + (${at});
</%def>\
<%def name="copy_tile(name, extent, along, tile, step, items, offset)">\
<%
    line = (step if along else tile) * 8  # bytes
    apart = items * 16 // line  # lines from a copy of an item to the next
    across, length, whole = ("left", f"extent_{name}", "k") if along else (f"extent_{name}", "left", extent)
%>\
    const uint length_${name} = place_${name} < ${across} ? ${length} : 0; \
    _Pragma("unroll") \
    for (uint x = 0; x < ${tile * step * 8 // line // apart}; x++) { \
        const uint line = line_${name} + x * ${apart}; \
        copy_16(memory + (stage) * STAGE_BYTES + ${offset} + line * ${line} + (place_${name} ^ line % 4 * 4) * 8, \
                from_${name} + (index_t)(x * ${apart}) * ${whole}, line < length_${name} ? 16 : 0); \
    } \
    from_${name} += ${step}${"" if along else f" * {extent}"}; \
</%def>\
<%def name="declare_step(along_a, along_b, tile_m, tile_n, step, items)">\
${begin("a", "m", "tile_row", along_a, tile_m, step, items)}\
${begin("b", "n", "tile_column", along_b, tile_n, step, items)}\
#define copy_step(stage, step) { \
    const uint left = (uint)min((ulong)k - (step) * STEP, (ulong)STEP); \
${copy_tile("a", "m", along_a, tile_m, step, items, 0)}\
${copy_tile("b", "n", along_b, tile_n, step, items, 8 * tile_m * step)}\
}
</%def>\
