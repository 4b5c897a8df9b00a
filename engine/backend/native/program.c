/* Runs a program of operations over a step's rows: what Python calls. */
#include "native.h"

#include "cpu.h"

enum { ABI = 1 };

enum {
    BAD_ROWS = -1,
    BAD_IDS = -2,
    BAD_POSITIONS = -3,
    BAD_SLOTS = -4,
    BAD_INDPTR = -5,
    BAD_PAGES = -6,
    BAD_SELECTED = -7,
    NO_MEMORY = -8
};

int heliograph_abi(void) { return ABI; }

/* Sizes of the structures, in the order of native.h, for the other side to compare. */
size_t heliograph_size(int which) {
    static const size_t sizes[] = {sizeof(Matrix), sizeof(Pages), sizeof(Attention),
                                   sizeof(Op),     sizeof(Step),  sizeof(Limits),
                                   sizeof(DrawPlan), sizeof(ScorePlan)};
    return which >= 0 && (size_t)which < sizeof sizes / sizeof *sizes ? sizes[which] : 0;
}

/* The usable variants, best first. */
static const Kernels *variant_at(int index) {
    const Kernels *usable[3];
    int count = 0;
#if defined(HAVE_AVX512) && defined(EMULATED)
    usable[count++] = &kernels_avx512;
#elif defined(HAVE_AVX512)
    if (cpu_detect().avx512) usable[count++] = &kernels_avx512;
#endif
#if defined(HAVE_AVX2)
    if (cpu_detect().avx2) usable[count++] = &kernels_avx2;
#endif
    usable[count++] = &kernels_portable;
    return index >= 0 && index < count ? usable[index] : NULL;
}

const char *heliograph_variant(int index) {
    const Kernels *kernels = variant_at(index);
    return kernels ? kernels->name : NULL;
}

Pool *heliograph_open(int threads) { return pool_open(threads); }
void heliograph_close(Pool *pool) { pool_close(pool); }

static int outside(const int64_t *values, int32_t count, int64_t end) {
    for (int32_t i = 0; i < count; i++)
        if (values[i] < 0 || values[i] >= end) return 1;
    return 0;
}

/* Rows cut by `indptr` [B + 1] into pieces that end at `end`. */
static int descends(const int32_t *indptr, int32_t pieces, int64_t end) {
    if (indptr[0] != 0 || indptr[pieces] != end) return 1;
    for (int32_t i = 0; i < pieces; i++)
        if (indptr[i + 1] < indptr[i]) return 1;
    return 0;
}

/* Whether every sequence's pages hold its rows' whole contexts. */
static int pages_missing(const Step *step) {
    for (int32_t b = 0; b < step->sequences; b++) {
        int64_t held = (int64_t)(step->kv_indptr[b + 1] - step->kv_indptr[b]) * PAGE_TOKENS;
        for (int32_t row = step->qo_indptr[b]; row < step->qo_indptr[b + 1]; row++)
            if (step->positions[row] >= held) return 1;
    }
    return 0;
}

static int check(const Step *step, const Limits *limits) {
    if (step->rows < 1 || step->rows > limits->max_rows || step->sequences < 1) return BAD_ROWS;
    if (step->selected_rows < 0 || step->selected_rows > limits->max_rows) return BAD_SELECTED;
    if (outside(step->ids, step->rows, limits->vocab)) return BAD_IDS;
    if (outside(step->positions, step->rows, limits->max_context)) return BAD_POSITIONS;
    if (outside(step->slots, step->rows, limits->pages * PAGE_TOKENS)) return BAD_SLOTS;
    if (descends(step->qo_indptr, step->sequences, step->rows)) return BAD_INDPTR;
    if (descends(step->kv_indptr, step->sequences, limits->indices)) return BAD_INDPTR;
    for (int64_t i = 0; i < limits->indices; i++)
        if (step->kv_indices[i] < 0 || step->kv_indices[i] >= limits->pages) return BAD_PAGES;
    if (pages_missing(step)) return BAD_PAGES;
    if (outside(step->selected, step->selected_rows, step->rows)) return BAD_SELECTED;
    return 0;
}

typedef struct {
    const Kernels *kernels;
    const Op *ops;
    int count;
    const Step *step;
} Job;

