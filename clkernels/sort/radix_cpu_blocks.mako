## Elements block by block, from the user's arrays or from memory between passes: codes and digits of a
## block are made first, in a loop without branches, of which compilers make vectors.
##
##   declare_source(..)    `source_t`, the user's arrays; how lines go past the caches
##   fill(..)              a fragment: something for each key of a block
##   stage_*               codes of a block of arrays or elements
##   stage_digits_*        digits of a block
##   element_*             one element
##   pass_*                all elements to the places of their digits
##
## Source: own.
##
## ELEMENT   see radix_cpu.cl.mako
## BLOCK     keys of a block
<%!
    SOURCES = {"arrays": "const source_t source", "elements": "__global const elem_t *source"}
%>\
<%def name="declare_source(ELEMENT)">\
typedef ${"long" if ELEMENT.indices else ELEMENT.value or "uchar"} out_value_t;
typedef struct {
    __global const ukey_t *keys;
% if ELEMENT.value and not ELEMENT.indices:
    __global const value_t *values;
% endif
} source_t;

#if defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM_STORE(value, place) __builtin_nontemporal_store((value), (place))
#endif
#endif
#if !defined(STREAM_STORE)
#define STREAM_STORE(value, place) (*(place) = (value))
#endif

static inline uint length_of_index(const index_t number)
{
    return 8 * sizeof(index_t) - (uint)clz(number);
}
</%def>\
## A loop of a known length for whole blocks: what it calls is inlined, and made of vectors.
<%def name="fill(target, value, block)">\
    if (here == ${block})
        for (uint j = 0; j < ${block}; ++j)
            ${target}[j] = ${value};
    else
        for (uint j = 0; j < here; ++j)
            ${target}[j] = ${value};
</%def>\
<%def name="declare(ELEMENT, BLOCK)">\
% for KIND, SOURCE in SOURCES.items():
<%
    key = "source.keys[first + j]" if KIND == "arrays" else "KEY_OF(source[first + j])"
%>\
/* Stage the codes of up to BLOCK keys. Returns how many. */
static inline uint stage_${KIND}(${SOURCE}, const index_t first, const index_t end, ukey_t *codes)
{
    const uint here = (uint)LESSER((index_t)${BLOCK}, end - first);
${fill("codes", f"code({key})", BLOCK)}\
    return here;
}

/* Stage digits, of the bits that `mask` leaves above `shift` of what codes are more than `base`. */
static inline uint stage_digits_${KIND}(${SOURCE}, const index_t first, const index_t end, uint *digits,
                                        const ukey_t base, const uint shift, const uint mask)
{
    const uint here = (uint)LESSER((index_t)${BLOCK}, end - first);
${fill("digits", f"(uint)((ukey_t)(code({key}) - base) >> shift) & mask", BLOCK)}\
    return here;
}

static inline elem_t element_${KIND}(${SOURCE}, const index_t i)
{
% if KIND == "elements":
    return source[i];
% elif not ELEMENT.value:
    return source.keys[i];
% else:
    elem_t element;
    element.key = source.keys[i];
    element.value = ${"(value_t)i" if ELEMENT.indices else "source.values[i]"};
    return element;
% endif
}

/* One pass: move `count` elements to the places of their digits. */
static void pass_${KIND}(${SOURCE}, const index_t count, __global elem_t *target,
                         __local index_t *places, const ukey_t base, const uint shift, const uint mask)
{
    uint digits[${BLOCK}];
    for (index_t i = 0; i < count; i += ${BLOCK}) {
        const uint here = stage_digits_${KIND}(source, i, count, digits, base, shift, mask);
        for (uint j = 0; j < here; ++j)
            target[places[digits[j]]++] = element_${KIND}(source, i + j);
    }
}

% endfor
</%def>\
