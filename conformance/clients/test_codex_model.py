"""Codex on the real model, and the real model under Codex's own grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance import profiles
from conformance.bars import patches
from conformance.clients import codex
from conformance.clients.codex_agent import RESPONSES, CodexAgent, tool, turns
from conformance.clients.workplace import Workplace
from conformance.server import Server

WINDOW = 8192
WORDS = ("hello", "goodbye")
SCHEMA = {
    "type": "object",
    "properties": {"word": {"enum": WORDS}},
    "required": ["word"],
    "additionalProperties": False,
}


@pytest.fixture
def talker() -> Iterator[Server]:
    """The real model without tools, since it calls whatever comes to its mind, and never ends."""
    with Server(*profiles.MODEL, "--dialect", "plain") as server:
        yield server


def test_embedded(codex_program: Path, talker: Server, tmp_path: Path) -> None:
    """A turn on the real model.

    The answer has a form, so that it ends: Codex sets no limit, and takes the server's for a
    failure.
    """
    work = Workplace(tmp_path / "real")
    work.make()
    schema = work.home / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    name = talker.http.get("/v1/models").json()["data"][0]["id"]
    arguments = ["-m", name, "--output-schema", str(schema), "Say hello."]
    run = codex.run(codex_program, talker.url, work, arguments, "catalogue", seconds=300)
    (only,) = turns(run, 1)
    assert only.prompt_tokens > 500
    assert json.loads(run.said)["word"] in WORDS


def test_room(codex_agent: CodexAgent, real: Server) -> None:
    """What Codex says before a conversation, tools included, leaves half of a small window."""
    first = turns(codex_agent.ran("fix"), 4)[0]
    body = {name: first.body[name] for name in ("input", "tools")}
    count = real.http.post(f"{RESPONSES}/input_tokens", json=body).json()["input_tokens"]
    assert 1000 < count < WINDOW // 2


def test_grammar(codex_agent: CodexAgent, real: Server) -> None:
    """Patches under the grammar that Codex sent keep to it, and so to that of the bar."""
    first = turns(codex_agent.ran("fix"), 4)[0]
    grammar = tool(first, "apply_patch")["format"]["definition"]
    judges = [patches.Judge(grammar), patches.Judge(patches.GRAMMAR)]
    asked = [patches.request(grammar, number, 64) for number in range(4)]
    with ThreadPoolExecutor(len(asked)) as threads:
        made = list(threads.map(lambda body: _patch(real, body), asked))
    complete = [patch for patch in made if patch is not None]
    assert len(complete) >= 2
    for text, good in (*((patch, True) for patch in complete), *patches.SAMPLES.items()):
        assert [judge.accepts(text) for judge in judges] == [good, good], text


def _patch(server: Server, body: dict[str, object]) -> str | None:
    response = server.http.post(RESPONSES, json=body, timeout=300)
    assert response.status_code == 200, response.text
    return patches.complete(response.json())
