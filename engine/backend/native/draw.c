/* Draws next tokens and scores them: a row of logits is one thread's, from start to end.
 *
 * Transforms apply in the order of engine/backend/sampling.py, and scores are those of scores.py.
 * No row is sorted: the best 64 tokens decide almost always, then the best 1,024, and only when a
 * limit lets more through, all that it does. Tokens are taken by falling logit, equals by rising
 * id. Included by variant.c.
 */
#include <float.h>

#include "draw.h"
#include "lanes.h"

enum { FEW = 64, MANY = 1024, DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

#define NO_CHANCE (-9999.0f) /* what is reported for a log probability that is not finite */
#define LEAST_POWER 87.0     /* e to minus this is the least chance */

/* A thread's scratch. */
typedef struct {
    float *row;      /* [vocab] logits after a change, or log probabilities */
    float *chances;  /* [vocab] of the candidates */
    uint64_t *keys;  /* [vocab] */
    uint64_t *spare; /* [vocab] for sorting */
    double *sums;    /* of blocks */
} Space;

static Space space_of(Worker *worker, int32_t vocab) {
    size_t columns = draw_columns(vocab);
    float *p = worker->scratch;
    return (Space){p, p + columns, (uint64_t *)(void *)(p + 2 * columns),
                   (uint64_t *)(void *)(p + 4 * columns), (double *)(void *)(p + 6 * columns)};
}

/* The best logit and the lowest token that has it; NaN when a logit is. */
typedef struct {
    float best;
    int32_t token;
} Peak;

/* The lanes' maxima of `count` logits. */
static vf block_peak(const float *row, int32_t count, unsigned *broken) {
    vf a = vf_set(-INFINITY), b = a, c = a, d = a;
    unsigned odd = 0;
    for (int32_t i = 0; i < count; i += 4 * LANES) {
        vf p = vf_read(row + i, count - i);
        vf q = vf_read(row + i + LANES, count - i - LANES);
        vf r = vf_read(row + i + 2 * LANES, count - i - 2 * LANES);
        vf s = vf_read(row + i + 3 * LANES, count - i - 3 * LANES);
        odd |= lanes_unordered(p, q) | lanes_unordered(r, s);
        a = vf_max(a, p);
        b = vf_max(b, q);
        c = vf_max(c, r);
        d = vf_max(d, s);
    }
    *broken |= odd;
    return vf_max(vf_max(a, b), vf_max(c, d));
}

static Peak find_peak(const float *row, int32_t vocab) {
    float best = -INFINITY;
    int32_t token = 0;
    unsigned broken = 0;
    for (int32_t first = 0; first < vocab; first += DRAW_BLOCK) {
        int32_t count = vocab - first < DRAW_BLOCK ? vocab - first : DRAW_BLOCK;
        vf most = block_peak(row + first, count, &broken);
        if (!lanes_above(most, vf_set(best))) continue;
        best = vf_most(most);
        token = first; /* for now its block */
    }
    if (broken) return (Peak){NAN, 0};
    while (row[token] != best) token++;
    return (Peak){best, token};
}

/* How chances follow from logits: e^((logit - best) * steepness), and none below the cut. */
typedef struct {
    float best;
    float steepness;
    float cut;
} Curve;

INLINE vf vf_chances(vf logits, const Curve *curve) {
    vf power = vf_mul(vf_sub(logits, vf_set(curve->best)), vf_set(curve->steepness));
    return vf_pick(logits, vf_set(curve->cut), vf_exp(power), vf_zero());
}

/* Sums the chances of a row, block by block, in fp64. */
static double sum_chances(const float *row, int32_t vocab, const Curve *curve, double *sums) {
    double total = 0.0;
    for (int32_t first = 0; first < vocab; first += DRAW_BLOCK) {
        int32_t count = vocab - first < DRAW_BLOCK ? vocab - first : DRAW_BLOCK;
        vd own = vd_zero();
        for (int32_t i = 0; i < count; i += LANES)
            own = vd_add(own, vf_chances(vf_read(row + first + i, count - i), curve));
        sums[first / DRAW_BLOCK] = vd_sum(own);
        total += sums[first / DRAW_BLOCK];
    }
    return total;
}

/* Replaces `count` logits by their chances; writes up to LANES - 1 more. */
static void to_chances(float *logits, int32_t count, const Curve *curve) {
    for (int32_t i = 0; i < count; i += LANES)
        vf_store(logits + i, vf_chances(vf_read(logits + i, count - i), curve));
}

/* The first of `count` chances that brings their sum above the target. */
static int32_t place_of(const float *chances, int32_t count, double target) {
    int32_t last = 0;
    double sum = 0.0;
    for (int32_t i = 0; i < count; i++) {
        if (chances[i] == 0.0f) continue;
        last = i;
        sum += (double)chances[i];
        if (sum > target) break;
    }
    return last;
}

/* A token by its share of all chances. */
static int32_t draw_any(const float *row, int32_t vocab, const Curve *curve, double point,
                        Space *space) {
    double total = sum_chances(row, vocab, curve, space->sums), before = 0.0;
    double target = point * total; /* below the total, as the point is at most 1 - 2^-53 */
    int32_t block = 0;
    while (before + space->sums[block] <= target) before += space->sums[block++];
    int32_t first = block * DRAW_BLOCK;
    int32_t count = vocab - first < DRAW_BLOCK ? vocab - first : DRAW_BLOCK;
    memcpy(space->chances, row + first, (size_t)count * sizeof *row);
    to_chances(space->chances, count, curve);
    return first + place_of(space->chances, count, target - before);
}

/* A key of a token: rises where logits fall, and with ids where they are equal. */
INLINE uint64_t key_of(float logit, int32_t token) {
    uint32_t bits;
    logit += 0.0f; /* -0 equals 0 */
    memcpy(&bits, &logit, 4);
    bits = bits >> 31 ? bits : ~bits ^ 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)token;
}

