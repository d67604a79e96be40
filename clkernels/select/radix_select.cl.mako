/*
 * The first k keys of each row in the order of sorted ones, with their places: a radix select. They
 * come in the order of the row; a sort of these few brings them in theirs.
 *
 * The k-th key is found digit by digit, the most significant one first. A pass counts the values of
 * its digit among keys that share the digits above with the k-th one, whose own digit is the value
 * at which the sum of counts reaches k:
 *
 *     digits above      less: taken | equal: counted by their next digit | greater: left out
 *     counts                          3 1 0 5 2 ..      k - less = 6  ->  digit 3, 2 of its 5
 *
 * After the last digit all less keys are taken, and of the equal ones as many as are missing, the
 * first ones of the row. There are three forms:
 *
 *   whole    one launch, a group per row, for rows that a group reads quickly (select_whole.mako)
 *   twice    two launches, for rows a little longer: each slice of a row is searched like a row, and
 *            then what all slices have found. Among the first k of each slice are the first k of the
 *            row, and of equal keys the first ones
 *   passes   for long rows a launch per digit and one more, with a group per slice of a row; each
 *            group finds for itself the digit that the pass before has counted (select_passes.mako):
 *
 *     narrow  pass 0       counts
 *     narrow  pass 1, ..   finds a digit, and counts the next one; as soon as few keys are left,
 *                          writes down those and the less ones, in order, and further passes
 *                          read these alone
 *     gather               finds the last digit, and takes
 *
 * Where a slice writes is known from a table of what each slice has counted, so that results do not
 * depend on the order in which groups run, and no group waits for another.
 *
 * Source: own. Digits from the most significant one after T. Alabi et al., "Fast k-selection
 * algorithms for graphics processing units", JEA 2012; reading less once little is left after
 * J. Zhang et al., "Parallel top-k algorithms on GPU", SC 2023.
 *
 * The host guarantees: 0 < k <= n; `histogram` is all zero, as `leaving` is, and one launch at a time
 * has them; there is a group for each slice of each row; a slice has less than 2^32 keys, and unless
 * FORM is passes no fewer than k. `few_keys` and `few_places` have `capacity` elements a row, `table`
 * 2 * (RADIX + 1) * slices words, `state` STATE words for each digit.
 *
 * ELEMENT      what a key is: see sort/keys.mako
 * FORM         whole, twice or passes, see above
 * WIDE         whether rows may have 2^31 keys or more
 * WG_SIZE      work-items of a group, a power of two
 * ITEM_KEYS    neighbours that an item looks at together
 * DIGIT_BITS   bits of a digit
 * PTX          whether the device takes inline PTX
 */
