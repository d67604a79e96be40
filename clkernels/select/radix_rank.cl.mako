/*
 * The first k keys of each row in the order of sorted ones, with their places, by one thread and in one
 * launch: a radix select for few keys, which then are ranked.
 *
 *     row       5 1 7 1 9 3      k = 3: the third code is 3, found digit by digit
 *     taken     1 1 3            all less keys, and the first equal ones, in the order of the row
 *     ranks     0 1 2            how many of the others go before, equal ones only if they are first
 *
 * A pass counts the values of a digit among keys that share the digits above with the k-th one. It
 * looks at ITEM_KEYS neighbours at once, and one by one only where some of them share these.
 *
 * Source: own; the select as in radix_select.cl.mako.
 *
 * The host guarantees: 0 < k <= n < 2^31, k <= MOST_RANKED; a work-group for each row.
 *
 * ELEMENT      what a key is: see sort/keys.mako
 * ITEM_KEYS    neighbours that are compared with the wanted digits together
 * MOST_RANKED  most keys that are wanted
 */
<%page args="ELEMENT, ITEM_KEYS, MOST_RANKED"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
<%namespace name="types" file="/common/types.mako"/>\
${keys.declare(ELEMENT)}\
typedef ${"ulong" if types.module.size(ELEMENT.key) == 8 else "uint"} wide_t; /* as wide as a rank */
#define ITEM_KEYS ${ITEM_KEYS}
#define DIGIT_BITS 8
#define RADIX (1 << DIGIT_BITS)

/* The digits of a code above its low `shift` bits. */
static inline ukey_t digits_of(const ukey_t code, const uint shift)
{
    return shift < KEY_BITS ? code >> shift : 0;
}
## Do something with the key at i, of code `mine`, for all keys of the row whose digits above `shift` bits are
## as `relation` says to those wanted.
<%def name="each_key(relation)">\
    for (uint tile = 0; tile < n; tile += ITEM_KEYS) {
        const uint end = LESSER(tile + ITEM_KEYS, n);
        uint hits = 0;
        for (uint i = tile; i < end; ++i)
            hits += digits_of(code(keys[i]) - lowest, shift) ${relation} prefix;
        for (uint i = tile; hits && i < end; ++i) {
            const ukey_t mine = code(keys[i]) - lowest;
            if (digits_of(mine, shift) ${relation} prefix) {
${caller.body()}\
            }
        }
    }
</%def>\

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void radix_rank(__global const ukey_t *restrict keys,
                __global ukey_t *restrict values,
                __global long *restrict places,
                const uint n,
                const uint k)
{
    keys += get_group_id(0) * (size_t)n;
    values += get_group_id(0) * (size_t)k;
    places += get_group_id(0) * (size_t)k;

    /* Codes count from the first one, and have no more bits than the last one then. */
    ukey_t lowest = code(keys[0]), highest = lowest;
    for (uint i = 1; i < n; ++i) {
        const ukey_t mine = code(keys[i]);
        lowest = LESSER(lowest, mine);
        highest = GREATER(highest, mine);
    }
    uint shift = KEY_BITS - (uint)clz((ukey_t)(highest - lowest));
    ukey_t prefix = 0;

    /* Find digits of the k-th code, until all keys that share them are wanted. */
    uint left = k, equal = n;
    while (shift && left < equal) {
        const uint below = shift > DIGIT_BITS ? shift - DIGIT_BITS : 0, radix = 1u << (shift - below);
        uint counts[2][RADIX]; /* neighbours are counted apart, which waits less */
        for (uint v = 0; v < radix; ++v)
            counts[0][v] = counts[1][v] = 0;
<%self:each_key relation="==">\
                ++counts[i & 1][(uint)(mine >> below) & (radix - 1)];
</%self:each_key>\
        uint digit = 0;
        for (; (equal = counts[0][digit] + counts[1][digit]) < left; ++digit)
            left -= equal;
        prefix = (ukey_t)(prefix << (shift - below) | digit);
        shift = below;
    }

    /* Take the keys. */
    wide_t codes[${MOST_RANKED}];
    uint from[${MOST_RANKED}];
    uint taken = 0;
<%self:each_key relation="<=">\
                const bool last = digits_of(mine, shift) == prefix;
                if (!last || left) {
                    left -= last;
                    codes[taken] = mine;
                    from[taken++] = i;
                }
</%self:each_key>\

    /* Rank them. */
    for (uint i = 0; i < k; ++i) {
        uint rank = 0;
        for (uint j = 0; j < i; ++j)
            rank += codes[j] <= codes[i];
        for (uint j = i + 1; j < k; ++j)
            rank += codes[j] < codes[i];
        values[rank] = keys[from[i]];
        places[rank] = (long)from[i];
    }
}
