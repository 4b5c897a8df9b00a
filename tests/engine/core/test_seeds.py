"""A seeded request says the same alone, in a batch, preempted, and after a cold or warm prefix."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine.events import FinishCause
from engine.messages import TokenRequest
from tests.engine.core.sequences import Harness, expected, regex, request

OPTIONS: list[dict[str, Any]] = [
    {},
    {"grammar": regex("[a-f]{10,60}")},
    {"grammar": regex("((a|b)hello(, world)*!){4}")},
    {"allowed_token_ids": tuple(range(100, 700))},
    {"bad_words": ((300,), (40, 50)), "logit_bias": {7: float("-inf")}},
    {"min_tokens": 5, "prompt_top": 1},
]


def asked(seed: int, options: dict[str, Any]) -> TokenRequest:
    draw = random.Random(seed)
    prompt = [draw.randrange(2, 900) for _ in range(40)]
    return request(prompt, 40, seed=seed, **options)


def others(count: int, seed: int) -> list[TokenRequest]:
    draw = random.Random(seed)
    return [
        request([draw.randrange(2, 900) for _ in range(draw.randrange(1, 40))],
                draw.randrange(1, 40), seed=place)
        for place in range(count)
    ]  # fmt: skip


def said(harness: Harness, one: TokenRequest) -> tuple[list[int], FinishCause]:
    return harness.tokens[one.key], harness.causes[one.key]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", [3, 2**64 - 1])
def test_a_seeded_request_is_the_same_in_every_company(seed: int, options: dict[str, Any]) -> None:
    alone = Harness()
    first = asked(seed, options)
    alone.run([first])
    wanted = said(alone, first)

    warm = asked(seed, options)
    alone.run([warm])
    assert said(alone, warm) == wanted
    assert alone.cached[warm.key] == (0 if "prompt_top" in options else 32)

    crowd = Harness(num_pages=256, max_sequences=16)
    one = asked(seed, options)
    crowd.run([*others(8, 1), one, *others(7, 2)])
    assert said(crowd, one) == wanted

    troubled = Harness()
    last = asked(seed, options)
    draw = random.Random(seed)
    scheduler = troubled.loop.scheduler

    def preempt() -> None:
        for sequence in list(scheduler.running):
            if sequence.key == last.key and sequence.started and draw.random() < 0.5:
                scheduler._preempt(sequence)

    troubled.run([last], preempt)
    assert said(troubled, last) == wanted
    assert scheduler.preemptions > 0

    if not options:
        assert wanted == (expected(first), FinishCause.LIMIT)


def test_another_seed_says_something_else() -> None:
    harness = Harness()
    first, second = request([5, 6, 7], 10, seed=1), request([5, 6, 7], 10, seed=2)
    harness.run([first, second])
    assert harness.tokens[first.key] != harness.tokens[second.key]
