"""The window of first responses."""

from __future__ import annotations

import pytest

from engine.counters import CAPACITY, WINDOW_SECONDS, FirstResponse


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("engine.counters.time.monotonic", lambda: now[0])
    return now


def test_there_is_no_median_without_samples(clock: list[float]) -> None:
    assert (FirstResponse().recent(), FirstResponse().median()) == ([], None)


def test_samples_leave_with_the_window(clock: list[float]) -> None:
    first = FirstResponse()
    for seconds in (5.0, 1.0, 3.0):
        first.record(seconds)
        clock[0] += 10
    assert (first.recent(), first.median()) == ([5.0, 1.0, 3.0], 3.0)
    clock[0] = 1010.0 + WINDOW_SECONDS
    assert (first.recent(), first.median()) == ([1.0, 3.0], 2.0)
    clock[0] += 100
    assert first.median() is None


def test_the_oldest_samples_go_when_there_are_too_many(clock: list[float]) -> None:
    first = FirstResponse()
    for number in range(CAPACITY + 5):
        first.record(float(number))
    assert len(first.recent()) == CAPACITY
    assert first.recent()[0] == 5.0
