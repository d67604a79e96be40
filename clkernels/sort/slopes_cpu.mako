## Order that is there already, for threads: what ascends or descends in a row is copied, and a few such
## slopes are merged, in less time than a sort takes.
##
##     row       | 3 5 6 9 | 1 | 10 12 | 99 | 13 14 | 11 9 6 2 |
##     pieces    | 0       |   | 1     |    | 2     | 3        |     of two slopes, up and down
##     copied    | 3 5 6 9 10 12 13 14 | 2 6 9 11 | 1 99 |           slopes, and what was dropped, sorted
##     sorted    | 1 2 3 5 6 6 9 9 ..                     |          merged
##
## Where a slope goes on after a few keys, these are dropped, and so are short slopes. Dropped keys are one
## more slope at last. So they need no place among equal ones: they are keys without values, of which
## all bits count, and not zeros or NaN. With values only rows of one slope count as ordered.
##
##   looks_ordered(..)   whether few pairs of a sample descend, or few ascend
##   find_pieces(..)     pieces of a part of a row
##   join_pieces(..)     slopes of all parts, where their pieces go, and what is dropped
##   copy_pieces(..)     pieces of a part to where they go
##
## Source: own; slopes after T. Peters, "timsort", 2002, and dropping after C. R. Cook, D. J. Kim, "Best
## sorting algorithm for nearly sorted lists", CACM 1980.
##
## The caller guarantees: names of keys.mako; source_t, index_t, out_value_t; arrays that share
## no memory. A list of pieces has room for `room` of them, and one more that ends it.
##
## ELEMENT   what is sorted: see keys.mako
## BLOCK     keys that are compared at once
<%namespace name="blocks" file="radix_cpu_blocks.mako"/>\
<%!
    MOST_SLOPES = 4  # in all: three levels of merges take floats as long as a sort
    SPOTS = 32  # of a sample
    PAIRS = 16  # of keys at a spot
    KEYS_OF_SPOT = 512  # of a row, at least
    FEW = 8  # one of so many pairs, and DOUBT more, may be out of order
    DOUBT = 2
    GAP = 3  # most keys that are dropped between pieces of a slope
    LEAST = 64  # keys of a slope; shorter ones are dropped
    FIRST = 16  # keys of a slope that are compared one by one, before whole blocks
    KEYS_OF_PIECE = 256  # on average, but for SPARE pieces: more are not worth it
    SPARE = 16
    SHARE = 32  # one of so many keys of a row may be dropped, four of a part
%>\
<%def name="declare(ELEMENT, BLOCK)">\
<%
    plain = not ELEMENT.value and not ELEMENT.bits  # equal keys need not keep their order
    floating = ELEMENT.key in ("half", "float", "double")
    most = MOST_SLOPES if plain else 1
%>\
/* Keys [begin, end) of a row, which go to `place`. A kind without a direction is of keys in either. */
typedef struct { index_t begin, end, place, kind; } piece_t;
enum { UP = 1, DOWN = 2, BEGINS = 4, TOO_MANY = 8 };
#define MOST_SLOPES ${most}
% if floating:
#define NAN_CODE code((ukey_t)~(ukey_t)0)
% endif

/* Whether a slope ends between two keys. */
static inline bool parts(const ukey_t before, const ukey_t after, const bool down)
{
    return down ? !(code(after) < code(before))${" && before != after" if plain else ""} : code(after) < code(before);
}

/* Whether the order of keys of this code is to be seen among equal ones. */
static inline bool has_twins(const ukey_t code_)
{
    return ${"code_ == code(0) || code_ == NAN_CODE" if floating else "false" if plain else "true"};
}

/* How many levels of merges make one of so many runs. */
static inline uint levels_of(const uint runs)
{
    return 32 - clz(runs - 1);
}