INLINE float logit_of(uint64_t key) {
    uint32_t bits = (uint32_t)(key >> 32);
    bits = bits >> 31 ? bits : ~bits ^ 0x80000000u;
    float logit;
    memcpy(&logit, &bits, 4);
    return logit;
}

/* The best `most` tokens so far: sorted where these are few, else sorted when there is no room. */
typedef struct {
    uint64_t *list;
    uint64_t *spare;
    int32_t count;
    int32_t most;
    int32_t room;
    float bar; /* what a further token's logit must exceed */
} Best;

/* Sorts keys by logit; where equals stand in the order of their ids, they stay so. */
static void sort_keys(uint64_t *list, uint64_t *spare, int32_t count) {
    enum { PASSES = 3 };
    uint32_t places[PASSES][DIGITS] = {{0}};
    for (int32_t i = 0; i < count; i++)
        for (int pass = 0; pass < PASSES; pass++)
            places[pass][list[i] >> (32 + pass * DIGIT_BITS) & (DIGITS - 1)]++;
    uint64_t *from = list, *to = spare;
    for (int pass = 0; pass < PASSES; pass++) {
        uint32_t next = 0, *place = places[pass];
        for (int digit = 0; digit < DIGITS; digit++) {
            uint32_t own = place[digit];
            place[digit] = next;
            next += own;
        }
        for (int32_t i = 0; i < count; i++)
            to[place[from[i] >> (32 + pass * DIGIT_BITS) & (DIGITS - 1)]++] = from[i];
        uint64_t *done = to;
        to = from;
        from = done;
    }
    memcpy(list, spare, (size_t)count * sizeof *list); /* where an odd number of passes ends */
}

static void keep_best(Best *best) {
    sort_keys(best->list, best->spare, best->count);
    if (best->count < best->most) return;
    best->count = best->most;
    best->bar = logit_of(best->list[best->most - 1]);
}

static void add_key(Best *best, uint64_t key) {
    if (best->most > FEW) {
        best->list[best->count++] = key;
        if (best->count == best->room) keep_best(best);
        return;
    }
    int32_t place = best->count < best->most ? best->count++ : best->most - 1;
    for (; place && best->list[place - 1] > key; place--) best->list[place] = best->list[place - 1];
    best->list[place] = key;
    if (best->count == best->most) best->bar = logit_of(best->list[best->most - 1]);
}

/* Finds the best `most` tokens with logits above `bar`; returns how many there are, with their
 * keys, best first, in the space. */
