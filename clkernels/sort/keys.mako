## Keys as unsigned numbers in the same order, and the elements that are moved.
##
##   code(bits)   of a key's bits: less if the key goes before; equal for equal keys, as -0.0 and 0.0
##                are, and all NaN. The key itself is moved, as a code does not say which it was.
##   elem_t       a key's bits, and its value if it has one
##   key_of(c)    the bits of a key of that code, by `inverse`; of a float 0.0, or the last NaN
##
## Signed integers have their sign bit inverted. The bits of a float b, as an integer, are its size
## below a sign bit: -b for negative ones (in two's complement, where -0.0 is the middle, as 0.0 is)
## and b + middle for others are in order; with -infinity moved to 0, any NaN lies above +infinity. Of a
## time the least integer is NaT, which in that order is moved to the end. Descending codes are `last`, the
## code of the largest number, less the ascending ones: that of NaN and NaT, last + 1, becomes -1, the last.
##
## ELEMENT        what is sorted (`SortElement` of opencl_lab/ops/sort/elements.py):
##   key            type of a key: a name of OpenCL C
##   descending     reverse the order of keys that differ, but NaN and NaT stay last
##   nan_first      where descending, these come first
##   time           whether keys are times, among them NaT
##   value          type of the value that travels with a key, or None
##   bits           which bits of the code count, (low, high) with 0 <= low < high <= KEY_BITS, or None
##   indices        whether values are positions in the row, and keys are not wanted: for those who load
##                  and store
<%namespace name="types" file="/common/types.mako"/>\
<%!
    def fraction_of(element):
        return {"half": 10, "float": 23, "double": 52}.get(element.key)


    def turned(code, element):
        """From an ascending code the one that is wanted, and back."""
        if not element.descending:
            return code
        fraction = fraction_of(element)
        beyond = 0 if element.nan_first else 2 << fraction if fraction else 2 * element.time
        return f"(ukey_t)-{beyond} - {code}" if beyond else f"~{code}"
%>\
<%def name="declare(ELEMENT)">\
<%
    size, unsigned = types.module.size(ELEMENT.key), types.module.unsigned(ELEMENT.key)
    bits = 8 * size
    suffix = "UL" if size == 8 else "U"
    low, high = ELEMENT.bits or (0, bits)
    fraction = fraction_of(ELEMENT)

    def number(value):
        return f"((ukey_t)0x{value:x}{suffix})"
%>\
/* `min` and `max` are calls of functions on PoCL 3.0, and loops with calls get no vectors. */
#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) > (b) ? (a) : (b))

typedef ${unsigned} ukey_t;
#define KEY_BITS ${bits}
#define CODE_BITS ${high - low} /* of a code; all above are zero */

static inline ukey_t code(const ukey_t bits)
{
% if fraction:
    const ukey_t negative = (ukey_t)0 - (bits >> ${bits - 1});
    const ukey_t middle = ${number(2 ** (bits - 1))} & ~negative;
    const ukey_t ordered = (ukey_t)((bits ^ negative) - negative + middle - ${number(2 ** fraction)});
    const ukey_t result = LESSER(ordered, ${number(2 ** bits - 2 * 2 ** fraction + 1)});
% elif ELEMENT.key.startswith("u"):
    const ukey_t result = bits;
% elif ELEMENT.time:
    const ukey_t result = (bits ^ ${number(2 ** (bits - 1))}) - 1;
% else:
    const ukey_t result = bits ^ ${number(2 ** (bits - 1))};
% endif
% if ELEMENT.bits:
    return (ukey_t)(${turned("result", ELEMENT)}) >> ${low} & ${number(2 ** (high - low) - 1)};
% else:
    return ${turned("result", ELEMENT)};
% endif
}

% if not ELEMENT.value:
typedef ukey_t elem_t;
#define KEY_OF(e) (e)
% else:
typedef ${ELEMENT.value} value_t;
typedef struct {
    ukey_t key;
    value_t value;
} elem_t;
#define KEY_OF(e) ((e).key)
% endif
</%def>\
<%def name="inverse(ELEMENT)">\
/* The bits of a key of a code, of which all bits count. */
static inline ukey_t key_of(const ukey_t code)
{
    const ukey_t ordered = ${turned("code", ELEMENT)};
% if fraction_of(ELEMENT):
    const ukey_t number = ordered + ((ukey_t)1 << ${fraction_of(ELEMENT)}), top = (ukey_t)1 << (KEY_BITS - 1);
    return number < top ? (ukey_t)0 - number : number - top;
% elif ELEMENT.key.startswith("u"):
    return ordered;
% else:
    return ${"(ordered + 1)" if ELEMENT.time else "ordered"} ^ ((ukey_t)1 << (KEY_BITS - 1));
% endif
}

</%def>\
## Whether two keys count as different ones, by their codes.
<%def name="distinct(ELEMENT, EQUAL_NAN)">\
<% nan_ = "(ukey_t)1 << (KEY_BITS - 1)" if ELEMENT.time else "(ukey_t)~(ukey_t)0" %>\
#define DISTINCT(a, b) ((a) != (b)${"" if EQUAL_NAN else f" || (a) == code({nan_})"})
</%def>\
