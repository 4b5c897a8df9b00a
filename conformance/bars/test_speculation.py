"""Issue 7: drafts change no greedy text and no seeded one, and say how much they save."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conformance.bench.measure import prompt_of, table
from conformance.profiles import REAL, Pool
from conformance.replies import Reply, send
from conformance.server import Server

STREAMS = 4
WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "saw", "one", "red", "bird", "fly", "over")


@pytest.mark.bars
def test_two_hundred(pool: Pool) -> None:
    """200 prompts, each alone and then among others, with 40 tokens."""
    _compare(pool, 200, 40)


def test_subset(pool: Pool) -> None:
    """The same at a size for the gate."""
    _compare(pool, 12, 24)


def ask(number: int, tokens: int) -> dict[str, Any]:
    """Random tokens, sentences and lists that go on as before; every fourth prompt is sampled."""
    draw = random.Random(number)
    said = " ".join(draw.choice(WORDS) for _ in range(6 + number % 12))
    prompts: list[Any] = [
        prompt_of(20 + number % 13, number),
        f"{said}. {said}. {said[: len(said) // 2]}",
        f'{{"name": "{said}", "age": {number}}}\n' * 3,
    ]
    sampling = {"temperature": 0.8, "seed": number} if number % 4 == 3 else {"temperature": 0}
    return {
        "prompt": prompts[number % 3],
        "max_tokens": tokens,
        "logprobs": 1,
        "return_token_ids": True,
        "cache_salt": f"{number}",
        **sampling,
    }


def seen(reply: Reply) -> tuple[Any, ...]:
    """All of an answer that has to be the same, log probabilities to the last bit."""
    assert reply.status == 200, reply.error
    (choice,) = reply.choices.values()
    return choice.text, choice.finish, choice.token_ids, choice.logprobs, reply.usage


def _compare(pool: Pool, count: int, tokens: int) -> None:
    drafting = pool.get("embedded")
    with Server(*REAL["embedded"], "--speculation", "off") as plain:
        wanted, plain_moved, plain_seconds = _answers(plain, count, tokens, 1)
    alone, moved, seconds = _answers(drafting, count, tokens, 1)
    among, _, _ = _answers(drafting, count, tokens, STREAMS)
    accepted, drafted = moved["accepted_drafts"], moved["verification_drafts"]
    rows = [
        ("prompts, tokens each", f"{count}, {tokens}"),
        ("equal alone", f"{sum(map(_same, alone, wanted))} of {count}"),
        (f"equal among {STREAMS}", f"{sum(map(_same, among, wanted))} of {count}"),
        ("drafts, of which right", f"{drafted}, {accepted} ({accepted / max(drafted, 1):.0%})"),
        ("steps without and with drafts", f"{plain_moved['steps']}, {moved['steps']}"),
        ("seconds without and with drafts", f"{plain_seconds:.1f}, {seconds:.1f}"),
    ]
    print("\nspeculation on the model\n" + table(rows))
    assert plain_moved["verification_drafts"] == 0 < accepted, rows
    assert moved["steps"] < plain_moved["steps"], rows
    for number, answer in enumerate(wanted):
        assert _same(alone[number], answer), f"prompt {number}: drafts change it"
        assert _same(among[number], answer), f"prompt {number}: drafts in company change it"


def _answers(
    server: Server, count: int, tokens: int, streams: int
) -> tuple[list[tuple[Any, ...]], dict[str, int], float]:
    """The answers, how far the server's counters moved, and the seconds that they took."""
    names = ("steps", "verification_drafts", "accepted_drafts")
    before, begun = server.until_idle(), time.monotonic()
    with ThreadPoolExecutor(streams) as threads:
        answers = list(
            threads.map(
                lambda number: seen(send(server.http, "completions", ask(number, tokens))),
                range(count),
            )
        )
    seconds, after = time.monotonic() - begun, server.until_idle()
    return answers, {name: after[name] - before[name] for name in names}, seconds


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two answers are the same, but for how much of the prompt was cached."""
    counts = ("prompt_tokens", "completion_tokens")
    return one[:-1] == other[:-1] and all(one[-1][name] == other[-1][name] for name in counts)
