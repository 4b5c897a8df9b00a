/* Threads that share the items of one operation after another. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum {
    MOST_SPINS = 2000, /* about 0.1 ms: longer than any operation's tail on idle cores */
    LEAST_SPINS = 16,
    CACHE_LINE = 64
};

struct Pool {
    _Alignas(CACHE_LINE) atomic_int next; /* first item that nobody has taken */
    _Alignas(CACHE_LINE) atomic_int arrived;
    _Alignas(CACHE_LINE) atomic_int phase; /* counts barriers */
    _Alignas(CACHE_LINE) atomic_int job;   /* counts jobs */
    atomic_int sleepers;
    int threads;
    int stop;
    void (*body)(Worker *, void *);
    void *argument;
    pthread_t handles[MAX_THREADS];
    Worker workers[MAX_THREADS];
    int spins[MAX_THREADS];
    uint8_t *scratch;
    size_t each, shared, act;
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#ifdef __linux__
static void sleep_while(Pool *pool, atomic_int *word, int seen) {
    (void)pool;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}
static void wake_all(Pool *pool, atomic_int *word) {
    (void)pool;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, MAX_THREADS, NULL, NULL, 0);
}
#else
static pthread_mutex_t sleeping = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static void sleep_while(Pool *pool, atomic_int *word, int seen) {
    (void)pool;
    pthread_mutex_lock(&sleeping);
    if (atomic_load(word) == seen) pthread_cond_wait(&woken, &sleeping);
    pthread_mutex_unlock(&sleeping);
}
static void wake_all(Pool *pool, atomic_int *word) {
    (void)pool, (void)word;
    pthread_mutex_lock(&sleeping);
    pthread_cond_broadcast(&woken);
    pthread_mutex_unlock(&sleeping);
}
#endif

/* Spins, then sleeps. A spin that ran out is halved for the next time, since then another program
 * has the core that this one waits for; one that did not grows back slowly. */
static void wait_past(Pool *pool, int thread, atomic_int *word, int seen) {
    int *spins = &pool->spins[thread];
    for (int turn = 0; turn < *spins; turn++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen) {
            if (*spins < MOST_SPINS) *spins += 1 + *spins / 16;
            return;
        }
        relax();
    }
    if (*spins > LEAST_SPINS) *spins /= 2;
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(word) == seen) sleep_while(pool, word, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
}

static void advance(Pool *pool, atomic_int *word) {
    atomic_fetch_add(word, 1);
    if (atomic_load(&pool->sleepers)) wake_all(pool, word);
}

int pool_take(Worker *worker, int32_t count, int32_t chunk, int32_t *first, int32_t *last) {
    int32_t taken = atomic_fetch_add_explicit(worker->next, chunk, memory_order_relaxed);
    if (taken >= count) return 0;
    *first = taken;
    *last = taken + chunk < count ? taken + chunk : count;
    return 1;
}

void pool_barrier(Worker *worker) {
    Pool *pool = worker->pool;
    int seen = atomic_load_explicit(&pool->phase, memory_order_acquire);
    if (atomic_fetch_add(&pool->arrived, 1) < pool->threads - 1) {
        wait_past(pool, worker->thread, &pool->phase, seen);
        return;
    }
    atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    advance(pool, &pool->phase);
}

static void *work(void *argument) {
    Worker *worker = argument;
    Pool *pool = worker->pool;
    for (int seen = 0;; seen++) {
        wait_past(pool, worker->thread, &pool->job, seen);
        if (pool->stop) return NULL;
        pool->body(worker, pool->argument);
        pool_barrier(worker);
    }
}

void pool_run(Pool *pool, void (*body)(Worker *, void *), void *argument) {
    pool->body = body;
    pool->argument = argument;
    advance(pool, &pool->job);
    body(&pool->workers[0], argument);
    pool_barrier(&pool->workers[0]);
}

void pool_run_alone(Pool *pool, void (*body)(Worker *, void *), void *argument) {
    atomic_int next = 0;
    Worker alone = pool->workers[0];
    alone.next = &next;
    alone.threads = 1;
    body(&alone, argument);
}

Pool *pool_open(int threads) {
    if (threads < 1 || threads > MAX_THREADS) return NULL;
    Pool *pool = aligned_alloc(CACHE_LINE, (sizeof *pool + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!pool) return NULL;
    memset(pool, 0, sizeof *pool);
    pool->threads = 1;
    for (int thread = 0; thread < threads; thread++) {
        pool->workers[thread] = (Worker){
            .pool = pool, .next = &pool->next, .thread = thread, .threads = threads};
        pool->spins[thread] = MOST_SPINS;
    }
    for (int thread = 1; thread < threads; thread++) {
        if (pthread_create(&pool->handles[thread], NULL, work, &pool->workers[thread])) {
            pool_close(pool);
            return NULL;
        }
        pool->threads = thread + 1;
    }
    return pool;
}

void pool_close(Pool *pool) {
    pool->stop = 1;
    atomic_fetch_add(&pool->job, 1);
    wake_all(pool, &pool->job);
    for (int thread = 1; thread < pool->threads; thread++) pthread_join(pool->handles[thread], NULL);
    free(pool->scratch);
    free(pool);
}

int pool_threads(const Pool *pool) { return pool->threads; }

static size_t whole_lines(size_t size) { return (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

int pool_reserve(Pool *pool, size_t each, size_t shared, size_t act) {
    if (each <= pool->each && shared <= pool->shared && act <= pool->act) return 0;
    each = whole_lines(larger(each, pool->each));
    shared = whole_lines(larger(shared, pool->shared));
    act = whole_lines(larger(act, pool->act));
    size_t own = each * sizeof(float) + act;
    uint8_t *scratch =
        aligned_alloc(CACHE_LINE, (size_t)pool->threads * own + shared * sizeof(float));
    if (!scratch) return -1;
    free(pool->scratch);
    pool->scratch = scratch;
    pool->each = each;
    pool->shared = shared;
    pool->act = act;
    for (int thread = 0; thread < pool->threads; thread++) {
        Worker *worker = &pool->workers[thread];
        worker->scratch = (float *)(void *)(scratch + (size_t)thread * own);
        worker->act = scratch + (size_t)thread * own + each * sizeof(float);
        worker->shared = (float *)(void *)(scratch + (size_t)pool->threads * own);
    }
    return 0;
}