static int32_t find_best(const float *row, int32_t vocab, float bar, int32_t most, Space *space) {
    if (most < 1) return 0;
    int32_t room = most < vocab / 4 ? 4 * most : vocab + 1; /* vocab + 1: never full */
    Best best = {space->keys, space->spare, 0, most, room, bar};
    for (int32_t i = 0; i < vocab; i += 4 * LANES) {
        vf parts[4], top = vf_set(-INFINITY);
        for (int part = 0; part < 4; part++) {
            parts[part] = vf_read(row + i + part * LANES, vocab - i - part * LANES);
            top = vf_max(top, parts[part]);
        }
        if (!lanes_above(top, vf_set(best.bar))) continue;
        for (int part = 0; part < 4; part++) {
            unsigned lanes = lanes_above(parts[part], vf_set(best.bar));
            for (; lanes; lanes &= lanes - 1) {
                int32_t token = i + part * LANES + __builtin_ctz(lanes);
                if (row[token] > best.bar) add_key(&best, key_of(row[token], token));
            }
        }
    }
    if (most > FEW) keep_best(&best);
    return best.count;
}

/* What restricts a drawn row. */
typedef struct {
    int32_t top_k; /* 0: off */
    double top_p;
    float min_p;   /* at most 1; 0: off */
    int filtered;  /* before top-p */
    double total;  /* of all chances; only where no filter comes before top-p */
} Restriction;

/* A logit that every token which the limits let through exceeds. */
static float bar_of(const Restriction *limits, const Curve *curve, int32_t vocab) {
    double part = 0.0; /* of the best token's chance */
    if (limits->min_p > 0) part = limits->min_p;
    /* All tokens with less than this together have less than what top-p leaves out. */
    else if (!limits->filtered) part = (1.0 - limits->top_p) * limits->total / vocab;
    double bar = curve->cut;
    if (part > 0.0) {
        double margin = 1e-3; /* far more than the rounding of a power */
        double least = curve->best + (log(part < 1.0 ? part : 1.0) - margin) / curve->steepness;
        if (least > bar) bar = least;
    }
    return nextafterf((float)bar, -INFINITY);
}

/* Draws from the best `most` tokens; -1 when the limits let more through. */
static int32_t draw_best(const float *row, int32_t vocab, const Curve *curve,
                         const Restriction *limits, int32_t most, double point, Space *space) {
    float *chances = space->chances;
    int32_t count = find_best(row, vocab, bar_of(limits, curve, vocab), most, space);
    int complete = count < most || most == vocab || most == limits->top_k;
    for (int32_t i = 0; i < count; i++) chances[i] = logit_of(space->keys[i]);
    to_chances(chances, count, curve);
    double sum = 0.0;
    for (int32_t i = 0; i < count; i++) {
        if (chances[i] < limits->min_p) { /* of the best, whose chance is 1 */
            count = i;
            complete = 1;
        } else sum += (double)chances[i];
    }
    double end = limits->top_p * (limits->filtered ? sum : limits->total);
    if (!complete && (limits->filtered || sum < end)) return -1;
    double nucleus = 0.0;
    int32_t kept = 0;
    while (kept < count && (!kept || nucleus < end || limits->top_p >= 1.0))
        nucleus += (double)chances[kept++];
    int32_t place = place_of(chances, kept, point * nucleus);
    return (int32_t)(uint32_t)space->keys[place];
}

static int32_t draw_limited(const float *row, int32_t vocab, const Curve *curve,
                            const Restriction *limits, double point, Space *space) {
    int32_t sizes[] = {FEW, MANY, vocab};
    for (int i = 0; i < 3; i++) {
        int32_t most = sizes[i] < vocab ? sizes[i] : vocab;
        if (limits->top_k && limits->top_k <= most) most = limits->top_k;
        /* Without a bar, the k best must all be known. */
        else if (limits->top_k > most && most < vocab && !(limits->min_p > 0)) continue;
        int32_t token = draw_best(row, vocab, curve, limits, most, point, space);
        if (token >= 0) return token;
    }
    return 0; /* not reached: all tokens are complete */
}

