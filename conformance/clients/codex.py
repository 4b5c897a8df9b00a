"""Codex as a user runs it: the program, in a home and a repository that are thrown away."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from conformance.clients import program as programs
from conformance.clients.recorder import Exchange, Recorder
from conformance.clients.workplace import Workplace

VARIABLE = "HELIOGRAPH_CODEX"
Metadata = Literal["catalogue", "fallback", "oss", "builtin"]
"""Where Codex learns of the model: from the server's list, from nowhere, in the way of a provider
that it knows, or from its own list, as if the server were OpenAI's."""

_PROVIDER = """model_provider = "heliograph"
[model_providers.heliograph]
name = "Heliograph"
base_url = "{url}/v1"
"""
# The list is asked for with a key only, whatever it is.
_CATALOGUE = """model_catalog_url = "{url}/v1/models"
experimental_bearer_token = "any"
"""
_CONFIGS: dict[Metadata, str] = {
    "catalogue": _PROVIDER + _CATALOGUE,
    "fallback": _PROVIDER,
    "oss": "",
    "builtin": 'openai_base_url = "{url}/v1"\n',
}
_QUIET = """[analytics]
enabled = false
[features]
plugins = false
"""
"""Nobody else is asked for anything."""


def find() -> Path | None:
    """The program, where it is installed."""
    return programs.find("codex", VARIABLE)


@dataclass(frozen=True)
class Run:
    """What Codex said, event by event, and all that went over the wire."""

    work: Workplace
    status: int
    events: list[dict[str, Any]]
    errors: str
    exchanges: list[Exchange]
    seconds: float

    @property
    def said(self) -> str:
        """The last message of the agent."""
        items = [event["item"] for event in self.events if event["type"] == "item.completed"]
        return str([item["text"] for item in items if item["type"] == "agent_message"][-1])


def run(
    program: Path,
    server_url: str,
    work: Workplace,
    arguments: Sequence[str],
    metadata: Metadata = "fallback",
    seconds: float = 120,
) -> Run:
    """Run `codex exec` to its end; one that takes longer than `seconds` is killed and fails."""
    command = [str(program), "exec", "--json", "--dangerously-bypass-approvals-and-sandbox"]
    with Recorder(server_url) as recorder:
        home = work.home / ".codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(_CONFIGS[metadata].format(url=recorder.url) + _QUIET)
        environment = work.environment() | {
            "CODEX_HOME": str(home),
            "CODEX_API_KEY": "any",
            "CODEX_OSS_BASE_URL": f"{recorder.url}/v1",
        }
        ended = programs.run_to_end(
            [*command, *arguments], work.folder, environment, recorder, seconds
        )
        events = [json.loads(line) for line in ended.output.splitlines()]
        return Run(work, ended.status, events, ended.errors, recorder.exchanges(), ended.seconds)
