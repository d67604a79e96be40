/*
 * Sorting references: each sorts `rows` contiguous rows of `n` keys from `keys`
 * into `sorted`, and returns 0, or ENOMEM when there is no memory for scratch.
 *
 *   sort_merge_seq   stable top-down merge sort on one thread: the baseline of speedups
 *   sort_merge_omp   the same as OpenMP tasks; merges are parallel too
 *   sort_qsort       qsort of the C library, whatever algorithm that is
 *
 * Order: that of numpy.sort(kind="stable"). NaN is the greatest key and
 * -0.0 == 0.0; DESCENDING reverses the relation, while equal keys keep their order.
 *
 * Merge sort: D. E. Knuth, The Art of Computer Programming 3, 5.2.4, where two
 * buffers change roles at each level, so that nothing is copied back:
 *
 *   target  [ . . . . . . . . ]      merge(other, other + half) -> target
 *   other   [ . . . . | . . . . ]    each half was sorted into here, with target as
 *                                    its own `other`, from the same range of keys
 *
 * Parallel merge: an output of length `a_length + b_length` is cut in the middle,
 * and a binary search (co-rank: C. Siebert and J. L. Traeff, Perfectly load-balanced,
 * stable, synchronization-free parallel merge, 2013) finds how many of the elements
 * before the cut come from a. Both parts are merges of their own, of equal work.
 *
 * Macros: KEY_T          type of a key
 *         KEY_IS_FLOAT   1 if keys can be NaN
 *         DESCENDING     1 for the greatest key first
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INSERTION_LENGTH 16 /* below this, insertion sort beats merging */
#define TASK_LENGTH 8192    /* keys that are worth a task: about 0.2 ms of sorting */

/* Whether a must come before b; false both ways for equal keys. */
static inline bool before(KEY_T a, KEY_T b) {
#if DESCENDING
    const KEY_T swap = a;
    a = b;
    b = swap;
#endif
#if KEY_IS_FLOAT
    return !(a >= b) & (a == a); /* a < b, or b alone is NaN; & so that there is no branch */
#else
    return a < b;
#endif
}

static void insertion_sort(const KEY_T *keys, KEY_T *target, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const KEY_T key = keys[i];
        int64_t place = i;
        for (; place > 0 && before(key, target[place - 1]); place--)
            target[place] = target[place - 1];
        target[place] = key;
    }
}

/* Merge stably: of equal keys those of a come first. Both lie in one buffer. */
static void merge(const KEY_T *a, int64_t a_length, const KEY_T *b, int64_t b_length,
                  KEY_T *target) {
    const KEY_T *const a_end = a + a_length, *const b_end = b + b_length;

    /* No branch depends on a key: on random keys it would be guessed wrong half the time. */
    while (a < a_end && b < b_end) {
        const bool take_b = before(*b, *a);
        *target++ = a[(b - a) & -(int64_t)take_b]; /* take_b ? *b : *a, without the branch */
        a += !take_b;
        b += take_b;
    }
    memcpy(target, a, (size_t)(a_end - a) * sizeof(KEY_T));
    memcpy(target + (a_end - a), b, (size_t)(b_end - b) * sizeof(KEY_T));
}

/* Sort keys into target; other is scratch of the same length. */
static void merge_sort(const KEY_T *keys, KEY_T *target, KEY_T *other, int64_t n) {
    if (n <= INSERTION_LENGTH) {
        insertion_sort(keys, target, n);
        return;
    }
    const int64_t half = n / 2;
    merge_sort(keys, other, target, half);
    merge_sort(keys + half, other + half, target + half, n - half);
    merge(other, half, other + half, n - half, target);
}

int sort_merge_seq(const KEY_T *keys, KEY_T *sorted, int64_t rows, int64_t n) {
    if (rows <= 0 || n <= 0)
        return 0;
    KEY_T *scratch = malloc((size_t)n * sizeof(KEY_T));
    if (!scratch)
        return ENOMEM;
    for (int64_t row = 0; row < rows; row++)
        merge_sort(keys + row * n, sorted + row * n, scratch, n);
    free(scratch);
    return 0;
}

#ifdef _OPENMP

/* Return how many of the first `rank` elements of the merged sequence come from a. */
static int64_t co_rank(int64_t rank, const KEY_T *a, int64_t a_length, const KEY_T *b,
                       int64_t b_length) {
    int64_t low = rank > b_length ? rank - b_length : 0;
    int64_t high = rank < a_length ? rank : a_length;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (before(b[rank - middle - 1], a[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void merge_tasks(const KEY_T *a, int64_t a_length, const KEY_T *b, int64_t b_length,
                        KEY_T *target) {
    const int64_t n = a_length + b_length;
    if (n <= TASK_LENGTH) {
        merge(a, a_length, b, b_length, target);
        return;
    }
    const int64_t cut = n / 2;
    const int64_t from_a = co_rank(cut, a, a_length, b, b_length), from_b = cut - from_a;
#pragma omp task
    merge_tasks(a, from_a, b, from_b, target);
    merge_tasks(a + from_a, a_length - from_a, b + from_b, b_length - from_b, target + cut);
#pragma omp taskwait
}

static void merge_sort_tasks(const KEY_T *keys, KEY_T *target, KEY_T *other, int64_t n) {
    if (n <= TASK_LENGTH) {
        merge_sort(keys, target, other, n);
        return;
    }
    const int64_t half = n / 2;
#pragma omp task
    merge_sort_tasks(keys, other, target, half);
    merge_sort_tasks(keys + half, other + half, target + half, n - half);
#pragma omp taskwait
    merge_tasks(other, half, other + half, n - half, target);
}

/* Halve the rows until one task's worth, or one row, is left. */
static void row_tasks(const KEY_T *keys, KEY_T *target, KEY_T *other, int64_t rows, int64_t n) {
    if (rows == 1) {
        merge_sort_tasks(keys, target, other, n);
    } else if (rows <= TASK_LENGTH / n) {
        for (int64_t row = 0; row < rows; row++)
            merge_sort(keys + row * n, target + row * n, other + row * n, n);
    } else {
        const int64_t half = rows / 2, cut = half * n;
#pragma omp task
        row_tasks(keys, target, other, half, n);
        row_tasks(keys + cut, target + cut, other + cut, rows - half, n);
#pragma omp taskwait
    }
}

int sort_merge_omp(const KEY_T *keys, KEY_T *sorted, int64_t rows, int64_t n, int64_t threads) {
    if (rows <= 0 || n <= 0)
        return 0;
    KEY_T *scratch = malloc((size_t)rows * (size_t)n * sizeof(KEY_T));
    if (!scratch)
        return ENOMEM;
#pragma omp parallel num_threads((int)(threads > 1 ? threads : 1))
#pragma omp single
    row_tasks(keys, sorted, scratch, rows, n);
    free(scratch);
    return 0;
}

#endif

static int compare(const void *left, const void *right) {
    const KEY_T a = *(const KEY_T *)left, b = *(const KEY_T *)right;
    return before(b, a) - before(a, b);
}

int sort_qsort(const KEY_T *keys, KEY_T *sorted, int64_t rows, int64_t n) {
    if (rows <= 0 || n <= 0)
        return 0;
    memcpy(sorted, keys, (size_t)rows * (size_t)n * sizeof(KEY_T));
    for (int64_t row = 0; row < rows; row++)
        qsort(sorted + row * n, (size_t)n, sizeof(KEY_T), compare);
    return 0;
}
