"""Issue 6: Codex's patches on the real model, whose every complete one keeps to their grammar.

The grammar has the rules of Codex's own under other names; conformance/clients runs a few requests
under Codex's own text. The judge is another parser: lark, which knows nothing of token masks.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from conformance.bars import patches
from conformance.bench.measure import table
from conformance.server import Server

TOGETHER = 16
PATIENCE = 600  # seconds for a reply: sixteen share the machine with whatever else runs


def test_judge() -> None:
    """The judge tells patches from what only looks like them."""
    judge = patches.Judge(patches.GRAMMAR)
    assert {text: judge.accepts(text) for text in patches.SAMPLES} == patches.SAMPLES


@pytest.mark.bars
def test_a_hundred(embedded: Server) -> None:
    """100 patches, 200 tokens each at most."""
    _run(embedded, 100, 200)


def test_subset(embedded: Server) -> None:
    """Ten in the gate."""
    _run(embedded, 10, 96)


def _run(server: Server, count: int, tokens: int) -> None:
    begun = time.monotonic()
    asked = [patches.request(patches.GRAMMAR, number, tokens) for number in range(count)]
    with (
        httpx2.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client,
        ThreadPoolExecutor(TOGETHER) as threads,
    ):
        answers = list(threads.map(lambda body: _ask(client, body), asked))
    seconds = time.monotonic() - begun
    server.until_idle()
    judge = patches.Judge(patches.GRAMMAR)
    complete = [text for answer in answers if (text := patches.complete(answer)) is not None]
    wrong = [text for text in complete if not judge.accepts(text)]
    ends = Counter("complete" if patches.complete(one) is not None else "cut" for one in answers)
    kinds = Counter(line for text in complete for line in patches.kinds(text))
    rows = [(kind, str(number)) for kind, number in (ends + kinds).items()]
    made = sum(answer["usage"]["output_tokens"] for answer in answers)
    rows.append(("tokens in seconds", f"{made} in {seconds:.0f}"))
    print(f"\n{count} patches of up to {tokens} tokens, {len(wrong)} wrong\n" + table(rows))
    assert not wrong, "\n\n".join(wrong[:20])
    assert ends["complete"] >= count // 5, f"most are cut: {ends}"


def _ask(client: httpx2.Client, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/v1/responses", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer
