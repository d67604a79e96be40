## One unit sorts a short run of keys in vector registers, by the networks of network.mako.
##
## Keys are compared as `plain` codes, from which they can be made again. NaN, and zeros of both signs,
## keep the order that they have in a stable sort: runs that hold one are left to others.
##
## Source: own.
##
## ELEMENT   what is sorted: see keys.mako; no values, and all bits of keys count
## NETWORK   keys of the longest run, a power of two times a block
## LANES     keys of one of the network's vectors
<%namespace name="types" file="/common/types.mako"/>\
<%namespace name="network" file="network.mako"/>\
<%def name="declare(ELEMENT, NETWORK, LANES)">\
<%
    key = ELEMENT.key
    size, base, integer = types.module.size(key), types.module.unsigned(key), types.module.signed(key)
    top = 8 * size - 1
    floating = key in ("float", "double")
    fraction = {"float": 23, "double": 52}.get(key)
    sign = f"(({base})1 << {top})"
%>\
${network.declare(base, LANES, WIDTH=LANES)}\
static inline words_t plain(const words_t bits)
{
% if floating:
    const words_t result = bits ^ ((words_t)0 - (bits >> ${top}) | ${sign});
% elif key.startswith("u"):
    const words_t result = bits;
% else:
    const words_t result = bits ^ ${sign};
% endif
    return ${"~result" if ELEMENT.descending else "result - 1" if ELEMENT.time else "result"};
}

static inline words_t key_of_plain(const words_t code)
{
    const words_t ordered = ${"~code" if ELEMENT.descending else "code + 1" if ELEMENT.time else "code"};
% if floating:
    return ordered ^ ((ordered >> ${top}) - (words_t)1 | ${sign});
% else:
    return ordered${"" if key.startswith("u") else f" ^ {sign}"};
% endif
}

/* Sort a run of at most NETWORK keys, and return whether that was possible. */
static bool sort_by_network(__global const ukey_t *keys, const uint count, __global ukey_t *sorted)
{
    words_t run[${NETWORK // LANES}];
    uint blocks = 1;
    while (blocks * BLOCK_WORDS < count)
        blocks *= 2;
% if floating:
    ${integer}${LANES} left_out = 0;
% endif
    const uint whole = count / ${LANES};
    for (uint row = 0; row < blocks * BLOCK_ROWS; ++row) {
        words_t bits, codes = (words_t)~(${base})0;
        if (row < whole)
            bits = ((__global const loose_words_t *)(keys + row * ${LANES}))->vector;
        else if (row == whole) {
            bits = (words_t)0;
            for (uint j = row * ${LANES}; j < count; ++j)
                ((ukey_t *)&bits)[j - row * ${LANES}] = keys[j];
        } else {
            run[row] = codes;
            continue;
        }
% if floating:
        /* -0.0, and what is above infinity without its sign. */
        left_out |= (bits == ${sign}) | ((bits << 1) > ${hex((2 ** (8 * size) - 2 ** (fraction + 1)))}${"U" if size == 4 else "UL"});
% endif
        codes = plain(bits);
        if (row == whole)
            for (uint j = count - row * ${LANES}; j < ${LANES}; ++j)
                ((ukey_t *)&codes)[j] = (ukey_t)~(ukey_t)0;
        run[row] = codes;
    }
% if floating:
    ${integer} some = 0;
    for (uint j = 0; j < ${LANES}; ++j)
        some |= ((const ${integer} *)&left_out)[j];
    if (some)
        return false;
% endif
    sort_blocks(run, blocks, count);
    for (uint b = 0; b * BLOCK_WORDS < count; ++b)
        transpose_block(run + b * BLOCK_ROWS);
    for (uint row = 0; row < whole; ++row)
        ((__global loose_words_t *)(sorted + row * ${LANES}))->vector = key_of_plain(run[row]);
    if (whole * ${LANES} < count) {
        const words_t last = key_of_plain(run[whole]);
        for (uint j = whole * ${LANES}; j < count; ++j)
            sorted[j] = ((const ukey_t *)&last)[j - whole * ${LANES}];
    }
    return true;
}
</%def>\
