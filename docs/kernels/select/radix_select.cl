/*
 * An example of clkernels/select/radix_select.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       topk n=50000 k=4
 *     algorithm     radix-select
 *     configuration WG_SIZE=256 ITEM_KEYS=4 DIGIT_BITS=8
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        select_slices, (6400,) items in groups of (256,)
 */
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
/* `min` and `max` are calls of functions on PoCL 3.0, and loops with calls get no vectors. */
#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) > (b) ? (a) : (b))

typedef uint ukey_t;
#define KEY_BITS 32
#define CODE_BITS 32 /* of a code; all above are zero */

static inline ukey_t code(const ukey_t bits)
{
    const ukey_t result = bits ^ ((ukey_t)0x80000000U);
    return ~result;
}

typedef ukey_t elem_t;
#define KEY_OF(e) (e)
#define WARP 32

static inline uint lane(void)
{
    return (uint)get_local_id(0) & (WARP - 1);
}

static inline uint warp(void)
{
    return (uint)get_local_id(0) / WARP;
}

static inline uint ballot(const uint bit)
{
    uint word;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                 : "=r"(word) : "r"(bit));
    return word;
}

static inline void warp_sync(void)
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* The sum of `value` over the items of the warp up to this one. */
static inline uint warp_sum(uint value)
{
    for (uint distance = 1; distance < WARP; distance *= 2) {
        uint other;
        asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, 0xffffffff;" : "=r"(other) : "r"(value), "r"(distance));
        if (lane() >= distance)
            value += other;
    }
    return value;
}
#define SCAN_WORDS 32

