## A row is sorted by its most significant digits alone where these tell nearly all keys apart; what they
## leave is mended. See radix_gpu.cl.mako, of which all names in OpenCL C are.
##
##     choose_passes   which digits matter, from the counts of all: the fewest with which a key has at
##                     most TOP.alike others that agree in them, if digits were independent. The top
##                     passes sort by these
##     mend            keys that agree in them are neighbours then, a run, whose other digits are in the
##                     order of the keys given. The first RUN keys of each run are sorted by insertion
##
##     sorted by 2 of 4 digits   1.1.7.4  1.2.9.9  1.2.0.5  1.2.3.0  1.4.2.2
##     a run, mended                      1.2.0.5  1.2.3.0  1.2.9.9
##
## Longer runs are only compared: they may be equal keys, or in order already. Where one is in disorder, as
## digits were not independent, or where even all top passes do not suffice, the row is UNFINISHED: passes
## over all digits follow, from the keys given (`scatter_again`). Else these do nothing.
##
## One item sorts a run, while others look at its keys. They look at the digits that all of the run have,
## and at keys beyond its first RUN: neither changes.
##
##     words of a row in pass_flags:   top passes | passes over all digits | MENDED, UNFINISHED, lowest digit
##     behind those of all rows:       whether any is UNFINISHED
##
## Source: E. Stehle, H.-A. Jacobsen, "A memory bandwidth-efficient hybrid radix sort on GPUs", SIGMOD 2017
## (most significant digits first, and small remainders sorted apart).
##
## TOP       passes   how many passes the top digits have
##           alike    see above
<%namespace name="registers" file="/common/registers.mako"/>\
<%!
    TOGETHER = 4  # keys of an item that are read together
%>\
<%def name="schedule(TOP)">\
#define TOP_PASSES ${TOP.passes}
#define PASSES (TOP_PASSES + DIGITS)
#define ROW_FLAGS (PASSES + 1)
#define DIGIT_AT 4 /* above the bits of a pass is the number of its digit, above those of a row its lowest one */
enum { MENDED = 1, UNFINISHED = 2 };

/* The chance, as a part of 2^30, that two keys have this value of a digit. */
static inline uint chance_of(const index_t count, const index_t n)
{
    const float part = (float)count / (float)n;
    return (uint)(part * part * 0x1p30f);
}

/* Say what some passes do, which sort by all digits from `lowest` on that keys do not share. */
static inline void put_passes(__global uint *flags, const uint passes, const uint lowest,
                              __local const uint *shared_by_all)
{
    uint left = 0, first = FIRST, pass = 0;
    for (uint d = lowest; d < DIGITS; ++d)
        left += !shared_by_all[d];
    for (uint d = lowest; d < DIGITS; ++d)
        if (!shared_by_all[d]) {
            const uint word = ACTIVE | first | (left == 1 ? LAST : 0) | (left & 1 ? TO_SORTED : 0);
            flags[pass++] = word | d << DIGIT_AT;
            first = 0;
            --left;
        }
    while (pass < passes)
        flags[pass++] = 0;
}

/* Choose what all passes of a row do, of which `left` digits are not shared by all keys. */
static inline void choose_passes(__global uint *flags, const index_t n, const uint left,
                                 __local const uint *shared_by_all, __local const uint *chances)
{
    float alike = (float)n;
    uint lowest = DIGITS, taken = 0;
    while (lowest > 0 && (left <= TOP_PASSES || alike > ${TOP.alike}f))
        if (!shared_by_all[--lowest]) {
            alike *= (float)chances[lowest] * 0x1p-30f;
            ++taken;
        }
    const bool enough = taken <= TOP_PASSES;
    put_passes(flags, TOP_PASSES, enough ? lowest : DIGITS, shared_by_all);
    put_passes(flags + TOP_PASSES, DIGITS, 0, shared_by_all);
    flags[PASSES] = !enough ? UNFINISHED : taken < left ? MENDED | lowest << DIGIT_AT : 0;
}
</%def>\
## ELEMENT, WG_SIZE, PTX   see radix_gpu.cl.mako
<%def name="mend(ELEMENT, WG_SIZE, PTX)">\
<% value = ELEMENT.value %>\
#define RUN 16 /* keys of a run that are sorted by insertion */