/* Activations of few rows are made sooner by every thread for itself than by one for all, whom the
 * others would wait for. They are the same bits. */
enum { FEW_ROWS = 2 };

static int makes_own(const Job *job, int i) {
    const Op *op = &job->ops[i];
    int32_t rows = op->selected ? job->step->selected_rows : job->step->rows;
    int quantises = op->code == OP_QUANTISE || op->code == OP_GATE ||
                    (op->code == OP_NORM && !op->flag);
    return quantises && rows <= FEW_ROWS && i + 1 < job->count && op[1].code == OP_LINEAR &&
           op[1].act == op->act;
}

static void run_own(const Job *job, int i, Worker *worker) {
    atomic_int next = 0;
    Worker alone = *worker;
    alone.next = &next;
    alone.threads = 1;
    Op op = job->ops[i], product = job->ops[i + 1];
    op.act = product.act = worker->act;
    job->kernels->run[op.code](&op, job->step, &alone);
    job->kernels->run[OP_LINEAR](&product, job->step, worker);
}

static void run_job(Worker *worker, void *argument) {
    const Job *job = argument;
    for (int i = 0; i < job->count; i++) {
        if (i > 0) pool_barrier(worker); /* the pool has the last one */
        if (makes_own(job, i)) run_own(job, i++, worker);
        else job->kernels->run[job->ops[i].code](&job->ops[i], job->step, worker);
    }
}

static int reserve(Pool *pool, const Job *job) {
    int64_t context = 0;
    for (int32_t row = 0; row < job->step->rows; row++)
        if (job->step->positions[row] >= context) context = job->step->positions[row] + 1;
    size_t each = 0, shared = 0, act = 0;
    for (int i = 0; i < job->count; i++) {
        const Op *op = &job->ops[i];
        if (op->code == OP_ATTEND) {
            size_t own = job->kernels->attend_scratch(op->attention, context);
            size_t all = job->kernels->attend_shared(op->attention, job->step);
            each = own > each ? own : each;
            shared = all > shared ? all : shared;
        } else if (makes_own(job, i)) {
            size_t rows = FEW_ROWS * act_stride(op->form, op->columns);
            act = rows > act ? rows : act;
        }
    }
    return pool_reserve(pool, each, shared, act) ? NO_MEMORY : 0;
}

/* Runs `count` operations. 0, or one of the codes above; then nothing was written. */
int heliograph_run(Pool *pool, int variant, const Op *ops, int count, const Step *step,
                   const Limits *limits) {
    Job job = {variant_at(variant), ops, count, step};
    int wrong = check(step, limits);
    if (!wrong) wrong = reserve(pool, &job);
    if (!wrong && count > 0) pool_run(pool, run_job, &job);
    return wrong;
}

typedef struct {
    const Kernels *kernels;
    const DrawPlan *draw; /* one of the two */
    const ScorePlan *score;
} DrawJob;

static void draw_job(Worker *worker, void *argument) {
    const DrawJob *job = argument;
    if (job->draw) job->kernels->draw(job->draw, worker);
    else job->kernels->score(job->score, worker);
}

/* One row is one thread's work: the others, which sleep between steps, are not woken for it. */
static int run_draw_job(Pool *pool, DrawJob *job, int32_t rows, int32_t vocab) {
    if (pool_reserve(pool, draw_scratch(vocab), 0, 0)) return PLAN_NO_MEMORY;
    if (rows == 1) pool_run_alone(pool, draw_job, job);
    else if (rows > 1) pool_run(pool, draw_job, job);
    return PLAN_GOOD;
}

/* Draws a token for each row of logits. PLAN_GOOD, or a fault; then nothing was written. */
int heliograph_draw(Pool *pool, int variant, const DrawPlan *plan) {
    DrawJob job = {variant_at(variant), plan, NULL};
    PlanFault fault = draw_check(plan);
    return fault ? (int)fault : run_draw_job(pool, &job, plan->rows, plan->vocab);
}

/* Scores tokens by raw log probability. PLAN_GOOD, or a fault; then nothing was written. */
int heliograph_score(Pool *pool, int variant, const ScorePlan *plan) {
    DrawJob job = {variant_at(variant), NULL, plan};
    PlanFault fault = score_check(plan);
    return fault ? (int)fault : run_draw_job(pool, &job, plan->rows, plan->vocab);
}