static inline uint scan_group(const uint value, __local uint *space)
{
    const uint sum = warp_sum(value);
    if (lane() == WARP - 1)
        space[warp()] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (warp() == 0) {
        const uint one = lane() < 8 ? space[lane()] : 0;
        space[lane()] = warp_sum(one) - one;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return space[warp()] + sum - value;
}
typedef uint index_t;
#define SPACE 512

static inline index_t slice_begin(const index_t count, const uint slice, const uint slices, const uint tile)
{
    const index_t tiles = count / tile + (count % tile != 0);
    const index_t each = tiles / slices + (tiles % slices != 0);
    const ulong begin = (ulong)each * tile * slice;
    return begin < count ? (index_t)begin : count;
}

static inline index_t scan_index(const index_t value, __local index_t *space)
{
    const uint item = (uint)get_local_id(0);
    index_t sum = value;
    uint half_ = 0;
    for (uint distance = 1; distance < 256; distance *= 2) {
        space[half_ + item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item >= distance)
            sum += space[half_ + item - distance];
        half_ = 256 - half_;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum - value;
}

static inline index_t sum_before(__global const uint *words, const uint slice, __local index_t *space)
{
    const uint item = (uint)get_local_id(0);
    index_t own = 0;
    for (uint first = 0; first < slice; first += 256) {
        const uint p = first + item;
        own += p < slice ? words[p] : 0;
    }
    const index_t before = scan_index(own, space);
    if (item == 255)
        space[0] = before + own;
    barrier(CLK_LOCAL_MEM_FENCE);
    const index_t sum = space[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}
#define WG_SIZE 256
#define ITEM_KEYS 4
#define TILE (WG_SIZE * ITEM_KEYS)
#define RADIX 256
#define DIGITS 4
#define COPIES 1 /* neighbours of one thread are counted apart, which waits less */
#define OWN_WORDS ((RADIX + WG_SIZE - 1) / WG_SIZE)

typedef uint code_t;

/* How many bits are below digit d, and how many values it has. */
static inline uint shift_of(const uint d)
{
    return (d + 1) * 8 < KEY_BITS ? KEY_BITS - (d + 1) * 8 : 0;
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
static void count_slice(__global const ukey_t *keys, const index_t begin, const index_t end, const uint shift,
                        __local uint *counts, __local uint *below,
                        const code_t low, const code_t high)
{
    const uint item = (uint)get_local_id(0);
    uint below_own = 0;
    uint digit = 0, run = 0;
    for (index_t tile = begin; tile < end; tile += TILE) {
        const index_t first = tile + item * ITEM_KEYS;
        const uint here = first < end ? (uint)LESSER(end - first, (index_t)ITEM_KEYS) : 0;
        code_t codes[ITEM_KEYS];
        uint less = 0, hits = 0;
        #pragma unroll
        for (uint j = 0; j < ITEM_KEYS; ++j) {
            codes[j] = j < here ? (code_t)code(keys[first + j]) >> shift : 0;
            less += j < here && codes[j] < low;
            hits += j < here && codes[j] <= high;
        }
        below_own += less;
        if (hits) {
            #pragma unroll
            for (uint j = 0; j < ITEM_KEYS; ++j)
                if (j < here && codes[j] <= high) {
                    const bool equal = codes[j] >= low;
                    if (equal) {
                        const uint found = (uint)(codes[j] - low);
                        /* Atomic operations on one word would wait for each other. */
                        if (found != digit) {
                            if (run)
                                atomic_add(&counts[digit], run);
                            digit = found;
                            run = 0;
                        }
                        ++run;
                    }
                }
        }
    }
    if (run)
        atomic_add(&counts[digit], run);
    atomic_add(below, below_own);
    barrier(CLK_LOCAL_MEM_FENCE);
}

static void take_slice(__global const ukey_t *keys, const index_t begin, const index_t end, const uint shift,
                       __global const long *places, const index_t less_before, const index_t equal_before,
                       const index_t limit, __global ukey_t *taken, __global long *taken_places,
                       __local uint *sums, __local uint *total,
                       const code_t low, const code_t high)
{
    const uint item = (uint)get_local_id(0);
    index_t less_done = less_before, equal_done = equal_before;
    for (index_t tile = begin; tile < end; tile += TILE) {
        const index_t first = tile + item * ITEM_KEYS;
        const uint here = first < end ? (uint)LESSER(end - first, (index_t)ITEM_KEYS) : 0;
        code_t codes[ITEM_KEYS];
        uint less = 0, hits = 0;
        #pragma unroll
        for (uint j = 0; j < ITEM_KEYS; ++j) {
            codes[j] = j < here ? (code_t)code(keys[first + j]) >> shift : 0;
            less += j < here && codes[j] < low;
            hits += j < here && codes[j] <= high;
        }
        /* Less ones in the lower half of a word, equal ones in the upper. */
        const uint both = less | (hits - less) << 16;
        const uint before = scan_group(both, sums);
        if (item == WG_SIZE - 1)
            *total = before + both;
        barrier(CLK_LOCAL_MEM_FENCE);
        index_t less_rank = less_done + (before & 0xffff), equal_rank = equal_done + (before >> 16);
        less_done += *total & 0xffff;
        equal_done += *total >> 16;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (equal_rank >= limit) /* there may be many more */
            hits = less;
        if (hits) {
            #pragma unroll
            for (uint j = 0; j < ITEM_KEYS; ++j)
                if (j < here && codes[j] <= high) {
                    const bool equal = codes[j] >= low;
                    if ((!equal || equal_rank < limit)) {
                        const index_t to = less_rank + LESSER(equal_rank, limit);
                        taken[to] = keys[first + j];
                        taken_places[to] = places ? places[first + j] : (long)(first + j);
                    }
                    less_rank += !equal;
                    equal_rank += equal;
                }
        }
    }
}

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

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void select_slices(__global const ukey_t *keys,
                   __global ukey_t *values,
                   __global long *places,
                   const index_t n,
                   const index_t k,
                   const uint slices)
{
    __local uint counts[COPIES * RADIX];
    __local uint sums[SCAN_WORDS];
    __local index_t space[SPACE];
    __local index_t answer[3];
    __local uint below, total;
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / slices, to = get_group_id(0) * (size_t)k;
    const ulong slice = get_group_id(0) % slices;
    /* As even as they can be: none has fewer than k. */
    const index_t begin = (index_t)(n * slice / slices), end = (index_t)(n * (slice + 1) / slices);
    prefix_t known;
    known.prefix = 0;
    known.left = k;
    known.equal = end - begin;
    keys += row * n;
    /* Where all that share the digits so far are wanted, further digits say nothing. */
    uint d = 0;
    for (; d < DIGITS && known.left < known.equal; ++d) {
        index_t own[OWN_WORDS];
        const code_t low = known.prefix * values_of(d);
        clear_counts(counts, &below);
        count_slice(keys, begin, end, shift_of(d), counts, &below, low, low + values_of(d) - 1);
        for (uint w = 0; w < OWN_WORDS; ++w) {
            const uint v = item * OWN_WORDS + w;
            own[w] = v < RADIX ? counts[v] : 0;
            for (uint c = 1; c < COPIES; ++c)
                own[w] += v < RADIX ? counts[c * RADIX + v] : 0;
        }
        known = next_digit(known, d, own, space, answer);
    }
    take_slice(keys, begin, end, d ? shift_of(d - 1) : 0, 0, 0, 0, known.left,
               values + to, places + to, sums, &total, known.prefix, d ? known.prefix : ~(code_t)0);
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void select_few(__global const ukey_t *keys,
                __global const long *few_places,
                __global ukey_t *values,
                __global long *places,
                const index_t n,
                const index_t k,
                const uint slices)
{
    __local uint counts[COPIES * RADIX];
    __local uint sums[SCAN_WORDS];
    __local index_t space[SPACE];
    __local index_t answer[3];
    __local uint below, total;
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / slices, to = get_group_id(0) * (size_t)k;
    const ulong slice = get_group_id(0) % slices;
    /* As even as they can be: none has fewer than k. */
    const index_t begin = (index_t)(n * slice / slices), end = (index_t)(n * (slice + 1) / slices);
    prefix_t known;
    known.prefix = 0;
    known.left = k;
    known.equal = end - begin;
    keys += row * n;
    /* Where all that share the digits so far are wanted, further digits say nothing. */
    uint d = 0;
    for (; d < DIGITS && known.left < known.equal; ++d) {
        index_t own[OWN_WORDS];
        const code_t low = known.prefix * values_of(d);
        clear_counts(counts, &below);
        count_slice(keys, begin, end, shift_of(d), counts, &below, low, low + values_of(d) - 1);
        for (uint w = 0; w < OWN_WORDS; ++w) {
            const uint v = item * OWN_WORDS + w;
            own[w] = v < RADIX ? counts[v] : 0;
            for (uint c = 1; c < COPIES; ++c)
                own[w] += v < RADIX ? counts[c * RADIX + v] : 0;
        }
        known = next_digit(known, d, own, space, answer);
    }
    take_slice(keys, begin, end, d ? shift_of(d - 1) : 0, few_places + row * n, 0, 0, known.left,
               values + to, places + to, sums, &total, known.prefix, d ? known.prefix : ~(code_t)0);
}
