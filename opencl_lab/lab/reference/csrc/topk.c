/*
 * The first k keys of each of `rows` rows of n keys, in order, and where they are: into `values`
 * and `places`. They return 0, or ENOMEM when there is no memory for scratch.
 *
 *   topk_heap_seq   one pass with a heap of the best k so far, on one thread
 *   topk_heap_omp   rows in parallel; of fewer rows than threads, parts with a heap each
 *
 * Order: that of order.h; of equal keys the first place comes first.
 *
 * The root of a heap is the last of what it holds, so most keys are done with after one comparison
 * (J. W. J. Williams, Algorithm 232: Heapsort, 1964). Taking it away k times leaves them in order.
 *
 * Macros: those of order.h
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "export.h"
#include "order.h"

typedef struct {
    KEY_T *keys;
    int64_t *places;
    int64_t size;
} heap_t;

/* Whether i is behind j in the result. */
static bool behind(const heap_t *heap, int64_t i, int64_t j) {
    if (before(heap->keys[j], heap->keys[i]))
        return true;
    return !before(heap->keys[i], heap->keys[j]) && heap->places[j] < heap->places[i];
}

static void swap(const heap_t *heap, int64_t i, int64_t j) {
    const KEY_T key = heap->keys[i];
    const int64_t place = heap->places[i];
    heap->keys[i] = heap->keys[j], heap->places[i] = heap->places[j];
    heap->keys[j] = key, heap->places[j] = place;
}

static void sift_down(const heap_t *heap, int64_t root) {
    for (int64_t child; (child = 2 * root + 1) < heap->size; root = child) {
        if (child + 1 < heap->size && behind(heap, child + 1, child))
            child++;
        if (!behind(heap, child, root))
            return;
        swap(heap, child, root);
    }
}

static void sift_up(const heap_t *heap, int64_t child) {
    for (int64_t parent; child > 0; child = parent) {
        parent = (child - 1) / 2;
        if (!behind(heap, child, parent))
            return;
        swap(heap, child, parent);
    }
}

/* Take in a key that is behind none of an equal one. */
static inline void offer(heap_t *heap, int64_t k, KEY_T key, int64_t place) {
    if (heap->size < k) {
        heap->keys[heap->size] = key, heap->places[heap->size] = place;
        sift_up(heap, heap->size++);
    } else if (before(key, heap->keys[0])) {
        heap->keys[0] = key, heap->places[0] = place;
        sift_down(heap, 0);
    }
}

/* Take in the keys of a row from begin on to before end. */
static void look(heap_t *heap, int64_t k, const KEY_T *row, int64_t begin, int64_t end) {
    for (int64_t place = begin; place < end; place++)
        offer(heap, k, row[place], place);
}

/* Leave the first key first. */
static void put_in_order(heap_t *heap) {
    while (heap->size > 1) {
        swap(heap, 0, --heap->size);
        sift_down(heap, 0);
    }
}

static void whole_row(const KEY_T *row, KEY_T *values, int64_t *places, int64_t n, int64_t k) {
    heap_t heap = {values, places, 0};
    look(&heap, k, row, 0, n);
    put_in_order(&heap);
}

EXPORT int topk_heap_seq(const KEY_T *keys, KEY_T *values, int64_t *places, int64_t rows, int64_t n,
                         int64_t k) {
    for (int64_t row = 0; k > 0 && row < rows; row++)
        whole_row(keys + row * n, values + row * k, places + row * k, n, k);
    return 0;
}

#ifdef _OPENMP

/* Parts of a row have heaps of their own, which the row's takes in from the first part on. */
static int parted_row(const KEY_T *row, KEY_T *values, int64_t *places, int64_t n, int64_t k,
                      int64_t parts) {
    KEY_T *part_keys = malloc((size_t)(parts * k) * sizeof(KEY_T));
    int64_t *part_places = malloc((size_t)(parts * k) * sizeof(int64_t));
    if (!part_keys || !part_places) {
        free(part_keys), free(part_places);
        return ENOMEM;
    }
    heap_t heap = {values, places, 0};
#pragma omp parallel for ordered schedule(static, 1) num_threads((int)parts)
    for (int64_t part = 0; part < parts; part++) {
        heap_t own = {part_keys + part * k, part_places + part * k, 0};
        look(&own, k, row, part * n / parts, (part + 1) * n / parts);
        const int64_t found = own.size;
        put_in_order(&own); /* equal keys are then offered in the order of their places */
#pragma omp ordered
        for (int64_t i = 0; i < found; i++)
            offer(&heap, k, own.keys[i], own.places[i]);
    }
    put_in_order(&heap);
    free(part_keys), free(part_places);
    return 0;
}

EXPORT int topk_heap_omp(const KEY_T *keys, KEY_T *values, int64_t *places, int64_t rows, int64_t n,
                         int64_t k, int64_t threads) {
    if (k <= 0)
        return 0;
    if (threads < 1)
        threads = 1;
    if (rows >= threads) {
#pragma omp parallel for schedule(dynamic) num_threads((int)threads)
        for (int64_t row = 0; row < rows; row++)
            whole_row(keys + row * n, values + row * k, places + row * k, n, k);
        return 0;
    }
    int failed = 0;
    for (int64_t row = 0; !failed && row < rows; row++)
        failed = parted_row(keys + row * n, values + row * k, places + row * k, n, k, threads);
    return failed;
}

#endif
