## How blocked.cl.mako moves elements: wide loads and stores, and tiles on their way to local memory.
##
## A tile of a matrix has TILE_K lines of `extent` elements of it. In memory its rows lie along these
## lines, or across them, and then the tile is turned on its way:
##
##     along    p = number / (extent / width)     e = number % (extent / width) * width
##     across   e = number / (TILE_K / width)     p = number % (TILE_K / width) * width
##
## `number` counts the loads of a tile, of `width` elements each: those of neighbouring items lie side by
## side in memory.
##
##   find(matrix, items, depth)             where an item's loads lie, as offsets from the matrix
##   load(matrix, items, depth, some)       into registers; past `some` of k zero
##   put(matrix, items, depth, offset)      from registers to the tile
##   stage(matrix, items, depth, some)      both, load after load
##   advance(matrix, by)                    the matrix begins `by` further along k
##
## TYPE, ALIGNED and MOST are read from the page that calls.
##
## Source: own. Cost: with ALIGNED an instruction a load; vloadN is one an element on some GPUs.
<%namespace name="parts" file="/gemm/parts.mako"/>\
<%!
    from dataclasses import dataclass


    @dataclass(frozen=True)
    class Matrix:
        """One of the factors: its name, and how its tile lies in memory and in local memory."""

        name: str
        extent: int  # rows or columns of a tile
        along: bool  # rows in memory lie along the lines of the tile
        conjugated: bool
        width: int  # elements of a load
        line: int  # elements from line to line of the tile
        size: str  # rows or columns of the whole matrix
        first: str  # the first of them in the tile

        def trips(self, items, depth):
            return depth * self.extent // self.width // items

        def beside(self, depth):
            """Loads side by side in memory."""
            return (self.extent if self.along else depth) // self.width

        def places(self, items, depth):
            """Where the loads of an item lie in the tile: pairs of expressions for p and e."""
            beside, found = self.beside(depth), []
            near, far = f"{self.name}_near", f"{self.name}_far"
            for j in range(self.trips(items, depth)):
                if items % beside == 0:
                    place = f"({far} + {j * (items // beside)})", near
                elif beside % items == 0:
                    rows, within = divmod(j, beside // items)
                    place = str(rows), f"({near} + {within * items * self.width})"
                else:
                    place = self.place(f"(item + {j * items})", depth)
                found.append(place if self.along else place[::-1])
            return found

        def place(self, number, depth):
            """The row in memory, and where in it, of a load."""
            return f"({number} / {self.beside(depth)})", f"({number} % {self.beside(depth)} * {self.width})"

        def offset(self, p, e):
            """Where an element lies; past the end of the matrix its last ones are read instead."""
            if self.along:
                return f"{p} * {self.size} + min({self.first} + {e}, {self.size} - {self.width})"
            return f"min({self.first} + {e}, {self.size} - 1) * k + {p}"


    def store(type, value, pointer, width, aligned, most):
        """Statements that store `width` sums as elements."""
        if type in ("float2", "double2"):
            return f"*({pointer}) = {value};"
        if aligned and width > 1:
            if type == "half":
                return f"vstorea_half{width}({value}, 0, {pointer});"
            return f"*(__global {type}{width} *)({pointer}) = {value};"
        suffix = "" if width == 1 else width
        if type == "half":
            return f"vstore_half{suffix}({value}, 0, {pointer});"
        return f"({pointer})[0] = {value};" if width == 1 else f"vstore{width}({value}, 0, {pointer});"
%>\
<%def name="number_t(width)">\
<%
    whole = parts.module.sum_type(TYPE)
    each = 2 if parts.module.is_complex(TYPE) else 1
%>\
${parts.module.vector(whole.removesuffix("2"), width * each)}\
</%def>\
<%def name="value(matrix, offset)">\
<%
    each = 2 if parts.module.is_complex(TYPE) else 1
    real, width, pointer = TYPE.removesuffix("2"), matrix.width * each, f"{matrix.name} + {offset}"
    pointer = f"({pointer})"
    if width == 1:
        text = f"load_element({pointer}, 0)"
    elif ALIGNED:
        text = f"vloada_half{width}(0, {pointer})" if real == "half" else f"*(__global const {real}{width} *){pointer}"
    else:
        text = parts.module.load(real, f"((__global const {real} *){pointer})", width, MOST)
    if matrix.conjugated:
        text = f"{text} * ({real}{width})({', '.join(['1, -1'] * matrix.width)})"
%>\
${text}\
</%def>\
<%def name="find(matrix, items, depth)">\
    const uint ${matrix.name}_far = item / ${matrix.beside(depth)};
    const uint ${matrix.name}_near = item % ${matrix.beside(depth)} * ${matrix.width};
% for j, (p, e) in enumerate(matrix.places(items, depth)):
    const index_t ${matrix.name}_at_${j} = ${matrix.offset(p, e)};
% endfor
% for j in range(matrix.trips(items, depth)):
    ${number_t(matrix.width)} ${matrix.name}_next_${j};
% endfor
</%def>\
<%def name="load(matrix, items, depth, some)">\
% for j, (p, e) in enumerate(matrix.places(items, depth)):
<% at = f"{matrix.name}_at_{j}" %>\
    ${matrix.name}_next_${j} = \
% if some:
${p} < ${some} ? ${value(matrix, at)} : (${number_t(matrix.width)})(0);
% else:
${value(matrix, at)};
% endif
% endfor
</%def>\
<%def name="put(matrix, items, depth, offset)">\
% for j, (p, e) in enumerate(matrix.places(items, depth)):
${put_one(matrix, p, e, f"{matrix.name}_next_{j}", offset)}\
% endfor
</%def>\
<%def name="put_one(matrix, p, e, name, offset)">\
<% each = 2 if parts.module.is_complex(TYPE) else 1 %>\
% if matrix.along:
    *(__local ${number_t(matrix.width)} *)(${matrix.name}_tile + ${offset} + ${p} * ${matrix.line} + ${e}) = ${name};
% else:
% for l in range(matrix.width):
    ${matrix.name}_tile[${offset} + (${p} + ${l}) * ${matrix.line} + ${e}] = \
${parts.module.lanes(name, l * each, each, matrix.width * each)};
% endfor
% endif
</%def>\
## All items make the same trips: PoCL 5 fails to compile a barrier after a loop or a condition that
## depends on the item (its issue 1435).
<%def name="stage(matrix, items, depth, some)">\
<%
    row, within = matrix.place("number", depth)
    p, e = (row, within) if matrix.along else (within, row)
%>\
    for (uint trip = 0; trip < ${matrix.trips(items, depth)}; ++trip) {
        const uint number = item + trip * ${items};
        const ${number_t(matrix.width)} next = ${p} < ${some}
            ? ${value(matrix, f"({matrix.offset(p, e)})")} : (${number_t(matrix.width)})(0);
${put_one(matrix, p, e, "next", "0")}\
    }
</%def>\
<%def name="advance(matrix, by)">\
    ${matrix.name} += (index_t)(${by})${f" * {matrix.size}" if matrix.along else ""};
</%def>\
