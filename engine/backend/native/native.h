/* A recorded program of tensor operations over blocked weights and paged keys and values.
 *
 * Every output number is computed by one thread in an order that depends on nothing but its own
 * inputs: a row has the same bits whatever rows, threads and chunks stand beside it.
 */
#ifndef HELIOGRAPH_NATIVE_H
#define HELIOGRAPH_NATIVE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "draw.h"

enum {
    BLOCK_ROWS = 16,   /* output rows of a block of weights */
    GROUP = 32,        /* columns that share a scale */
    PAGE_TOKENS = 16,
    MAX_HEADS_PER_GROUP = 16, /* query heads that read one key/value head */
    MAX_HEAD_DIM = 256,
    MAX_THREADS = 256
};

/* How weights and the activations that meet them are stored. */
typedef enum { FORM_INT4 = 0, FORM_INT8 = 1, FORM_BF16 = 2 } Form;

/* A weight [rows, columns] in blocks of 16 rows, each block in groups of 32 columns.
 *
 * INT4 group, 320 bytes: byte 64 j + 4 r + c holds the weights of row r at columns 8 j + c (low
 *   half) and 8 j + 4 + c (high half), j, c < 4; then 16 scales and 16 minimums in fp16.
 *   w = scale * q + minimum, q in 0..15.
 * INT8 group, 544 bytes: byte 64 j + 4 r + c is q + 128 of row r at column 4 j + c, j < 8, c < 4;
 *   then 16 scales in fp16. w = scale * q.
 * BF16 group, 1024 bytes: 16-bit word 32 j + 2 r + c is row r at column 2 j + c, j < 16, c < 2.
 *
 * Rows are padded to a multiple of 16 and columns to one of 32, with zeros.
 */
typedef struct {
    int32_t form;
    int32_t rows;    /* padded */
    int32_t columns; /* padded */
    int32_t pad;
    const uint8_t *blocks;
    const float *bias; /* [rows] or NULL */
} Matrix;

/* Rows of activations as products read them, `stride` bytes apart.
 *
 * For INT4 and INT8 weights: int8 q [columns], then per group of 32: fp32 scale, fp32 scale * sum
 * of q, int32 sum of q (three arrays of columns / 32). For BF16 weights: bf16 [columns] where the
 * processor multiplies that, else fp32 [columns].
 */
static inline size_t act_stride(int form, int32_t columns) {
    size_t bytes = form == FORM_BF16 ? 4 * (size_t)columns
                                     : (size_t)columns + 12 * (size_t)(columns / GROUP);
    return (bytes + 63) / 64 * 64;
}

/* Keys and values of one layer in bf16, pages of 16 tokens:
 * keys [pages, kv_heads, head_dim / 2, 16, 2], values [pages, kv_heads, 8, head_dim, 2]. */
typedef struct {
    uint16_t *keys;
    uint16_t *values;
} Pages;

/* Heads of attention and how their scores are made. */
typedef struct {
    int32_t heads, kv_heads, head_dim; /* head_dim: a multiple of 16 */
    int32_t window;                    /* tokens a row looks back at, itself included; 0: all */
    float scale;
    float soft_cap; /* s = cap * tanh(s / cap); 0: none */
    const float *cosines, *sines; /* [max_context, head_dim / 2] */
} Attention;

typedef enum {
    OP_EMBED = 0, /* out fp32 [N, columns] = rows `ids` of matrix, times `factor` */
    OP_NORM,      /* act = in / rms(in) * weight; with `plain`, fp32 into out instead */
    OP_QUANTISE,  /* act = in */
    OP_LINEAR,    /* out = act * matrix (+ bias) (+ out, with `add`) */
    OP_ROPE,      /* rotate q and k of in [N, heads + 2 kv_heads, head_dim]; append k, v to pages */
    OP_ATTEND,    /* out fp32 [N, heads * head_dim] */
    OP_GATE,      /* act = activation(in[:, :columns]) * in[:, columns:]; activation by `kind` */
    OP_SELECT,    /* out = rows `selected` of in */
    OP_ADD,       /* out += in */
    OP_COUNT
} OpCode;

typedef enum { GATE_SILU = 0, GATE_GELU_TANH = 1 } GateKind;

/* One operation. Buffers have a row for each row of the step; `columns` is that of the input. */
typedef struct {
    int32_t code;
    int32_t columns;
    int32_t form;
    int32_t flag;  /* add, plain or kind */
    float factor;  /* of EMBED; epsilon of NORM */
    int32_t selected; /* whether its rows are the step's selected ones, else all */
    const Matrix *matrix;
    const float *weight;
    const Attention *attention;
    const Pages *pages;
    float *in;
    float *out;
    uint8_t *act;
} Op;

/* One step: N rows of B sequences, as engine/backend/backend.py describes a StepPlan. */
typedef struct {
    int32_t rows;
    int32_t sequences;
    int32_t selected_rows;
    int32_t pad;
    const int64_t *ids;       /* [N] */
    const int64_t *positions; /* [N] */
    const int64_t *slots;     /* [N] page * 16 + offset */
    const int32_t *qo_indptr; /* [B + 1] */
    const int32_t *kv_indptr; /* [B + 1] */
    const int32_t *kv_indices;
    const int64_t *selected; /* [selected_rows] */
} Step;

/* What a step's tables are checked against. */
typedef struct {
    int32_t max_rows;
    int32_t vocab;
    int64_t pages;
    int64_t max_context;
    int64_t indices; /* length of kv_indices */
} Limits;

typedef struct Pool Pool;

/* Work of the running operation: threads take items until none are left. */
typedef struct {
    Pool *pool;
    atomic_int *next; /* the first item that nobody has taken */
    int thread;
    int threads;
    float *scratch; /* of this thread */
    float *shared;  /* of all threads */
    uint8_t *act;   /* of this thread: activations that it makes for itself alone */
} Worker;

/* The next range of `chunk` items of `count`; 0 when none are left. */
int pool_take(Worker *worker, int32_t count, int32_t chunk, int32_t *first, int32_t *last);

/* Waits until all threads are here; then items count from 0 again. */
void pool_barrier(Worker *worker);

Pool *pool_open(int threads);
void pool_close(Pool *pool);
int pool_threads(const Pool *pool);
/* Calls body(worker, argument) on every thread and returns when all have returned. */
void pool_run(Pool *pool, void (*body)(Worker *, void *), void *argument);
/* Calls body(worker, argument) on this thread alone; body has no barrier. */
void pool_run_alone(Pool *pool, void (*body)(Worker *, void *), void *argument);
/* Scratch of at least so many floats for each thread and for all together, and bytes of activations
 * for each. 0, or -1 without memory. */
int pool_reserve(Pool *pool, size_t each, size_t shared, size_t act);

/* One instruction set's kernels. All are called by every thread of the pool; a kernel that needs
 * more than one phase calls pool_barrier itself, and the program does so after each operation. */
typedef struct {
    const char *name;
    void (*run[OP_COUNT])(const Op *, const Step *, Worker *);
    size_t (*attend_scratch)(const Attention *, int64_t context); /* floats a thread needs */
    size_t (*attend_shared)(const Attention *, const Step *);     /* floats all threads share */
    void (*draw)(const DrawPlan *, Worker *);
    void (*score)(const ScorePlan *, Worker *);
} Kernels;

extern const Kernels kernels_portable;
#ifdef HAVE_AVX2
extern const Kernels kernels_avx2;
#endif
#ifdef HAVE_AVX512
extern const Kernels kernels_avx512;
#endif

#endif
