/* What draws and scores read and write; engine/backend/native/drawing.py fills these in.
 *
 * The columns are those of engine/backend/backend.py's StepPlan.
 */
#ifndef HELIOGRAPH_DRAW_H
#define HELIOGRAPH_DRAW_H

#include <stddef.h>
#include <stdint.h>

/* Why a row has no token. */
typedef enum { DRAWN = 0, DRAW_ALL_BANNED = 1, DRAW_NOT_FINITE = 2 } Outcome;

/* Why a plan is not run. */
typedef enum {
    PLAN_GOOD = 0,
    PLAN_BAD_SHAPE,   /* no vocabulary, a negative count, a row that is not there */
    PLAN_BAD_LIST,    /* a CSR list that falls, or ends elsewhere than its entries */
    PLAN_BAD_TOKEN,   /* a token outside the vocabulary */
    PLAN_BAD_MASK,    /* a mask that is not there */
    PLAN_NO_MEMORY
} PlanFault;

/* A token for each of R rows of logits. */
typedef struct {
    int32_t rows;
    int32_t vocab;
    int64_t stride;      /* floats from one row of logits to the next */
    const float *logits; /* [rows, vocab]; never written */
    const float *temperature;
    const float *top_p;
    const int32_t *top_k;
    const float *min_p;
    const float *top_n_sigma;
    const float *repetition_penalty;
    const float *presence_penalty;
    const float *frequency_penalty;
    const uint64_t *seeds;
    const int64_t *positions;
    int64_t biases; /* entries of the lists of biases */
    const int32_t *bias_indptr;
    const int64_t *bias_ids;
    const float *bias_values;
    int64_t seen; /* entries of the lists of tokens seen */
    const int32_t *seen_indptr;
    const int64_t *seen_ids;
    const int32_t *seen_counts;
    int32_t masks; /* rows of mask_bits */
    int32_t words; /* of a mask */
    const int32_t *mask_rows;
    const uint32_t *mask_bits; /* [masks, words] */
    int64_t *tokens;           /* [rows] out */
    int32_t *outcomes;         /* [rows] out */
} DrawPlan;

/* Log probabilities of some rows of logits. Entries indptr[s] to indptr[s + 1] of ids and values
 * are the alternatives of score s: with tops[s] = -1 its ids are given, else found. */
typedef struct {
    int32_t rows; /* scores */
    int32_t vocab;
    int64_t stride;
    int64_t logit_rows;
    const float *logits;    /* [logit_rows, vocab]; never written */
    const int64_t *sources; /* [rows] row of logits */
    const int64_t *tokens;  /* [rows] */
    const int32_t *tops;    /* [rows] */
    const int32_t *indptr;  /* [rows + 1] */
    int64_t entries;        /* of ids and values */
    int64_t *ids;           /* in or out */
    float *values;          /* out */
    float *logprobs;        /* [rows] out, of the tokens */
    int32_t *ranks;         /* [rows] out: 1 + the number of likelier tokens */
} ScorePlan;

enum { DRAW_BLOCK = 512 }; /* tokens whose chances are summed together */

/* Rows of scratch are whole cache lines longer than the vocabulary: vectors may overrun. */
static inline size_t draw_columns(int32_t vocab) { return ((size_t)vocab + 47) / 16 * 16; }

/* Floats of scratch that a thread needs: a row of logits, one of chances, two of 64-bit keys, and
 * the blocks' sums in fp64. */
static inline size_t draw_scratch(int32_t vocab) {
    return 6 * draw_columns(vocab) + 2 * (draw_columns(vocab) / DRAW_BLOCK + 1);
}

/* PLAN_GOOD, or the fault for which the plan must not be run. */
PlanFault draw_check(const DrawPlan *plan);
PlanFault score_check(const ScorePlan *plan);

#endif
