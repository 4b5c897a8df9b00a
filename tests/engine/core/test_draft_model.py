"""Drafts of a second model: its pages hold what they must, whatever became of its drafts before."""

from __future__ import annotations

import random

import pytest

from engine.backend.backend import ModelShape, StepPlan
from engine.core.draft import Wish
from engine.core.draft_model import ModelDrafter
from engine.core.sequence import Sequence
from engine.core.speculation import Speculation
from tests.engine.core.drafters import seen_of
from tests.engine.core.sequences import VOCAB, Harness, PageReader, continuation, expected, request


class Imperfect(PageReader):
    """A draft model that agrees with the served one but at some places; it checks its own pages."""

    def __init__(self, wrong: float) -> None:
        super().__init__()
        self._wrong = wrong

    def wanted(self, plan: StepPlan, row: int, held: list[int]) -> int:
        token = super().wanted(plan, row, held)
        assert plan.temperature[row] == 0.0
        return 3 if random.Random(token).random() < self._wrong else token


def made(
    wrong: float = 0.0, num_pages: int = 256, max_rows: int = 512
) -> tuple[Imperfect, ModelDrafter]:
    backend = Imperfect(wrong)
    backend.allocate(num_pages)
    return backend, ModelDrafter(backend, num_pages, VOCAB, max_rows)


def served(drafter: ModelDrafter, num_pages: int = 64) -> Harness:
    return Harness(num_pages, speculation=Speculation([drafter], 8, 64))


@pytest.mark.parametrize("wrong", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_drafts_of_a_model_change_no_output(seed: int, wrong: float) -> None:
    draw = random.Random(seed)
    asked = [
        request([draw.randrange(2, 900) for _ in range(draw.randrange(1, 60))], 40)
        for _ in range(10)
    ]
    backend, drafter = made(wrong)
    harness = served(drafter, num_pages=40)
    harness.run(asked)
    assert {one.key: harness.tokens[one.key] for one in asked} == {
        one.key: expected(one) for one in asked
    }
    stats = harness.loop.stats()
    assert stats.draft_steps >= stats.verification_drafts > 0
    assert (stats.accepted_drafts > 0) == (wrong < 1.0)
    if wrong == 0.0:
        assert stats.accepted_drafts == stats.verification_drafts
    assert backend.open == set() and drafter._shadows == {}
    assert drafter._pool.num_free == drafter._pool.num_usable


def test_nothing_of_a_right_draft_is_computed_twice() -> None:
    backend, drafter = made()
    harness = served(drafter)
    harness.run([request(list(range(2, 40)), 40)])
    computed = [position for plan in backend.plans for position in plan.positions.tolist()]
    assert len(computed) == len(set(computed))


@pytest.mark.parametrize("others", [(), (7, 8)], ids=str)
def test_after_a_wrong_draft_only_what_follows_it_is_computed_again(
    others: tuple[int, ...],
) -> None:
    """The `others` came without being drafted here."""
    backend, drafter = made()
    sequence = Sequence(request([5, 6, 7], 100))
    sequence.append(continuation([5, 6, 7], 0, 0))
    [drafts] = drafter.propose([Wish(sequence, 6)], 6)
    assert drafts == expected(sequence.request)[1:7]
    for token in (*drafts[:2], 900, *others):  # the third is wrong
        sequence.append(token)
    backend.plans.clear()
    [again] = drafter.propose([Wish(sequence, 2)], 6)
    assert len(again) == 2
    first, second = backend.plans
    assert first.positions.tolist() == list(range(6, 7 + len(others)))
    assert first.ids.tolist() == [900, *others]
    assert second.positions.tolist() == [7 + len(others)]


def test_a_long_prompt_is_caught_up_with_in_pieces_and_drafted_for_then() -> None:
    backend, drafter = made(max_rows=32)
    long, short = Sequence(request(list(range(2, 82)), 9)), Sequence(request([4, 5], 9))
    for sequence in (long, short):
        sequence.append(continuation(list(sequence.request.token_ids), 0, 0))
    wishes = [Wish(long, 2), Wish(short, 2)]
    drafts = [drafter.propose(wishes, 8) for _ in range(4)]
    assert [[len(ids) for ids in both] for both in drafts] == [[0, 0], [0, 0], [2, 2], [2, 2]]
    assert drafts[3] == [expected(one.request)[1:3] for one in (long, short)]
    assert max(len(plan.ids) for plan in backend.plans) <= 32


def test_without_pages_there_are_no_drafts_and_the_rest_goes_on() -> None:
    _, drafter = made(num_pages=4)  # 48 tokens
    asked = [request([place] * 10, 50) for place in (5, 6)]
    harness = served(drafter)
    harness.run(asked)
    assert harness.tokens == {one.key: expected(one) for one in asked}
    assert 0 < harness.loop.stats().verification_drafts < 60
    assert drafter._pool.num_free == drafter._pool.num_usable


def test_a_shorter_window_of_the_draft_model_ends_its_drafts() -> None:
    backend, drafter = made()
    backend.shape = ModelShape(VOCAB, 30, kv_bytes_per_token=0)
    asked = [request([5] * 10, 60)]
    harness = served(drafter)
    harness.run(asked)
    assert harness.tokens == {one.key: expected(one) for one in asked}
    assert harness.loop.stats().verification_drafts > 0
    assert max(int(plan.positions.max()) for plan in backend.plans) < 30


def test_tokens_that_only_one_of_the_models_has_are_not_drafted_from_nor_drafted() -> None:
    backend = Imperfect(0.0)
    backend.allocate(64)
    drafter = ModelDrafter(backend, 64, 400, 64)
    asked = [request([5, 6], 40), request([5, 999], 40)]
    harness = served(drafter)
    harness.run(asked)
    assert harness.tokens == {one.key: expected(one) for one in asked}
    assert all(plan.ids.max() < 400 for plan in backend.plans)
    assert asked[1].key not in harness.drafts


def test_a_step_of_the_draft_model_serves_all_sequences() -> None:
    backend, drafter = made()
    asked = [request([place + 2, 3], 30) for place in range(6)]
    harness = served(drafter)
    harness.run(asked)
    plain = Harness()
    plain.run(asked)
    assert seen_of(harness, asked) == seen_of(plain, asked)
    assert max(len(plan.sequence_keys) for plan in backend.plans) == 6
