"""Codex on a server whose script has every scenario, and what holds for each of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from conformance.clients import codex
from conformance.clients.agent import PAGE
from conformance.clients.codex import Run
from conformance.clients.codex_scenarios import SCENARIOS
from conformance.clients.recorder import Exchange
from conformance.clients.scenarios import UNEXPECTED, Reply
from conformance.clients.workplace import Workplace

RESPONSES = "/v1/responses"
UPGRADE = f"GET {RESPONSES}"
LOOKUPS = {
    "fallback": [],
    "catalogue": ["GET /v1/models"],
    "ollama": ["GET /v1/models", "GET /api/version", "GET /api/tags"],
    "lmstudio": ["GET /v1/models", f"POST {RESPONSES}"],
    "builtin": [UPGRADE],
}
"""What Codex asks before its first turn, by what it knows of the model; each once or twice."""


class CodexAgent:
    """Runs each scenario once, however many tests look at it."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._runs: dict[str, list[Run]] = {}
        self.url = ""

    def replies(self) -> list[Reply]:
        """The script of all scenarios."""
        return [
            reply
            for name, scenario in SCENARIOS.items()
            for reply in scenario.script(self._work(name))
        ]

    def ran(self, name: str) -> Run:
        """The run of a scenario, its last one where a session is resumed."""
        return self.runs(name)[-1]

    def runs(self, name: str) -> list[Run]:
        """The runs of a scenario: two where a session is resumed."""
        if name not in self._runs:
            work, scenario = self._work(name), SCENARIOS[name]
            work.make()
            shared = ["-m", scenario.model, *scenario.options(work)]
            wanted = [[*shared, f"{work.mark}: please do it."]]
            if scenario.then is not None:
                wanted.append(["resume", "--last", *shared, f"{work.mark}: {scenario.then}"])
            self._runs[name] = [
                codex.run(self._program, self.url, work, arguments, scenario.metadata)
                for arguments in wanted
            ]
        return self._runs[name]

    def _work(self, name: str) -> Workplace:
        return Workplace(self._folder / f"{name}-codex")


def turns(run: Run, count: int, lookups: str = "catalogue") -> list[Exchange]:
    """The turns of a run that went as it should: no request came twice, and none failed.

    A client that does not understand an answer asks again, or drops what it has not understood.
    """
    assert run.status == 0, f"{run.events}\n{run.errors}"
    assert run.events[-1]["type"] == "turn.completed", run.events
    said = [(f"{one.method} {one.path}", one.status) for one in run.exchanges]
    assert all(status == (426 if name == UPGRADE else 200) for name, status in said), said
    looked, asked = run.exchanges[:-count], run.exchanges[-count:]
    assert list(dict.fromkeys(name for name, _ in said[:-count])) == LOOKUPS[lookups], said
    assert not any(one.body and one.body.get("stream") for one in looked), said
    for one in asked:
        assert (one.method, one.path, one.body["stream"]) == ("POST", RESPONSES, True)
        assert one.whole and one.events[-1]["type"] == "response.completed"
        assert UNEXPECTED not in str(items(one)), one.body["input"][-1]
    return asked


def check_reuse(thread: Sequence[Exchange]) -> None:
    """From the second turn on, nothing that was said before is computed again.

    What was said are the prompt and the answer of the turn before, of which whole pages are kept;
    the last token was drawn, but nothing has been computed from it.
    """
    for before, after in pairwise(thread):
        said = before.prompt_tokens + before.output_tokens - 1
        kept = said - said % PAGE
        assert after.cached_tokens == kept, f"{after.cached_tokens} of {kept}: the prompt changed"


def items(exchange: Exchange) -> list[dict[str, Any]]:
    """The items of an answer."""
    found: list[dict[str, Any]] = exchange.events[-1]["response"]["output"]
    return found


def item(exchange: Exchange, kind: str) -> dict[str, Any]:
    """The only item of a kind in an answer."""
    (found,) = (one for one in items(exchange) if one["type"] == kind)
    return found


def results(exchange: Exchange) -> list[dict[str, Any]]:
    """The results that a request ends with."""
    sent = exchange.body["input"]
    first = max(n for n, one in enumerate(sent) if not one["type"].endswith("_output"))
    return list(sent[first + 1 :])


def tool(exchange: Exchange, name: str) -> dict[str, Any]:
    """The tool of a name, or of a kind, in a request."""
    (found,) = (one for one in exchange.body["tools"] if name in (one["type"], one.get("name")))
    return dict(found)


def commands(run: Run) -> list[tuple[str, int]]:
    """The output and the exit status of each command that it ran."""
    done = (event["item"] for event in run.events if event["type"] == "item.completed")
    ran = [one for one in done if one["type"] == "command_execution"]
    return [(one["aggregated_output"], one["exit_code"]) for one in ran]