<%page args="ELEMENT, FORM, WIDE, WG_SIZE, ITEM_KEYS, DIGIT_BITS, PTX"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
<%namespace name="warps" file="/common/warps.mako"/>\
<%namespace name="scan" file="/common/scan.mako"/>\
<%namespace name="slices" file="/common/slices.mako"/>\
<%namespace name="select_whole" file="select_whole.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="select_passes" file="select_passes.mako"/>\
<%namespace name="broadcast" file="/common/broadcast.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
<%namespace name="types" file="/common/types.mako"/>\
${keys.declare(ELEMENT)}\
${warps.declare(PTX=PTX)}\
${scan.declare(WG_SIZE=WG_SIZE, PTX=PTX)}\
${slices.declare(WIDE=WIDE, WG_SIZE=WG_SIZE)}\
<%
    alone = WG_SIZE == 1
    key_size = types.module.size(ELEMENT.key)
    digits = -(-8 * key_size // DIGIT_BITS)
%>\
#define WG_SIZE ${WG_SIZE}
#define ITEM_KEYS ${ITEM_KEYS}
#define TILE (WG_SIZE * ITEM_KEYS)
#define RADIX ${1 << DIGIT_BITS}
#define DIGITS ${digits}
#define COPIES ${2 if alone else 1} /* neighbours of one thread are counted apart, which waits less */
#define OWN_WORDS ((RADIX + WG_SIZE - 1) / WG_SIZE)

typedef ${"ulong" if key_size == 8 else "uint"} code_t;

/* How many bits are below digit d, and how many values it has. */
static inline uint shift_of(const uint d)
{
    return (d + 1) * ${DIGIT_BITS} < KEY_BITS ? KEY_BITS - (d + 1) * ${DIGIT_BITS} : 0;
}

static inline uint values_of(const uint d)
{
    return 1u << ((d ? shift_of(d - 1) : KEY_BITS) - shift_of(d));
}

/*
 * Read the keys of a slice. Of the codes without their low `shift` bits, those below `low` are less,
 * and those up to `high` equal.
 *
 * counting   counts the equal ones by how far they are above `low`, and how many are less
 * taking     writes the less ones, and so many equal ones that there are `limit`, in order, where the
 *            numbers of those before this slice say; places are those in `places`, or in the row.
 *            Together with counting, only if they are `wanted`: barriers stand in no condition,
 *            which PoCL 3.0 gets wrong
 */
<%def name="pass_over(name, counting, taking)">\
static void ${name}(__global const ukey_t *keys, const index_t begin, const index_t end, const uint shift,
% if counting:
                    __local uint *counts, __local uint *below,
% endif
% if taking:
                    __global const long *places, const index_t less_before, const index_t equal_before,
                    const index_t limit, __global ukey_t *taken, __global long *taken_places,
                    __local uint *sums, __local uint *total,
% endif
% if counting and taking:
                    const bool wanted,
% endif
                    const code_t low, const code_t high)
{
    const uint item = (uint)get_local_id(0);
% if counting:
    uint below_own = 0;
% if not alone:
    uint digit = 0, run = 0;
% endif
% endif
% if taking:
    index_t less_done = less_before, equal_done = equal_before;
% endif
    for (index_t tile = begin; tile < end; tile += TILE) {
        const index_t first = tile + item * ITEM_KEYS;
        const uint here = first < end ? (uint)LESSER(end - first, (index_t)ITEM_KEYS) : 0;
        code_t codes[ITEM_KEYS];
        uint less = 0, hits = 0;
% if alone:
        code_t differ = 1;
        if (here == ITEM_KEYS) {
            const code_t one = (code_t)code(keys[first]) >> shift;
            differ = 0;
            for (uint j = 0; j < ITEM_KEYS; ++j) {
                codes[j] = (code_t)code(keys[first + j]) >> shift;
                less += codes[j] < low;
                hits += codes[j] <= high;
                differ |= codes[j] ^ one;
            }
        } else
            for (uint j = 0; j < here; ++j) {
                codes[j] = (code_t)code(keys[first + j]) >> shift;
                less += codes[j] < low;
                hits += codes[j] <= high;
            }
% else:
${registers.each("j", "ITEM_KEYS", PTX)} {
            codes[j] = j < here ? (code_t)code(keys[first + j]) >> shift : 0;
            less += j < here && codes[j] < low;
            hits += j < here && codes[j] <= high;
        }
% endif
% if counting:
        below_own += less;
% endif
% if taking:
        /* Less ones in the lower half of a word, equal ones in the upper. */
        const uint both = less | (hits - less) << 16;
        const uint before = scan_group(both, sums);
        ${broadcast.send("*total", "before + both", "WG_SIZE - 1")}
        index_t less_rank = less_done + (before & 0xffff), equal_rank = equal_done + (before >> 16);
        less_done += *total & 0xffff;
        equal_done += *total >> 16;
        barrier(CLK_LOCAL_MEM_FENCE);
% if not counting:
        if (equal_rank >= limit) /* there may be many more */
            hits = less;
% endif
% endif
% if alone and counting:
        /* To count in one word again and again takes long. */
        if (!differ${' && !wanted' if taking else ''}) {
            if (hits && !less)
                counts[(uint)(codes[0] - low)] += ITEM_KEYS;
            hits = 0;
        }
% endif
        if (hits) {
${registers.each("j", "here" if alone else "ITEM_KEYS", PTX)}
                if (${"" if alone else "j < here && "}codes[j] <= high) {
                    const bool equal = codes[j] >= low;
% if counting:
                    if (equal) {
                        const uint found = (uint)(codes[j] - low);
% if alone:
                        ++counts[(j & 1) * RADIX + found];
% else:
                        /* Atomic operations on one word would wait for each other. */
                        if (found != digit) {
                            if (run)
                                atomic_add(&counts[digit], run);
                            digit = found;
                            run = 0;
                        }
                        ++run;
% endif
                    }
% endif
% if taking:
                    if (${'wanted && ' if counting else ''}(!equal || equal_rank < limit)) {
                        const index_t to = less_rank + LESSER(equal_rank, limit);
                        taken[to] = keys[first + j];
                        taken_places[to] = places ? places[first + j] : (long)(first + j);
                    }
                    less_rank += !equal;
                    equal_rank += equal;
% endif
                }
        }
    }
% if counting:
% if alone:
    *below += below_own;
% else:
    if (run)
        atomic_add(&counts[digit], run);
    atomic_add(below, below_own);
% endif
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
}
</%def>\
${pass_over("count_slice", True, False)}
% if FORM == "passes" and digits > 1:
${pass_over("count_and_take_slice", True, True)}
% endif
${pass_over("take_slice", False, True)}
static inline void clear_counts(__local uint *counts, __local uint *below)
{
    const uint item = (uint)get_local_id(0);
    for (uint v = item; v < COPIES * RADIX; v += WG_SIZE)
        counts[v] = 0;
    if (item == 0)
        *below = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* The digits of the k-th key that are known, and how many of the keys that share them are wanted. */
typedef struct {
    code_t prefix;
    index_t left;
    index_t equal; /* keys that share them */
} prefix_t;

/* Find one more digit, by the counts that this item has: its words of RADIX. */
static inline prefix_t next_digit(const prefix_t known, const uint d, const index_t *own,
                               __local index_t *space, __local index_t *answer)
{
    const uint item = (uint)get_local_id(0);
    index_t sum = 0;
    for (uint w = 0; w < OWN_WORDS; ++w)
        sum += own[w];
    index_t before = scan_index(sum, space);
    for (uint w = 0; w < OWN_WORDS; ++w) {
        if (before < known.left && known.left - before <= own[w]) {
            answer[0] = item * OWN_WORDS + w;
            answer[1] = known.left - before;
            answer[2] = own[w];
        }
        before += own[w];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    prefix_t next;
    next.prefix = known.prefix * values_of(d) + (code_t)answer[0];
    next.left = answer[1];
    next.equal = answer[2];
    barrier(CLK_LOCAL_MEM_FENCE);
    return next;
}

% if FORM != "passes":
${select_whole.declare(WG_SIZE=WG_SIZE, TWICE=FORM == "twice")}\
% else:
${fence.declare(PTX=PTX)}\
${select_passes.declare(WIDE=WIDE, WG_SIZE=WG_SIZE, KEY_DIGITS=digits)}\
% endif
