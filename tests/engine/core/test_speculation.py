"""Whatever is drafted, the output is the same as without drafts: only the steps are fewer."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from engine.core.draft import NgramDrafter
from engine.core.speculation import Pace, Speculation
from engine.events import FinishCause
from engine.messages import ThinkingLimits, TokenRequest
from engine.types import LogprobOptions, RepetitionDetection
from tests.engine.core.drafters import Mindful, Prophet, prophesied, seen_of, totals
from tests.engine.core.sequences import (
    Harness,
    Speaker,
    byte_ids,
    expected,
    regex,
    request,
    text_of,
)

OPTIONS: list[dict[str, Any]] = [
    {},
    {"presence_penalty": 0.5},
    {"repetition_penalty": 1.2, "logit_bias": {7: 3.0, 40: -2.0}},
    {"dry_multiplier": 0.8, "dry_allowed_length": 1},
    {"lz_penalty": 0.4},
    {"bad_words": ((300,), (40, 50), (60, 70, 80))},
    {"min_tokens": 25},
    {"allowed_token_ids": tuple(range(100, 130))},
    {"grammar": regex("[a-f]{10,60}")},
    {"grammar": regex("((a|b)hello(, world)*!){4}")},
    {"grammar": regex("((a|b)hello(, world)*!){4}"), "logprobs": LogprobOptions(1)},
    {"grammar": regex("[ab]*"), "min_tokens": 12, "allowed_token_ids": (1, *byte_ids("ab"))},
    {"logprobs": LogprobOptions(2), "prompt_top": 1},
    {"thinking": ThinkingLimits(951, (950,), (951,), starts_open=True, budget=9)},
]


def asked_of(
    seed: int,
    options: dict[str, Any],
    count: int = 6,
    lengths: tuple[int, ...] = (1, 2, 3, 17, 40),
) -> list[TokenRequest]:
    draw = random.Random(seed)
    return [
        request(
            [draw.randrange(2, 900) for _ in range(draw.randrange(1, 50))],
            draw.choice(lengths),
            seed=seed + place,
            **options,
        )
        for place in range(count)
    ]


def pair(
    asked: list[TokenRequest], wrong: float, *, backend: type[Mindful] = Mindful, **sizes: Any
) -> tuple[Harness, Harness]:
    """The same requests without and with drafts."""
    plain = Harness(backend=backend(), **sizes)
    plain.run(asked)
    drafted = Harness(backend=backend(), speculation=prophesied(plain, wrong), **sizes)
    drafted.run(asked)
    return plain, drafted


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("wrong", [0.0, 0.3, 1.0])
def test_drafts_change_no_output(options: dict[str, Any], wrong: float) -> None:
    asked = asked_of(5, options)
    plain, drafted = pair(asked, wrong)
    assert seen_of(drafted, asked) == seen_of(plain, asked)
    assert totals(drafted) == totals(plain)
    stats = drafted.loop.stats()
    if wrong < 1.0:
        assert 0 < stats.accepted_drafts <= stats.verification_drafts
        assert stats.steps < plain.loop.stats().steps
    else:
        assert stats.accepted_drafts == 0
        # A grammar that allows a few letters takes none of such drafts.
        assert stats.verification_drafts > 0 or "grammar" in options


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("wrong", [0.0, 0.4])
def test_drafts_change_no_output_among_preemptions_in_few_pages(seed: int, wrong: float) -> None:
    asked = asked_of(100 + seed, {"presence_penalty": 0.3}, 12, (40,))
    plain, drafted = pair(asked, wrong, num_pages=13, chunk=7)
    assert seen_of(drafted, asked) == seen_of(plain, asked)
    assert plain.loop.scheduler.preemptions > 0 and drafted.loop.scheduler.preemptions > 0
    assert drafted.loop.stats().accepted_drafts > 0


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_left_behind_by_cancels_amid_drafts(seed: int) -> None:
    draw = random.Random(seed)
    grammars = [None, regex("[ab]{30}"), regex("(a|b)hello( world)*")]
    asked = [one for grammar in grammars for one in asked_of(seed, {"grammar": grammar}, 8)]
    plain = Harness(num_pages=24, backend=Mindful())
    plain.run(asked)
    harness = Harness(num_pages=24, backend=Mindful(), speculation=prophesied(plain, 0.2))

    def cancel_one() -> None:
        if draw.random() < 0.3:
            harness.loop.handle(draw.choice(asked).key)

    harness.run(asked, cancel_one)
    assert FinishCause.CANCELLED in harness.causes.values()
    for one in asked:
        if harness.causes[one.key] is not FinishCause.CANCELLED:
            assert harness.tokens[one.key] == plain.tokens[one.key]


def test_a_sequence_that_outgrows_the_pool_ends_where_it_would_without_drafts() -> None:
    asked = [request(list(range(2, 42)), 100)]
    plain, drafted = pair(asked, 0.0, num_pages=4)  # 48 tokens
    assert drafted.causes == plain.causes == {asked[0].key: FinishCause.CONTEXT_FULL}
    assert drafted.tokens == plain.tokens
    assert drafted.drafts == {asked[0].key: (6, 6)}  # 1 + 5 + 3 tokens; two find pages at last


def test_drafts_take_only_pages_that_nobody_holds_and_give_them_back() -> None:
    """Two sequences fill the pool between them: drafts neither preempt one nor stay in a page."""
    asked = [request([place] * 15, 30, seed=place) for place in (5, 6)]
    plain = Harness(num_pages=8)
    plain.run(asked)
    harness = Harness(num_pages=8, speculation=prophesied(plain, 0.5))
    held: list[int] = []

    def look() -> None:
        running = harness.loop.scheduler.running
        held.append(sum(len(s.pages) for s in running))
        assert all(len(s.pages) == -(-s.computed // 16) for s in running)

    harness.run(asked, look)
    assert harness.tokens == plain.tokens
    assert harness.loop.scheduler.preemptions == plain.loop.scheduler.preemptions == 0
    assert max(held) == 6


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 9, 10])
def test_no_draft_goes_past_the_output_limit(max_tokens: int) -> None:
    plain, asked = Harness(), request([5, 6], max_tokens)
    plain.run([asked])
    ample = {asked.key: [*plain.tokens[asked.key], *range(2, 30)]}
    harness = Harness(speculation=Speculation([Prophet(ample, 0.0)], 8, 64))
    harness.run([asked])
    assert (harness.tokens, harness.causes) == (plain.tokens, plain.causes)
    widest = max((len(plan.ids) for plan in harness.backend.plans[1:]), default=0)
    assert widest <= max_tokens - 1  # one row draws the last token
    steps = {1: 1, 2: 2, 3: 2, 9: 3, 10: 3}  # the first draws one token, then 1 + 4, 1 + 8
    assert harness.loop.stats().steps == steps[max_tokens]


@pytest.mark.parametrize("place", [3, 4])
@pytest.mark.parametrize("field", ["stop_ids", "eos_ids"])
def test_what_ends_a_sequence_is_never_drafted_and_ends_it(field: str, place: int) -> None:
    natural = expected(request([9, 8, 7], 12))
    options: dict[str, Any] = {field: (natural[place],)}
    asked = request([9, 8, 7], 12, **options)
    whole = {asked.key: natural}
    harness = Harness(speculation=Speculation([Prophet(whole, 0.0)], 8, 64))
    harness.run([asked])
    assert harness.tokens[asked.key] == natural[: place + 1]
    cause = FinishCause.STOP_TOKEN if field == "stop_ids" else FinishCause.END
    assert harness.causes == {asked.key: cause}
    assert harness.drafts == {asked.key: (place - 1, place - 1)}  # from the second token on


def test_a_loop_ends_a_sequence_in_the_middle_of_right_drafts() -> None:
    loop = RepetitionDetection(4, 1, 3)
    said = [10, 11, 12, 20, 21, 20, 21, 20, 21, 20, 21, 20, 21]
    asked = request([5], 40, repetition=loop)
    harness = Harness(
        backend=Speaker(said), speculation=Speculation([Prophet({asked.key: said}, 0.0)], 12, 64)
    )
    harness.run([asked])
    assert harness.tokens[asked.key] == said[:9]
    assert harness.causes == {asked.key: FinishCause.REPETITION}


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 5, 7, 11])
def test_a_thought_is_closed_in_the_middle_of_right_drafts(budget: int) -> None:
    limits = ThinkingLimits(951, (950,), (951,), starts_open=True, budget=budget)
    said = list(range(10, 40))
    asked = request([5, 6], 14, thinking=limits, logprobs=LogprobOptions(1))
    plain = Harness(backend=Speaker(said))
    plain.run([asked])
    assert plain.tokens[asked.key] == [*said[:budget], 951, *said[budget + 1 : 14]]
    outputs = {asked.key: said}  # what the model wants, and not what it will have to say
    harness = Harness(
        backend=Speaker(said), speculation=Speculation([Prophet(outputs, 0.0)], 8, 64)
    )
    harness.run([asked])
    assert seen_of(harness, [asked]) == seen_of(plain, [asked])
    assert totals(harness) == totals(plain)
    assert harness.drafts[asked.key][1] > 0
    closing = [plan for plan in harness.backend.plans if plan.mask_rows[0] >= 0]
    assert [len(plan.logit_rows) for plan in closing] == [1]  # nobody guesses a forced token


def test_forced_tokens_that_were_drafted_are_not_computed_again() -> None:
    asked = request([5], 50, grammar=regex("(x|y)(a|b)hello world(!|[?])"))
    plain = Harness()
    plain.run([asked])
    harness = Harness(speculation=prophesied(plain, 0.0))
    harness.run([asked])
    assert harness.tokens == plain.tokens
    assert totals(harness) == totals(plain)
    computed = [len(plan.ids) for plan in harness.backend.plans]
    assert re.fullmatch("[xy][ab]hello world[!?]", text_of(harness.tokens[asked.key]))
    # The prompt; x and drafts like "ahel"; what is forced behind them, and a draft of the last.
    assert computed == [1, 5, len("lo world!")]


def test_a_draft_that_the_grammar_does_not_allow_is_not_checked() -> None:
    asked = request([5], 12, grammar=regex("[ab]{12}"), seed=3)
    plain = Harness()
    plain.run([asked])
    said = plain.tokens[asked.key]
    outputs = {asked.key: [*said[:3], 500, *said[4:]]}
    harness = Harness(speculation=Speculation([Prophet(outputs, 0.0)], 8, 64))
    harness.run([asked])
    assert harness.tokens == plain.tokens
    assert all(500 not in plan.ids for plan in harness.backend.plans)
    assert harness.drafts[asked.key][1] == harness.drafts[asked.key][0] > 0


def test_a_larger_batch_has_fewer_drafts_and_a_full_one_none() -> None:
    asked = [request([place + 2, 7], 30, seed=place) for place in range(8)]
    plain = Harness()
    plain.run(asked)
    for rows, widest in ((8, 8), (10, 10), (16, 16), (100, 64)):  # the step's own budget is 64
        harness = Harness(speculation=prophesied(plain, 0.0, rows=rows))
        harness.run(asked)
        assert harness.tokens == plain.tokens
        decoding = [plan for plan in harness.backend.plans if len(plan.sequence_keys) == 8][1:]
        assert max(len(plan.ids) for plan in decoding) == widest
        assert (harness.loop.stats().verification_drafts == 0) == (rows == 8)


def test_a_request_may_have_no_drafts() -> None:
    asked = [request([5, 6], 20, drafts=False), request([6, 7], 20)]
    _, harness = pair(asked, 0.0)
    assert set(harness.drafts) == {asked[1].key}


def test_the_counts_are_those_of_the_metrics() -> None:
    plain, asked = Harness(), request([5, 6], 16)
    plain.run([asked])
    said = plain.tokens[asked.key]
    outputs = {asked.key: [*said[:4], 950, *said[5:]]}  # said[4] is drafted wrong
    harness = Harness(speculation=Speculation([Prophet(outputs, 0.0)], 8, 64))
    harness.run([asked])
    stats = harness.loop.stats()
    # After the prompt's step: drafts of 1 to 4, of which 3 are right; of 5 to 8; of 10 to 14.
    assert harness.drafts == {asked.key: (13, 12)}
    assert (stats.verification_drafts, stats.accepted_drafts) == (13, 12)
    assert (stats.verify_steps, stats.draft_rounds, stats.verification_rounds) == (3, 3, 3)
    assert (stats.steps, stats.draft_steps) == (4, 0)


def test_a_drafter_that_fails_costs_nothing_but_its_drafts() -> None:
    class Broken(Prophet):
        def propose(self, wishes: object, room: int) -> list[list[int]]:
            raise MemoryError("no room")

    asked = [request([5, 6], 12)]
    plain = Harness()
    plain.run(asked)
    speculation = Speculation([Broken({}, 0.0), Prophet(plain.tokens, 0.0)], 8, 64)
    harness = Harness(speculation=speculation)
    harness.run(asked)
    assert harness.tokens == plain.tokens
    assert harness.loop.stats().accepted_drafts > 0


def test_the_next_drafter_is_asked_where_the_first_has_nothing() -> None:
    asked = [request([5, 6], 30), request([6, 7], 30)]
    plain = Harness()
    plain.run(asked)
    first, second = (Prophet({one.key: plain.tokens[one.key]}, 0.0) for one in asked)
    harness = Harness(speculation=Speculation([first, second], 8, 64))
    harness.run(asked)
    assert harness.tokens == plain.tokens
    assert set(harness.drafts) == {one.key for one in asked}
    assert first.known == second.known == set()  # told that both have ended


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_what_was_said_before_change_nothing_either(seed: int) -> None:
    """The real drafter, on a model that repeats itself at random."""
    draw = random.Random(seed)
    words = [[draw.randrange(2, 900) for _ in range(6)] for _ in range(4)]
    said = [[token for _ in range(12) for token in draw.choice(words)] for _ in range(5)]
    asked = [request([place + 2], 60, presence_penalty=0.2) for place in range(5)]
    plain = Harness(backend=Speaker(*said), max_sequences=4)
    plain.run(asked)
    drafted = Harness(
        backend=Speaker(*said), max_sequences=4, speculation=Speculation([NgramDrafter()], 8, 16)
    )
    drafted.run(asked)
    assert seen_of(drafted, asked) == seen_of(plain, asked)
    assert drafted.loop.stats().steps < 0.7 * plain.loop.stats().steps


def test_the_pace_grows_with_right_drafts_and_rests_after_wrong_ones() -> None:
    pace = Pace(8)
    assert pace.wanted() == 4
    pace.note(4, 4)
    assert pace.wanted() == 8
    pace.note(8, 8)
    assert pace.wanted() == 8
    pace.note(8, 2)
    assert pace.wanted() == 3
    pace.note(3, 0)
    assert pace.wanted() == 1  # a single miss is no pattern
    for rest in (4, 8, 16, 32, 64, 64):
        pace.note(1, 0)
        assert [pace.wanted() for _ in range(rest + 1)] == [0] * rest + [1]
    pace.note(1, 1)
    assert pace.wanted() == 2
    pace.note(2, 0)
    assert pace.wanted() == 1  # and the rests begin anew
