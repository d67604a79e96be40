/*
 * An example of clkernels/sort/quicksort_cpu.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       sort n=10000 dtype=float32
 *     algorithm     quicksort
 *     configuration NETWORK=1024
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        quicksort_cpu, (1,) items in groups of (1,)
 */
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
/* `min` and `max` are calls of functions on PoCL 3.0, and loops with calls get no vectors. */
#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) > (b) ? (a) : (b))

typedef uint ukey_t;
#define KEY_BITS 32
#define CODE_BITS 32 /* of a code; all above are zero */

static inline ukey_t code(const ukey_t bits)
{
    const ukey_t negative = (ukey_t)0 - (bits >> 31);
    const ukey_t middle = ((ukey_t)0x80000000U) & ~negative;
    const ukey_t ordered = (ukey_t)((bits ^ negative) - negative + middle - ((ukey_t)0x800000U));
    const ukey_t result = LESSER(ordered, ((ukey_t)0xff000001U));
    return result;
}

typedef ukey_t elem_t;
#define KEY_OF(e) (e)
typedef uint word_t;
typedef uint index_t;
#define BLOCK_ROWS 16
#define BLOCK_WORDS 256
typedef uint16 words_t;
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

/* Merge what is bitonic in each lane. */
static inline void merge_rows(words_t *rows)
{
    IN_ORDER(rows[0], rows[8])
        IN_ORDER(rows[1], rows[9])
        IN_ORDER(rows[2], rows[10])
        IN_ORDER(rows[3], rows[11])
        IN_ORDER(rows[4], rows[12])
        IN_ORDER(rows[5], rows[13])
        IN_ORDER(rows[6], rows[14])
        IN_ORDER(rows[7], rows[15])
        IN_ORDER(rows[0], rows[4])
        IN_ORDER(rows[1], rows[5])
        IN_ORDER(rows[2], rows[6])
        IN_ORDER(rows[3], rows[7])
        IN_ORDER(rows[8], rows[12])
        IN_ORDER(rows[9], rows[13])
        IN_ORDER(rows[10], rows[14])
        IN_ORDER(rows[11], rows[15])
        IN_ORDER(rows[0], rows[2])
        IN_ORDER(rows[1], rows[3])
        IN_ORDER(rows[4], rows[6])
        IN_ORDER(rows[5], rows[7])
        IN_ORDER(rows[8], rows[10])
        IN_ORDER(rows[9], rows[11])
        IN_ORDER(rows[12], rows[14])
        IN_ORDER(rows[13], rows[15])
        IN_ORDER(rows[0], rows[1])
        IN_ORDER(rows[2], rows[3])
        IN_ORDER(rows[4], rows[5])
        IN_ORDER(rows[6], rows[7])
        IN_ORDER(rows[8], rows[9])
        IN_ORDER(rows[10], rows[11])
        IN_ORDER(rows[12], rows[13])
        IN_ORDER(rows[14], rows[15])
}

/* Of each lane and the one whose number differs by a mask, the upper one gets the larger words. */
static inline words_t exchanged_1(const words_t mine, const words_t opposite)
{
    const words_t there = opposite.s1032547698badcfe;
    return (int16)(0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1) ? VECTOR_MAX(mine, there) : VECTOR_MIN(mine, there);
}

static inline words_t exchanged_2(const words_t mine, const words_t opposite)
{
    const words_t there = opposite.s23016745ab89efcd;
    return (int16)(0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1) ? VECTOR_MAX(mine, there) : VECTOR_MIN(mine, there);
}

static inline words_t exchanged_3(const words_t mine, const words_t opposite)
{
    const words_t there = opposite.s32107654ba98fedc;
    return (int16)(0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1) ? VECTOR_MAX(mine, there) : VECTOR_MIN(mine, there);
}

static inline words_t exchanged_4(const words_t mine, const words_t opposite)
{
    const words_t there = opposite.s45670123cdef89ab;
    return (int16)(0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, -1, -1, -1, -1) ? VECTOR_MAX(mine, there) : VECTOR_MIN(mine, there);
}

static inline words_t exchanged_7(const words_t mine, const words_t opposite)
{
    const words_t there = opposite.s76543210fedcba98;
    return (int16)(0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, -1, -1, -1, -1) ? VECTOR_MAX(mine, there) : VECTOR_MIN(mine, there);
}

