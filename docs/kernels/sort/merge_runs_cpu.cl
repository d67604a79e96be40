/*
 * An example of clkernels/sort/merge_runs_cpu.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       4 sorted runs of 1000000 int32 in all
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        merge_runs, (2,) items in groups of (1,)
 */
/*
 * Stable merge of sorted runs by threads with caches: groups of one item, one for each compute unit,
 * go through phases of tasks.
 *
 *     runs        | 0 | 1      | 2  | 3 | 4      |       of any lengths, also 0
 *     phase 0     |   0 and 1  | 2 and 3| 4      |       a task makes STRETCH elements of the result,
 *     phase 1     |         0 to 3      | 4      |       wherever these begin
 *     phase 2     |              all             |
 *
 * Where elements are not the keys, a phase before these makes them: codes with keys or keys with values.
 *
 * Source: as merge_path_cpu.cl.mako, which sorts.
 *
 * The host guarantees: n > 0; what common/work_stealing.mako asks for; at least two runs; run i ends at
 * ends[i], the last one at n. Phases write `first` and `second` alternately, and the last one the result:
 * with two phases, `first` has n elements, with more both have. `spares` has STRETCH for each item.
 *
 * ELEMENT    what is sorted: see keys.mako; its value is what MOVED says
 * MOVED      what elements are: keys; codes, with the keys as values; or pairs of keys and values
 * INDEX_T    unsigned type that counts the elements
 * STRETCH    elements of a task
 * MAX_POLLS  how often an item looks for others to finish
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
    return result;
}

typedef ukey_t elem_t;
#define KEY_OF(e) (e)
typedef uint index_t;
#define PICK(yes, one, other) ((yes) ? (one) : (other))
#define CODE_OF(e) code(KEY_OF(e))

static inline index_t least_of_a(const index_t diagonal, const index_t b_count)
{
    return diagonal > b_count ? diagonal - b_count : 0;
}

static inline index_t most_of_a(const index_t diagonal, const index_t a_count)
{
    return diagonal < a_count ? diagonal : a_count;
}

/* How many of the first `diagonal` elements come from a; it is known to be from `low` to `high`. */
static inline index_t rank_of_path(__global const elem_t *a, __global const elem_t *b,
                                   const index_t diagonal, index_t low, index_t high)
{
    while (low < high) {
        const index_t middle = low + (high - low) / 2;
        const bool before = CODE_OF(b[diagonal - 1 - middle]) < CODE_OF(a[middle]);
        high = before ? middle : high;
        low = before ? low : middle + 1;
    }
    return low;
}

/* Sort up to 8 elements by counting: the place of one is how many go before it. */
static inline void sort_block(__global const ukey_t *keys,
                              const uint count, __global elem_t *target)
{
    ukey_t codes[8];
    int ranks[8];
    for (uint i = 0; i < 8; ++i)
        codes[i] = i < count ? code(keys[i]) : (ukey_t)~(ukey_t)0;
    const uint8 all = vload8(0, codes);
    const int8 number = (int8)(0, 1, 2, 3, 4, 5, 6, 7);
    int8 rank = (int8)(0);
    rank -= (codes[0] < all) | ((codes[0] == all) & ((int)0 < number));
    rank -= (codes[1] < all) | ((codes[1] == all) & ((int)1 < number));
    rank -= (codes[2] < all) | ((codes[2] == all) & ((int)2 < number));
    rank -= (codes[3] < all) | ((codes[3] == all) & ((int)3 < number));
    rank -= (codes[4] < all) | ((codes[4] == all) & ((int)4 < number));
    rank -= (codes[5] < all) | ((codes[5] == all) & ((int)5 < number));
    rank -= (codes[6] < all) | ((codes[6] == all) & ((int)6 < number));
    rank -= (codes[7] < all) | ((codes[7] == all) & ((int)7 < number));
    vstore8(rank, 0, ranks);
    for (uint i = 0; i < count; ++i) {
        target[ranks[i]] = keys[i];
    }
}

/* Four merges of elements of `runs`, `each` of them: from the fronts to outputs `front` + 0, 1, ..
   and from the rears to those before `rear`. Of each merge it is known what comes next of run b, and
   the sum of that and what comes next of run a: fewer numbers than processors have registers. */
#define MERGE_FOUR(runs, target, each) \
    do { \
    for (index_t done = 0; done < (each); ++done) { \
    FRONT(runs, target, 0); \
    FRONT(runs, target, 1); \
    REAR(runs, target, 0); \
    REAR(runs, target, 1); \
    } \
    } while (0)
