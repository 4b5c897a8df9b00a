"""Claude Code as a user runs it: the program, in a home and a repository that are thrown away."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.clients import program as programs
from conformance.clients.recorder import Exchange, Recorder
from conformance.clients.workplace import Workplace

VARIABLE = "HELIOGRAPH_CLAUDE"
_ENVIRONMENT = {
    "TERM": "xterm",
    "LANG": "C.UTF-8",
    "ANTHROPIC_API_KEY": "any",
    "IS_SANDBOX": "1",  # else root may not skip permissions
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


def find() -> Path | None:
    """The program, where it is installed."""
    return programs.find("claude", VARIABLE)


@dataclass(frozen=True)
class Run:
    """What Claude Code said at its end, and all that went over the wire."""

    work: Workplace
    status: int
    result: dict[str, Any]
    errors: str
    exchanges: list[Exchange]
    seconds: float


def run(
    program: Path,
    server_url: str,
    work: Workplace,
    prompt: str,
    *options: str,
    variables: dict[str, str] | None = None,
    seconds: float = 120,
) -> Run:
    """Run `claude -p` to its end; one that takes longer than `seconds` is killed and fails."""
    command = [str(program), "-p", "--dangerously-skip-permissions", "--output-format", "json"]
    command += ["--model", "any", *options, "--", prompt]
    with Recorder(server_url) as recorder:
        environment = work.environment() | _ENVIRONMENT | {"ANTHROPIC_BASE_URL": recorder.url}
        environment |= variables or {}
        ended = programs.run_to_end(command, work.folder, environment, recorder, seconds)
        result, exchanges = json.loads(ended.output), recorder.exchanges()
    return Run(work, ended.status, result, ended.errors, exchanges, ended.seconds)
