## One unit sorts a short run of keys in vector registers, by comparisons that no key decides.
##
##     key number  0 .. ROWS - 1 | ROWS .. 2 ROWS - 1 | ...      a block of ROWS * LANES keys,
##     lane        0             | 1                  | ...      number = lane * ROWS + row
##
## The rows of a block are vectors. A network sorts all lanes side by side. Lanes then are merged by
## twos, fours and so on, blocks likewise: a bitonic merge first compares what lies opposite, then at
## half the distance, and so on. Distances of less than ROWS are between rows, the others exchange
## lanes first. At last a block is transposed, so that it can be written in order.
##
## Keys are compared as `plain` codes, from which they can be made again. NaN, and zeros of both signs,
## keep the order that they have in a stable sort: runs that hold one are left to others.
##
## Source: own, from K. E. Batcher, "Sorting networks and their applications", AFIPS 1968; keys by
## columns of vectors after J. Chhugani et al., "Efficient implementation of sorting on multi-core
## SIMD CPU architecture", VLDB 2008.
##
## ELEMENT   what is sorted: see keys.mako; no values, and all bits of keys count
## NETWORK   keys of the longest run, a power of two times a block
## LANES     keys of a vector
<%namespace name="types" file="/common/types.mako"/>\
<%def name="declare(ELEMENT, NETWORK, LANES)">\
<%
    ROWS = 16
    key = ELEMENT.key
    size, base, integer = types.module.size(key), types.module.unsigned(key), types.module.signed(key)
    top = 8 * size - 1
    floating = key in ("float", "double")
    fraction = {"float": 23, "double": 52}.get(key)
    sign = f"(({base})1 << {top})"

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
    while 1 << len(masks) < LANES:
        masks.append(1 << len(masks))
    flips = [2 * mask - 1 for mask in masks]
%>\
#define BLOCK_ROWS ${ROWS}
#define BLOCK_KEYS ${ROWS * LANES}
typedef ${base}${LANES} keys_t;
typedef struct __attribute__((packed)) { keys_t vector; } loose_keys_t;

static inline keys_t plain(const keys_t bits)
{
% if floating:
    const keys_t result = bits ^ ((keys_t)0 - (bits >> ${top}) | ${sign});
% elif key.startswith("u"):
    const keys_t result = bits;
% else:
    const keys_t result = bits ^ ${sign};
% endif
    return ${"~result" if ELEMENT.descending else "result"};
}

static inline keys_t key_of_plain(const keys_t code)
{
    const keys_t ordered = ${"~code" if ELEMENT.descending else "code"};
% if floating:
    return ordered ^ ((ordered >> ${top}) - (keys_t)1 | ${sign});
% else:
    return ordered${"" if key.startswith("u") else f" ^ {sign}"};
% endif
}

#define IN_ORDER(a, b) { const keys_t less = (a) < (b) ? (a) : (b); (b) = (a) < (b) ? (b) : (a); (a) = less; }

/* Exchange the upper lanes of `a` with the lower ones of `b`. */
#define SWAP(a, b, upper, lower) { const keys_t old = a; a.upper = b.lower; b.lower = old.upper; }

/* Merge what is bitonic in each lane. */
static inline void merge_rows(keys_t *rows)
{
% for distance in (8, 4, 2, 1):
% for row in range(ROWS):
% if not row & distance:
    IN_ORDER(rows[${row}], rows[${row + distance}])
% endif
% endfor
% endfor
}

/* Of each lane and the one whose number differs by a mask, the upper one gets the larger keys. */
% for mask in sorted({*masks, *flips}):
<%
    other = lanes(lane ^ mask for lane in range(LANES))
    high = mask & -mask if mask in masks and mask not in flips else (mask + 1) // 2
    upper = ", ".join("-1" if lane & high else "0" for lane in range(LANES))
%>\
static inline keys_t exchanged_${mask}(const keys_t mine, const keys_t opposite)
{
    const keys_t there = opposite.${other};
    const keys_t less = mine < there ? mine : there, more = mine < there ? there : mine;
    return (${integer}${LANES})(${upper}) ? more : less;
}

