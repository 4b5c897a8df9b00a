"""Constraints of a step: masks of those rows that have one, and what compilation leaves behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from engine.core.masks import NO_MASKS, Constraints
from engine.errors import GenerationFailed
from engine.messages import TokenRequest
from tests.engine.core.sequences import END, PATIENCE, VOCAB, byte_ids, regex, request, vocabulary


@pytest.fixture
def constraints() -> Iterator[Constraints]:
    made = Constraints(vocabulary())
    yield made
    made.stop()


def opened(constraints: Constraints, asked: TokenRequest) -> list[tuple[int, str | None]]:
    """Open a request and wait until it is ready."""
    woken = threading.Event()
    if constraints.open(asked, woken.set):
        return []
    assert woken.wait(PATIENCE)
    return constraints.ready()


def allowed(constraints: Constraints, key: int, *others: int, close: int | None = None) -> set[int]:
    masks = constraints.masks([key, *others], {} if close is None else {key: close})
    words = masks.bits[masks.rows[key]].astype("<u4")
    bits = np.unpackbits(words.view(np.uint8), count=VOCAB, bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def test_a_request_without_constraints_is_ready_at_once_and_has_no_mask(
    constraints: Constraints,
) -> None:
    asked = request([4])
    assert constraints.open(asked, pytest.fail)
    assert constraints.masks([asked.key], {}) is NO_MASKS
    assert (constraints.take(asked.key, 5), constraints.forced(asked.key)) == (False, [])


def test_a_grammar_allows_what_may_come_and_nothing_else(constraints: Constraints) -> None:
    asked = request([4], grammar=regex("ab|c"))
    assert opened(constraints, asked) == [(asked.key, None)]
    a, b, c = byte_ids("abc")
    assert allowed(constraints, asked.key) == {a, c}
    assert not constraints.take(asked.key, a)
    assert allowed(constraints, asked.key) == {b}
    assert constraints.take(asked.key, b)  # nothing can follow


def test_only_constrained_rows_have_a_mask(constraints: Constraints) -> None:
    free, listed, bound = (
        request([4]),
        request([4], allowed_token_ids=(7, 9)),
        request([4], grammar=regex("[ab]+")),
    )
    for asked in (free, listed, bound):
        opened(constraints, asked)
    masks = constraints.masks([free.key, listed.key, bound.key], {})
    assert set(masks.rows) == {listed.key, bound.key}
    assert masks.bits.shape[0] == 2
    assert allowed(constraints, listed.key, bound.key, free.key) == {7, 9}
    assert allowed(constraints, bound.key, listed.key) == set(byte_ids("ab"))
    assert set(constraints.masks([bound.key], {}).rows) == {bound.key}  # the others draw nothing


def test_allowed_tokens_and_a_grammar_both_hold(constraints: Constraints) -> None:
    a, b = byte_ids("ab")
    asked = request([4], grammar=regex("[ab]+"), allowed_token_ids=(b, 500, END))
    opened(constraints, asked)
    assert allowed(constraints, asked.key) == {b}
    constraints.take(asked.key, b)
    assert allowed(constraints, asked.key) == {b, END}
    assert a not in allowed(constraints, asked.key)


def test_many_constrained_rows_have_masks_of_their_own(constraints: Constraints) -> None:
    asked = [request([4], allowed_token_ids=(place,)) for place in range(40)]
    for one in asked:
        constraints.open(one, pytest.fail)
    masks = constraints.masks([one.key for one in asked], {})
    assert masks.bits.shape[0] == len(masks.rows) == 40
    keys = [one.key for one in asked]
    for place, key in enumerate(keys):
        assert allowed(constraints, key, *(other for other in keys if other != key)) == {place}


def test_a_close_is_all_that_may_come_where_nothing_is_against_it(constraints: Constraints) -> None:
    a, b, x = byte_ids("abx")
    free, listed, bound, both = (
        request([4]),
        request([4], allowed_token_ids=(7, 63)),
        request([4], grammar=regex("[ab]+x")),
        request([4], grammar=regex("[ab]+x?"), allowed_token_ids=(a, b)),
    )
    for asked in (free, listed, bound, both):
        opened(constraints, asked)
    keys = [bound.key, both.key, listed.key]
    for close in (31, 32, 999):  # the first and the last bit of a word
        assert allowed(constraints, free.key, *keys, close=close) == {close}
    assert allowed(constraints, listed.key, close=63) == {63}
    assert allowed(constraints, listed.key, close=64) == {7, 63}
    assert allowed(constraints, bound.key, close=x) == {a, b}  # the grammar wants a letter first
    for key in (bound.key, both.key):
        constraints.take(key, a)
    assert allowed(constraints, bound.key, both.key, close=x) == {x}
    assert allowed(constraints, both.key, bound.key, close=x) == {a, b}
    assert allowed(constraints, bound.key, free.key) == {a, b, x}
    assert set(constraints.masks([free.key, bound.key], {}).rows) == {bound.key}


def test_forced_tokens_are_those_that_must_come_unless_tokens_are_listed(
    constraints: Constraints,
) -> None:
    sure = request([4], grammar=regex("abc(d|e)"))
    opened(constraints, sure)
    assert constraints.forced(sure.key) == byte_ids("abc")
    listed = request([4], grammar=regex("abc(d|e)"), allowed_token_ids=tuple(byte_ids("abcd")))
    opened(constraints, listed)
    assert constraints.forced(listed.key) == []


def test_two_requests_of_one_grammar_move_apart(constraints: Constraints) -> None:
    first, second = (request([4], grammar=regex("ab|ac")) for _ in range(2))
    opened(constraints, first)
    opened(constraints, second)
    a, b, c = byte_ids("abc")
    constraints.take(first.key, a)
    assert allowed(constraints, first.key, second.key) == {b, c}
    assert allowed(constraints, second.key, first.key) == {a}


def test_a_token_that_is_not_allowed_is_a_failure(constraints: Constraints) -> None:
    asked = request([4], grammar=regex("ab"))
    opened(constraints, asked)
    with pytest.raises(GenerationFailed):
        constraints.take(asked.key, byte_ids("x")[0])


def test_a_grammar_that_does_not_compile_says_why(constraints: Constraints) -> None:
    asked = request([4], grammar='{"grammars": [{"lark_grammar": "start: NOTHING"}]}')
    [(key, reason)] = opened(constraints, asked)
    assert key == asked.key and reason and "\n" not in reason
    assert constraints._compiling == {}


def test_what_is_closed_while_it_compiles_is_never_ready(constraints: Constraints) -> None:
    asked = request([4], grammar=regex("ab"), allowed_token_ids=(5,))
    woken = threading.Event()
    constraints.open(asked, woken.set)
    constraints.close(asked.key)
    assert woken.wait(PATIENCE)
    assert constraints.ready() == []
    assert not (constraints._matchers or constraints._allowed or constraints._compiling)
    assert constraints.masks([asked.key], {}) is NO_MASKS


def test_closing_takes_a_grammar_back_that_nobody_else_needs(constraints: Constraints) -> None:
    held = threading.Event()
    constraints._pool._compile = lambda _: held.wait(PATIENCE)  # type: ignore[method-assign, assignment, return-value]
    asked = request([4], grammar=regex("ab"))
    constraints.open(asked, lambda: None)
    future = constraints._compiling[asked.key]
    constraints.close(asked.key)
    assert future.cancelled()
    held.set()


def test_a_closed_sequence_has_no_mask(constraints: Constraints) -> None:
    asked = request([4], grammar=regex("ab"), allowed_token_ids=(5,))
    opened(constraints, asked)
    constraints.close(asked.key)
    constraints.close(asked.key)
    assert constraints.masks([asked.key], {}) is NO_MASKS