/* Equal elements of a go first, .. */
#define FRONT(runs, target, k) \
    do { \
    const elem_t a = runs[front_sum##k + done - front_b##k], b = runs[front_b##k]; \
    const bool right = CODE_OF(b) < CODE_OF(a); \
    target[front##k + done] = PICK(right, b, a); \
    front_b##k += right; \
    } while (0)
/* .. and those of b last. */
#define REAR(runs, target, k) \
    do { \
    const elem_t a = runs[rear_sum##k - done - rear_b##k], b = runs[rear_b##k]; \
    const bool left = CODE_OF(b) < CODE_OF(a); \
    target[rear##k - done] = PICK(left, a, b); \
    rear_b##k -= !left; \
    } while (0)

/* Merge two pairs of runs, each of `width` elements, that follow each other. */
static inline void merge_pairs(__global const elem_t *runs, const index_t width,
                               __global elem_t *target)
{
    const index_t front0 = 0 * width, rear0 = 2 * width - 1;
    index_t front_b0 = front0 + width, rear_b0 = rear0;
    const index_t front_sum0 = front0 + front_b0, rear_sum0 = rear0 + front_b0 - 1;
    const index_t front1 = 2 * width, rear1 = 4 * width - 1;
    index_t front_b1 = front1 + width, rear_b1 = rear1;
    const index_t front_sum1 = front1 + front_b1, rear_sum1 = rear1 + front_b1 - 1;
    MERGE_FOUR(runs, target, width);
}

/* Merge what is under the outputs [begin, end) of two runs that follow each other. */
static void merge_stretch(__global const elem_t *runs, const index_t a_count, const index_t b_count,
                          const index_t begin, const index_t end, __global elem_t *target)
{
    __global const elem_t *second_run = runs + a_count;
    const index_t middle = begin + (end - begin) / 2;
    const index_t a_0 = rank_of_path(runs, second_run, begin, least_of_a(begin, b_count),
                                     most_of_a(begin, a_count));
    const index_t a_2 = rank_of_path(runs, second_run, end, least_of_a(end, b_count),
                                     most_of_a(end, a_count));
    /* Neither half of the stretch has more of a run than it has outputs. */
    const index_t half_ = middle - begin, rest = end - middle;
    const index_t a_1 = rank_of_path(runs, second_run, middle, a_2 > a_0 + rest ? a_2 - rest : a_0,
                                     a_0 + half_ < a_2 ? a_0 + half_ : a_2);
    const index_t count = a_count + b_count;
    /* Of both halves: where fronts are, and rears, which are beyond the last element. */
    index_t a_low0 = a_0, a_high0 = a_1;
    index_t b_low0 = a_count + begin - a_0, b_high0 = a_count + middle - a_1;
    index_t front0 = begin - begin, rear0 = middle - begin;
    index_t a_low1 = a_1, a_high1 = a_2;
    index_t b_low1 = a_count + middle - a_1, b_high1 = a_count + end - a_2;
    index_t front1 = middle - begin, rear1 = end - begin;
    for (;;) {
        index_t each = count;
        each = LESSER(each, (rear0 - front0) / 2);
        each = LESSER(each, a_count - a_low0);
        each = LESSER(each, count - b_low0);
        each = LESSER(each, a_high0);
        each = LESSER(each, b_high0 - a_count);
        each = LESSER(each, (rear1 - front1) / 2);
        each = LESSER(each, a_count - a_low1);
        each = LESSER(each, count - b_low1);
        each = LESSER(each, a_high1);
        each = LESSER(each, b_high1 - a_count);
        if (each < 4)
            break;
        index_t front_b0 = b_low0, rear_b0 = b_high0 - 1;
        const index_t front_sum0 = a_low0 + b_low0, rear_sum0 = a_high0 - 1 + rear_b0;
        rear0 -= 1;
        index_t front_b1 = b_low1, rear_b1 = b_high1 - 1;
        const index_t front_sum1 = a_low1 + b_low1, rear_sum1 = a_high1 - 1 + rear_b1;
        rear1 -= 1;
        MERGE_FOUR(runs, target, each);
        a_low0 += each - (front_b0 - b_low0);
        a_high0 -= each - (b_high0 - 1 - rear_b0);
        b_low0 = front_b0;
        b_high0 = rear_b0 + 1;
        front0 += each;
        rear0 = rear0 + 1 - each;
        a_low1 += each - (front_b1 - b_low1);
        a_high1 -= each - (b_high1 - 1 - rear_b1);
        b_low1 = front_b1;
        b_high1 = rear_b1 + 1;
        front1 += each;
        rear1 = rear1 + 1 - each;
    }
    /* What is left: little, or in one run alone. */
    while (a_low0 < a_high0 && b_low0 < b_high0) {
        const bool right = CODE_OF(runs[b_low0]) < CODE_OF(runs[a_low0]);
        target[front0++] = runs[right ? b_low0++ : a_low0++];
    }
    while (a_low0 < a_high0)
        target[front0++] = runs[a_low0++];
    while (b_low0 < b_high0)
        target[front0++] = runs[b_low0++];
    while (a_low1 < a_high1 && b_low1 < b_high1) {
        const bool right = CODE_OF(runs[b_low1]) < CODE_OF(runs[a_low1]);
        target[front1++] = runs[right ? b_low1++ : a_low1++];
    }
    while (a_low1 < a_high1)
        target[front1++] = runs[a_low1++];
    while (b_low1 < b_high1)
        target[front1++] = runs[b_low1++];
}

/* Sort a tile. What is last merged goes to `target` if there is one; returns where it is. */
static __global elem_t *sort_tile(__global const ukey_t *keys,
                                  const uint count, __global elem_t *mine, __global elem_t *target)
{
    __global elem_t *from = mine, *to = mine + 8192;
    if (target && count <= 8)
        from = target;
    for (uint i = 0; i < count; i += 8)
        sort_block(keys + i, LESSER(count - i, 8u), from + i);
    for (uint width = 8; width < count; width *= 2) {
        if (target && 2 * width >= count)
            to = target;
        uint i = 0;
        for (; i + 4 * width <= count; i += 4 * width)
            merge_pairs(from + i, width, to + i);
        for (; i < count; i += 2 * width) {
            const uint a_count = LESSER(width, count - i), b_count = LESSER(width, count - i - a_count);
            merge_stretch(from + i, a_count, b_count, 0, a_count + b_count, to + i);
        }
        __global elem_t *free = from;
        from = to;
        to = free;
    }
    return from;
}

/* Where a run begins; after the last one, the end of all. */
static index_t begin_of(__global const long *ends, const uint runs, const uint run)
{
    return run == 0 ? 0 : (index_t)ends[LESSER(run, runs) - 1];
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void merge_runs(__global const ukey_t *keys,
                __global ukey_t *sorted,
                __global const long *ends,
                __global elem_t *first,
                const uint runs,
                const ulong n,
                const ulong rows,
                const uint from,
                const uint to,
                const uint last,
                volatile __global uint *counters)
{
    __global elem_t *second = (__global elem_t *)sorted;
    const ulong stretches = (n - 1) / 8192 + 1;
    const uint shares = 1u;
    bool here = true;
    for (uint phase = from; phase < to; ++phase) {
        if (here) {
            const index_t tasks = (uint)stretches;
            volatile __global uint *claimed = counters + phase * (shares + 1);
            volatile __global uint *finished = claimed + shares;
            /* Do the tasks of this item's share, then what is left of the others'. */
            for (uint other = 0; other < shares; ++other) {
                const uint share = ((uint)get_global_id(0) + other) % shares;
                const index_t begin = (index_t)((ulong)tasks * share / shares);
                const index_t end = (index_t)((ulong)tasks * (share + 1) / shares);
                for (;;) {
                    const index_t task = begin + atomic_inc(&claimed[share]);
                    if (task >= end)
                        break;

                    __global elem_t *target = (last - 1 - phase) & 1 ? first : second;
                    __global const elem_t *source = (last - 1 - phase) & 1 ? second : first;
                    const index_t begin = (index_t)task * 8192;
                    const index_t end = (index_t)min((ulong)begin + 8192, n);
                    {
                        const uint width = 1u << phase;
                        source = phase == 0 ? keys : source;
                        target += begin;
                        index_t at = begin;
                        for (uint run = 0; at < end; run += 2 * width) {
                            const index_t high = begin_of(ends, runs, run + 2 * width);
                            if (high > at) {
                                const index_t low = begin_of(ends, runs, run);
                                const index_t middle = begin_of(ends, runs, run + width);
                                const index_t stop = LESSER(high, end);
                                merge_stretch(source + low, middle - low, high - middle, at - low, stop - low,
                                              target + (at - begin));
                                at = stop;
                            }
                        }
                    }
                    mem_fence(CLK_GLOBAL_MEM_FENCE); /* what was written is seen before it is counted */
                    atomic_inc(finished);
                }
            }
            /* Look for the others to finish, or leave: who finishes the last task goes on. */
            for (uint polls = 0; phase + 1 < to && here && atomic_or(finished, 0) != tasks; ++polls)
                here = polls < 1048576;
            mem_fence(CLK_GLOBAL_MEM_FENCE);
        }
    }
    if (to == last) {
        /* The last to leave, when all is done, makes the counters ready for the next launch. */
        const uint words = last * (shares + 1);
        if (atomic_inc(&counters[words]) + 1 == get_global_size(0))
            for (uint t = 0; t <= words; ++t)
                atomic_xchg(&counters[t], 0);
    }
}
