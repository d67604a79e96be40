/*
 * A trial of OpenMP: does a parallel region really run on several threads?
 *
 * counts[0] receives the threads that ran, counts[1] those that OpenMP would run at most.
 */
#include <omp.h>
#include <stdint.h>

int count_threads(int64_t *counts) {
    int64_t threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads += 1;
    counts[0] = threads;
    counts[1] = omp_get_max_threads();
    return 0;
}