static uint64_t mixed(uint64_t state) { /* the finaliser of splitmix64 */
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9u;
    state = (state ^ state >> 27) * 0x94D049BB133111EBu;
    return state ^ state >> 31;
}

/* The point in [0, 1) of a seed and a position. */
static double point_of(uint64_t seed, int64_t position) {
    const uint64_t gamma = 0x9E3779B97F4A7C15u;
    uint64_t bits = mixed(mixed(seed + gamma) + ((uint64_t)position + 1) * gamma);
    return (double)(bits >> 11) * 0x1p-53;
}

/* A copy of a row in which only what the mask's bits allow is left. */
static void copy_allowed(const float *row, int32_t vocab, const uint32_t *mask, int32_t words,
                         float *copy) {
    for (int32_t i = 0; i < vocab; i += LANES) {
        uint32_t bits = i / 32 < words ? mask[i / 32] >> (i % 32) : 0;
        vf_store(copy + i, vf_allowed(vf_read(row + i, vocab - i), bits));
    }
}

static void penalise(const DrawPlan *plan, int32_t r, float *row) {
    float repetition = plan->repetition_penalty[r];
    for (int32_t i = plan->seen_indptr[r]; i < plan->seen_indptr[r + 1]; i++) {
        float *logit = &row[plan->seen_ids[i]];
        float count = (float)plan->seen_counts[i];
        float value = *logit > 0 ? *logit / repetition : *logit * repetition;
        value = value - plan->frequency_penalty[r] * count;
        *logit = value - plan->presence_penalty[r] * (float)(count > 0);
    }
}

/* A row after mask, bias and penalties: the caller's own where there are none. */
static const float *adjusted(const DrawPlan *plan, int32_t r, float *copy) {
    const float *row = plan->logits + r * plan->stride;
    int32_t mask = plan->mask_rows[r];
    int biased = plan->bias_indptr[r] < plan->bias_indptr[r + 1];
    int penalised = plan->repetition_penalty[r] != 1 || plan->frequency_penalty[r] != 0 ||
                    plan->presence_penalty[r] != 0;
    penalised &= plan->seen_indptr[r] < plan->seen_indptr[r + 1];
    if (mask < 0 && !biased && !penalised) return row;
    if (mask >= 0) {
        const uint32_t *bits = plan->mask_bits + (int64_t)mask * plan->words;
        copy_allowed(row, plan->vocab, bits, plan->words, copy);
    } else memcpy(copy, row, (size_t)plan->vocab * sizeof *copy);
    for (int32_t i = plan->bias_indptr[r]; i < plan->bias_indptr[r + 1]; i++)
        copy[plan->bias_ids[i]] += plan->bias_values[i];
    if (penalised) penalise(plan, r, copy);
    return copy;
}

/* Sums what a row's finite logits exceed the mean by, or the squares of that; counts them too. */
static double sum_around(const float *row, int32_t vocab, double mean, int squared,
                         int64_t *finite) {
    double sums[16] = {0}, sum = 0.0;
    int32_t counts[16] = {0};
    for (int32_t first = 0; first < vocab; first += 16) {
        int32_t count = vocab - first < 16 ? vocab - first : 16;
        for (int lane = 0; lane < count; lane++) {
            int known = row[first + lane] >= -FLT_MAX;
            double own = known ? (double)row[first + lane] - mean : 0.0;
            sums[lane] += squared ? own * own : own;
            counts[lane] += known;
        }
    }
    *finite = 0;
    for (int lane = 0; lane < 16; lane++) {
        sum += sums[lane];
        *finite += counts[lane];
    }
    return sum;
}

/* The standard deviation of a row's finite logits, of which there is one. */
static double deviation(const float *row, int32_t vocab) {
    int64_t finite;
    double mean = sum_around(row, vocab, 0.0, 0, &finite) / (double)finite;
    return sqrt(sum_around(row, vocab, mean, 1, &finite) / (double)finite);
}

