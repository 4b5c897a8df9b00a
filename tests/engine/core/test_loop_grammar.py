"""Constrained sequences in the loop: masks, forced tokens, whole documents, failures, cancels."""

from __future__ import annotations

import random
import re
import threading
from typing import Any

import pytest

from engine.backend.backend import ALL_BANNED
from engine.events import FinishCause
from engine.messages import TokenRequest
from engine.types import LogprobOptions
from tests.engine.core.sequences import (
    END,
    PATIENCE,
    Harness,
    allowed_ids,
    byte_ids,
    expected,
    regex,
    request,
    text_of,
)

BROKEN = '{"grammars": [{"lark_grammar": "start: NOTHING"}]}'


def test_constrained_rows_have_masks_and_others_are_free() -> None:
    harness = Harness()
    free, bound = request([5, 6], 8), request([6, 7], 8, grammar=regex("[abc]{20}"))
    harness.run([free, bound])
    assert harness.tokens[free.key] == expected(free)
    assert re.fullmatch("[abc]{8}", text_of(harness.tokens[bound.key]))
    for plan in harness.backend.plans:
        for row, sequence in enumerate(plan.logit_sequences):
            constrained = plan.sequence_keys[sequence] == bound.key
            assert (plan.mask_rows[row] >= 0) == constrained
            assert (len(allowed_ids(plan, row)) == 3) == constrained


def test_a_whole_document_ends_its_sequence_at_its_last_token() -> None:
    harness = Harness()
    asked = request([5], 50, grammar=regex("(ab|ba)c[0-9]"))
    harness.run([asked])
    assert harness.causes == {asked.key: FinishCause.COMPLETE}
    assert re.fullmatch("(ab|ba)c[0-9]", text_of(harness.tokens[asked.key]))


def test_a_document_that_may_go_on_ends_by_the_end_token() -> None:
    harness = Harness()
    asked = request([5], 200, grammar=regex("[ab]+"))
    harness.run([asked])
    *text, last = harness.tokens[asked.key]
    assert (harness.causes[asked.key], last) == (FinishCause.END, END)
    assert re.fullmatch("[ab]+", text_of(text))


def test_forced_tokens_come_in_one_step_and_are_counted() -> None:
    harness = Harness()
    asked = request([5], 50, grammar=regex("(x|y)hello world(!|[?])"))
    harness.run([asked])
    assert re.fullmatch("[xy]hello world[!?]", text_of(harness.tokens[asked.key]))
    stats = harness.loop.stats()
    assert stats.forced_tokens == len("hello world")
    assert (stats.steps, stats.generated_tokens) == (2, 13)
    assert [len(plan.ids) for plan in harness.backend.plans] == [1, 12]


def test_forced_tokens_stop_at_the_limit() -> None:
    harness = Harness()
    asked = request([5], 4, grammar=regex("abcdefgh"))
    harness.run([asked])
    assert harness.tokens[asked.key] == byte_ids("abcd")
    assert harness.causes == {asked.key: FinishCause.LIMIT}


def test_a_forced_stop_token_stops() -> None:
    harness = Harness()
    asked = request([5], 50, grammar=regex("abcdefgh"), stop_ids=tuple(byte_ids("d")))
    harness.run([asked])
    assert harness.tokens[asked.key] == byte_ids("abcd")
    assert harness.causes == {asked.key: FinishCause.STOP_TOKEN}


def test_more_forced_tokens_than_a_decode_step_holds_go_on_like_a_prompt() -> None:
    harness = Harness(num_pages=64, budget=64, chunk=32)
    text = "x" * 300 + "(a|b)"
    asked, other = request([5], 400, grammar=regex(text)), request([6], 20)
    harness.run([other, asked])
    assert re.fullmatch("x{300}[ab]", text_of(harness.tokens[asked.key]))
    assert harness.tokens[other.key] == expected(other)
    assert all(len(plan.ids) <= 64 for plan in harness.backend.plans)


def test_allowed_tokens_hold_with_and_without_a_grammar() -> None:
    harness = Harness()
    listed = request([5], 12, allowed_token_ids=(8, 800, 900))
    both = request([6], 12, grammar=regex("[abc]{12}"), allowed_token_ids=tuple(byte_ids("bc")))
    harness.run([listed, both])
    assert set(harness.tokens[listed.key]) <= {8, 800, 900}
    assert re.fullmatch("[bc]{12}", text_of(harness.tokens[both.key]))


