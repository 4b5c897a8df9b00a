/* Jobs of several phases on a pool of threads, which may not race: built with -fsanitize=thread. */
#include <stdio.h>
#include <stdlib.h>

#include "native.h"

enum { THREADS = 4, ITEMS = 37, PHASES = 3, JOBS = 300 };

static int counts[PHASES][ITEMS];

static void body(Worker *worker, void *argument) {
    int job = *(int *)argument;
    for (int phase = 0; phase < PHASES; phase++) {
        int32_t first, last;
        while (pool_take(worker, ITEMS, 1 + phase, &first, &last))
            for (int32_t item = first; item < last; item++) {
                /* Written by one thread, after what any thread may have written before. */
                int before = phase ? counts[phase - 1][ITEMS - 1 - item] : job;
                counts[phase][item] = before + 1;
            }
        worker->scratch[0] = (float)phase;
        if (phase + 1 < PHASES) pool_barrier(worker);
    }
}

static int run_jobs(int threads) {
    Pool *pool = pool_open(threads);
    if (!pool) return 1;
    for (int job = 0; job < JOBS; job++) {
        if (pool_reserve(pool, 16 + (size_t)job, 0, 0)) return 1;
        pool_run(pool, body, &job);
        for (int item = 0; item < ITEMS; item++)
            if (counts[PHASES - 1][item] != job + PHASES) {
                printf("item %d of job %d is %d\n", item, job, counts[PHASES - 1][item]);
                return 1;
            }
    }
    pool_close(pool);
    return 0;
}

int main(void) {
    for (int threads = 1; threads <= THREADS; threads++)
        if (run_jobs(threads)) return 1;
    return 0;
}