static inline words_t exchanged_8(const words_t mine, const words_t opposite)
{
    const words_t there = opposite.s89abcdef01234567;
    return (int16)(0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1) ? VECTOR_MAX(mine, there) : VECTOR_MIN(mine, there);
}

static inline words_t exchanged_15(const words_t mine, const words_t opposite)
{
    const words_t there = opposite.sfedcba9876543210;
    return (int16)(0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1) ? VECTOR_MAX(mine, there) : VECTOR_MIN(mine, there);
}

static inline void sort_block(words_t *rows)
{
    IN_ORDER(rows[0], rows[1])
        IN_ORDER(rows[2], rows[3])
        IN_ORDER(rows[4], rows[5])
        IN_ORDER(rows[6], rows[7])
        IN_ORDER(rows[8], rows[9])
        IN_ORDER(rows[10], rows[11])
        IN_ORDER(rows[12], rows[13])
        IN_ORDER(rows[14], rows[15])
        IN_ORDER(rows[0], rows[2])
        IN_ORDER(rows[1], rows[3])
        IN_ORDER(rows[4], rows[6])
        IN_ORDER(rows[5], rows[7])
        IN_ORDER(rows[8], rows[10])
        IN_ORDER(rows[9], rows[11])
        IN_ORDER(rows[12], rows[14])
        IN_ORDER(rows[13], rows[15])
        IN_ORDER(rows[1], rows[2])
        IN_ORDER(rows[5], rows[6])
        IN_ORDER(rows[9], rows[10])
        IN_ORDER(rows[13], rows[14])
        IN_ORDER(rows[0], rows[4])
        IN_ORDER(rows[1], rows[5])
        IN_ORDER(rows[2], rows[6])
        IN_ORDER(rows[3], rows[7])
        IN_ORDER(rows[8], rows[12])
        IN_ORDER(rows[9], rows[13])
        IN_ORDER(rows[10], rows[14])
        IN_ORDER(rows[11], rows[15])
        IN_ORDER(rows[2], rows[4])
        IN_ORDER(rows[3], rows[5])
        IN_ORDER(rows[10], rows[12])
        IN_ORDER(rows[11], rows[13])
        IN_ORDER(rows[1], rows[2])
        IN_ORDER(rows[3], rows[4])
        IN_ORDER(rows[5], rows[6])
        IN_ORDER(rows[9], rows[10])
        IN_ORDER(rows[11], rows[12])
        IN_ORDER(rows[13], rows[14])
        IN_ORDER(rows[0], rows[8])
        IN_ORDER(rows[1], rows[9])
        IN_ORDER(rows[2], rows[10])
        IN_ORDER(rows[3], rows[11])
        IN_ORDER(rows[4], rows[12])
        IN_ORDER(rows[5], rows[13])
        IN_ORDER(rows[6], rows[14])
        IN_ORDER(rows[7], rows[15])
        IN_ORDER(rows[4], rows[8])
        IN_ORDER(rows[5], rows[9])
        IN_ORDER(rows[6], rows[10])
        IN_ORDER(rows[7], rows[11])
        IN_ORDER(rows[2], rows[4])
        IN_ORDER(rows[3], rows[5])
        IN_ORDER(rows[6], rows[8])
        IN_ORDER(rows[7], rows[9])
        IN_ORDER(rows[10], rows[12])
        IN_ORDER(rows[11], rows[13])
        IN_ORDER(rows[1], rows[2])
        IN_ORDER(rows[3], rows[4])
        IN_ORDER(rows[5], rows[6])
        IN_ORDER(rows[7], rows[8])
        IN_ORDER(rows[9], rows[10])
        IN_ORDER(rows[11], rows[12])
        IN_ORDER(rows[13], rows[14])
    {
        const words_t low = rows[0], high = rows[15];
        rows[0] = exchanged_1(low, high);
        rows[15] = exchanged_1(high, low);
    }
    {
        const words_t low = rows[1], high = rows[14];
        rows[1] = exchanged_1(low, high);
        rows[14] = exchanged_1(high, low);
    }
    {
        const words_t low = rows[2], high = rows[13];
        rows[2] = exchanged_1(low, high);
        rows[13] = exchanged_1(high, low);
    }
    {
        const words_t low = rows[3], high = rows[12];
        rows[3] = exchanged_1(low, high);
        rows[12] = exchanged_1(high, low);
    }
    {
        const words_t low = rows[4], high = rows[11];
        rows[4] = exchanged_1(low, high);
        rows[11] = exchanged_1(high, low);
    }
    {
        const words_t low = rows[5], high = rows[10];
        rows[5] = exchanged_1(low, high);
        rows[10] = exchanged_1(high, low);
    }
    {
        const words_t low = rows[6], high = rows[9];
        rows[6] = exchanged_1(low, high);
        rows[9] = exchanged_1(high, low);
    }
    {
        const words_t low = rows[7], high = rows[8];
        rows[7] = exchanged_1(low, high);
        rows[8] = exchanged_1(high, low);
    }
    merge_rows(rows);
    {
        const words_t low = rows[0], high = rows[15];
        rows[0] = exchanged_3(low, high);
        rows[15] = exchanged_3(high, low);
    }
    {
        const words_t low = rows[1], high = rows[14];
        rows[1] = exchanged_3(low, high);
        rows[14] = exchanged_3(high, low);
    }
    {
        const words_t low = rows[2], high = rows[13];
        rows[2] = exchanged_3(low, high);
        rows[13] = exchanged_3(high, low);
    }
    {
        const words_t low = rows[3], high = rows[12];
        rows[3] = exchanged_3(low, high);
        rows[12] = exchanged_3(high, low);
    }
    {
        const words_t low = rows[4], high = rows[11];
        rows[4] = exchanged_3(low, high);
        rows[11] = exchanged_3(high, low);
    }
    {
        const words_t low = rows[5], high = rows[10];
        rows[5] = exchanged_3(low, high);
        rows[10] = exchanged_3(high, low);
    }
    {
        const words_t low = rows[6], high = rows[9];
        rows[6] = exchanged_3(low, high);
        rows[9] = exchanged_3(high, low);
    }
    {
        const words_t low = rows[7], high = rows[8];
        rows[7] = exchanged_3(low, high);
        rows[8] = exchanged_3(high, low);
    }
    rows[0] = exchanged_1(rows[0], rows[0]);
    rows[1] = exchanged_1(rows[1], rows[1]);
    rows[2] = exchanged_1(rows[2], rows[2]);
    rows[3] = exchanged_1(rows[3], rows[3]);
    rows[4] = exchanged_1(rows[4], rows[4]);
    rows[5] = exchanged_1(rows[5], rows[5]);
    rows[6] = exchanged_1(rows[6], rows[6]);
    rows[7] = exchanged_1(rows[7], rows[7]);
    rows[8] = exchanged_1(rows[8], rows[8]);
    rows[9] = exchanged_1(rows[9], rows[9]);
    rows[10] = exchanged_1(rows[10], rows[10]);
    rows[11] = exchanged_1(rows[11], rows[11]);
    rows[12] = exchanged_1(rows[12], rows[12]);
    rows[13] = exchanged_1(rows[13], rows[13]);
    rows[14] = exchanged_1(rows[14], rows[14]);
    rows[15] = exchanged_1(rows[15], rows[15]);
    merge_rows(rows);
    {
        const words_t low = rows[0], high = rows[15];
        rows[0] = exchanged_7(low, high);
        rows[15] = exchanged_7(high, low);
    }
    {
        const words_t low = rows[1], high = rows[14];
        rows[1] = exchanged_7(low, high);
        rows[14] = exchanged_7(high, low);
    }
    {
        const words_t low = rows[2], high = rows[13];
        rows[2] = exchanged_7(low, high);
        rows[13] = exchanged_7(high, low);
    }
    {
        const words_t low = rows[3], high = rows[12];
        rows[3] = exchanged_7(low, high);
        rows[12] = exchanged_7(high, low);
    }
    {
        const words_t low = rows[4], high = rows[11];
        rows[4] = exchanged_7(low, high);
        rows[11] = exchanged_7(high, low);
    }
    {
        const words_t low = rows[5], high = rows[10];
        rows[5] = exchanged_7(low, high);
        rows[10] = exchanged_7(high, low);
    }
    {
        const words_t low = rows[6], high = rows[9];
        rows[6] = exchanged_7(low, high);
        rows[9] = exchanged_7(high, low);
    }
    {
        const words_t low = rows[7], high = rows[8];
        rows[7] = exchanged_7(low, high);
        rows[8] = exchanged_7(high, low);
    }
    rows[0] = exchanged_2(rows[0], rows[0]);
    rows[1] = exchanged_2(rows[1], rows[1]);
    rows[2] = exchanged_2(rows[2], rows[2]);
    rows[3] = exchanged_2(rows[3], rows[3]);
    rows[4] = exchanged_2(rows[4], rows[4]);
    rows[5] = exchanged_2(rows[5], rows[5]);
    rows[6] = exchanged_2(rows[6], rows[6]);
    rows[7] = exchanged_2(rows[7], rows[7]);
    rows[8] = exchanged_2(rows[8], rows[8]);
    rows[9] = exchanged_2(rows[9], rows[9]);
    rows[10] = exchanged_2(rows[10], rows[10]);
    rows[11] = exchanged_2(rows[11], rows[11]);
    rows[12] = exchanged_2(rows[12], rows[12]);
    rows[13] = exchanged_2(rows[13], rows[13]);
    rows[14] = exchanged_2(rows[14], rows[14]);
    rows[15] = exchanged_2(rows[15], rows[15]);
    rows[0] = exchanged_1(rows[0], rows[0]);
    rows[1] = exchanged_1(rows[1], rows[1]);
    rows[2] = exchanged_1(rows[2], rows[2]);
    rows[3] = exchanged_1(rows[3], rows[3]);
    rows[4] = exchanged_1(rows[4], rows[4]);
    rows[5] = exchanged_1(rows[5], rows[5]);
    rows[6] = exchanged_1(rows[6], rows[6]);
    rows[7] = exchanged_1(rows[7], rows[7]);
    rows[8] = exchanged_1(rows[8], rows[8]);
    rows[9] = exchanged_1(rows[9], rows[9]);
    rows[10] = exchanged_1(rows[10], rows[10]);
    rows[11] = exchanged_1(rows[11], rows[11]);
    rows[12] = exchanged_1(rows[12], rows[12]);
    rows[13] = exchanged_1(rows[13], rows[13]);
    rows[14] = exchanged_1(rows[14], rows[14]);
    rows[15] = exchanged_1(rows[15], rows[15]);
    merge_rows(rows);
    {
        const words_t low = rows[0], high = rows[15];
        rows[0] = exchanged_15(low, high);
        rows[15] = exchanged_15(high, low);
    }
    {
        const words_t low = rows[1], high = rows[14];
        rows[1] = exchanged_15(low, high);
        rows[14] = exchanged_15(high, low);
    }
    {
        const words_t low = rows[2], high = rows[13];
        rows[2] = exchanged_15(low, high);
        rows[13] = exchanged_15(high, low);
    }
    {
        const words_t low = rows[3], high = rows[12];
        rows[3] = exchanged_15(low, high);
        rows[12] = exchanged_15(high, low);
    }
    {
        const words_t low = rows[4], high = rows[11];
        rows[4] = exchanged_15(low, high);
        rows[11] = exchanged_15(high, low);
    }
    {
        const words_t low = rows[5], high = rows[10];
        rows[5] = exchanged_15(low, high);
        rows[10] = exchanged_15(high, low);
    }
    {
        const words_t low = rows[6], high = rows[9];
        rows[6] = exchanged_15(low, high);
        rows[9] = exchanged_15(high, low);
    }
    {
        const words_t low = rows[7], high = rows[8];
        rows[7] = exchanged_15(low, high);
        rows[8] = exchanged_15(high, low);
    }
    rows[0] = exchanged_4(rows[0], rows[0]);
    rows[1] = exchanged_4(rows[1], rows[1]);
    rows[2] = exchanged_4(rows[2], rows[2]);
    rows[3] = exchanged_4(rows[3], rows[3]);
    rows[4] = exchanged_4(rows[4], rows[4]);
    rows[5] = exchanged_4(rows[5], rows[5]);
    rows[6] = exchanged_4(rows[6], rows[6]);
    rows[7] = exchanged_4(rows[7], rows[7]);
    rows[8] = exchanged_4(rows[8], rows[8]);
    rows[9] = exchanged_4(rows[9], rows[9]);
    rows[10] = exchanged_4(rows[10], rows[10]);
    rows[11] = exchanged_4(rows[11], rows[11]);
    rows[12] = exchanged_4(rows[12], rows[12]);
    rows[13] = exchanged_4(rows[13], rows[13]);
    rows[14] = exchanged_4(rows[14], rows[14]);
    rows[15] = exchanged_4(rows[15], rows[15]);
    rows[0] = exchanged_2(rows[0], rows[0]);
    rows[1] = exchanged_2(rows[1], rows[1]);
    rows[2] = exchanged_2(rows[2], rows[2]);
    rows[3] = exchanged_2(rows[3], rows[3]);
    rows[4] = exchanged_2(rows[4], rows[4]);
    rows[5] = exchanged_2(rows[5], rows[5]);
    rows[6] = exchanged_2(rows[6], rows[6]);
    rows[7] = exchanged_2(rows[7], rows[7]);
    rows[8] = exchanged_2(rows[8], rows[8]);
    rows[9] = exchanged_2(rows[9], rows[9]);
    rows[10] = exchanged_2(rows[10], rows[10]);
    rows[11] = exchanged_2(rows[11], rows[11]);
    rows[12] = exchanged_2(rows[12], rows[12]);
    rows[13] = exchanged_2(rows[13], rows[13]);
    rows[14] = exchanged_2(rows[14], rows[14]);
    rows[15] = exchanged_2(rows[15], rows[15]);
    rows[0] = exchanged_1(rows[0], rows[0]);
    rows[1] = exchanged_1(rows[1], rows[1]);
    rows[2] = exchanged_1(rows[2], rows[2]);
    rows[3] = exchanged_1(rows[3], rows[3]);
    rows[4] = exchanged_1(rows[4], rows[4]);
    rows[5] = exchanged_1(rows[5], rows[5]);
    rows[6] = exchanged_1(rows[6], rows[6]);
    rows[7] = exchanged_1(rows[7], rows[7]);
    rows[8] = exchanged_1(rows[8], rows[8]);
    rows[9] = exchanged_1(rows[9], rows[9]);
    rows[10] = exchanged_1(rows[10], rows[10]);
    rows[11] = exchanged_1(rows[11], rows[11]);
    rows[12] = exchanged_1(rows[12], rows[12]);
    rows[13] = exchanged_1(rows[13], rows[13]);
    rows[14] = exchanged_1(rows[14], rows[14]);
    rows[15] = exchanged_1(rows[15], rows[15]);
    merge_rows(rows);
}

