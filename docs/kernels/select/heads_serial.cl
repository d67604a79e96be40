/*
 * An example of clkernels/select/heads_serial.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       1000 sorted float32, counted
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        heads_serial, (1,) items in groups of (1,)
 */
/*
 * Of sorted keys the first of each run of equal ones, and how long the run is, by one thread in one
 * pass. For what is computed see unique.cl.mako, whose names these are.
 *
 *     keys     2 2 2 5 7 7
 *     values   2 5 7            each key is stored behind the heads so far, and stays there if it is one
 *     counts   0 3 4 | 6        likewise where runs begin; then their differences: 3 1 2
 *
 * Source: own.
 *
 * The host guarantees: n > 0; one work-item; outputs but `found` have room for n; `order` holds each
 * number below n once.
 *
 * ELEMENT   what a key is: see sort/keys.mako
 * WIDE      whether there may be 2^31 keys or more
 * COUNTS    whether lengths are wanted
 * FIRST     whether it is wanted where values come first
 * INVERSE   whether it is wanted which value each key became
 * EQUAL_NAN whether all NaN, or all NaT, are one key
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
#define DISTINCT(a, b) ((a) != (b))
typedef uint index_t;

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void heads_serial(__global const ukey_t *restrict keys,
                  __global ukey_t *restrict values,
                  __global long *restrict counts,
                  __global long *restrict found,
                  const index_t n)
{
    index_t heads = 0;
    ukey_t before = ~code(keys[0]);
    for (index_t i = 0; i < n; ++i) {
        const ukey_t mine = code(keys[i]);
        values[heads] = keys[i];
        counts[heads] = (long)i;
        heads += DISTINCT(mine, before);
        before = mine;
    }
    for (index_t j = 0; j + 1 < heads; ++j)
        counts[j] = counts[j + 1] - counts[j];
    counts[heads - 1] = (long)n - counts[heads - 1];
    found[0] = (long)heads;
}
