## Elements of the matrices in OpenCL C: their types, how they are loaded, multiplied and stored.
##
##     <%namespace name="elements" file="/gemm/elements.mako"/>
##
##     memory        half  ----->  float              load_element, load
##                                   |  multiply_add
##                         <-----  float              store_element, store
##
## element   an `Element` of opencl_lab/core/kernels.py: its type in memory, and that of the sums
##
##   declare(element)     element_t and sum_t; load_element(p, i), store_element(value, p, i),
##                        conjugate(x), multiply_add(sum, x, y)
##
## Functions that return OpenCL C:
##
##   load(type, pointer, width, most)          `width` elements, in the type of sums
##   store(type, value, pointer, width, most)  the statements that store as many
##   store_vector(type, value, pointer, width, aligned)  the one statement that stores a whole vector
##   lanes(value, first, count, width)         `count` lanes of a vector of `width`, from `first` on
##   vector(type, width)                       a vector of `width` numbers, or a plain number
##   components(element)                       real numbers in an element: 2 if it is complex
##   added(terms)                              a sum in pairs, whose rounding errors grow slowly
##
## `type` is that in memory. Pointers are aligned to one element, unless `aligned` says that they are to
## the vector. A built-in function may take `most` numbers at once.
##
## Source: own. Halves are read and written by vload_half and vstore_half, which are core OpenCL C.
## Cost: that of the code that is inserted.
<%!
    LETTERS = "0123456789abcdef"


    def components(element):
        return 2 if element.complex else 1


    def vector(type, width):
        return type if width == 1 else f"{type}{width}"


    def lanes(value, first, count, width):
        if width == 1 or count == width:
            return value
        return f"{value}.s{LETTERS[first : first + count]}"


    def added(terms):
        if len(terms) == 1:
            return terms[0]
        half = len(terms) // 2
        return f"({added(terms[:half])} + {added(terms[half:])})"


    def _slices(width, most):
        """Split a vector into what one built-in function takes: pairs of first lane and width."""
        each = min(width, most)
        return [(first, each) for first in range(0, width, each)]


    def _load_slice(type, pointer, first, width):
        if type == "half":
            suffix = "" if width == 1 else width
            return f"vload_half{suffix}(0, {pointer} + {first})"
        if width == 1:
            return f"({pointer})[{first}]"
        return f"vload{width}(0, {pointer} + {first})"


    def load(type, pointer, width, most):
        slices = [_load_slice(type, pointer, *each) for each in _slices(width, most)]
        if len(slices) == 1:
            return slices[0]
        sums = "float" if type == "half" else type
        return f"({vector(sums, width)})({', '.join(slices)})"


    def _store_slice(type, value, pointer, first, width):
        suffix = "" if width == 1 else width
        if type == "half":
            return f"vstore_half{suffix}({value}, 0, {pointer} + {first});"
        if width == 1:
            return f"({pointer})[{first}] = {value};"
        return f"vstore{width}({value}, 0, {pointer} + {first});"


    def store(type, value, pointer, width, most):
        return [
            _store_slice(type, lanes(value, first, each, width), pointer, first, each)
            for first, each in _slices(width, most)
        ]


    def store_vector(type, value, pointer, width, aligned):
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
<%def name="declare(element)">\
typedef ${element.type} element_t;
typedef ${element.sum} sum_t;

% if element.type == "half":
#define load_element(p, i) vload_half(i, p)
#define store_element(value, p, i) vstore_half(value, i, p)
% else:
#define load_element(p, i) ((p)[i])
#define store_element(value, p, i) ((p)[i] = (value))
% endif
% if element.complex:
static inline sum_t conjugate(const sum_t x) { return (sum_t)(x.x, -x.y); }

static inline sum_t multiply_add(const sum_t sum, const sum_t x, const sum_t y)
{
    return (sum_t)(sum.x + x.x * y.x - x.y * y.y, sum.y + x.x * y.y + x.y * y.x);
}
% else:
#define conjugate(x) (x)
#define multiply_add(sum, x, y) ((sum) + (x) * (y))
% endif
</%def>\