static Curve curve_of(const DrawPlan *plan, int32_t r, const float *row, float best) {
    float steepness = 1.0f / plan->temperature[r];
    if (steepness > FLT_MAX) steepness = FLT_MAX; /* 0 times it is 0 */
    double cut = (double)best - LEAST_POWER * (double)plan->temperature[r];
    Curve curve = {best, steepness, cut > (double)-FLT_MAX ? (float)cut : -FLT_MAX};
    if (plan->top_n_sigma[r] > 0) {
        double reach = (double)plan->top_n_sigma[r] * deviation(row, plan->vocab);
        float least = (float)((double)best - reach);
        if (least > curve.cut) curve.cut = least;
    }
    return curve;
}

static int32_t draw_row(const DrawPlan *plan, int32_t r, Space *space, int32_t *outcome) {
    const float *row = adjusted(plan, r, space->row);
    Peak peak = find_peak(row, plan->vocab);
    *outcome = DRAWN;
    if (!isfinite(peak.best)) {
        *outcome = peak.best == -INFINITY ? DRAW_ALL_BANNED : DRAW_NOT_FINITE;
        return 0;
    }
    if (!(plan->temperature[r] > 0)) return peak.token;
    double point = point_of(plan->seeds[r], plan->positions[r]);
    Curve curve = curve_of(plan, r, row, peak.best);
    Restriction limits = {plan->top_k[r] > 0 ? plan->top_k[r] : 0, (double)plan->top_p[r],
                          plan->min_p[r] < 1 ? plan->min_p[r] : 1, 0, 0.0};
    limits.filtered = limits.top_k > 0 || limits.min_p > 0;
    if (!limits.filtered && !(limits.top_p < 1.0))
        return draw_any(row, plan->vocab, &curve, point, space);
    if (!limits.filtered) limits.total = sum_chances(row, plan->vocab, &curve, space->sums);
    return draw_limited(row, plan->vocab, &curve, &limits, point, space);
}

static void run_draw(const DrawPlan *plan, Worker *worker) {
    Space space = space_of(worker, plan->vocab);
    int32_t first, last;
    while (pool_take(worker, plan->rows, 1, &first, &last))
        plan->tokens[first] = draw_row(plan, first, &space, &plan->outcomes[first]);
}

/* The log probabilities of a row as they are reported. */
static void log_chances(const float *row, int32_t vocab, Space *space) {
    float best = find_peak(row, vocab).best;
    if (!isfinite(best)) {
        for (int32_t i = 0; i < vocab; i++) space->row[i] = NO_CHANCE;
        return;
    }
    Curve curve = {best, 1.0f, -FLT_MAX};
    double total = sum_chances(row, vocab, &curve, space->sums);
    vf whole = vf_set((float)((double)best + log(total)));
    for (int32_t i = 0; i < vocab; i += LANES) {
        vf own = vf_sub(vf_read(row + i, vocab - i), whole);
        vf_store(space->row + i, vf_pick(own, vf_set(-FLT_MAX), own, vf_set(NO_CHANCE)));
    }
}

static int32_t rank_of(const float *logprobs, int32_t vocab, float own) {
    int32_t above = 0;
    for (int32_t i = 0; i < vocab; i += LANES) {
        unsigned lanes = lanes_above(vf_read(logprobs + i, vocab - i), vf_set(own));
        above += __builtin_popcount(lanes);
    }
    return above + 1;
}

static void score_row(const ScorePlan *plan, int32_t s, Space *space) {
    const float *logprobs = space->row;
    log_chances(plan->logits + plan->sources[s] * plan->stride, plan->vocab, space);
    plan->logprobs[s] = logprobs[plan->tokens[s]];
    plan->ranks[s] = rank_of(logprobs, plan->vocab, plan->logprobs[s]);
    int64_t *ids = plan->ids + plan->indptr[s];
    if (plan->tops[s] > 0) find_best(logprobs, plan->vocab, -INFINITY, plan->tops[s], space);
    for (int32_t i = 0; i < plan->tops[s]; i++) ids[i] = (int64_t)(uint32_t)space->keys[i];
    for (int32_t i = plan->indptr[s]; i < plan->indptr[s + 1]; i++)
        plan->values[i] = logprobs[plan->ids[i]];
}

static void run_score(const ScorePlan *plan, Worker *worker) {
    Space space = space_of(worker, plan->vocab);
    int32_t first, last;
    while (pool_take(worker, plan->rows, 1, &first, &last)) score_row(plan, first, &space);
}