static bool looks_ordered(__global const ukey_t *keys, const index_t n)
{
    if (n <= ${PAIRS})
        return false;
    const uint spots = (uint)LESSER(n / ${KEYS_OF_SPOT} + 1, (index_t)${SPOTS});
    uint rises = 0, falls = 0;
    for (uint spot = 0; spot < spots; ++spot) {
        __global const ukey_t *here = keys + (n - ${PAIRS + 1}) / spots * spot;
        for (uint j = 0; j < ${PAIRS}; ++j) {
            rises += code(here[j]) < code(here[j + 1]);
            falls += code(here[j + 1]) < code(here[j]);
        }
        if (LESSER(rises, falls) > (spot + 1) * ${PAIRS // FEW} + ${DOUBT})
            return false;
    }
    return true;
}

/* Where a slope ends of which keys[i - 1] is one: not after `end`. */
static index_t end_of_slope(__global const ukey_t *keys, index_t i, const index_t end, const bool down)
{
    for (uint j = 0; j < ${FIRST} && i < end; ++j, ++i) /* most slopes that are not worth it end here */
        if (parts(keys[i - 1], keys[i], down))
            return i;
    uint found[${BLOCK}];
    for (; i < end; i += ${BLOCK}) {
        const uint here = (uint)LESSER((index_t)${BLOCK}, end - i);
        uint some = 0;
        if (down) {
${blocks.fill("found", "parts(keys[i + j - 1], keys[i + j], true)", BLOCK)}\
        } else {
${blocks.fill("found", "parts(keys[i + j - 1], keys[i + j], false)", BLOCK)}\
        }
        for (uint j = 0; j < here; ++j)
            some |= found[j];
        if (some)
            for (uint j = 0; j < here; ++j)
                if (found[j])
                    return i + j;
    }
    return end;
}

/* Find the pieces of keys [begin, end). A list that begins with TOO_MANY has none. */
static void find_pieces(__global const ukey_t *keys, const index_t begin, const index_t end, __global piece_t *pieces,
                        const uint room)
{
    const index_t least = ${f"LESSER((end - begin) / {SHARE}, (index_t){LEAST})" if plain else "0"};
    index_t i = begin, dropped = 0;
    uint count = 0, first = 0, slopes = 0;
    bool down = false;
    if (!looks_ordered(keys + begin, end - begin)) {
        pieces[0].begin = pieces[0].end = end;
        pieces[0].kind = TOO_MANY;
        return;
    }
    while (i < end) {
        const bool short_ones = count == room || count > (i - begin) / ${KEYS_OF_PIECE} + ${SPARE};
        if (slopes > MOST_SLOPES || short_ones || dropped > (end - begin) / ${SHARE // 4}) {
            pieces[0].begin = pieces[0].end = end;
            pieces[0].kind = TOO_MANY;
            return;
        }
        index_t start = end, kind = 0; /* where the slope goes on, after few keys */
% if plain:
        if (count) {
            __global piece_t *before = pieces + count - 1;
            for (uint gap = 0; start == end && gap <= ${GAP}; ++gap)
                for (uint back = 0; start == end && back <= gap && before->begin + back < before->end; ++back)
                    if (i + gap - back < end && !parts(keys[before->end - 1 - back], keys[i + gap - back], down)) {
                        start = i + gap - back;
                        before->end -= back;
                        dropped += gap;
                    }
        }
% endif
        index_t stop = end;
        if (start < end) {
            stop = end_of_slope(keys, start + 1, end, down);
            kind = down ? DOWN : UP;
            pieces[first].kind |= kind;
            if (stop - start <= ${GAP} && stop < end) {
                dropped += stop - start;
                i = stop;
                continue;
            }
        } else {
            bool falls = i + 1 < end && code(keys[i + 1]) < code(keys[i]);
            stop = end_of_slope(keys, i + 1, end, falls);
            bool level = stop - i == 1; /* so far its keys are equal, so it may turn down yet */
% if plain:
            level = level || (keys[i] == keys[stop - 1] && !has_twins(code(keys[i])));
            if (level && stop < end) {
                stop = end_of_slope(keys, stop, end, true);
                falls = true;
                level = false;
            }
% endif
            if (stop - i < least && stop < end) {
                dropped += stop - i;
                i = stop;
            } else {
                start = i;
                down = falls;
                first = count;
                slopes += 1;
                kind = level ? BEGINS : down ? BEGINS | DOWN : BEGINS | UP;
            }
        }
        if (start < end) {
            pieces[count].begin = start;
            pieces[count].end = stop;
            pieces[count++].kind = kind;
            i = stop;
        }
    }
    pieces[count].begin = pieces[count].end = end;
    pieces[count].kind = 0;
}

/*
 * Join the slopes of `lists` parts of a row. Returns how many runs are to be merged, which end at ends[..],
 * or 0. Keys that were dropped, `most` of them, are put behind as many as are `kept`.
 */
static uint join_pieces(__global const ukey_t *keys, const index_t n, const uint lists, __global piece_t *pieces,
                        const uint room, const index_t most, volatile __global ulong *ends, index_t *kept,
                        __global ukey_t *dropped)
{
    bool falls[MOST_SLOPES];
    uint slopes = 0, slope = 0;
    index_t count = 0, last = 0, directions = 0;
    for (uint k = 0; k < lists; ++k) {
        __global piece_t *piece = pieces + (size_t)k * (room + 1);
        if (piece->kind == TOO_MANY)
            return 0;
        for (; piece->begin < piece->end; ++piece) {
            if (piece->kind & BEGINS) {
                index_t both = directions | (piece->kind & (UP | DOWN));
                if (slopes && !both && keys[last] != keys[piece->begin])
                    both = parts(keys[last], keys[piece->begin], false) ? DOWN : UP;
                if (!slopes || both == (UP | DOWN) || parts(keys[last], keys[piece->begin], both == DOWN)) {
                    if (slopes == MOST_SLOPES)
                        return 0;
                    slopes += 1;
                    both = piece->kind & (UP | DOWN);
                } else
                    piece->kind -= BEGINS;
                directions = both;
            }
            count += piece->end - piece->begin;
            last = piece->end - 1;
            ends[slopes - 1] = count;
            falls[slopes - 1] = directions == DOWN;
        }
    }
    const uint runs = slopes + (count < n);
    if (!slopes || n - count > LESSER(n / ${SHARE}, most) || runs > MOST_SLOPES)
        return 0;
    ends[runs - 1] = n;
    *kept = count;
    dropped += count;
    index_t at = 0, place = 0, begin = 0;
    for (uint k = 0; k < lists; ++k)
        for (__global piece_t *piece = pieces + (size_t)k * (room + 1);; ++piece) {
            for (; at < piece->begin; ++at) {
                if (has_twins(code(keys[at])))
                    return 0;
                *dropped++ = keys[at];
            }
            if (piece->begin == piece->end)
                break;
            if (piece->kind & BEGINS) {
                begin = place;
                slope += 1;
            }
            at = piece->end;
% if floating and plain:
            /* NaN is at one end of a slope; keys are merged as numbers. */
            if (runs > 1 && (code(keys[piece->begin]) == NAN_CODE || code(keys[at - 1]) == NAN_CODE))
                return 0;
% endif
            const index_t keys_ = at - piece->begin;
            piece->place = falls[slope - 1] ? (index_t)ends[slope - 1] - (place - begin) - keys_ : place;
            place += keys_;
        }
    return runs;
}

/* Copy pieces to their places, in their order. */
static void copy_pieces(const source_t source, __global const piece_t *piece, __global ukey_t *sorted,
                        __global out_value_t *sorted_values)
{
    for (; piece->begin < piece->end; ++piece) {
        const index_t count = piece->end - piece->begin, place = piece->place;
        const index_t first = piece->begin, last = piece->end - 1;
% for condition, from_ in (("piece->kind & DOWN", "last - j"), ("!(piece->kind & DOWN)", "first + j")):
        if (${condition})
            for (index_t j = 0; j < count; ++j) {
% if not ELEMENT.indices:
                sorted[place + j] = source.keys[${from_}];
% endif
% if ELEMENT.value:
                sorted_values[place + j] = ${from_ if ELEMENT.indices else f"source.values[{from_}]"};
% endif
            }
% endfor
    }
}
</%def>\
