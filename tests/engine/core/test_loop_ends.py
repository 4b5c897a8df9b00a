"""What ends a sequence besides its tokens' limit: deadlines and loops; and who comes first."""

from __future__ import annotations

from typing import Any

import pytest

from engine.events import FinishCause
from engine.types import RepetitionDetection
from tests.engine.core.sequences import Harness, continuation, expected, regex, request

LONG = regex("[ab]{400}")


class Clock:
    """The monotonic clock of the loop, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("engine.core.loop.time.monotonic", lambda: self.now)


def test_a_running_sequence_ends_at_its_deadline_with_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, harness = Clock(monkeypatch), Harness()
    asked, other = request([5, 6], 50, deadline=10.0), request([6, 7], 50)

    def tick() -> None:
        clock.now += 1.0

    harness.run([asked, other], tick)
    assert harness.tokens[asked.key] == expected(asked)[:9]
    assert harness.tokens[other.key] == expected(other)
    assert harness.causes == {
        asked.key: FinishCause.DEADLINE, other.key: FinishCause.LIMIT,
    }  # fmt: skip
    assert harness.loop.stats().deadline_cuts == 1


def test_a_waiting_sequence_ends_at_its_deadline_without_a_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, harness = Clock(monkeypatch), Harness(max_sequences=1)
    first, waiting = request([5], 20), request([6], 20, deadline=3.0)

    def tick() -> None:
        clock.now += 1.0

    harness.run([first, waiting], tick)
    assert harness.causes[waiting.key] is FinishCause.DEADLINE
    assert waiting.key not in harness.tokens and waiting.key not in harness.cached
    assert harness.tokens[first.key] == expected(first)


def test_a_deadline_that_has_passed_lets_no_token_out(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    harness = Harness()
    asked = request([5], deadline=0.0)
    harness.run([asked])
    assert harness.causes == {asked.key: FinishCause.DEADLINE}
    assert harness.backend.plans == []


@pytest.mark.parametrize("key", ["deadline", "cancel"])
def test_a_sequence_whose_grammar_compiles_can_end_first(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    harness = Harness()
    asked = request([5], grammar=LONG, deadline=0.0 if key == "deadline" else None)
    harness.loop.handle(asked)
    if key == "cancel":
        harness.loop.handle(asked.key)
    while harness.is_busy:
        assert harness.woken.wait(10)
        harness.woken.clear()
        harness.loop.turn()
    cause = FinishCause.DEADLINE if key == "deadline" else FinishCause.CANCELLED
    assert harness.causes == {asked.key: cause}
    harness.check_empty()
    later = request([5], 3, grammar=LONG)
    harness.run([later])
    assert len(harness.tokens[later.key]) == 3


def test_a_deadline_far_away_changes_nothing() -> None:
    harness = Harness()
    asked = request([5], 4, deadline=float("inf"))
    harness.run([asked])
    assert harness.tokens[asked.key] == expected(asked)
    assert harness.loop.stats().deadline_cuts == 0


def looping(**fields: Any) -> tuple[Harness, int]:
    """A harness whose sequence can only say two tokens, in turn; its key."""
    harness = Harness()
    asked = request([5], 60, grammar=regex("(ab){100}"), **fields)
    harness.run([asked])
    return harness, asked.key


def test_a_loop_ends_where_it_is_complete_and_is_counted() -> None:
    harness, key = looping(repetition=RepetitionDetection(4, 1, 5))
    assert harness.causes == {key: FinishCause.REPETITION}
    assert len(harness.tokens[key]) == 10
    assert harness.loop.stats().repetition_cuts == 1


def test_a_shorter_pattern_than_asked_for_is_no_loop() -> None:
    harness, key = looping(repetition=RepetitionDetection(8, 5, 4))
    assert len(harness.tokens[key]) == 24  # six tokens, three times "ab", four times
    harness, key = looping()
    assert harness.causes == {key: FinishCause.LIMIT}
    assert harness.loop.stats().repetition_cuts == 0


def test_a_token_that_ends_is_the_cause_before_a_loop_or_a_limit() -> None:
    natural = expected(request([5], 4))
    harness = Harness()
    asked = request([5], 4, stop_ids=(natural[3],), repetition=RepetitionDetection(1, 1, 2))
    harness.run([asked])
    assert harness.causes[asked.key] is FinishCause.STOP_TOKEN


def test_a_lower_priority_value_starts_first_and_equals_in_order_of_arrival() -> None:
    harness = Harness(max_sequences=1)
    order = [request([place + 2], 2, priority=value) for place, value in enumerate((0, 5, -3, 0))]
    harness.run(order)
    first, late, urgent, second = (asked.key for asked in order)
    assert harness.ended == [urgent, first, second, late]
    assert all(harness.tokens[asked.key] == expected(asked) for asked in order)


def test_the_last_in_order_gives_its_pages_back_first() -> None:
    harness = Harness(num_pages=8)  # 112 tokens
    early = request(list(range(100, 132)), 60)
    urgent = request(list(range(2, 34)), 60, priority=-1)
    preempted: set[int] = set()

    def watch() -> None:
        preempted.update(
            s.key for s in harness.loop.scheduler.waiting if s.started and s.computed == 0
        )

    harness.run([early, urgent], watch)
    assert preempted == {early.key}
    assert harness.ended == [urgent.key, early.key]
    for asked in (urgent, early):
        assert harness.tokens[asked.key] == expected(asked)


def test_positions_and_seeds_alone_key_the_draw() -> None:
    assert continuation([1, 2], 3, 4) != continuation([1, 2], 4, 4)
    assert continuation([1, 2], 3, 4) != continuation([1, 2], 3, 5)
