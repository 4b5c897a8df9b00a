"""What the scripted model does when Codex asks, in one server for all scenarios.

As in scenarios.py, a reply is chosen by the last message or result of a request, and patterns hold
the mark of the scenario's workplace.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.clients.codex import Metadata
from conformance.clients.scenarios import DONE, SCHEMA, Reply, call, reply
from conformance.clients.workplace import Workplace

MODEL = "model"
"""The name of the scripted model, which is that of its folder."""
BUILTIN, LITE = "gpt-5.5", "gpt-6.2-sol"
"""Models of Codex's own list; the tools of the second are in an item of the input."""
PATCH = """*** Begin Patch
*** Update File: hello.py
@@ def greeting():
-    return "hallo"
+    return "hello"
*** End Patch
"""
UNITTEST = f"{sys.executable} -m unittest -v"
SUMMARY = "There is a greeting, and much was printed."
NOTE = "The user wants it done, and long words were printed."
AGAIN = "and once more."
BIG = 12_000
"""Tokens of a result after which a conversation is to be summed up."""


def opening(work: Workplace) -> str:
    return f"^{work.mark}: "


def tested(work: Workplace) -> str:
    """The output of UNITTEST where the greeting is right."""
    return rf"Greets in English: {work.mark}\. \.\.\. ok[\s\S]*Ran 1 test"


def fix(work: Workplace) -> list[Reply]:
    """Change a file by a patch, then run its test."""
    return [
        reply(opening(work), "Let me see.", call("exec_command", cmd="cat hello.py")),
        reply(rf"Says hello: {work.mark}\.", call("apply_patch", input=PATCH)),
        reply(
            r"Success\. Updated the following files:\nM hello\.py",
            call("exec_command", cmd=UNITTEST),
        ),
        reply(tested(work), DONE),
    ]


def command(work: Workplace) -> list[Reply]:
    """One command."""
    said = call("exec_command", cmd=f"echo one-{work.mark}")
    return [reply(opening(work), said), reply(rf"\none-{work.mark}\n", DONE)]


def parallel(work: Workplace) -> list[Reply]:
    """Two calls in one turn, the first of which takes longer."""
    slow = call("exec_command", cmd=f"sleep 0.5; echo one-{work.mark}")
    fast = call("exec_command", cmd=f"echo two-{work.mark}")
    return [reply(opening(work), slow, fast), reply(rf"\ntwo-{work.mark}\n", DONE)]


def mcp(work: Workplace) -> list[Reply]:
    """Call the tool of an MCP server."""
    said = call("mcp__stub__echo", text=work.mark)
    return [reply(opening(work), said), reply(rf"echo: {work.mark}", DONE)]


def search(work: Workplace) -> list[Reply]:
    """Find the tool of an MCP server, then call it."""
    return [
        reply(opening(work), call("tool_search", query="echo a text", limit=2)),
        reply(rf"Says a text again: {work.mark}\.", call("mcp__stub__echo", text=work.mark)),
        reply(rf"echo: {work.mark}", DONE),
    ]


def schema(work: Workplace) -> list[Reply]:
    """Answer in the form of --output-schema."""
    return [reply(opening(work), json.dumps({"word": work.mark}))]


def compaction(work: Workplace) -> list[Reply]:
    """Print more than there may be without a summary, then go on behind the summary."""
    big = f"printf '{work.mark} %.0s' {{1..{BIG // len(work.mark)}}}"
    return [
        reply(opening(work), call("exec_command", cmd=big, max_output_tokens=BIG)),
        reply(f"{work.mark} {work.mark} ", call("exec_command", cmd=f"echo two-{work.mark}")),
        reply("^You are performing a CONTEXT CHECKPOINT COMPACTION", SUMMARY),
        reply(rf"^Another language model[\s\S]*{SUMMARY}", DONE),
    ]


def remote(work: Workplace) -> list[Reply]:
    """The same where the server makes the summary, which is sealed."""
    big, then, _, _ = compaction(work)
    record = rf"^The record of the session:[\s\S]*{work.mark}"
    return [{"match": record, "text": NOTE}, big, then, reply(NOTE, DONE)]


def resume(work: Workplace) -> list[Reply]:
    """Just answer, twice; without thoughts, which the template forgets behind a question."""
    return [{"match": f"^{work.mark}: (please|{AGAIN})", "text": DONE}]


def words(work: Workplace) -> list[Reply]:
    """Just answer."""
    return [reply(opening(work), DONE)]


def lite(work: Workplace) -> list[Reply]:
    """The same as `fix` for a model whose only tool is a program in JavaScript."""
    patch = f"text(await tools.apply_patch({json.dumps(PATCH)}))"
    test = f"const r = await tools.exec_command({{cmd: {json.dumps(UNITTEST)}}}); text(r.output)"
    return [
        reply(opening(work), call("functions__exec", input=patch)),
        reply(r"Script completed[\s\S]*\{\}", call("functions__exec", input=test)),
        reply(tested(work), DONE),
    ]


def with_mcp(work: Workplace) -> list[str]:
    program = str(Path(__file__).parent / "mcp_echo.py")
    options = {"command": sys.executable, "args": [program, work.mark]}
    return [
        part
        for key, value in options.items()
        for part in ("-c", f"mcp_servers.stub.{key}={json.dumps(value)}")
    ]


def with_schema(work: Workplace) -> list[str]:
    file = work.home / "schema.json"
    file.write_text(json.dumps(SCHEMA | {"additionalProperties": False}))
    return ["--output-schema", str(file)]


def limited(tokens: int) -> Callable[[Workplace], list[str]]:
    """Where a conversation is to be summed up: behind a BIG result, not before."""
    return lambda work: ["-c", f"model_auto_compact_token_limit={tokens}"]


def through(provider: str) -> Callable[[Workplace], list[str]]:
    """A provider that Codex knows."""
    return lambda work: ["--oss", "--local-provider", provider]


def nothing(work: Workplace) -> list[str]:
    return []


@dataclass(frozen=True)
class Scenario:
    """What the model says, how Codex is told of it, and what else is on the command line.

    `then` is the prompt with which the session is resumed.
    """

    script: Callable[[Workplace], list[Reply]]
    metadata: Metadata = "catalogue"
    model: str = MODEL
    options: Callable[[Workplace], Sequence[str]] = nothing
    then: str | None = None


SCENARIOS = {
    "fix": Scenario(fix),
    "command": Scenario(command, "fallback", "any"),
    "parallel": Scenario(parallel),
    "mcp": Scenario(mcp, "fallback", "any", with_mcp),
    "search": Scenario(search, options=with_mcp),
    "schema": Scenario(schema, options=with_schema),
    "compaction": Scenario(compaction, options=limited(20_000)),
    "remote": Scenario(remote, "builtin", BUILTIN, limited(42_000)),
    "resume": Scenario(resume, then=AGAIN),
    "ollama": Scenario(command, "oss", options=through("ollama")),
    "lmstudio": Scenario(command, "oss", options=through("lmstudio")),
    "lite": Scenario(lite, "fallback", LITE),
}
