## Which bucket a key of a long row is in, by a range that a sample of the row spans, see radix_cpu_buckets.mako.
##
##     EVEN        | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |     buckets of equal width: of floats in values, of
##     NEAR_BASE   |0|1| 2 |   3   |      4      | .     integers in codes; or narrow where most keys are
##     often       | 0 | 1 |2|3|4| 5 |  ..               a key that comes often has a bucket, 3, of its own
##
##   sample_range(keys, n)       the same in whatever task
##   stage_buckets(..)           buckets of a block of keys
##   is_of_one_key(..)           whether all keys of a bucket are known to be equal
##
## Source: own. The caller guarantees: names of OpenCL C are those of radix_cpu.cl.mako.
##
## ELEMENT, CUT, BLOCK   see there
<%namespace name="blocks" file="radix_cpu_blocks.mako"/>\
<%def name="declare(ELEMENT, CUT, BLOCK)">\
<%
    # Where NaN is last in either order, numbers change their sign; else buckets are numbered backwards.
    sign = "-" if ELEMENT.descending and not ELEMENT.nan_first else ""
    smallest = {"float": "FLT_MIN", "double": "DBL_MIN"}.get(CUT.float_type)
%>\
/* Which bucket a key is in: those of a range that a sample of the row spans, the same in whatever task.
   Keys beyond those of the sample are in the first or the last one. */
typedef struct {
% if CUT.float_type:
    ${CUT.float_type} least, scale;
% else:
    ukey_t base, top;
    uint shift, fraction;
    enum { EVEN, NEAR_BASE, NEAR_TOP } most;
% endif
    ukey_t often; /* code of the key that comes often, and its bucket, which is 0 if there is none */
    uint of_often;
} range_t;

/* The place in a sample of the key that comes often, if there is one, else `count`. Neighbours that are
   equal vote for it. */
static uint place_of_often(const ukey_t *codes, const uint count)
{
    uint pairs = 0, votes = 0, place = 0, same = 0;
    for (uint j = 1; j < count; ++j)
        pairs += codes[j] == codes[j - 1];
    if (!pairs)
        return count;
    for (uint j = 1; j < count; ++j)
        if (codes[j] == codes[j - 1]) {
            place = votes ? place : j;
            votes += codes[j] == codes[place] ? 1 : -1;
        }
    for (uint j = 0; j < count; ++j)
        same += codes[j] == codes[place];
    return same * ${CUT.often} >= count ? place : count;
}

static inline void give_bucket(range_t *range, const ukey_t code, const uint bucket)
{
    range->often = code;
    range->of_often = LESSER(bucket, BUCKETS - 3u) + 1;
}

% if CUT.float_type:
/* Rounding keeps the order. NaN and what is too large is in the last bucket. */
static inline uint bucket_of(const ukey_t key, const range_t range)
{
    const ${CUT.float_type} place = (${sign}as_${CUT.float_type}(key) - range.least) * range.scale;
    const int bucket = place > 0 ? place < BUCKETS - 1 ? (int)place : BUCKETS - 1 : place <= 0 ? 0 : BUCKETS - 1;
    return ${"BUCKETS - 1 - bucket" if ELEMENT.nan_first else "bucket"};
}

/* Buckets are as wide as numbers, not as codes: all codes of a few exponents are most of a sample. */
static range_t sample_range(__global const ukey_t *keys, const index_t n)
{
    ukey_t codes[${2 * CUT.sample}];
    ${CUT.float_type} least = 0, largest = 0;
    bool any = false;
    uint count = 0;
    const index_t stride = GREATER(n / ${CUT.sample}, (index_t)1);
    for (index_t i = 0; i < n; i += stride) {
        const ${CUT.float_type} one = ${sign}as_${CUT.float_type}(keys[i]);
        codes[count++] = code(keys[i]);
        if (one - one != 0)
            continue; /* neither infinite nor NaN */
        least = any ? LESSER(least, one) : one;
        largest = any ? GREATER(largest, one) : one;
        any = true;
    }
    range_t range;
    range.least = least;
    /* Never zero: infinity times zero is none of the numbers. */
    range.scale = largest / 2 - least / 2 > 0 ? BUCKETS / 2 / (largest / 2 - least / 2) : ${smallest};
    if (range.scale - range.scale != 0)
        range.scale = ${smallest};
    const uint place = place_of_often(codes, count);
    range.of_often = 0;
    if (place < count)
        give_bucket(&range, codes[place], bucket_of(keys[place * stride], range));
    return range;
}

