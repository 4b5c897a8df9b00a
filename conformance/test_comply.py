"""llm-comply, an outside suite that holds replies against the vendors' published documents."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llm_comply")

from conformance.models import MODELS
from conformance.server import Server

CALL = '{"name": "get_weather", "arguments": {"location": "SF"}}'
REPLIES: list[dict[str, Any]] = [
    {"match": "weather in San Francisco", "text": f"<tool_call>\n{CALL}\n</tool_call>"},
    {"match": "15 \\* 37", "text": "<think>\n15 * 37 is 555.\n</think>\n\n555"},
    {"match": "What is my name", "text": "Alice"},
    {"match": "Count from 1 to 5", "text": "1 2 3 4 5"},
]
IMAGES = "no vision model can be loaded yet"
ANTHROPIC = (
    "--format", "anthropic", "--auth-header", "x-api-key", "--no-bearer",
    "-H", "anthropic-version:2023-06-01", "-m", "claude-opus-5",
)  # fmt: skip
"""By this name, the test of thinking is not skipped."""
CHAT = ("--format", "openai-chat", "-m", "gpt-5")
RESPONSES = ("--format", "open-responses", "-m", "gpt-5")
EXPECTED: dict[tuple[str, ...], dict[str, str]] = {
    ANTHROPIC: {"anth-image-input": IMAGES},
    CHAT: {"chat-image-input": IMAGES},
    RESPONSES: {"image-input": IMAGES},
}
"""The tests that do not pass, and why not. All others do."""
NAMES = ("--model-names", "known", "--alias", "gpt-5", "--alias", "claude-opus-5")
"""A request without a model is an error to the suites; by default, the loaded one answers it."""
UNCITED = "missing 'annotations' field"
"""The only warning: the model does not cite, and Chat leaves out what is not there."""


@pytest.fixture
def server(start: Callable[..., Server], tmp_path: Path) -> Server:
    """A server whose model would pass."""
    folder = MODELS["thinker"].write(tmp_path / "thinker")
    return start(REPLIES, "--model", str(folder), "--max-context", "8192", *NAMES)


@pytest.mark.parametrize("options", EXPECTED, ids=lambda options: options[1])
def test_suite(options: tuple[str, ...], server: Server) -> None:
    """Every test passes but those that are named, none is skipped, and nothing is warned of."""
    finished = subprocess.run(
        [sys.executable, "-m", "llm_comply.cli", *options, "-u", f"{server.url}/v1", "-k", "x",
         "--json"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    report = json.loads(finished.stdout)
    results = {result["id"]: result for result in report["results"]}
    problems = {
        name: result
        for name, result in results.items()
        if name not in EXPECTED[options] and (result["status"] != "passed" or _warnings(result))
    }
    assert not problems, json.dumps(problems, indent=1)
    for name in EXPECTED[options]:
        assert results[name]["status"] == "failed", results[name]
    assert len(results) >= 9


def _warnings(result: dict[str, Any]) -> list[str]:
    return [text for text in result.get("warnings", ()) if not text.endswith(UNCITED)]
