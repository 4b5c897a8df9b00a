/* Checks of what draws and scores index with, before any thread starts. */
#include "draw.h"

/* Whether a CSR list of `rows` slices rises from 0 to `entries`. */
static int rises(const int32_t *indptr, int32_t rows, int64_t entries) {
    if (indptr[0] != 0 || indptr[rows] != entries) return 0;
    for (int32_t row = 0; row < rows; row++)
        if (indptr[row + 1] < indptr[row]) return 0;
    return 1;
}

static int all_below(const int64_t *ids, int64_t count, int64_t end) {
    int inside = 1;
    for (int64_t i = 0; i < count; i++) inside &= (uint64_t)ids[i] < (uint64_t)end;
    return inside;
}

PlanFault draw_check(const DrawPlan *plan) {
    if (plan->rows < 0 || plan->vocab < 1 || plan->masks < 0 || plan->words < 0)
        return PLAN_BAD_SHAPE;
    if (!rises(plan->bias_indptr, plan->rows, plan->biases)) return PLAN_BAD_LIST;
    if (!rises(plan->seen_indptr, plan->rows, plan->seen)) return PLAN_BAD_LIST;
    if (!all_below(plan->bias_ids, plan->biases, plan->vocab)) return PLAN_BAD_TOKEN;
    if (!all_below(plan->seen_ids, plan->seen, plan->vocab)) return PLAN_BAD_TOKEN;
    for (int32_t row = 0; row < plan->rows; row++)
        if (plan->mask_rows[row] < -1 || plan->mask_rows[row] >= plan->masks) return PLAN_BAD_MASK;
    return PLAN_GOOD;
}

PlanFault score_check(const ScorePlan *plan) {
    if (plan->rows < 0 || plan->vocab < 1) return PLAN_BAD_SHAPE;
    if (!all_below(plan->sources, plan->rows, plan->logit_rows)) return PLAN_BAD_SHAPE;
    if (!rises(plan->indptr, plan->rows, plan->entries)) return PLAN_BAD_LIST;
    if (!all_below(plan->tokens, plan->rows, plan->vocab)) return PLAN_BAD_TOKEN;
    for (int32_t s = 0; s < plan->rows; s++) {
        int32_t first = plan->indptr[s], count = plan->indptr[s + 1] - first;
        if (plan->tops[s] == -1) {
            if (!all_below(plan->ids + first, count, plan->vocab)) return PLAN_BAD_TOKEN;
        } else if (plan->tops[s] != count || count > plan->vocab) return PLAN_BAD_LIST;
    }
    return PLAN_GOOD;
}
