## Sorting networks of vectors: words are compared in a way that no word decides.
##
##     word number  0 .. ROWS - 1 | ROWS .. 2 ROWS - 1 | ...      a block of ROWS * LANES words,
##     lane         0             | 1                  | ...      number = lane * ROWS + row
##
## The rows of a block are vectors. A network sorts all lanes side by side. Lanes then are merged by
## twos, fours and so on, blocks likewise: a bitonic merge first compares what lies opposite, then at
## half the distance, and so on. Distances of less than ROWS are between rows, the others exchange
## lanes first. At last a block is transposed, so that it can be written in order.
##
##   sort_block(rows)                  sort each WIDTH lanes of a block
##   sort_blocks(run, blocks, count)   sort a run of several blocks, if WIDTH is LANES
##   transpose_block(rows)             write lane after lane: ROWS / LANES vectors get what lane 0 of all rows had
##
## Rows are unrolled: in a loop over them LLVM 14 keeps them in memory, and a block takes a fifth longer.
##
## Source: own, from K. E. Batcher, "Sorting networks and their applications", AFIPS 1968; words by
## columns of vectors after J. Chhugani et al., "Efficient implementation of sorting on multi-core
## SIMD CPU architecture", VLDB 2008. Cost of a block of 256 words of 4 bytes: about 0.5 ns a word.
##
## WORD     unsigned type that is sorted
## LANES    words of a vector
## WIDTH    lanes that are sorted together, a power of two; with LANES also runs of blocks
<%!
    ROWS = 16  # vectors of a block
%>\
<%namespace name="types" file="/common/types.mako"/>\
<%def name="declare(WORD, LANES, WIDTH)">\
<%
    integer = types.module.signed(WORD)

    def network(rows):
        """Batcher's odd-even merge sort: pairs of rows to compare, one round after the other."""
        p = 1
        while p < rows:
            k = p
            while k:
                for j in range(k % p, rows - k, 2 * k):
                    for i in range(min(k, rows - j - k)):
                        if (i + j) // (2 * p) == (i + j + k) // (2 * p):
                            yield i + j, i + j + k
                k //= 2
            p *= 2

    def lanes(numbers):
        """A selection of lanes, as OpenCL C writes it."""
        return "s" + "".join(f"{number:x}" for number in numbers)

    masks = []
    while 1 << len(masks) < WIDTH:
        masks.append(1 << len(masks))
    flips = [2 * mask - 1 for mask in masks]
%>\
#define BLOCK_ROWS ${ROWS}
#define BLOCK_WORDS ${ROWS * LANES}
typedef ${WORD}${LANES} words_t;
typedef struct __attribute__((packed)) { words_t vector; } loose_words_t;

/* LLVM 16 makes no minimum of a comparison and a selection. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_min)
#define VECTOR_MIN(a, b) __builtin_elementwise_min(a, b)
#define VECTOR_MAX(a, b) __builtin_elementwise_max(a, b)
#endif
#endif
#if !defined(VECTOR_MIN)
#define VECTOR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define VECTOR_MAX(a, b) ((a) < (b) ? (b) : (a))
#endif
#define IN_ORDER(a, b) { const words_t less = VECTOR_MIN(a, b); (b) = VECTOR_MAX(a, b); (a) = less; }

/* Exchange the upper lanes of `a` with the lower ones of `b`. */
#define SWAP(a, b, upper, lower) { const words_t old = a; a.upper = b.lower; b.lower = old.upper; }

% if WIDTH > 1:
/* Merge what is bitonic in each lane. */
static inline void merge_rows(words_t *rows)
{
% for distance in (8, 4, 2, 1):
% for row in range(ROWS):
% if not row & distance:
    IN_ORDER(rows[${row}], rows[${row + distance}])
% endif
% endfor
% endfor
}

/* Of each lane and the one whose number differs by a mask, the upper one gets the larger words. */
% for mask in sorted({*masks, *flips}):
<%
    other = lanes(lane ^ mask for lane in range(LANES))
    high = mask & -mask if mask in masks and mask not in flips else (mask + 1) // 2
    upper = ", ".join("-1" if lane & high else "0" for lane in range(LANES))
