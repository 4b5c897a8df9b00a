"""Codex on the real model, and the real model under Codex's own grammar."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2

from conformance.bars import patches
from conformance.clients import codex
from conformance.clients.codex_agent import CodexAgent, tool, turns
from conformance.clients.workplace import Workplace
from conformance.server import Server

LEAN = (
    "features.goals=false",
    "features.view_image=false",
    "agents.enabled=false",
    "skills.include_instructions=false",
    'web_search="disabled"',
)
"""What README.md advises for a small window."""
WORDS = ("hello", "goodbye")


def test_embedded(codex_program: Path, real: Server, tmp_path: Path) -> None:
    """A turn within the model's 8,192 tokens.

    The answer has a form, since Codex sets no limit and takes one that is reached for a failure.
    """
    work = Workplace(tmp_path / "real")
    work.make()
    schema = work.home / "schema.json"
    schema.write_text(json.dumps({"type": "object", "properties": {"word": {"enum": WORDS}},
                                  "required": ["word"], "additionalProperties": False}))  # fmt: skip
    lean = [part for option in LEAN for part in ("-c", option)]
    name = real.http.get("/v1/models").json()["data"][0]["id"]
    arguments = ["-m", name, *lean, "--output-schema", str(schema), "Say hello."]
    run = codex.run(codex_program, real.url, work, arguments, "catalogue", seconds=300)
    (only,) = turns(run, 1)
    assert 1000 < only.prompt_tokens < 8192
    assert json.loads(run.said)["word"] in WORDS
    assert sum(event["type"] == "turn.completed" for event in run.events) == 1


def test_grammar(codex_agent: CodexAgent, real: Server) -> None:
    """Patches under the grammar that Codex sent keep to it, and so to that of the bar."""
    first = turns(codex_agent.ran("fix"), 4)[0]
    grammar = tool(first, "apply_patch")["format"]["definition"]
    own, ours = patches.Judge(grammar), patches.Judge(patches.GRAMMAR)
    made = []
    with httpx2.Client(base_url=real.url, timeout=300, trust_env=False) as client:
        for number in range(5):
            body = patches.request(grammar, number, 96)
            response = client.post("/v1/responses", json=body)
            assert response.status_code == 200, response.text
            made.append(patches.complete(response.json()))
    patches_made = [patch for patch in made if patch is not None]
    assert len(patches_made) >= 3
    assert all(own.accepts(patch) and ours.accepts(patch) for patch in patches_made)
