"""Issue 3: a seeded request is the same alone, in a batch, after preemption, cold and warm."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conformance.bench.measure import prompt_of, table
from conformance.profiles import Pool
from conformance.replies import Reply, send
from conformance.server import Server

PET = {"type": "object", "properties": {"pet": {"type": "string", "maxLength": 12}}}
VARIANTS: tuple[dict[str, Any], ...] = (
    {"temperature": 1.0},
    {"temperature": 0},
    {"temperature": 1.2, "top_p": 0.9, "top_k": 40},
    {"temperature": 0.8, "min_p": 0.05, "repetition_penalty": 1.2},
    {"temperature": 1.0, "presence_penalty": 0.5, "frequency_penalty": 0.3},
    {"temperature": 1.0, "dry_multiplier": 0.8, "lz_penalty": 0.2},
    {"temperature": 1.0, "top_n_sigma": 1.0, "logit_bias": {"198": -5}},
    {"temperature": 1.0, "json_schema": {**PET, "required": ["pet"]}, "ignore_eos": False},
)


@pytest.mark.bars
def test_sixteen(pool: Pool) -> None:
    """All variants, twice each, with 48 tokens."""
    _compare(pool, 16, 48)


def test_subset(pool: Pool) -> None:
    """The same at a size for the gate: a batch of twelve, and a quarter of the solo runs."""
    _compare(pool, 12, 32, 4)


def ask(number: int, tokens: int, salt: str) -> dict[str, Any]:
    """Request `number`: prompts of several lengths, of which some share their beginning."""
    return {
        "prompt": prompt_of(20, number % 12) + prompt_of(number % 8, 100 + number),
        "max_tokens": tokens,
        "seed": number,
        "n": 1,
        "logprobs": 2,
        "return_token_ids": True,
        "ignore_eos": True,
        "cache_salt": salt,
        **VARIANTS[number % len(VARIANTS)],
    }


def seen(reply: Reply) -> tuple[Any, ...]:
    """All of an answer that has to be the same, log probabilities to the last bit."""
    assert reply.status == 200, reply.error
    (choice,) = reply.choices.values()
    return choice.text, choice.finish, choice.token_ids, choice.logprobs


def _compare(pool: Pool, size: int, tokens: int, every: int = 1) -> None:
    roomy, tight = pool.get("embedded"), pool.get("tight")
    chosen = range(every // 2, size, every)
    cold = {i: seen(send(roomy.http, "completions", ask(i, tokens, f"cold-{i}"))) for i in chosen}
    replies = {i: send(roomy.http, "completions", ask(i, tokens, f"cold-{i}")) for i in chosen}
    warm = {i: seen(reply) for i, reply in replies.items()}
    usages = [reply.usage or {} for reply in replies.values()]
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    batch = _together(roomy, size, tokens, "batch")
    before = tight.until_idle()["preemptions"]
    preempted = _together(tight, size, tokens, "tight")
    preemptions = tight.until_idle()["preemptions"] - before
    rows = [
        ("tokens each", str(tokens)),
        ("alone and warm", _equal(cold, warm)),
        (f"alone and in a batch of {size}", _equal(cold, batch)),
        ("alone and after preemption", _equal(cold, preempted)),
        ("preemptions", str(preemptions)),
        ("cached tokens of the warm runs", f"{min(cached)} to {max(cached)}"),
    ]
    print("\nseeded requests\n" + table(rows))
    assert preemptions > 0 and min(cached) >= 16, rows
    for number, wanted in cold.items():
        assert warm[number] == wanted, f"request {number}: warm is not cold"
        assert batch[number] == wanted, f"request {number}: company changes it"
        assert preempted[number] == wanted, f"request {number}: preemption changes it"


def _together(server: Server, size: int, tokens: int, salt: str) -> dict[int, tuple[Any, ...]]:
    with ThreadPoolExecutor(size) as threads:
        replies = threads.map(
            lambda i: send(server.http, "completions", ask(i, tokens, salt)), range(size)
        )
        return {number: seen(reply) for number, reply in enumerate(replies)}


def _equal(one: dict[int, tuple[Any, ...]], other: dict[int, tuple[Any, ...]]) -> str:
    same = sum(other[number] == wanted for number, wanted in one.items())
    return f"{same} of {len(one)} equal"
