## Types of OpenCL C by name: their sizes, the unsigned integers of the same size, vectors of them.
##
## A namespace of Python functions, which templates call while they are rendered:
##
##     <%namespace name="types" file="/common/types.mako"/>
##     ${types.module.unsigned("float")}                        uint
##
##   size(name)       bytes of a scalar
##   unsigned(name)   the unsigned integer of that size
##   signed(name)     the signed one
##   vector(name, n)  a vector of n, or for n = 1 the scalar
##   literal(value, name)   a number as float or double. A double literal in a kernel of float is rounded
##                          with a warning where there is no double, and may be refused
##
## Source: own. Cost: none, nothing of it is left in the kernel.
<%!
    SIZES = {
        "char": 1, "uchar": 1, "short": 2, "ushort": 2, "half": 2, "int": 4, "uint": 4, "float": 4,
        "long": 8, "ulong": 8, "double": 8,
    }
    INTEGERS = {1: "char", 2: "short", 4: "int", 8: "long"}


    def size(name):
        return SIZES[name]


    def signed(name):
        return INTEGERS[SIZES[name]]


    def unsigned(name):
        return "u" + signed(name)


    def vector(name, n):
        return name if n == 1 else f"{name}{n}"


    def literal(value, name):
        return f"{value!r}{'f' if name == 'float' else ''}"
%>\
