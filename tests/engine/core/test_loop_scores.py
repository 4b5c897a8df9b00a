"""Scores out of the loop: of prompts, whole under every schedule, and of generated tokens."""

from __future__ import annotations

import random

import pytest

from engine.events import FinishCause
from engine.types import LogprobOptions
from tests.engine.core.sequences import (
    Harness,
    byte_ids,
    expected,
    expected_scores,
    regex,
    request,
    score_after,
)


def prompts(count: int, seed: int, longest: int = 90) -> list[list[int]]:
    draw = random.Random(seed)
    shared = [draw.randrange(2, 900) for _ in range(40)]
    return [
        shared[: draw.choice([0, 16, 33])]
        + [draw.randrange(2, 900) for _ in range(draw.randrange(1, longest))]
        for _ in range(count)
    ]


@pytest.mark.parametrize("length", [2, 3, 16, 17, 32, 33, 70, 100])
@pytest.mark.parametrize("max_tokens", [0, 1, 5])
def test_a_prompt_is_scored_whole_in_chunks_of_any_size(length: int, max_tokens: int) -> None:
    for chunk in (1, 7, 32):
        harness = Harness(chunk=chunk)
        asked = request(list(range(2, 2 + length)), max_tokens, prompt_top=3)
        harness.run([asked])
        assert harness.prompt_scores[asked.key] == expected_scores(asked)
        assert harness.tokens.get(asked.key, []) == expected(asked)
        assert harness.causes[asked.key] is FinishCause.LIMIT


def test_no_output_is_one_start_and_a_limit_without_a_token() -> None:
    harness = Harness()
    asked = request([5, 6, 7], 0, prompt_top=0)
    harness.run([asked])
    assert (harness.cached, harness.tokens) == ({asked.key: 0}, {})
    assert harness.loop.stats().generated_tokens == 0
    assert all(len(plan.logit_rows) == 0 for plan in harness.backend.plans)


def test_a_prompt_of_one_token_has_nothing_to_score() -> None:
    harness = Harness()
    asked = request([5], 0, prompt_top=2)
    harness.run([asked])
    assert harness.prompt_scores == {}
    assert harness.causes == {asked.key: FinishCause.LIMIT}


@pytest.mark.parametrize("seed", range(6))
def test_prompts_are_scored_once_and_whole_beside_others_and_when_preempted(seed: int) -> None:
    harness = Harness(num_pages=12)  # 176 tokens
    draw = random.Random(seed)
    asked = [
        request(prompt, draw.choice([0, 20, 40]), prompt_top=draw.choice([None, 0, 2]))
        for prompt in prompts(14, seed, longest=60)
    ]
    asked = [r for r in asked if r.max_tokens or r.prompt_top is not None]
    harness.run(asked)
    assert harness.loop.scheduler.preemptions > 0
    for one in asked:
        wanted = expected_scores(one) if one.prompt_top is not None else []
        assert harness.prompt_scores.get(one.key, []) == wanted
        assert harness.tokens.get(one.key, []) == expected(one)


def test_scoring_reads_no_cache_but_leaves_its_pages_to_others() -> None:
    harness = Harness()
    prompt = list(range(2, 66))
    first, scoring = request(prompt), request(prompt, 2, prompt_top=1)
    harness.run([first])
    harness.run([scoring])
    assert harness.cached[scoring.key] == 0
    assert harness.prompt_scores[scoring.key] == expected_scores(scoring)
    fresh = [900 - token for token in prompt]
    publisher, reader = request(fresh, 0, prompt_top=1), request(fresh)
    harness.run([publisher])
    harness.run([reader])
    assert harness.cached[reader.key] == 48


def test_scoring_sequences_of_one_prompt_do_not_wait_for_each_other() -> None:
    harness = Harness(budget=256)
    prompt = list(range(2, 50))
    asked = [request(prompt, 1, prompt_top=1) for _ in range(3)]
    harness.run(asked)
    assert [harness.prompt_scores[one.key] for one in asked] == [expected_scores(asked[0])] * 3


def test_each_row_asks_for_its_own_alternatives() -> None:
    harness = Harness()
    plain = request([4, 5], 1)
    top = request([5, 6], 1, logprobs=LogprobOptions(3))
    named = request([6, 7], 1, logprobs=LogprobOptions(0, (9, 8)), prompt_top=7)
    harness.run([plain, top, named])
    [plan] = harness.backend.plans
    assert plan.logprob_top.tolist() == [-1, 3, 0]
    assert plan.logprob_indptr.tolist() == [0, 0, 0, 2]
    assert plan.logprob_ids.tolist() == [9, 8]
    assert (plan.score_rows.tolist(), plan.score_targets.tolist()) == ([4], [7])
    assert plan.score_top.tolist() == [7]


def test_a_score_goes_with_its_token_and_to_nobody_else() -> None:
    harness = Harness()
    scored = request([4, 5], 6, logprobs=LogprobOptions(1))
    plain = request([5, 6], 6)
    harness.run([plain, scored])
    output = harness.tokens[scored.key]
    assert harness.scores == {
        scored.key: [
            score_after([4, 5, *output[:place]], token) for place, token in enumerate(output)
        ]
    }


def test_tokens_that_a_grammar_forces_are_drawn_where_they_need_a_score() -> None:
    harness = Harness()
    grammar = regex("abcd")
    scored = request([4, 5], 20, grammar=grammar, logprobs=LogprobOptions(1))
    harness.run([scored])
    assert harness.tokens[scored.key] == byte_ids("abcd")
    assert len(harness.scores[scored.key]) == 4
    assert harness.loop.stats().forced_tokens == 0
