/*
 * Sorting references: each sorts `rows` contiguous rows of `n` keys from `keys`
 * into `sorted`, and returns 0, or ENOMEM when there is no memory for scratch.
 *
 *   sort_merge_seq   stable top-down merge sort on one thread: the baseline of speedups
 *   sort_merge_omp   the same as OpenMP tasks; merges are parallel too
 *   sort_qsort       qsort of the C library, whatever algorithm that is
 *
 * Order: that of order.h, where equal keys keep theirs.
 *
 * Macros: those of order.h
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "merge_sort.h"

EXPORT int sort_merge_seq(const KEY_T *keys, KEY_T *sorted, int64_t rows, int64_t n) {
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

EXPORT int sort_merge_omp(const KEY_T *keys, KEY_T *sorted, int64_t rows, int64_t n,
                          int64_t threads) {
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

EXPORT int sort_qsort(const KEY_T *keys, KEY_T *sorted, int64_t rows, int64_t n) {
    if (rows <= 0 || n <= 0)
        return 0;
    memcpy(sorted, keys, (size_t)rows * (size_t)n * sizeof(KEY_T));
    for (int64_t row = 0; row < rows; row++)
        qsort(sorted + row * n, (size_t)n, sizeof(KEY_T), compare);
    return 0;
}