/* Sort the first RUN keys of a run, which agree from bit `shift` on, of the `left` keys from its first one
   to the end of the row. Returns whether the key after them is not before them. */
static inline bool sort_run(__global ukey_t *keys,
% if value:
                            __global out_value_t *values,
% endif
                            const index_t left, const uint shift)
{
    ukey_t last = code(keys[0]);
    for (uint length = 1; length < left; ++length) {
        const ukey_t key = keys[length], own = code(key);
        if ((own ^ last) >> shift)
            break;
        if (length == RUN)
            return last <= own;
        if (last <= own) {
            last = own;
            continue;
        }
% if value:
        const out_value_t moved = values[length];
% endif
        uint place = length;
        do {
            keys[place] = keys[place - 1];
% if value:
            values[place] = values[place - 1];
% endif
            --place;
        } while (place > 0 && own < code(keys[place - 1]));
        keys[place] = key;
% if value:
        values[place] = moved;
% endif
    }
    return true;
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void mend(__global ukey_t *sorted,
% if value:
          __global out_value_t *sorted_values,
% endif
          volatile __global uint *pass_flags,
          const index_t n,
          const uint tiles)
{
    __local ushort starts[TILE / 2]; /* each is the place of a run's second key in the tile */
    __local uint runs, flags, wrong;
    const uint item = (uint)get_local_id(0), tile = (uint)(get_group_id(0) % tiles);
    const size_t row = get_group_id(0) / tiles;
    volatile __global uint *state = pass_flags + row * ROW_FLAGS + PASSES;
    volatile __global uint *any = pass_flags + get_num_groups(0) / tiles * ROW_FLAGS;
    const index_t begin = (index_t)tile * TILE;
    __global ukey_t *keys = sorted + row * n;
% if value:
    __global out_value_t *values = sorted_values + row * n;
% endif
    if (item == 0) {
        runs = wrong = 0;
        flags = *state;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint word = flags, shift = (word >> DIGIT_AT) * DIGIT_BITS;
    bool right = !(word & UNFINISHED); /* else nothing is mended any more */
    /* Compare each key with the one before it; some together, without branches between the reads. */
    for (uint part = word & MENDED && right ? 0 : TILE; part < TILE; part += ${TOGETHER} * WG_SIZE) {
        bool agrees[${TOGETHER}];
${registers.each("j", TOGETHER, PTX)} {
            const uint place = part + j * WG_SIZE + item;
            const index_t i = begin + place, known = LESSER(i, n - 1);
            const ukey_t differ = code(keys[known]) ^ code(keys[GREATER(known, 1) - 1]);
            agrees[j] = (place < TILE) & (0 < i) & (i < n) & !(differ >> shift);
        }
${registers.each("j", TOGETHER, PTX)}
            if (agrees[j]) {
                const uint place = part + j * WG_SIZE + item;
                const index_t i = begin + place;
                const ukey_t own = code(keys[i]);
                if (i == 1 || (own ^ code(keys[i - 2])) >> shift)
                    starts[atomic_inc(&runs)] = (ushort)place;
                else if (i > RUN && !((own ^ code(keys[i - RUN - 1])) >> shift) && own < code(keys[i - 1]))
                    right = false;
            }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (uint k = item; k < runs; k += WG_SIZE) {
        const index_t start = begin + starts[k] - 1;
        const bool done = sort_run(keys + start, ${"values + start, " if value else ""}n - start, shift);
        right = right && done;
    }
    if (!right)
        wrong = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0 && wrong) { /* one for all: many at one word would take long */
        atomic_or(state, UNFINISHED);
        atomic_or(any, 1u);
    }
}
</%def>\
