/*
 * A stable merge sort on one thread, and as OpenMP tasks, in the order of order.h.
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
 */
#ifndef MERGE_SORT_H
#define MERGE_SORT_H

#include <stdint.h>
#include <string.h>

#include "order.h"

#define INSERTION_LENGTH 16 /* below this, insertion sort beats merging */
#define TASK_LENGTH 8192    /* keys that are worth a task: about 0.2 ms of sorting */

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

#endif /* _OPENMP */

#endif