static bool is_of_one_key(const uint bucket, const range_t range, const ukey_t least, const ukey_t largest)
{
    return range.of_often && bucket == range.of_often;
}
% else:
static inline uint bucket_of_even(const ukey_t key, const range_t range)
{
    const ukey_t mine = code(key), above = (ukey_t)(GREATER(mine, range.base) - range.base) >> range.shift;
    return LESSER(above, LAST_BUCKET);
}

/* The bits of floats that are no less than 1 are in their order, and rounding keeps that. */
static inline uint place_of(const ukey_t distance, const range_t range)
{
    const uint place = (as_uint((float)distance + 1) >> (23 - range.fraction)) - (127u << range.fraction);
    return LESSER(place, (uint)LAST_BUCKET);
}

static inline uint bucket_of_near_base(const ukey_t key, const range_t range)
{
    const ukey_t mine = code(key);
    return place_of(GREATER(mine, range.base) - range.base, range);
}

static inline uint bucket_of_near_top(const ukey_t key, const range_t range)
{
    const ukey_t mine = code(key);
    return (uint)LAST_BUCKET - place_of(range.top - LESSER(mine, range.top), range);
}

static inline uint bucket_of(const ukey_t key, const range_t range)
{
    return range.most == EVEN ? bucket_of_even(key, range)
           : range.most == NEAR_BASE ? bucket_of_near_base(key, range) : bucket_of_near_top(key, range);
}

/* Where most keys of the sample are in a small section of their range, at either end, buckets are narrow
   there: as wide as floats of a few bits are apart, counted from that end. */
static range_t sample_range(__global const ukey_t *keys, const index_t n)
{
    ukey_t codes[${2 * CUT.sample}];
    ukey_t least = code(keys[0]), largest = least;
    const index_t stride = GREATER(n / ${CUT.sample}, (index_t)1);
    uint count = 0, low = 0, high = 0;
    for (index_t i = 0; i < n && count < ${2 * CUT.sample}; i += stride)
        codes[count++] = code(keys[i]);
    for (uint j = 0; j < count; ++j) {
        least = LESSER(least, codes[j]);
        largest = GREATER(largest, codes[j]);
    }
    const uint length = length_of(largest - least);
    const ukey_t few = (largest - least) / ${CUT.skew};
    for (uint j = 0; j < count; ++j) {
        low += codes[j] - least <= few;
        high += largest - codes[j] <= few;
    }
    range_t range;
    range.base = least;
    range.top = largest;
    range.shift = GREATER(length, ${CUT.bits}u) - ${CUT.bits};
    range.most = !range.shift ? EVEN : 2 * low > count ? NEAR_BASE : 2 * high > count ? NEAR_TOP : EVEN;
    range.fraction = 0;
    while ((length + 1) << (range.fraction + 1) < BUCKETS)
        ++range.fraction;
    const uint place = place_of_often(codes, count);
    range.of_often = 0;
    if (place < count)
        give_bucket(&range, codes[place], bucket_of(keys[place * stride], range));
    return range;
}

/* Whether all keys of a bucket are equal, for integers, in a row whose least and largest codes are given. Keys beyond
   those of the sample are in the first or in the last bucket. */
static bool is_of_one_key(uint bucket, const range_t range, const ukey_t least, const ukey_t largest)
{
    if (range.of_often) {
        /* Other buckets have some keys of one bucket without it, but the last three of several. */
        if (bucket == range.of_often || bucket + 1 >= BUCKETS - 2)
            return bucket == range.of_often;
        bucket -= bucket > range.of_often ? 2 : 0;
    }
    const uint from_end = range.most == NEAR_TOP ? (uint)LAST_BUCKET - bucket : bucket;
    const bool open = range.most == NEAR_TOP ? largest > range.top : least < range.base;
    if (open && from_end == 0)
        return false;
    if (range.most == EVEN)
        return !range.shift && (bucket < LAST_BUCKET || largest <= range.base + LAST_BUCKET);
    return from_end < (range.fraction + 1) << range.fraction;
}
% endif

<% kinds = ("",) if CUT.float_type else ("_even", "_near_base", "_near_top") %>\
static inline uint stage_buckets(const source_t source, const index_t first, const index_t end, uint *found,
                                 const range_t range)
{
    const uint here = (uint)LESSER((index_t)${BLOCK}, end - first);
% for kind in kinds:
    ${f"if (range.most == {kind[1:].upper()}) " if kind else ""}{
${blocks.fill("found", f"bucket_of{kind}(source.keys[first + j], range)", BLOCK)}\
    }
% endfor
    if (range.of_often)
        for (uint j = 0; j < here; ++j) {
            const ukey_t mine = code(source.keys[first + j]);
            found[j] = LESSER(found[j], BUCKETS - 3u) + (mine >= range.often) + (mine > range.often);
        }
    return here;
}

</%def>\