def test_what_leaves_no_token_is_a_dead_end_for_itself_alone() -> None:
    harness = Harness()
    stuck = request([5], grammar=regex("[ab]{9}"), allowed_token_ids=(700,))
    fine = request([6], 4)
    harness.run([stuck, fine])
    assert harness.causes == {stuck.key: FinishCause.DEAD_END, fine.key: FinishCause.LIMIT}
    assert harness.reasons[stuck.key] == ALL_BANNED
    assert harness.tokens[fine.key] == expected(fine)


def test_a_grammar_that_does_not_compile_fails_its_sequence_alone() -> None:
    harness = Harness()
    broken, fine = request([5], grammar=BROKEN), request([6], 4, grammar=regex("[ab]{4}"))
    harness.run([broken, fine])
    assert harness.causes == {broken.key: FinishCause.FAILED, fine.key: FinishCause.COMPLETE}
    assert harness.reasons[broken.key]


def test_the_end_is_banned_until_min_tokens() -> None:
    harness = Harness()
    asked = request([5], 60, grammar=regex("[ab]*"), min_tokens=30)
    harness.run([asked])
    assert len(harness.tokens[asked.key]) > 30
    assert END not in harness.tokens[asked.key][:30]


@pytest.mark.parametrize("logprobs", [None, LogprobOptions()], ids=["plain", "scored"])
@pytest.mark.parametrize(
    "bans",
    [{"bad_words": (tuple(byte_ids("c")),)}, {"min_tokens": 9, "stop_ids": tuple(byte_ids("c"))}],
    ids=str,
)
def test_a_forced_token_that_is_banned_does_not_come_whatever_else_is_asked_for(
    bans: dict[str, Any], logprobs: LogprobOptions | None
) -> None:
    """Helios: requesting logprobs does not change sampling."""
    harness = Harness()
    asked = request([5], 20, grammar=regex("abcdef"), logprobs=logprobs, **bans)
    harness.run([asked])
    assert harness.tokens[asked.key] == byte_ids("ab")
    assert harness.causes == {asked.key: FinishCause.DEAD_END}


def test_tokens_are_forced_again_once_nothing_is_banned() -> None:
    harness = Harness()
    asked = request([5], 20, grammar=regex("abcdef"), min_tokens=3)
    harness.run([asked])
    assert harness.tokens[asked.key] == byte_ids("abcdef")
    assert harness.loop.stats().forced_tokens == 3


def test_the_real_loop_waits_for_a_grammar_and_goes_on() -> None:
    """`run` itself: receive blocks until the compiled grammar wakes it."""
    waited = threading.Event()

    class Waiting(Harness):
        def receive(self, wait: bool) -> list[TokenRequest | int | None]:
            if wait and self.is_busy:
                waited.set()
            return super().receive(wait)

    harness = Waiting()
    held = threading.Event()
    compile_ = harness.constraints._pool._compile

    def slow(grammar: str) -> object:
        assert held.wait(PATIENCE)
        return compile_(grammar)

    harness.constraints._pool._compile = slow  # type: ignore[method-assign, assignment]
    asked = request([5], 4, grammar=regex("[ab]{4}"))
    harness.inbox.append(asked)
    runner = threading.Thread(target=harness.loop.run)
    runner.start()
    assert waited.wait(PATIENCE)
    assert harness.loop.stats().pending == 1 and harness.backend.plans == []
    held.set()
    runner.join(PATIENCE)
    assert not runner.is_alive()
    assert harness.causes == {asked.key: FinishCause.COMPLETE}
    harness.check_empty()


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_left_behind_by_cancels_at_any_moment(seed: int) -> None:
    harness = Harness(num_pages=24)
    draw = random.Random(seed)
    grammars = [None, regex("[ab]{30}"), regex("(a|b)hello( world)*"), BROKEN]
    asked = [
        request(
            [draw.randrange(2, 900) for _ in range(draw.randrange(1, 60))],
            25,
            grammar=draw.choice(grammars),
            allowed_token_ids=draw.choice([None, None, tuple(range(2, 500))]),
            prompt_top=draw.choice([None, None, 1]),
            priority=draw.randrange(3),
        )
        for _ in range(30)
    ]

    def cancel_one() -> None:
        if draw.random() < 0.5:
            harness.loop.handle(draw.choice(asked).key)

    harness.run(asked, cancel_one)
    assert {FinishCause.CANCELLED, FinishCause.LIMIT} <= set(harness.causes.values())
    assert set(harness.causes) == {one.key for one in asked}
