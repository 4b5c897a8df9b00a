"""Repeat penalties and loops against the formulas of `Sampling` and `RepetitionDetection`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.repeats import (
    LZ_WINDOW,
    LoopDetector,
    dry_penalties,
    loop_detector,
    lz_penalties,
    repeats,
)
from engine.types import RepetitionDetection, Sampling

IDS = st.lists(st.integers(0, 3), max_size=40)


def longest_repeat(ids: list[int], token: int) -> int:
    """How many tokens `token` would repeat: the naive search."""
    best = 0
    for place in range(1, len(ids)):
        if ids[place] != token:
            continue
        length = 0
        while length < place and ids[place - 1 - length] == ids[len(ids) - 1 - length]:
            length += 1
        best = max(best, length)
    return best


def penalties(found: tuple[np.ndarray, np.ndarray]) -> dict[int, float]:
    ids, values = found
    assert len(set(ids.tolist())) == len(ids)
    assert ids.dtype == np.int64 and values.dtype == np.float32
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


def naive_dry(ids: list[int], sampling: Sampling) -> dict[int, float]:
    found = {}
    reach = 0
    while reach < len(ids) and ids[-1 - reach] not in sampling.dry_breakers:
        reach += 1
    for token in set(ids) - sampling.dry_breakers:
        length = min(longest_repeat(ids, token), reach)
        if length >= sampling.dry_allowed_length:
            growth = sampling.dry_base ** (length - sampling.dry_allowed_length)
            found[token] = -sampling.dry_multiplier * growth
    return found


@settings(max_examples=400, deadline=None)
@given(
    ids=IDS,
    multiplier=st.floats(0.1, 5),
    base=st.floats(1, 3),
    allowed=st.integers(1, 5),
    breakers=st.frozensets(st.integers(0, 4), max_size=2),
)
def test_dry_is_its_formula(
    ids: list[int], multiplier: float, base: float, allowed: int, breakers: frozenset[int]
) -> None:
    sampling = Sampling(
        dry_multiplier=multiplier, dry_base=base, dry_allowed_length=allowed, dry_breakers=breakers
    )
    found = penalties(dry_penalties(np.array(ids, np.int64), sampling))
    assert found == pytest.approx(naive_dry(ids, sampling), rel=1e-5)


@settings(max_examples=400, deadline=None)
@given(ids=IDS, strength=st.floats(0.1, 5))
def test_lz_is_its_formula(ids: list[int], strength: float) -> None:
    found = penalties(lz_penalties(np.array(ids, np.int64), Sampling(lz_penalty=strength)))
    lengths = {token: longest_repeat(ids, token) + 1 for token in set(ids)}
    expected = {
        token: -strength * math.log2(1 + length) for token, length in lengths.items() if length >= 2
    }
    assert found == pytest.approx(expected, rel=1e-5)


@settings(max_examples=200, deadline=None)
@given(ids=IDS, longest=st.integers(0, 6))
def test_repeats_are_the_longest_up_to_a_cut(ids: list[int], longest: int) -> None:
    tokens, lengths = repeats(np.array(ids, np.int64), longest)
    expected = {token: min(longest_repeat(ids, token), longest) for token in set(ids)}
    assert dict(zip(tokens.tolist(), lengths.tolist(), strict=True)) == {
        token: length for token, length in expected.items() if length
    }


def test_lz_forgets_what_lies_behind_its_window() -> None:
    before = [1, 2, *range(10, 10 + LZ_WINDOW - 2), 1]
    found = penalties(lz_penalties(np.array(before, np.int64), Sampling(lz_penalty=1.0)))
    assert found == {}
    nearer = [1, 2, *range(10, 10 + LZ_WINDOW - 3), 1]
    found = penalties(lz_penalties(np.array(nearer, np.int64), Sampling(lz_penalty=1.0)))
    assert found == {2: pytest.approx(-math.log2(3))}


def test_a_long_dry_repeat_costs_much_but_stays_finite() -> None:
    ids = np.array([*range(900), *range(899)], np.int64)
    _, values = dry_penalties(ids, Sampling(dry_multiplier=1.0, dry_base=10.0))
    assert np.isfinite(values).all() and values.min() <= -1e29


def is_loop(output: list[int], detection: RepetitionDetection) -> bool:
    for size in range(detection.min_pattern_size, detection.max_pattern_size + 1):
        wanted = size * detection.min_count
        tail = output[-wanted:]
        if len(output) >= wanted and tail == tail[:size] * detection.min_count:
            return True
    return False


@settings(max_examples=400, deadline=None)
@given(
    output=st.lists(st.integers(0, 2), max_size=60),
    largest=st.integers(1, 8),
    smallest=st.integers(1, 8),
    count=st.integers(2, 4),
)
def test_a_loop_is_found_at_the_token_that_completes_it(
    output: list[int], largest: int, smallest: int, count: int
) -> None:
    detection = RepetitionDetection(max(largest, smallest), min(largest, smallest), count)
    detector = LoopDetector(detection)
    for place, token in enumerate(output, 1):
        assert detector.add(token) == is_loop(output[:place], detection)


@settings(max_examples=100, deadline=None)
@given(before=st.lists(st.integers(0, 2), max_size=20), after=st.lists(st.integers(0, 2)))
def test_a_reset_detector_is_a_new_one(before: list[int], after: list[int]) -> None:
    detection = RepetitionDetection(4, 1, 2)
    reset, new = LoopDetector(detection), LoopDetector(detection)
    for token in before:
        reset.add(token)
    reset.reset()
    assert [reset.add(token) for token in after] == [new.add(token) for token in after]


def test_a_detection_of_no_size_is_off() -> None:
    assert loop_detector(None) is None
    assert loop_detector(RepetitionDetection(0)) is None
    assert loop_detector(RepetitionDetection(1)) is not None
