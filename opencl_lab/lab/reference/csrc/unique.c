/*
 * The different ones of n keys in order, how many they are and, with COUNTS, how often each is
 * there: into `values`, `found` and `counts`. They return 0, or ENOMEM when there is no memory for
 * scratch.
 *
 *   unique_seq   the merge sort of merge_sort.h, then one pass, on one thread
 *   unique_omp   its tasks, then two passes over parts: heads of runs are counted, and written
 *
 * Order: that of order.h. Of equal keys the first is taken.
 *
 *   sorted   1 1 1 4 6 6     heads   1 . . 4 6 .     values 1 4 6     counts 3 1 2
 *
 * Macros: those of order.h, and
 *         COUNTS   1 if counts are wanted; else `counts` is not touched
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "export.h"
#include "merge_sort.h"

/* Whether a run of equal keys begins at i. */
static inline bool is_head(const KEY_T *sorted, int64_t i) {
    return !i || before(sorted[i - 1], sorted[i]);
}

/* Write the heads between begin and end, and where they are, from number m on; return the next. */
static int64_t write_heads(const KEY_T *sorted, int64_t begin, int64_t end, int64_t m,
                           KEY_T *values, int64_t *counts) {
    for (int64_t i = begin; i < end; i++) {
        if (!is_head(sorted, i))
            continue;
#if COUNTS
        counts[m] = i;
#endif
        values[m++] = sorted[i];
    }
    return m;
}

/* Make lengths of m places where runs begin. */
static void count(int64_t *counts, int64_t m, int64_t n) {
#if COUNTS
    for (int64_t i = 0; i < m; i++)
        counts[i] = (i + 1 < m ? counts[i + 1] : n) - counts[i];
#endif
}

EXPORT int unique_seq(const KEY_T *keys, KEY_T *values, int64_t *found, int64_t *counts,
                      int64_t n) {
    KEY_T *sorted = malloc((size_t)(2 * n + 1) * sizeof(KEY_T));
    if (!sorted)
        return ENOMEM;
    merge_sort(keys, sorted, sorted + n, n);
    *found = write_heads(sorted, 0, n, 0, values, counts);
    count(counts, *found, n);
    free(sorted);
    return 0;
}

#ifdef _OPENMP

EXPORT int unique_omp(const KEY_T *keys, KEY_T *values, int64_t *found, int64_t *counts, int64_t n,
                      int64_t threads) {
    const int64_t parts = threads > 1 ? threads : 1;
    KEY_T *sorted = malloc((size_t)(2 * n + 1) * sizeof(KEY_T));
    int64_t *heads = calloc((size_t)parts + 1, sizeof(int64_t));
    if (!sorted || !heads) {
        free(sorted), free(heads);
        return ENOMEM;
    }
#pragma omp parallel num_threads((int)parts)
#pragma omp single
    merge_sort_tasks(keys, sorted, sorted + n, n);
#pragma omp parallel for schedule(static) num_threads((int)parts)
    for (int64_t part = 0; part < parts; part++) {
        int64_t sum = 0;
        for (int64_t i = part * n / parts; i < (part + 1) * n / parts; i++)
            sum += is_head(sorted, i);
        heads[part + 1] = sum;
    }
    for (int64_t part = 0; part < parts; part++)
        heads[part + 1] += heads[part];
#pragma omp parallel for schedule(static) num_threads((int)parts)
    for (int64_t part = 0; part < parts; part++)
        write_heads(sorted, part * n / parts, (part + 1) * n / parts, heads[part], values, counts);
    *found = heads[parts];
    count(counts, *found, n);
    free(sorted), free(heads);
    return 0;
}

#endif
