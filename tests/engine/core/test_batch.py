"""The flat plan of a step, column by column."""

from __future__ import annotations

import numpy as np

from engine.backend.backend import StepPlan
from engine.core.batch import Masks, PlanBuilder
from engine.core.masks import NO_MASKS
from engine.core.scheduler import Slice
from engine.core.sequence import Sequence
from tests.engine.core.sequences import END, request


def sequence(
    prompt: list[int], pages: list[int], computed: int = 0, **sampling: object
) -> Sequence:
    one = Sequence(request(prompt, **sampling))  # type: ignore[arg-type]
    one.pages = pages
    one.computed = computed
    return one


def test_a_mixed_step_is_laid_out_in_the_order_of_its_slices() -> None:
    decode = sequence([7] * 17, [4, 2], 16, temperature=0.5, top_k=3, min_tokens=1)
    chunk = sequence(list(range(40)), [5, 6, 9], 10)
    last = sequence([8, 9], [3], 0, presence_penalty=1.0)
    slices = [Slice(decode, 1, True), Slice(chunk, 8, False), Slice(last, 2, True)]
    plan = PlanBuilder().build(slices, NO_MASKS)
    assert plan.ids.tolist() == [7, *range(10, 18), 8, 9]
    assert plan.positions.tolist() == [16, *range(10, 18), 0, 1]
    assert plan.slots.tolist() == [
        2 * 16, *(5 * 16 + place for place in range(10, 16)), 6 * 16, 6 * 16 + 1, 3 * 16, 3 * 16 + 1
    ]  # fmt: skip
    assert plan.qo_indptr.tolist() == [0, 1, 9, 11]
    assert plan.kv_indices.tolist() == [4, 2, 5, 6, 3]  # page 9 lies behind the chunk
    assert plan.kv_indptr.tolist() == [0, 2, 4, 5]
    assert plan.sequence_keys.tolist() == [decode.key, chunk.key, last.key]
    assert plan.logit_rows.tolist() == [0, 10]
    assert plan.logit_sequences.tolist() == [0, 2]
    assert plan.temperature.tolist() == [0.5, 1.0] and plan.top_k.tolist() == [3, 0]
    assert plan.bias_indptr.tolist() == [0, 1, 1] and plan.bias_ids.tolist() == [END]
    assert plan.seen_indptr.tolist() == [0, 0, 2] and plan.seen_ids.tolist() == [8, 9]
    assert plan.seen_counts.tolist() == [0, 0]


def test_a_step_of_prefill_alone_samples_nothing() -> None:
    plan = PlanBuilder().build([Slice(sequence([1, 2, 3], [1]), 2, False)], NO_MASKS)
    assert len(plan.logit_rows) == len(plan.temperature) == len(plan.seeds) == 0
    assert plan.bias_indptr.tolist() == plan.seen_indptr.tolist() == [0]


def test_masks_go_with_the_rows_of_their_sequences() -> None:
    first, second, third = (sequence([place], [place]) for place in (1, 2, 3))
    bits = np.array([[1], [2]], np.uint32)
    slices = [Slice(one, 1, True) for one in (first, second, third)]
    plan = PlanBuilder().build(slices, Masks({third.key: 0, first.key: 1}, bits))
    assert plan.mask_rows.tolist() == [1, -1, 0]
    assert plan.masks is bits


def test_score_rows_are_those_before_the_tokens_they_score() -> None:
    plain = sequence([7, 7], [1], 0)
    chunk = sequence(list(range(10, 20)), [2], 4, prompt_top=3)
    chunk.scored = 5
    end = sequence([30, 31, 32], [3], 0, prompt_top=1)
    slices = [Slice(plain, 2, True), Slice(chunk, 4, False), Slice(end, 3, True)]
    plan = PlanBuilder().build(slices, NO_MASKS)
    assert plan.score_rows.tolist() == [2, 3, 4, 5, 6, 7]
    assert plan.score_targets.tolist() == [15, 16, 17, 18, 31, 32]
    assert plan.score_top.tolist() == [3, 3, 3, 3, 1, 1]
    assert plan.ids[plan.score_rows].tolist() == [14, 15, 16, 17, 30, 31]


def test_draws_are_keyed_by_seed_and_output_length() -> None:
    one = sequence([1], [1])
    object.__setattr__(one.request, "seed", 2**64 - 1)
    one.append(5)
    one.computed = 1
    plan = PlanBuilder().build([Slice(one, 1, True)], NO_MASKS)
    assert (plan.seeds.tolist(), plan.positions_drawn.tolist()) == ([2**64 - 1], [1])


def test_columns_have_the_types_of_the_interface() -> None:
    plan = PlanBuilder().build([Slice(sequence([1], [1], presence_penalty=0.5), 1, True)], NO_MASKS)
    expected = {
        np.int32: ["qo_indptr", "kv_indptr", "kv_indices", "logit_sequences", "top_k",
                   "bias_indptr", "seen_indptr", "seen_counts", "mask_rows", "logprob_top",
                   "logprob_indptr", "score_top"],
        np.uint32: ["masks"],
        np.uint64: ["seeds"],
        np.float32: ["temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty",
                     "frequency_penalty", "bias_values", "top_n_sigma"],
        np.int64: ["ids", "positions", "slots", "sequence_keys", "logit_rows", "positions_drawn",
                   "bias_ids", "seen_ids", "logprob_ids", "score_rows", "score_targets"],
    }  # fmt: skip
    found = {name: getattr(plan, name).dtype.type for name in StepPlan.__dataclass_fields__}
    assert found == {name: kind for kind, names in expected.items() for name in names}
