## How blocked.cl.mako brings tiles of a matrix from global to local memory.
##
## A tile has `depth` lines, one for each k, of `extent` elements. In memory the rows of the matrix lie
## along these lines, or across them, and then the tile is turned on its way:
##
##     along    p = number / (extent / width)     e = number % (extent / width) * width
##     across   e = number / (depth / width)      p = number % (depth / width) * width
##
## `number` counts the loads of a tile, of `width` elements each: those of neighbouring items lie side by
## side in memory.
##
##   find(element, tile)                     where an item's loads lie, as offsets from the matrix
##   load(.., tile, some)                    into registers; past `some` of k zero
##   put(element, tile, offset)              from registers to the tile
##   stage(.., tile, some)                   both, load after load
##   advance(tile, by)                       the matrix begins `by` further along k
##
## element         the `Element` of the product
## aligned, most   whether vectors in memory are aligned; how many real numbers a built-in function
##                 takes at once if not
## tile            a `StagedTile` of opencl_lab/ops/gemm/blocked/algorithm.py
##
## Source: own. The caller declares a, b, a_tile, b_tile, item, first_row, first_column, m, n, k. Cost:
## an instruction a load where vectors are aligned; vloadN is one an element on some GPUs.
<%namespace name="elements" file="/gemm/elements.mako"/>\
<%!
    def place(tile, number):
        """The row in memory, and where in it, of a load."""
        return f"({number} / {tile.beside})", f"({number} % {tile.beside} * {tile.width})"


    def places(tile):
        """Where the loads of an item lie in the tile: pairs of expressions for p and e."""
        items, beside, found = tile.items, tile.beside, []
        near, far = f"{tile.name}_near", f"{tile.name}_far"
        for j in range(tile.loads):
            if items % beside == 0:
                where = f"({far} + {j * (items // beside)})", near
            elif beside % items == 0:
                rows, within = divmod(j, beside // items)
                where = str(rows), f"({near} + {within * items * tile.width})"
            else:
                where = place(tile, f"(item + {j * items})")
            found.append(where if tile.along else where[::-1])
        return found


    def offset(tile, p, e):
        """Where an element lies; past the end of the matrix its last ones are read instead."""
        if tile.along:
            return f"{p} * {tile.size} + min({tile.first} + {e}, {tile.size} - {tile.width})"
        return f"min({tile.first} + {e}, {tile.size} - 1) * k + {p}"
%>\
<%def name="number_t(element, width)">\
${elements.module.vector(element.real, width * elements.module.components(element))}\
</%def>\
<%def name="value(element, aligned, most, tile, offset)">\
<%
    components = elements.module.components(element)
    real, width = element.type.removesuffix("2") if element.complex else element.type, tile.width * components
    pointer = f"({tile.name} + {offset})"
    if width == 1:
        text = f"load_element({pointer}, 0)"
    elif aligned:
        text = f"vloada_half{width}(0, {pointer})" if real == "half" else f"*(__global const {real}{width} *){pointer}"
    else:
        text = elements.module.load(real, f"((__global const {real} *){pointer})", width, most)
    if tile.conjugated:
        text = f"{text} * ({real}{width})({', '.join(['1, -1'] * tile.width)})"
%>\
${text}\
</%def>\
<%def name="find(element, tile)">\
    const uint ${tile.name}_far = item / ${tile.beside};
    const uint ${tile.name}_near = item % ${tile.beside} * ${tile.width};
% for j, (p, e) in enumerate(places(tile)):
    const index_t ${tile.name}_at_${j} = ${offset(tile, p, e)};
% endfor
% for j in range(tile.loads):
    ${number_t(element, tile.width)} ${tile.name}_next_${j};
% endfor
</%def>\
<%def name="load(element, aligned, most, tile, some)">\
% for j, (p, e) in enumerate(places(tile)):
    ${tile.name}_next_${j} = \
% if some:
${p} < ${some} ? ${value(element, aligned, most, tile, f"{tile.name}_at_{j}")} : (${number_t(element, tile.width)})(0);
% else:
${value(element, aligned, most, tile, f"{tile.name}_at_{j}")};
% endif
% endfor
</%def>\
<%def name="put(element, tile, offset)">\
% for j, (p, e) in enumerate(places(tile)):
${put_one(element, tile, p, e, f"{tile.name}_next_{j}", offset)}\
% endfor
</%def>\
<%def name="put_one(element, tile, p, e, name, offset)">\
<% components = elements.module.components(element) %>\
% if tile.along:
    *(__local ${number_t(element, tile.width)} *)(${tile.name}_tile + ${offset} + ${p} * ${tile.line} + ${e}) = ${name};
% else:
% for l in range(tile.width):
    ${tile.name}_tile[${offset} + (${p} + ${l}) * ${tile.line} + ${e}] = \
${elements.module.lanes(name, l * components, components, tile.width * components)};
% endfor
% endif
</%def>\
## All items make the same trips: PoCL 5 fails to compile a barrier after a loop or a condition that
## depends on the item (its issue 1435).
<%def name="stage(element, aligned, most, tile, some)">\
<%
    row, within = place(tile, "number")
    p, e = (row, within) if tile.along else (within, row)
%>\
    for (uint trip = 0; trip < ${tile.loads}; ++trip) {
        const uint number = item + trip * ${tile.items};
        const ${number_t(element, tile.width)} next = ${p} < ${some}
            ? ${value(element, aligned, most, tile, f"({offset(tile, p, e)})")} : (${number_t(element, tile.width)})(0);
${put_one(element, tile, p, e, "next", "0")}\
    }
</%def>\
<%def name="advance(tile, by)">\
    ${tile.name} += (index_t)(${by})${f" * {tile.size}" if tile.along else ""};
</%def>\
