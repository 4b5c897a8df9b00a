"""Issue 3: lm-evaluation-harness gets from us what transformers computes on the same weights.

The bar runs the harness itself on 200 items of our own; the gate sends the harness's requests.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from conformance.bars.harness import items
from conformance.bars.oracle import Oracle, oracle
from conformance.bench.measure import table
from conformance.profiles import Pool
from conformance.replies import PATHS, send
from conformance.server import ROOT, Server

TOLERANCE = 1e-3
TASK = "heliograph_choice"


@pytest.fixture
def exact(pool: Pool) -> Server:
    """The server that computes in fp32, as transformers does here."""
    return pool.get("exact")


@pytest.fixture(scope="module")
def reference() -> Oracle:
    """transformers with the embedded model."""
    return oracle()


def pair(reference: Oracle, query: str, choice: str) -> tuple[list[int], int]:
    """The harness's token ids of a query with a choice, and how many of them are the query's."""
    whole = reference.encode(f"{query} {choice}")
    return whole, len(reference.encode(query))


def likelihood(reference: Oracle, token_ids: list[int], context: int) -> tuple[float, bool]:
    """The log probability of what follows the context, and whether it is the greedy text."""
    scored = reference.score(token_ids)
    greedy = scored.best[context - 1 :] == token_ids[context:]
    return math.fsum(scored.logprobs[context - 1 :]), greedy


@pytest.mark.bars
def test_harness(
    exact: Server, reference: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 800 loglikelihoods and greedy flags, and the accuracy."""
    for name in ("HF_HOME", "HF_DATASETS_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    lm_eval = pytest.importorskip("lm_eval")
    tasks = pytest.importorskip("lm_eval.tasks")
    monkeypatch.chdir(ROOT)  # the task names its items from there
    tokenizer = reference.save_tokenizer(tmp_path / "tokenizer")
    results = lm_eval.simple_evaluate(
        model="local-completions",
        model_args={
            "model": "heliograph",
            "base_url": exact.url + PATHS["completions"],
            "tokenizer": str(tokenizer),
            "tokenizer_backend": "huggingface",
            "batch_size": 8,
        },
        tasks=[TASK],
        task_manager=tasks.TaskManager(include_path=str(items.FOLDER), include_defaults=False),
        log_samples=True,
        bootstrap_iters=0,
    )
    assert results is not None
    samples = results["samples"][TASK]
    assert len(samples) == items.COUNT
    worst, right, greedy = 0.0, 0, 0
    wrong = []
    for sample in samples:
        doc, ours, theirs = sample["doc"], [], []
        for choice, found in zip(doc["choices"], sample["resps"], strict=True):
            ((value, flag),) = found
            wanted, is_greedy = likelihood(reference, *pair(reference, doc["query"], choice))
            if flag != is_greedy or abs(value - wanted) > TOLERANCE:
                wrong.append((doc["query"], choice, value, flag, wanted, is_greedy))
            ours.append(value)
            theirs.append(wanted)
            greedy += is_greedy
        worst = max(worst, *(abs(a - b) for a, b in zip(ours, theirs, strict=True)))
        right += theirs.index(max(theirs)) == doc["gold"]
    accuracy = results["results"][TASK]["acc,none"]
    rows = [
        ("items, loglikelihoods", f"{len(samples)}, {len(samples) * items.CHOICES}"),
        ("accuracy by the harness, by transformers", f"{accuracy:.3f}, {right / len(samples):.3f}"),
        ("greedy answers", str(greedy)),
        ("loglikelihoods or greedy flags that differ", str(len(wrong))),
        (f"largest difference (bar: {TOLERANCE})", f"{worst:.1e}"),
    ]
    print("\nlm-evaluation-harness, local-completions\n" + table(rows))
    assert not wrong, wrong[:5]
    assert accuracy == right / len(samples)


def test_items_are_those_of_the_code() -> None:
    """The file has what items.py makes, and every item is sound."""
    assert items.FILE.read_text() == "".join(items.lines())
    made: list[dict[str, Any]] = items.items()
    assert len(made) == items.COUNT
    for item in made:
        assert len(set(item["choices"])) == items.CHOICES, item
        assert item["choices"][item["gold"]]


@pytest.mark.parametrize("output", [1, 0])
def test_requests(exact: Server, reference: Oracle, output: int) -> None:
    """The harness's request: lists of token ids, echoed with logprobs, one token or none.

    The harness leaves out the last entry, unseen, as that of the generated token; so that token has
    one even where it is the end (after "frog" it is).
    """
    pairs = [
        pair(reference, item["query"], choice)
        for item in items.items()[2:5]
        for choice in item["choices"]
    ]
    body = {
        "model": "heliograph",
        "prompt": [ids for ids, _ in pairs],
        "temperature": 0,
        "max_tokens": output,
        "logprobs": 1,
        "seed": 1234,
        "echo": True,
    }
    reply = send(exact.http, "completions", body)
    assert reply.status == 200, reply.error
    for (ids, context), choice in zip(pairs, reply.choices.values(), strict=True):
        assert choice.logprobs and len(choice.logprobs) == len(ids) + output
        entries = choice.logprobs[: len(ids)]
        assert entries[0]["logprob"] is None
        scored = reference.score(ids)
        found = [entry["logprob"] for entry in entries[1:]]
        for ours, theirs in zip(found, scored.logprobs, strict=True):
            assert abs(ours - theirs) <= TOLERANCE, (ours, theirs)
        value, greedy = likelihood(reference, ids, context)
        assert abs(sum(found[context - 1 :]) - value) <= TOLERANCE
        # The harness calls a token greedy when no rival has a higher value.
        tops = [max(entry["top_logprobs"].values()) for entry in entries[context:]]
        assert (found[context - 1 :] == tops) == greedy


def test_text_requests(exact: Server, reference: Oracle) -> None:
    """Texts in place of ids: the same token ids, the same values; `prompt_logprobs` agrees."""
    texts = [f"{item['query']} {item['gold']} 2024 café" for item in items.items()[:4]]
    body = {"prompt": texts, "echo": True, "logprobs": 5, "max_tokens": 0, "return_token_ids": True}
    reply = send(exact.http, "completions", body)
    for text, choice in zip(texts, reply.choices.values(), strict=True):
        ids = reference.encode(text)
        assert choice.prompt_token_ids == ids, text
        assert choice.prompt_logprobs and choice.logprobs
        scored = reference.score(ids)
        for place, wanted in enumerate(scored.logprobs, 1):
            position = choice.prompt_logprobs[place]
            assert position is not None
            chosen = position[str(ids[place])]
            assert abs(chosen["logprob"] - wanted) <= TOLERANCE
            assert chosen["logprob"] == choice.logprobs[place]["logprob"]
            assert (chosen["rank"] == 1) == (scored.best[place - 1] == ids[place])
            likeliest = min(position.values(), key=lambda one: one["rank"])
            assert likeliest["rank"] == 1
            assert position[str(scored.best[place - 1])] == likeliest


def test_generated(exact: Server, reference: Oracle) -> None:
    """Generated tokens on Chat: each logprob is transformers' value after the rendered prompt."""
    ask = {
        "messages": [{"role": "user", "content": "Name a color."}],
        "max_tokens": 6,
        "temperature": 1,
        "seed": 3,
        "logprobs": True,
        "top_logprobs": 1,
        "return_token_ids": True,
    }
    (choice,) = send(exact.http, "chat", ask).choices.values()
    assert choice.prompt_token_ids and choice.token_ids and choice.logprobs
    start = len(choice.prompt_token_ids)
    scored = reference.score([*choice.prompt_token_ids, *choice.token_ids])
    for entry, wanted in zip(choice.logprobs, scored.logprobs[start - 1 :], strict=True):
        assert abs(entry["logprob"] - wanted) <= TOLERANCE
