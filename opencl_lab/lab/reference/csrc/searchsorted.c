/*
 * Where each of m values would go among n sorted keys to keep them in order: into `places`. They
 * return 0.
 *
 *   search_seq   a binary search for each value, on one thread
 *   search_omp   the same, the values shared out among threads
 *
 * Order: that of order.h.
 *
 * Macros: those of order.h, and
 *         RIGHT   1 for places behind equal keys instead of before them
 */
#include <stdint.h>

#include "export.h"
#include "order.h"

static inline int64_t place_of(const KEY_T *keys, int64_t n, KEY_T value) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
#if RIGHT
        const bool behind = !before(value, keys[middle]);
#else
        const bool behind = before(keys[middle], value);
#endif
        if (behind)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

EXPORT int search_seq(const KEY_T *keys, const KEY_T *values, int64_t *places, int64_t n,
                      int64_t m) {
    for (int64_t i = 0; i < m; i++)
        places[i] = place_of(keys, n, values[i]);
    return 0;
}

#ifdef _OPENMP

EXPORT int search_omp(const KEY_T *keys, const KEY_T *values, int64_t *places, int64_t n, int64_t m,
                      int64_t threads) {
#pragma omp parallel for schedule(static) num_threads((int)(threads > 1 ? threads : 1))
    for (int64_t i = 0; i < m; i++)
        places[i] = place_of(keys, n, values[i]);
    return 0;
}

#endif
