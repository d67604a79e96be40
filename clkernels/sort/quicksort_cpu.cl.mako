/*
 * Stable sort of rows by threads that work alone: quicksort in vectors, or for short rows a network
 * that several of them share. Groups of one item, each of which sorts an equal share of the rows.
 *
 *     keys          k 0        | k 1        | ..
 *     words         code 0 | 0 | code 1 | 1 | ..     a position only where it counts
 *     sorted words  code 3 | 3 | code 0 | 0 | ..
 *     result        k 3        | k 0        | ..     made again of the code, or fetched by position
 *
 * Words that are equal belong to equal keys that need not be told apart, so words are sorted in any way
 * that is fast. Without positions, zeros of both signs have one code, and so have all NaN: a row that
 * has such keys gets them back, in their order, at the end.
 *
 * Source: own; see quicksort_cpu_parts.mako and network.mako.
 *
 * The host guarantees: n > 0; `words` has 2 * room words for each item; room is not less than n, nor than
 * the words of two blocks. With WIDTH < LANES a row has no more words than WIDTH lanes.
 *
 * ELEMENT     what is sorted: see keys.mako
 * WORD        unsigned type of a word
 * POSITION    bits of a position, below the code; 0 where words are codes
 * INDEX_T     unsigned type that counts the elements of all rows
 * NETWORK     words of the longest run for a network
 * LANES       words of a vector
 * WIDTH       lanes of a block that a row takes; with fewer than LANES, rows share blocks
 */
<%page args="ELEMENT, WORD, POSITION, INDEX_T, NETWORK, LANES, WIDTH"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="network" file="network.mako"/>\
<%namespace name="parts" file="quicksort_cpu_parts.mako"/>\
<%
    ROWS = network.module.ROWS
    GROUP, SQUARES = LANES // WIDTH, ROWS // LANES
    one_code = keys.module.fraction_of(ELEMENT) and not POSITION  # keys that differ may have one code
    pairs = ELEMENT.value and not ELEMENT.indices
    # What is sorted with words: parameters, and arguments for the row at `at`.
    arrays = {}
    if not ELEMENT.indices:
        arrays |= {"__global const ukey_t *restrict keys": "keys + at", "__global ukey_t *restrict sorted": "sorted + at"}
    if pairs:
        arrays["__global const value_t *restrict values"] = "values + at"
    if ELEMENT.value:
        out_type = "long" if ELEMENT.indices else "value_t"
        arrays[f"__global {out_type} *restrict sorted_values"] = "sorted_values + at"
%>\
${keys.declare(ELEMENT)}\
typedef ${WORD} word_t;
typedef ${INDEX_T} index_t;
${network.declare(WORD, LANES, WIDTH=WIDTH)}
% if WIDTH == LANES:
${parts.declare(WORD, NETWORK, LANES)}
% endif
% if not POSITION:
${keys.inverse(ELEMENT)}\
% endif
% if one_code:
/* Put zeros and NaN of a row where their codes are, in their order. */
static void restore(__global const ukey_t *keys, const index_t n, __global ukey_t *sorted)
{
    const ukey_t zero = code(0), nan_ = code((ukey_t)~(ukey_t)0);
    index_t zeros = 0, nans = 0;
    for (index_t i = 0; i < n; ++i) {
        const ukey_t mine = code(keys[i]);
        zeros += mine < zero;
        nans += mine < nan_;
    }
    for (index_t i = 0; i < n; ++i) {
        const ukey_t mine = code(keys[i]);
        if (mine == zero)
            sorted[zeros++] = keys[i];
        else if (mine == nan_)
            sorted[nans++] = keys[i];
    }
}

% endif
/* Make words of the keys of a row.${" Returns whether keys that differ may have one code." if one_code else ""} */
static ${"bool" if one_code else "void"} make_words(__global const ukey_t *restrict keys, const index_t n,
                       __global word_t *restrict words)
{
% if one_code:
    const ukey_t nan_ = code((ukey_t)~(ukey_t)0), minus_zero = (ukey_t)1 << (KEY_BITS - 1);
    ukey_t some = 0;
    for (index_t i = 0; i < n; ++i)
        some |= (ukey_t)(code(keys[i]) == nan_) | (ukey_t)(keys[i] == minus_zero);
% endif
    for (index_t i = 0; i < n; ++i)
        words[i] = ${f"(word_t)code(keys[i]) << {POSITION} | (word_t)i" if POSITION else "code(keys[i])"};
% if one_code:
    return some;
% endif
}

/* Write what belongs to sorted words. */
static void store_sorted(__global const word_t *restrict words, const index_t n,
                         ${(",\n" + " " * 25).join(arrays)})
{
    for (index_t i = 0; i < n; ++i) {
% if not POSITION:
        sorted[i] = key_of((ukey_t)words[i]);
% else:
        const index_t position = (index_t)(words[i] & ${hex((1 << POSITION) - 1)}UL);
% if not ELEMENT.indices:
        sorted[i] = keys[position];
% endif
% if ELEMENT.value:
        sorted_values[i] = ${"position" if ELEMENT.indices else "values[position]"};
% endif
% endif
    }
}

% if WIDTH < LANES:
/* Sort the words of the rows of a block; `sorted` has room for two blocks. */
static void sort_rows(__global const word_t *words, const uint n, __global word_t *sorted)
{
    words_t rows[BLOCK_ROWS];
    const words_t lane = (words_t)(${", ".join(map(str, range(LANES)))});
% for k in range(ROWS):
<% row, part = divmod(k, ROWS // GROUP) %>\
    {
        const words_t vector = ((__global const loose_words_t *)(words + ${row} * n + ${part * LANES}))->vector;
        rows[${k % SQUARES * LANES + k // SQUARES}] = lane + ${part * LANES} < n ? vector : (words_t)~(word_t)0;
    }
% endfor
    transpose_block(rows);
    sort_block(rows);
    transpose_block(rows);
    /* What is stored behind a row is overwritten by the next. */
% for k in range(ROWS):
<% row, part = divmod(k, ROWS // GROUP) %>\
    ((__global loose_words_t *)(sorted + ${row} * n + ${part * LANES}))->vector = rows[${k}];
% endfor
}

% endif
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void quicksort_cpu(__global const ukey_t *keys,
% if pairs:
                   __global const value_t *values,
% endif
% if not ELEMENT.indices:
                   __global ukey_t *sorted,
% endif
% if ELEMENT.value:
                   __global ${out_type} *sorted_values,
% endif
                   __global word_t *words,
                   const ulong room,
                   const ulong n,
                   const ulong rows)
{
    const size_t item = get_global_id(0), items = get_global_size(0);
    __global word_t *lows = words + 2 * room * item, *highs = lows + room;
    const ulong end = rows * (item + 1) / items;
    for (ulong row = rows * item / items; row < end; row += ${GROUP}) {
        const uint here = (uint)LESSER(end - row, (ulong)${GROUP});
% if one_code:
        bool special = false;
% endif
        for (uint k = 0; k < here; ++k)
            ${"special |= " if one_code else ""}make_words(keys + (row + k) * n, (index_t)n, lows + k * n);
% if WIDTH < LANES:
        sort_rows(lows, (uint)n, highs);
        __global const word_t *result = highs;
% else:
        sort_words(lows, highs, (index_t)n);
        __global const word_t *result = lows;
% endif
        for (uint k = 0; k < here; ++k) {
            const ulong at = (row + k) * n;
            store_sorted(result + k * n, (index_t)n, ${", ".join(arrays.values())});
% if one_code:
            if (special)
                restore(keys + at, (index_t)n, sorted + at);
% endif
        }
    }
}