% endfor
static inline void sort_block(keys_t *rows)
{
% for one, other in network(ROWS):
    IN_ORDER(rows[${one}], rows[${other}])
% endfor
% for width, flip in enumerate(flips):
% for row in range(ROWS // 2):
    {
        const keys_t low = rows[${row}], high = rows[${ROWS - 1 - row}];
        rows[${row}] = exchanged_${flip}(low, high);
        rows[${ROWS - 1 - row}] = exchanged_${flip}(high, low);
    }
% endfor
% for mask in masks[:width][::-1]:
    for (uint row = 0; row < BLOCK_ROWS; ++row)
        rows[row] = exchanged_${mask}(rows[row], rows[row]);
% endfor
    merge_rows(rows);
% endfor
}

/* Merge a block that is bitonic. */
static inline void merge_block(keys_t *rows)
{
% for mask in masks[::-1]:
    for (uint row = 0; row < BLOCK_ROWS; ++row)
        rows[row] = exchanged_${mask}(rows[row], rows[row]);
% endfor
    merge_rows(rows);
}

% if NETWORK > ROWS * LANES:
/* Compare what is half the distance apart in what is bitonic. */
static inline void compare_blocks(keys_t *run, const uint blocks)
{
    for (uint row = 0; row < blocks / 2 * BLOCK_ROWS; ++row)
        IN_ORDER(run[row], run[row + blocks / 2 * BLOCK_ROWS])
}

/* Of two sorted halves of `blocks` blocks, bring the lesser keys to the first; both are bitonic then. */
static inline void bitonic_split(keys_t *run, const uint blocks)
{
    for (uint row = 0; row < blocks / 2 * BLOCK_ROWS; ++row) {
        const uint block = blocks - 1 - row / BLOCK_ROWS;
        keys_t *here = run + row, *there = run + block * BLOCK_ROWS + BLOCK_ROWS - 1 - row % BLOCK_ROWS;
        const keys_t mine = *here, opposite = (*there).${lanes(range(LANES - 1, -1, -1))};
        const keys_t more = mine < opposite ? opposite : mine;
        *here = mine < opposite ? mine : opposite;
        *there = more.${lanes(range(LANES - 1, -1, -1))};
    }
}

% endif
/* Transpose squares of a block and make keys of codes, so that vector by vector is in order. */
static inline void order_block(keys_t *rows)
{
    keys_t ordered[BLOCK_ROWS];
% for square in range(ROWS // LANES):
    {
% for row in range(LANES):
        keys_t v${row} = rows[${square * LANES + row}];
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
        ordered[${lane * (ROWS // LANES) + square}] = v${lane};
% endfor
    }
% endfor
    for (uint row = 0; row < BLOCK_ROWS; ++row)
        rows[row] = key_of_plain(ordered[row]);
}

/* Sort a run of at most NETWORK keys, and return whether that was possible. */
static bool sort_by_network(__global const ukey_t *keys, const uint count, __global ukey_t *sorted)
{
    keys_t run[${NETWORK // LANES}];
    uint blocks = 1;
    while (blocks * BLOCK_KEYS < count)
        blocks *= 2;
% if floating:
    ${integer}${LANES} left_out = 0;
% endif
    const uint whole = count / ${LANES};
    for (uint row = 0; row < blocks * BLOCK_ROWS; ++row) {
        keys_t bits, codes = (keys_t)~(${base})0;
        if (row < whole)
            bits = ((__global const loose_keys_t *)(keys + row * ${LANES}))->vector;
        else if (row == whole) {
            bits = (keys_t)0;
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
    /* The others hold what goes behind all keys. */
    const uint filled = (count + BLOCK_KEYS - 1) / BLOCK_KEYS;
    for (uint b = 0; b < filled; ++b)
        sort_block(run + b * BLOCK_ROWS);
% if NETWORK > ROWS * LANES:
    for (uint width = 2; width <= blocks; width *= 2)
        for (uint first = 0; first + width / 2 < filled; first += width) {
            bitonic_split(run + first * BLOCK_ROWS, width);
            for (uint extent = width / 2; extent > 1; extent /= 2)
                for (uint at = first; at < LESSER(first + width, filled); at += extent)
                    compare_blocks(run + at * BLOCK_ROWS, extent);
            for (uint b = first; b < LESSER(first + width, filled); ++b)
                merge_block(run + b * BLOCK_ROWS);
        }
% endif
    for (uint b = 0; b < filled; ++b)
        order_block(run + b * BLOCK_ROWS);
    for (uint row = 0; row < whole; ++row)
        ((__global loose_keys_t *)(sorted + row * ${LANES}))->vector = run[row];
    for (uint j = whole * ${LANES}; j < count; ++j)
        sorted[j] = ((const ukey_t *)run)[j];
    return true;
}
</%def>\
