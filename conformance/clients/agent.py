"""Claude Code on a server whose script has every scenario, and what holds for each of its runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from conformance.clients import claude_code
from conformance.clients.claude_code import Run, Workplace
from conformance.clients.recorder import Exchange
from conformance.clients.scenarios import SCENARIOS, UNEXPECTED, Reply
from conformance.models import THINKER
from conformance.server import Server

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
PAGE = 16
SHARE = 0.9
"""Of a prompt, the least that comes from the prefix cache when a turn went before."""

# A full request is 50 KB and a token is a byte: wide steps make prompts of that size cheap.
_WIDE = ("--prefill-chunk", "16384", "--max-batch-tokens", "32768")
_ROOMY = ("--max-context", "400000", "--kv-tokens", "2000000")


@contextmanager
def scripted(folder: Path, replies: Sequence[Reply], *options: str) -> Iterator[Server]:
    """A server with these replies of a model that thinks; without options, it has room for all."""
    script = folder / "script.json"
    script.write_text(json.dumps({"replies": [*replies, {"text": UNEXPECTED}]}))
    model = THINKER.write(folder / "model")
    always = ("--scripted", str(script), "--model", str(model), *_WIDE)
    with Server(*always, *(options or _ROOMY)) as server:
        yield server


class Agent:
    """Runs each scenario once, however many tests look at it."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._runs: dict[tuple[str, str], Run] = {}
        self.url = ""

    def replies(self) -> list[Reply]:
        """The script of all scenarios in all modes."""
        return [
            reply
            for name, scenario in SCENARIOS.items()
            for mode in scenario.modes
            for reply in scenario.script(self._work(name, mode))
        ]

    def ran(self, name: str, mode: str) -> Run:
        """The run of a scenario."""
        if (name, mode) not in self._runs:
            work, scenario = self._work(name, mode), SCENARIOS[name]
            work.make()
            self._runs[name, mode] = claude_code.run(
                self._program,
                self.url,
                work,
                scenario.prompt.format(mark=work.mark),
                *(["--bare"] if mode == "bare" else []),
                *scenario.options(work),
            )
        return self._runs[name, mode]

    def _work(self, name: str, mode: str) -> Workplace:
        return Workplace(self._folder / f"{name}-{mode}")


def turns(run: Run, count: int) -> list[Exchange]:
    """The turns of a run that went as it should: every request was a turn, and none came twice.

    A client that does not understand an answer asks again, at worst without streaming.
    """
    assert run.status == 0 and not run.result["is_error"], f"{run.result}\n{run.errors}"
    said = [(one.method, one.path, one.status) for one in run.exchanges]
    assert said == [("POST", MESSAGES, 200)] * count, said
    for one in run.exchanges:
        assert one.body["stream"] is True
        assert one.whole and one.events[-1]["type"] == "message_stop"
        assert UNEXPECTED not in one.text, one.body["messages"][-1]
    return run.exchanges


def check_reuse(thread: Sequence[Exchange]) -> None:
    """From the second turn of a conversation on, nothing of the prompt before is computed again."""
    for before, after in pairwise(thread):
        assert after.cached_tokens > before.prompt_tokens - PAGE, "the prompt has changed"
        assert after.cached_tokens >= SHARE * after.prompt_tokens


def results(exchange: Exchange) -> list[dict[str, Any]]:
    """The results that a request ends with; system messages may follow them."""
    last = next(m for m in reversed(exchange.body["messages"]) if m["role"] == "user")
    return [block for block in last["content"] if block["type"] == "tool_result"]


def tool_names(exchange: Exchange, *, deferred: bool) -> set[str]:
    """The tools of a request, those whose definition is to wait or the others."""
    tools = exchange.body["tools"]
    return {tool["name"] for tool in tools if bool(tool.get("defer_loading")) is deferred}