/* Merge a block that is bitonic. */
static inline void merge_block(words_t *rows)
{
    rows[0] = exchanged_8(rows[0], rows[0]);
    rows[1] = exchanged_8(rows[1], rows[1]);
    rows[2] = exchanged_8(rows[2], rows[2]);
    rows[3] = exchanged_8(rows[3], rows[3]);
    rows[4] = exchanged_8(rows[4], rows[4]);
    rows[5] = exchanged_8(rows[5], rows[5]);
    rows[6] = exchanged_8(rows[6], rows[6]);
    rows[7] = exchanged_8(rows[7], rows[7]);
    rows[8] = exchanged_8(rows[8], rows[8]);
    rows[9] = exchanged_8(rows[9], rows[9]);
    rows[10] = exchanged_8(rows[10], rows[10]);
    rows[11] = exchanged_8(rows[11], rows[11]);
    rows[12] = exchanged_8(rows[12], rows[12]);
    rows[13] = exchanged_8(rows[13], rows[13]);
    rows[14] = exchanged_8(rows[14], rows[14]);
    rows[15] = exchanged_8(rows[15], rows[15]);
    rows[0] = exchanged_4(rows[0], rows[0]);
    rows[1] = exchanged_4(rows[1], rows[1]);
    rows[2] = exchanged_4(rows[2], rows[2]);
    rows[3] = exchanged_4(rows[3], rows[3]);
    rows[4] = exchanged_4(rows[4], rows[4]);
    rows[5] = exchanged_4(rows[5], rows[5]);
    rows[6] = exchanged_4(rows[6], rows[6]);
    rows[7] = exchanged_4(rows[7], rows[7]);
    rows[8] = exchanged_4(rows[8], rows[8]);
    rows[9] = exchanged_4(rows[9], rows[9]);
    rows[10] = exchanged_4(rows[10], rows[10]);
    rows[11] = exchanged_4(rows[11], rows[11]);
    rows[12] = exchanged_4(rows[12], rows[12]);
    rows[13] = exchanged_4(rows[13], rows[13]);
    rows[14] = exchanged_4(rows[14], rows[14]);
    rows[15] = exchanged_4(rows[15], rows[15]);
    rows[0] = exchanged_2(rows[0], rows[0]);
    rows[1] = exchanged_2(rows[1], rows[1]);
    rows[2] = exchanged_2(rows[2], rows[2]);
    rows[3] = exchanged_2(rows[3], rows[3]);
    rows[4] = exchanged_2(rows[4], rows[4]);
    rows[5] = exchanged_2(rows[5], rows[5]);
    rows[6] = exchanged_2(rows[6], rows[6]);
    rows[7] = exchanged_2(rows[7], rows[7]);
    rows[8] = exchanged_2(rows[8], rows[8]);
    rows[9] = exchanged_2(rows[9], rows[9]);
    rows[10] = exchanged_2(rows[10], rows[10]);
    rows[11] = exchanged_2(rows[11], rows[11]);
    rows[12] = exchanged_2(rows[12], rows[12]);
    rows[13] = exchanged_2(rows[13], rows[13]);
    rows[14] = exchanged_2(rows[14], rows[14]);
    rows[15] = exchanged_2(rows[15], rows[15]);
    rows[0] = exchanged_1(rows[0], rows[0]);
    rows[1] = exchanged_1(rows[1], rows[1]);
    rows[2] = exchanged_1(rows[2], rows[2]);
    rows[3] = exchanged_1(rows[3], rows[3]);
    rows[4] = exchanged_1(rows[4], rows[4]);
    rows[5] = exchanged_1(rows[5], rows[5]);
    rows[6] = exchanged_1(rows[6], rows[6]);
    rows[7] = exchanged_1(rows[7], rows[7]);
    rows[8] = exchanged_1(rows[8], rows[8]);
    rows[9] = exchanged_1(rows[9], rows[9]);
    rows[10] = exchanged_1(rows[10], rows[10]);
    rows[11] = exchanged_1(rows[11], rows[11]);
    rows[12] = exchanged_1(rows[12], rows[12]);
    rows[13] = exchanged_1(rows[13], rows[13]);
    rows[14] = exchanged_1(rows[14], rows[14]);
    rows[15] = exchanged_1(rows[15], rows[15]);
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
        const words_t mine = *here, opposite = (*there).sfedcba9876543210;
        const words_t more = VECTOR_MAX(mine, opposite);
        *here = VECTOR_MIN(mine, opposite);
        *there = more.sfedcba9876543210;
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

static inline void transpose_block(words_t *rows)
{
    words_t turned[BLOCK_ROWS];
    {
        words_t v0 = rows[0];
        words_t v1 = rows[1];
        words_t v2 = rows[2];
        words_t v3 = rows[3];
        words_t v4 = rows[4];
        words_t v5 = rows[5];
        words_t v6 = rows[6];
        words_t v7 = rows[7];
        words_t v8 = rows[8];
        words_t v9 = rows[9];
        words_t v10 = rows[10];
        words_t v11 = rows[11];
        words_t v12 = rows[12];
        words_t v13 = rows[13];
        words_t v14 = rows[14];
        words_t v15 = rows[15];
        SWAP(v0, v8, s89abcdef, s01234567)
            SWAP(v1, v9, s89abcdef, s01234567)
            SWAP(v2, v10, s89abcdef, s01234567)
            SWAP(v3, v11, s89abcdef, s01234567)
            SWAP(v4, v12, s89abcdef, s01234567)
            SWAP(v5, v13, s89abcdef, s01234567)
            SWAP(v6, v14, s89abcdef, s01234567)
            SWAP(v7, v15, s89abcdef, s01234567)
            SWAP(v0, v4, s4567cdef, s012389ab)
            SWAP(v1, v5, s4567cdef, s012389ab)
            SWAP(v2, v6, s4567cdef, s012389ab)
            SWAP(v3, v7, s4567cdef, s012389ab)
            SWAP(v8, v12, s4567cdef, s012389ab)
            SWAP(v9, v13, s4567cdef, s012389ab)
            SWAP(v10, v14, s4567cdef, s012389ab)
            SWAP(v11, v15, s4567cdef, s012389ab)
            SWAP(v0, v2, s2367abef, s014589cd)
            SWAP(v1, v3, s2367abef, s014589cd)
            SWAP(v4, v6, s2367abef, s014589cd)
            SWAP(v5, v7, s2367abef, s014589cd)
            SWAP(v8, v10, s2367abef, s014589cd)
            SWAP(v9, v11, s2367abef, s014589cd)
            SWAP(v12, v14, s2367abef, s014589cd)
            SWAP(v13, v15, s2367abef, s014589cd)
            SWAP(v0, v1, s13579bdf, s02468ace)
            SWAP(v2, v3, s13579bdf, s02468ace)
            SWAP(v4, v5, s13579bdf, s02468ace)
            SWAP(v6, v7, s13579bdf, s02468ace)
            SWAP(v8, v9, s13579bdf, s02468ace)
            SWAP(v10, v11, s13579bdf, s02468ace)
            SWAP(v12, v13, s13579bdf, s02468ace)
            SWAP(v14, v15, s13579bdf, s02468ace)
            turned[0] = v0;
        turned[1] = v1;
        turned[2] = v2;
        turned[3] = v3;
        turned[4] = v4;
        turned[5] = v5;
        turned[6] = v6;
        turned[7] = v7;
        turned[8] = v8;
        turned[9] = v9;
        turned[10] = v10;
        turned[11] = v11;
        turned[12] = v12;
        turned[13] = v13;
        turned[14] = v14;
        turned[15] = v15;
    }
    for (uint row = 0; row < BLOCK_ROWS; ++row)
        rows[row] = turned[row];
}

/* Without these instructions words are moved one by one. */
#if defined(__AVX512F__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_compresssi512_mask) && __has_builtin(__builtin_ia32_ucmpd512_mask)
#define PACK(vector, mask) as_uint16(__builtin_ia32_compresssi512_mask(as_signed(vector), (signed_t)0, (mask)))
#define NOT_ABOVE(vector, pivot) __builtin_ia32_ucmpd512_mask(as_signed(vector), as_signed(pivot), 2, (mask_t)-1)
#define as_signed as_int16
typedef int16 signed_t;
typedef ushort mask_t;
#endif
#endif

/* Sort up to NETWORK words. */
static void sort_short(__global const word_t *from, const uint count, __global word_t *to)
{
    words_t run[64];
    uint blocks = 1;
    while (blocks * BLOCK_WORDS < count)
        blocks *= 2;
    const uint whole = count / 16;
    for (uint row = 0; row < whole; ++row)
        run[row] = ((__global const loose_words_t *)(from + row * 16))->vector;
    for (uint row = whole; row < blocks * BLOCK_ROWS; ++row)
        run[row] = (words_t)~(word_t)0;
    for (uint j = whole * 16; j < count; ++j)
        ((word_t *)run)[j] = from[j];
    sort_blocks(run, blocks, count);
    for (uint b = 0; b * BLOCK_WORDS < count; ++b)
        transpose_block(run + b * BLOCK_ROWS);
    for (uint row = 0; row < whole; ++row)
        ((__global loose_words_t *)(to + row * 16))->vector = run[row];
    for (uint j = whole * 16; j < count; ++j)
        to[j] = ((const word_t *)run)[j];
}

/* Move words that are not above the pivot to `lows`, others to `highs`. Returns how many the first are. */
static index_t divide(__global const word_t *from, const index_t count, const word_t pivot,
                      __global word_t *lows, __global word_t *highs)
{
    index_t low = 0, i = 0;
#if defined(PACK)
    for (; i + 16 <= count; i += 16) {
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
    words_t medians[9];
    word_t lanes[16], result = 0;
    const index_t step = (count - 16) / 8;
    const words_t v0 = ((__global const loose_words_t *)(from + 0 * step))->vector;
    const words_t v1 = ((__global const loose_words_t *)(from + 1 * step))->vector;
    const words_t v2 = ((__global const loose_words_t *)(from + 2 * step))->vector;
    const words_t v3 = ((__global const loose_words_t *)(from + 3 * step))->vector;
    const words_t v4 = ((__global const loose_words_t *)(from + 4 * step))->vector;
    const words_t v5 = ((__global const loose_words_t *)(from + 5 * step))->vector;
    const words_t v6 = ((__global const loose_words_t *)(from + 6 * step))->vector;
    const words_t v7 = ((__global const loose_words_t *)(from + 7 * step))->vector;
    const words_t v8 = ((__global const loose_words_t *)(from + 8 * step))->vector;
    const words_t m0 = MEDIAN(v0, v3, v6);
    const words_t m1 = MEDIAN(v1, v4, v7);
    const words_t m2 = MEDIAN(v2, v5, v8);
    *(words_t *)lanes = MEDIAN(m0, m1, m2);
    for (uint k = 0; k < 16; ++k) {
        uint before = 0;
        for (uint j = 0; j < 16; ++j)
            before += lanes[j] < lanes[k];
        result = before <= 8 && lanes[k] > result ? lanes[k] : result;
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
        bool done = part.count <= 1024;
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
        const bool bad = LESSER(low, high) < part.count / 8;
        const part_t lower = {part.low, part.high + high, low, true, bad};
        const part_t upper = {part.low + low, part.high, high, false, bad};
        left[depth] = low > high ? lower : upper;
        part = low > high ? upper : lower;
        depth += 1;
        if (!part.count)
            part = left[--depth];
    }
}

/* The bits of a key of a code, of which all bits count. */
static inline ukey_t key_of(const ukey_t code)
{
    const ukey_t ordered = code;
    const ukey_t number = ordered + ((ukey_t)1 << 23), top = (ukey_t)1 << (KEY_BITS - 1);
    return number < top ? (ukey_t)0 - number : number - top;
}

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

/* Make words of the keys of a row. Returns whether keys that differ may have one code. */
static bool make_words(__global const ukey_t *restrict keys, const index_t n,
                       __global word_t *restrict words)
{
    const ukey_t nan_ = code((ukey_t)~(ukey_t)0), minus_zero = (ukey_t)1 << (KEY_BITS - 1);
    ukey_t some = 0;
    for (index_t i = 0; i < n; ++i)
        some |= (ukey_t)(code(keys[i]) == nan_) | (ukey_t)(keys[i] == minus_zero);
    for (index_t i = 0; i < n; ++i)
        words[i] = code(keys[i]);
    return some;
}

/* Write what belongs to sorted words. */
static void store_sorted(__global const word_t *restrict words, const index_t n,
                         __global const ukey_t *restrict keys,
                         __global ukey_t *restrict sorted)
{
    for (index_t i = 0; i < n; ++i) {
        sorted[i] = key_of((ukey_t)words[i]);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void quicksort_cpu(__global const ukey_t *keys,
                   __global ukey_t *sorted,
                   __global word_t *words,
                   const ulong room,
                   const ulong n,
                   const ulong rows)
{
    const size_t item = get_global_id(0), items = get_global_size(0);
    __global word_t *lows = words + 2 * room * item, *highs = lows + room;
    const ulong end = rows * (item + 1) / items;
    for (ulong row = rows * item / items; row < end; row += 1) {
        const uint here = (uint)LESSER(end - row, (ulong)1);
        bool special = false;
        for (uint k = 0; k < here; ++k)
            special |= make_words(keys + (row + k) * n, (index_t)n, lows + k * n);
        sort_words(lows, highs, (index_t)n);
        __global const word_t *result = lows;
        for (uint k = 0; k < here; ++k) {
            const ulong at = (row + k) * n;
            store_sorted(result + k * n, (index_t)n, keys + at, sorted + at);
            if (special)
                restore(keys + at, (index_t)n, sorted + at);
        }
    }
}