%>\
static inline words_t exchanged_${mask}(const words_t mine, const words_t opposite)
{
    const words_t there = opposite.${other};
    return (${integer}${LANES})(${upper}) ? VECTOR_MAX(mine, there) : VECTOR_MIN(mine, there);
}

% endfor
% endif
static inline void sort_block(words_t *rows)
{
% for one, other in network(ROWS):
    IN_ORDER(rows[${one}], rows[${other}])
% endfor
% for width, flip in enumerate(flips):
% for row in range(ROWS // 2):
    {
        const words_t low = rows[${row}], high = rows[${ROWS - 1 - row}];
        rows[${row}] = exchanged_${flip}(low, high);
        rows[${ROWS - 1 - row}] = exchanged_${flip}(high, low);
    }
% endfor
% for mask in masks[:width][::-1]:
% for row in range(ROWS):
    rows[${row}] = exchanged_${mask}(rows[${row}], rows[${row}]);
% endfor
% endfor
    merge_rows(rows);
% endfor
}

% if WIDTH == LANES:
/* Merge a block that is bitonic. */
static inline void merge_block(words_t *rows)
{
% for mask in masks[::-1]:
% for row in range(ROWS):
    rows[${row}] = exchanged_${mask}(rows[${row}], rows[${row}]);
% endfor
% endfor
    merge_rows(rows);
}

/* Compare what is half the distance apart in what is bitonic. */
static inline void compare_blocks(words_t *run, const uint blocks)
{
    for (uint row = 0; row < blocks / 2 * BLOCK_ROWS; ++row)
        IN_ORDER(run[row], run[row + blocks / 2 * BLOCK_ROWS])
}

/* Of two sorted halves of `blocks` blocks, bring the lesser words to the first; both are bitonic then. */
static inline void bitonic_split(words_t *run, const uint blocks)
{
    for (uint row = 0; row < blocks / 2 * BLOCK_ROWS; ++row) {
        const uint block = blocks - 1 - row / BLOCK_ROWS;
        words_t *here = run + row, *there = run + block * BLOCK_ROWS + BLOCK_ROWS - 1 - row % BLOCK_ROWS;
        const words_t mine = *here, opposite = (*there).${lanes(range(LANES - 1, -1, -1))};
        const words_t more = VECTOR_MAX(mine, opposite);
        *here = VECTOR_MIN(mine, opposite);
        *there = more.${lanes(range(LANES - 1, -1, -1))};
    }
}

/* Sort `count` words in blocks, whose number is a power of two. The others go behind all words. */
static inline void sort_blocks(words_t *run, const uint blocks, const uint count)
{
    const uint filled = (count + BLOCK_WORDS - 1) / BLOCK_WORDS;
    for (uint b = 0; b < filled; ++b)
        sort_block(run + b * BLOCK_ROWS);
    for (uint width = 2; width <= blocks; width *= 2)
        for (uint first = 0; first + width / 2 < filled; first += width) {
            bitonic_split(run + first * BLOCK_ROWS, width);
            for (uint extent = width / 2; extent > 1; extent /= 2)
                for (uint at = first; at < LESSER(first + width, filled); at += extent)
                    compare_blocks(run + at * BLOCK_ROWS, extent);
            for (uint b = first; b < LESSER(first + width, filled); ++b)
                merge_block(run + b * BLOCK_ROWS);
        }
}

% endif
static inline void transpose_block(words_t *rows)
{
    words_t turned[BLOCK_ROWS];
% for square in range(ROWS // LANES):
    {
% for row in range(LANES):
        words_t v${row} = rows[${square * LANES + row}];
% endfor
<% distance = LANES // 2 %>\
% while distance:
<%
    upper = lanes(lane for lane in range(LANES) if lane & distance)
    lower = lanes(lane for lane in range(LANES) if not lane & distance)
%>\
% for row in range(LANES):
% if not row & distance:
        SWAP(v${row}, v${row + distance}, ${upper}, ${lower})
% endif
% endfor
<% distance //= 2 %>\
% endwhile
% for lane in range(LANES):
        turned[${lane * (ROWS // LANES) + square}] = v${lane};
% endfor
    }
% endfor
    for (uint row = 0; row < BLOCK_ROWS; ++row)
        rows[row] = turned[row];
}
</%def>\
