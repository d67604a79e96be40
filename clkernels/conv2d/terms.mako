## Pieces of OpenCL C as text, which the templates of convolutions put together: types and values
## of vectors, which are plain numbers where they have one lane.
<%!
    def vec(type_name, width):
        """The type of `width` values; those of type bool are bytes."""
        type_name = "uchar" if type_name == "bool" else type_name
        return type_name if width == 1 else f"{type_name}{width}"


    def lane(name, width, l):
        """Value `l` of a variable of `width` values."""
        return name if width == 1 else f"{name}.s{l:x}"


    def listed(values):
        """Values in the parentheses of a vector, or one alone."""
        return values[0] if len(values) == 1 else f"({', '.join(values)})"


    def tree(term, first, last):
        """A sum whose terms do not wait for each other."""
        if last - first == 1:
            return term(first)
        middle = (first + last) // 2
        return f"({tree(term, first, middle)} + {tree(term, middle, last)})"
%>\
