"""One sequence: its counts, its bans, its seen tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engine.core.prefix import page_hash, root_hash
from engine.core.sequence import SeenTokens, Sequence
from engine.core.thinking import Cut
from engine.messages import ThinkingLimits
from tests.engine.core.sequences import END, request


def test_counts_follow_prompt_and_output() -> None:
    one = Sequence(request([5, 6, 7]))
    assert (one.remaining, one.output_len, one.in_prefill) == (3, 0, True)
    one.computed = 2
    assert one.in_prefill  # the last prompt token gives the first output token
    one.computed = 3
    one.append(8)
    assert (one.remaining, one.output_len, one.in_prefill) == (1, 1, False)
    one.restart()
    assert (one.remaining, one.output_len, one.in_prefill) == (4, 1, True)


def test_hashes_are_chained_from_the_scope() -> None:
    ids = list(range(40))
    one = Sequence(request(ids, tenant="t"))
    first = page_hash(root_hash("t"), ids[:16])
    assert one.hashes(2) == [first, page_hash(first, ids[16:32])]
    assert one.hashes(1) == [first]
    assert one.will_publish(0, first) and not one.will_publish(1, first)
    assert not one.will_publish(2, b"")  # the third page is not full


@pytest.mark.parametrize(
    ("ignore_eos", "banned", "ends"), [(False, {END, 77}, {END}), (True, {77}, set())]
)
def test_ends_are_banned_while_the_output_is_short(
    ignore_eos: bool, banned: set[int], ends: set[int]
) -> None:
    one = Sequence(
        request([4], stop_ids=(77,), min_tokens=1, ignore_eos=ignore_eos, logit_bias={77: 5.0})
    )
    assert one.ends == ends
    ids, values = one.bias()
    assert set(ids[np.isneginf(values)].tolist()) == banned
    one.append(9)
    assert dict(zip(*(column.tolist() for column in one.bias()), strict=True)) == {77: 5.0}


@pytest.mark.parametrize("name", ["repetition_penalty", "presence_penalty", "frequency_penalty"])
def test_tokens_are_only_counted_for_a_penalty(name: str) -> None:
    assert Sequence(request([4])).seen is None
    assert Sequence(request([4], **{name: 0.5})).seen is not None  # type: ignore[arg-type]


def test_seen_tokens_grow_beyond_their_first_room() -> None:
    seen = SeenTokens((5, 3, 5))
    for token in range(200):
        seen.add(token)
        seen.add(token)
    ids, counts = seen.columns()
    assert sorted(ids.tolist()) == list(range(200))
    assert set(counts.tolist()) == {2}
    assert ids.tolist()[:2] == [3, 5]


def bias_after(output: list[int], **options: Any) -> dict[int, float]:
    """What is added to each logit after an output; values of one token add up."""
    one = Sequence(request([4, 5], **options))
    for token in output:
        one.append(token)
    added: dict[int, float] = {}
    ids, values = one.bias()
    for token, value in zip(ids.tolist(), values.tolist(), strict=True):
        added[token] = added.get(token, 0.0) + value
    return added


@pytest.mark.parametrize(
    ("output", "banned"),
    [
        ([], {30}),
        ([10], {30, 11}),
        ([10, 11], {30, 12}),
        ([11], {30}),
        ([4], {30}),
        ([10, 11, 10], {30, 11}),
        ([9, 10, 11], {30, 12}),
    ],
    ids=str,
)
def test_the_last_token_of_a_bad_word_is_banned_once_the_others_have_come(
    output: list[int], banned: set[int]
) -> None:
    words = ((10, 11), (10, 11, 12), (30,), (5, 60))  # 5 is in the prompt: not generated
    added = bias_after(output, bad_words=words)
    assert added == dict.fromkeys(banned, float("-inf"))


def test_a_bad_word_after_words_of_its_prompt_counts_output_alone() -> None:
    assert bias_after([5], bad_words=((5, 60),)) == {60: float("-inf")}


def test_repeat_penalties_count_prompt_and_output_and_add_to_a_bias() -> None:
    options: dict[str, Any] = {"dry_multiplier": 2.0, "dry_base": 3.0, "dry_allowed_length": 2}
    assert bias_after([4, 5, 9, 4, 5], **options) == {4: -2.0, 9: -2.0}
    breaking = options | {"dry_breakers": frozenset({5})}
    assert bias_after([4, 5, 9, 4, 5], **breaking) == {}
    both = options | {"lz_penalty": 1.0, "logit_bias": {9: 0.5, 77: 1.0}}
    added = bias_after([4, 5, 9, 4, 5], **both)
    assert added == {4: -4.0, 9: -3.5, 77: 1.0}


@pytest.mark.parametrize(
    ("options", "output", "banned"),
    [
        ({}, [], False),
        ({"logit_bias": {9: -math.inf, 8: 1.0}}, [], True),
        ({"logit_bias": {9: -100.0, 8: -math.inf}}, [], False),
        ({"bad_words": ((7, 9),)}, [8], False),
        ({"bad_words": ((7, 9),)}, [7], True),
        ({"min_tokens": 2, "stop_ids": (9,)}, [8], True),
        ({"min_tokens": 2, "stop_ids": (9,)}, [8, 8], False),
    ],
    ids=str,
)
def test_a_close_is_not_due_while_the_request_bans_it(
    options: dict[str, Any], output: list[int], banned: bool
) -> None:
    limits = ThinkingLimits(9, (3,), (9,), starts_open=True, budget=0)
    one = Sequence(request([4], thinking=limits, **options))
    for token in output:
        one.append(token)
    assert one.bans(9) == banned
    assert one.close_due == (None if banned else 9)


def test_only_a_close_that_is_due_is_a_cut() -> None:
    limits = ThinkingLimits(9, (3,), (9, 10), starts_open=True, budget=1)
    one = Sequence(request([4], thinking=limits))
    assert (one.close_due, one.cut_by(9)) == (None, None)
    one.append(5)
    assert (one.close_due, one.cut_by(9), one.cut_by(10)) == (9, Cut.BUDGET, None)
    one.append(9)
    assert (one.close_due, one.cut_by(9)) == (None, None)
    plain = Sequence(request([4]))
    assert (plain.close_due, plain.cut_by(9)) == (None, None)


def test_a_bias_is_the_same_columns_until_something_counts_tokens() -> None:
    one = Sequence(request([4], logit_bias={7: 1.0}))
    assert one.bias() is one.bias()


@pytest.mark.parametrize(
    ("computed", "scored", "count", "expected"),
    [
        (0, 1, 2, (1, 3)), (2, 3, 2, (3, 5)), (4, 5, 1, (5, 5)), (0, 3, 2, (3, 3)),
        (0, 3, 5, (3, 5)),
    ],
)  # fmt: skip
def test_prompt_tokens_are_scored_once_by_the_row_before_them(
    computed: int, scored: int, count: int, expected: tuple[int, int]
) -> None:
    one = Sequence(request([4, 5, 6, 7, 8], prompt_top=1))
    one.computed, one.scored = computed, scored
    assert one.to_score(count) == expected
    assert not one.reads_cache
    plain = Sequence(request([4, 5, 6, 7, 8]))
    assert plain.to_score(5) == (0, 0) and plain.reads_cache


def test_a_few_forced_tokens_are_no_prefill() -> None:
    one = Sequence(request([4, 5]))
    one.computed = 2
    for token in range(64):
        one.append(token)
    assert (one.remaining, one.in_prefill) == (64, False)
    one.append(1)
    assert one.in_prefill
