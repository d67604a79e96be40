## Pieces of OpenCL C as text for conv2d_register: see register.cl.mako. P and S are its PIXELS and
## STRIP.
##
##   sum_O_V, sum_O_V_L  the sums of row O and vector V of an item: as a vector, or lane by lane
##   values[N][L]        the same in private memory, for an item at an edge that computes vectors
##   strip[..][K]        values of a row of the image that are collected at an edge
<%!
    def listed(values):
        """A vector of sums from its values, or one value alone."""
        return values[0] if len(values) == 1 else f"(vec_t)({', '.join(values)})"


    def load(P, S, pointer):
        """The vector at `pointer`, which is aligned to one element only."""
        if P.element_t == P.sum_t and S.vector_width > 1:
            return f"((__global const packed_t *)({pointer}))->v"
        if P.element_t == "half" or S.vector_width == 1:
            return listed([f"load_pixel({pointer} + {l})" for l in range(S.vector_width)])
        width = "" if S.piece == 1 else S.piece
        whole = f"{'int' if P.sum_t == 'uint' else P.sum_t}{width}"
        pieces = [f"convert_{whole}(((__global const packed_piece_t *)({pointer} + {k}))->v)"
                  for k in range(0, S.vector_width, S.piece)]
        return listed([f"as_{P.sum_t}{width}({piece})" for piece in pieces])


    def packed(S, pointer):
        """A vector of private memory, which is aligned to one element only."""
        return f"((__private packed_t *)({pointer}))->v" if S.vector_width > 1 else f"*({pointer})"


    def collected_at(S, v):
        """Where the values that are collected for a vector begin."""
        return f"strip[0] + {v * S.vector_width}" if S.strips == 1 else f"strip[{v}]"


    def weight(P, S, j, i):
        """Weight (j, i) of the filter, which lies in memory as the user gave it."""
        rows, columns = S.taps
        if P.flip:
            return f"weights[({rows - 1} - ({j})) * {columns} + {columns - 1} - ({i})]"
        return f"weights[({j}) * {columns} + {i}]"
%>\
