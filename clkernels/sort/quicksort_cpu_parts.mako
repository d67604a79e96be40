## One item sorts the words of a row: quicksort by vectors, down to runs for the networks of network.mako.
##
##     lows     |  part .. |  not above the pivot ->   |            |
##     highs    |  part .. |  above it ->      |                    |
##
## A part of a row has its words in `lows`, where it will end, or in `highs`, and room for as many in
## the other. One pass moves what is not above the pivot to `lows`, the rest to `highs`. It writes no
## further than it has read, so either array may be where it reads. Each side is a part then: what has
## gone to `lows` has the rear of the part's room in `highs`, and the other way round.
##
## The pivot is a median of vectors from nine places. A side of a part that was divided badly takes the
## middle of its range instead, or what is below its largest word. So equal words are soon a part of
## their own, and no input takes more than some passes for each bit of a word.
##
## Source: C. A. R. Hoare, "Quicksort", 1962; compressing vectors after S. Gueron, V. Krasnov, "Fast
## quicksort implementation using AVX instructions", 2016; the two arrays that take turns are own.
##
## WORD      unsigned type that is sorted
## NETWORK   words of the longest run for a network, a power of two times a block
## LANES     words of a vector
<%namespace name="types" file="/common/types.mako"/>\
<%def name="declare(WORD, NETWORK, LANES)">\
<%
    PLACES = 9
    WORST = 8  # a part is divided badly if a side has less than its share of so many
    integer = types.module.signed(WORD)
    pack = f"__builtin_ia32_compress{'si' if WORD == 'uint' else 'di'}512_mask"
    compare = f"__builtin_ia32_ucmp{'d' if WORD == 'uint' else 'q'}512_mask"
%>\
/* Without these instructions words are moved one by one. */
#if defined(__AVX512F__) && defined(__has_builtin)
#if __has_builtin(${pack}) && __has_builtin(${compare})
#define PACK(vector, mask) as_${WORD}${LANES}(${pack}(as_signed(vector), (signed_t)0, (mask)))
#define NOT_ABOVE(vector, pivot) ${compare}(as_signed(vector), as_signed(pivot), 2, (mask_t)-1)
#define as_signed as_${integer}${LANES}
typedef ${integer}${LANES} signed_t;
typedef ${"ushort" if LANES == 16 else "uchar"} mask_t;
#endif
#endif

/* Sort up to NETWORK words. */
static void sort_short(__global const word_t *from, const uint count, __global word_t *to)
{
    words_t run[${NETWORK // LANES}];
    uint blocks = 1;
    while (blocks * BLOCK_WORDS < count)
        blocks *= 2;
    const uint whole = count / ${LANES};
    for (uint row = 0; row < whole; ++row)
        run[row] = ((__global const loose_words_t *)(from + row * ${LANES}))->vector;
    for (uint row = whole; row < blocks * BLOCK_ROWS; ++row)
        run[row] = (words_t)~(word_t)0;
    for (uint j = whole * ${LANES}; j < count; ++j)
        ((word_t *)run)[j] = from[j];
    sort_blocks(run, blocks, count);
    for (uint b = 0; b * BLOCK_WORDS < count; ++b)
        transpose_block(run + b * BLOCK_ROWS);
    for (uint row = 0; row < whole; ++row)
        ((__global loose_words_t *)(to + row * ${LANES}))->vector = run[row];
    for (uint j = whole * ${LANES}; j < count; ++j)
        to[j] = ((const word_t *)run)[j];
}

/* Move words that are not above the pivot to `lows`, others to `highs`. Returns how many the first are. */
static index_t divide(__global const word_t *from, const index_t count, const word_t pivot,
                      __global word_t *lows, __global word_t *highs)
{
    index_t low = 0, i = 0;
#if defined(PACK)
    for (; i + ${LANES} <= count; i += ${LANES}) {
        const words_t vector = ((__global const loose_words_t *)(from + i))->vector;
        const mask_t mask = NOT_ABOVE(vector, (words_t)pivot);
        ((__global loose_words_t *)(lows + low))->vector = PACK(vector, mask);
        ((__global loose_words_t *)(highs + (i - low)))->vector = PACK(vector, (mask_t)~mask);
        low += popcount((uint)mask);
    }
#endif
    for (; i < count; ++i) {
        const word_t word = from[i];
        lows[low] = word;
        highs[i - low] = word;
        low += word <= pivot;
    }
    return low;
}

#define MEDIAN(a, b, c) GREATER(LESSER(a, b), LESSER(GREATER(a, b), c))

/* A word in the middle, about: the median of medians of vectors. */
static word_t middle(__global const word_t *from, const index_t count)
{
    words_t medians[${PLACES}];
    word_t lanes[${LANES}], result = 0;
    const index_t step = (count - ${LANES}) / ${PLACES - 1};
% for k in range(PLACES):
    const words_t v${k} = ((__global const loose_words_t *)(from + ${k} * step))->vector;
% endfor
% for k in range(3):
    const words_t m${k} = MEDIAN(v${k}, v${k + 3}, v${k + 6});
% endfor
    *(words_t *)lanes = MEDIAN(m0, m1, m2);
    for (uint k = 0; k < ${LANES}; ++k) {
        uint before = 0;
        for (uint j = 0; j < ${LANES}; ++j)
            before += lanes[j] < lanes[k];
        result = before <= ${LANES // 2} && lanes[k] > result ? lanes[k] : result;
    }
    return result;
}

typedef struct {
    index_t low, high, count; /* where its words begin in both arrays */
    bool in_lows, bad;        /* where they are; whether they are left by a bad division */
} part_t;

/* Sort the words in `lows`; `highs` has room for as many. */
static void sort_words(__global word_t *lows, __global word_t *highs, const index_t n)
{
    part_t left[8 * sizeof(index_t)]; /* the larger sides, so each is at most half of the one before */
    uint depth = 0;
    part_t part = {0, 0, n, true, false};
    for (;;) {
        __global word_t *from = part.in_lows ? lows + part.low : highs + part.high;
        bool done = part.count <= ${NETWORK};
        word_t pivot = 0;
        if (done)
            sort_short(from, (uint)part.count, lows + part.low);
        else {
            pivot = middle(from, part.count);
            if (part.bad) {
                word_t least = ~(word_t)0, largest = 0;
                for (index_t i = 0; i < part.count; ++i) {
                    least = LESSER(least, from[i]);
                    largest = GREATER(largest, from[i]);
                }
                done = least == largest;
                pivot = pivot == largest ? largest - 1 : least + (largest - least) / 2;
            }
            if (done && !part.in_lows)
                for (index_t i = 0; i < part.count; ++i)
                    lows[part.low + i] = from[i];
        }
        if (done) {
            if (!depth)
                return;
            part = left[--depth];
            continue;
        }
        const index_t low = divide(from, part.count, pivot, lows + part.low, highs + part.high);
        const index_t high = part.count - low;
        const bool bad = LESSER(low, high) < part.count / ${WORST};
        const part_t lower = {part.low, part.high + high, low, true, bad};
        const part_t upper = {part.low + low, part.high, high, false, bad};
        left[depth] = low > high ? lower : upper;
        part = low > high ? upper : lower;
        depth += 1;
        if (!part.count)
            part = left[--depth];
    }
}
</%def>\
