"""What the scripted model does when Claude Code asks, in one server for all scenarios.

A reply is chosen by the last message of a request, so a turn of a scenario comes only when the
result of the turn before has arrived as it should. Patterns hold the mark of the scenario's
workplace, which keeps scenarios apart.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.clients.claude_code import Workplace

MODES = ("bare", "full")
Reply = dict[str, Any]

THOUGHT = "The user wants it done, and there are tools for it. " * 8
"""Long enough to be seen in token counts, where a token is a byte."""
DONE = "That is done."
UNEXPECTED = "Nothing in the script answers this."
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
ECHO = "mcp__stub__echo"
AFTER_READ = "^Available agent types for the Agent tool"
"""What an agent is told behind the first result, in a system message."""
AGENTS = ("Read hello.py.", "Read hello.py once more.")


def call(name: str, **arguments: Any) -> str:
    """A call as the model of the profile thinker writes it."""
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


def reply(match: str, *parts: str) -> Reply:
    """A thought, then text or calls, for last messages with something in them."""
    said = "\n".join(parts)
    return {"match": match, "text": f"<think>\n{THOUGHT}\n</think>\n\n{said}"}


def opening(work: Workplace) -> str:
    """The first request, which ends with a system message in full mode, with the prompt in bare."""
    place = re.escape(str(work.folder))
    full = rf"^# Environment\n[\s\S]{{0,200}}working directory: {place}\n"
    return rf"{full}|^{work.mark}: "


def of_agent(work: Workplace) -> str:
    """The first request of a sub-agent, whose system message begins with other things."""
    place = re.escape(str(work.folder))
    return rf"^(?!# Environment)[\s\S]*working directory: {place}\n"


def fix(work: Workplace) -> list[Reply]:
    """Read, edit and test a file."""
    file = str(work.hello)
    edit = call("Edit", file_path=file, old_string='"hallo"', new_string='"hello"')
    test = call("Bash", command=f"{sys.executable} -m unittest -v", description="Run the test")
    return [
        reply(opening(work), "Let me see.", call("Read", file_path=file)),
        reply(rf"Says hello: {work.mark}\.", edit),
        reply(rf"{work.mark}/hello.py has been updated", test),
        reply(rf"{work.mark}\. \.\.\. ok[\s\S]*Ran 1 test", DONE),
    ]


def parallel(work: Workplace) -> list[Reply]:
    """Two calls in one turn, the first of which takes longer."""
    slow = call("Bash", command=f"sleep 0.5; echo one-{work.mark}", description="One")
    fast = call("Bash", command=f"echo two-{work.mark}", description="Two")
    return [
        reply(opening(work), slow, fast),
        reply(rf"^(one|two)-{work.mark}", DONE),
    ]


def search(work: Workplace) -> list[Reply]:
    """Find two deferred tools, then call one."""
    return [
        reply(opening(work), call("ToolSearch", query="select:CronDelete,CronList")),
        reply(r'"name": ?"CronList"', call("CronList")),
        reply(r"^No scheduled jobs", DONE),
    ]


def schema(work: Workplace) -> list[Reply]:
    """Answer in the form of --json-schema."""
    return [reply(opening(work), call("StructuredOutput", word=work.mark))]


def mcp(work: Workplace) -> list[Reply]:
    """Call the tool of an MCP server, which is deferred in full mode."""
    echo = call(ECHO, text=work.mark)
    last = reply(rf"^echo: {work.mark}", DONE)
    if work.mark.endswith("bare"):
        return [reply(opening(work), echo), last]
    return [
        reply(opening(work), call("ToolSearch", query=f"select:{ECHO}")),
        reply(rf"Says a text again: {work.mark}\.", echo),
        last,
    ]


def agents(work: Workplace) -> list[Reply]:
    """Have two agents read the file, each in a conversation of its own."""
    begin = [
        call("Agent", description="Read", prompt=prompt, subagent_type="general-purpose",
             run_in_background=False)
        for prompt in AGENTS
    ]  # fmt: skip
    return [
        reply(opening(work), *begin),
        reply(of_agent(work), call("Read", file_path=str(work.hello))),
        reply(AFTER_READ, f"Report of {work.mark}."),
        reply(rf"Report of {work.mark}\.", DONE),
    ]


def words(work: Workplace) -> list[Reply]:
    """Just answer."""
    return [reply(opening(work), DONE)]


def with_schema(work: Workplace) -> list[str]:
    return ["--json-schema", json.dumps(SCHEMA)]


def with_mcp(work: Workplace) -> list[str]:
    program = str(Path(__file__).parent / "mcp_echo.py")
    server = {"command": sys.executable, "args": [program, work.mark]}
    return ["--mcp-config", json.dumps({"mcpServers": {"stub": server}})]


def with_older_model(work: Workplace) -> list[str]:
    return ["--model", "claude-sonnet-4-5"]


@dataclass(frozen=True)
class Scenario:
    """What the model says, and what the user wants and asks for on the command line."""

    script: Callable[[Workplace], list[Reply]]
    options: Callable[[Workplace], list[str]] = lambda work: []
    modes: Sequence[str] = MODES
    prompt: str = "{mark}: please do it."


SCENARIOS = {
    "fix": Scenario(fix),
    "parallel": Scenario(parallel),
    "search": Scenario(search, modes=["full"]),
    "schema": Scenario(schema, with_schema),
    "mcp": Scenario(mcp, with_mcp),
    "agents": Scenario(agents, modes=["full"]),
    "older": Scenario(words, with_older_model, ["bare"]),
    "context": Scenario(words, modes=["full"], prompt="/context"),
}

BIG_CALLS = 4


def overflow(mark: str) -> list[Reply]:
    """Call for one big output after another; go on with the last one behind a summary.

    Each reply waits for the output of the call before, whose words have its number.
    """

    def big(number: int) -> str:
        command = f"printf '{mark}{number}%.0s ' {{1..700}}"
        return call("Bash", command=command, description="Much")

    steps = [reply(rf"^{mark}{n} ", big(n + 1)) for n in range(1, BIG_CALLS)]
    return [
        reply("create a detailed summary", "<summary>\nThere was much.\n</summary>"),
        reply(rf"^{mark}: ", big(1)),
        *steps,
        reply(rf"^{mark}{BIG_CALLS} ", DONE),
    ]
