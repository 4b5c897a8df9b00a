"""The engine loop over real scheduler, pages and prefix index: nothing but the model is missing."""

from __future__ import annotations

import random

import pytest

from engine.core import loop
from engine.events import FinishCause
from tests.engine.core.sequences import END, Harness, expected, request


def prompts(count: int, seed: int, longest: int = 90) -> list[list[int]]:
    draw = random.Random(seed)
    shared = [draw.randrange(2, 900) for _ in range(40)]
    return [
        shared[: draw.choice([0, 16, 33, 40])]
        + [draw.randrange(2, 900) for _ in range(draw.randrange(1, longest))]
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_every_sequence_reads_its_own_context_whatever_it_shares_a_batch_with(seed: int) -> None:
    harness = Harness(num_pages=128)
    asked = [request(prompt, 1 + place % 9) for place, prompt in enumerate(prompts(30, seed))]
    harness.run(asked)
    assert {r.key: harness.tokens[r.key] for r in asked} == {r.key: expected(r) for r in asked}
    assert set(harness.causes.values()) == {FinishCause.LIMIT}
    assert harness.backend.open == set()


@pytest.mark.parametrize("seed", range(6))
def test_preempted_sequences_go_on_with_the_same_tokens(seed: int) -> None:
    harness = Harness(num_pages=16)  # 240 tokens for eight sequences
    asked = [request(prompt, 40) for prompt in prompts(12, seed, longest=60)]
    harness.run(asked)
    assert harness.loop.scheduler.preemptions > 0
    assert {r.key: harness.tokens[r.key] for r in asked} == {r.key: expected(r) for r in asked}


@pytest.mark.parametrize("seed", range(6))
def test_pages_stay_whole_under_random_cancels(seed: int) -> None:
    harness = Harness(num_pages=24)
    draw = random.Random(seed)
    asked = [request(prompt, 30) for prompt in prompts(40, seed)]

    def cancel_one() -> None:
        if draw.random() < 0.5:
            harness.loop.handle(draw.choice(asked).key)

    harness.run(asked, cancel_one)
    for done in asked:
        if harness.causes[done.key] is FinishCause.LIMIT:
            assert harness.tokens[done.key] == expected(done)
    assert FinishCause.CANCELLED in harness.causes.values()
    assert harness.loop.pool.num_free == harness.loop.pool.num_usable
    assert harness.backend.open == set()


def test_a_repeated_prompt_is_taken_from_the_cache_but_for_its_last_token() -> None:
    harness = Harness()
    prompt = list(range(2, 66))  # four full pages
    first, second = request(prompt), request(prompt)
    harness.run([first])
    harness.run([second])
    assert harness.cached == {first.key: 0, second.key: 48}
    assert harness.tokens[first.key] == harness.tokens[second.key]


def test_a_second_turn_reuses_the_answer_of_the_first() -> None:
    harness = Harness()
    first = request(list(range(2, 40)), 30)
    harness.run([first])
    turn = request([*first.token_ids, *harness.tokens[first.key], 5, 6])
    harness.run([turn])
    assert harness.cached[turn.key] == 64  # 38 + 30 tokens are four full pages and a part
    assert harness.tokens[turn.key] == expected(turn)


def test_a_burst_computes_its_common_prefix_once() -> None:
    harness = Harness(num_pages=128, budget=256)
    prefix = list(range(2, 98))
    asked = [request([*prefix, 200 + place], 2) for place in range(8)]
    harness.run(asked)
    computed = sum(len(plan.ids) for plan in harness.backend.plans)
    assert computed < 96 + 8 * 4
    assert sorted(harness.cached.values()) == [0] + [96] * 7


def test_tenants_do_not_share_prefixes() -> None:
    harness = Harness()
    prompt = list(range(2, 66))
    mine, other = request(prompt, tenant="a"), request(prompt, tenant="b")
    harness.run([mine])
    harness.run([other])
    assert harness.cached[other.key] == 0


def test_decodes_go_on_while_a_long_prompt_is_prefilled() -> None:
    harness = Harness(num_pages=128, budget=40)
    quick, long = request([5], 20), request(list(range(2, 400)), 1)
    harness.run([quick, long])
    mixed = [plan for plan in harness.backend.plans if len(plan.sequence_keys) == 2]
    assert len(mixed) >= 10
    assert all(len(plan.ids) <= 40 for plan in harness.backend.plans)


@pytest.mark.parametrize(
    ("options", "cause", "length"),
    [
        ({"max_tokens": 3}, FinishCause.LIMIT, 3),
        ({"max_tokens": 50, "stops": 2}, FinishCause.STOP_TOKEN, 3),
        ({"max_tokens": 3, "stops": 2}, FinishCause.STOP_TOKEN, 3),
    ],
)
def test_the_cause_is_decided_at_the_terminal_token(
    options: dict[str, int], cause: FinishCause, length: int
) -> None:
    prompt = [9, 8, 7]
    natural = expected(request(prompt, 10))
    stop_ids = (natural[options["stops"]],) if "stops" in options else ()
    harness = Harness()
    asked = request(prompt, options["max_tokens"], stop_ids=stop_ids)
    harness.run([asked])
    assert (harness.causes[asked.key], len(harness.tokens[asked.key])) == (cause, length)


def test_end_tokens_are_banned_until_min_tokens_and_never_end_under_ignore_eos() -> None:
    harness = Harness()
    asked = request([4], 3, min_tokens=2, stop_ids=(77,), logit_bias={5: 2.0})
    harness.run([asked])
    biases = [dict(zip(p.bias_ids, p.bias_values, strict=True)) for p in harness.backend.plans]
    assert [set(bias) for bias in biases] == [{5, END, 77}, {5, END, 77}, {5}]
    assert biases[0][END] == float("-inf") and biases[0][5] == 2.0
    free = request([4], 3, min_tokens=2, ignore_eos=True)
    harness.run([free])
    assert len(harness.backend.plans[-1].bias_ids) == 0


def test_stats_come_when_sequences_start_and_end_and_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that what is told of an idle engine is exact."""
    for seconds, between in ((1000.0, 0), (0.0, 28)):
        monkeypatch.setattr(loop, "STATS_SECONDS", seconds)
        harness = Harness(64)
        harness.run([request([5], 30)])
        first, *middle, last = harness.stats
        assert first is not None and (first.active, first.generated_tokens) == (1, 1)
        assert last is not None and (last.active, last.generated_tokens) == (0, 30)
        assert sum(stats is not None for stats in middle) == between
        assert last.steps == 30 and last.step_ns > 0


def test_a_broken_step_fails_its_sequences_and_frees_their_pages() -> None:
    harness = Harness()

    def broken(plan: object) -> object:
        raise MemoryError("no room")

    harness.backend.run = broken  # type: ignore[method-assign, assignment]
    asked = [request([5, 6, 7]), request([8])]
    harness.run(asked)
    assert [harness.causes[r.key] for r in asked] == [FinishCause.FAILED] * 2
    assert harness.loop.pool.num_free == harness.loop.pool.num_usable


def test_a_sequence_that_outgrows_the_pool_ends_as_full() -> None:
    harness = Harness(num_pages=4)  # 48 tokens
    asked = request(list(range(2, 42)), 100)
    harness.run([asked])
    assert harness.causes[asked.key] is FinishCause.CONTEXT_FULL
    assert harness.tokens[asked.key] == expected(asked)[:9]


def test_seen_tokens_follow_prompt_and_output() -> None:
    harness = Harness()
    asked = request([5, 5, 6], 3, presence_penalty=1.0)
    harness.run([asked])
    output = harness.tokens[asked.key]
    last = harness.backend.plans[-1]
    seen = dict(zip(last.seen_ids.tolist(), last.seen_counts.tolist(), strict=True))
    assert seen == {5: 0, 6: 0, **{token: output[:2].count(token) for token in output[:2]}}
