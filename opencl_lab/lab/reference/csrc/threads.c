/*
 * The threads of OpenMP: how many run, and on which processors.
 *
 * count_threads  a trial: does a parallel region really run on several threads?
 * bind_threads   binds the threads that the next regions of as many threads will have
 *
 * Runtimes keep their threads for the regions of the thread that asks for them, in the same
 * order, so what is bound once stays so until it is bound again.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include <omp.h>
#include <stdint.h>
#ifdef __linux__
#include <sched.h>
#endif

#include "export.h"

/* counts[0] receives the threads that ran, counts[1] those that OpenMP would run at most. */
EXPORT int count_threads(int64_t *counts) {
    int64_t threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads += 1;
    counts[0] = threads;
    counts[1] = omp_get_max_threads();
    return 0;
}

/*
 * Let thread i run on processors[i] alone if `apart`, else on all `count` of them; 0: as they are.
 * ran[0] receives the threads that ran.
 */
EXPORT int bind_threads(const int64_t *processors, int64_t count, int64_t threads, int64_t apart,
                        int64_t *ran) {
    int64_t seen = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads((int)threads) reduction(+ : seen)
    {
        seen += 1;
#ifdef __linux__
        const int64_t mine = omp_get_thread_num();
        cpu_set_t set;
        CPU_ZERO(&set);
        for (int64_t i = 0; i < count; i++)
            if (!apart || i == mine)
                CPU_SET((int)processors[i], &set);
        if (count)
            sched_setaffinity(0, sizeof set, &set); /* a processor that is gone: as it was */
#endif
    }
    ran[0] = seen;
    return 0;
}
