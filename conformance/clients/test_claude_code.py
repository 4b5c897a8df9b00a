"""Claude Code works: unmodified, offline, against a server whose model follows a script."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conformance.clients.agent import (
    COUNT,
    PAGE,
    Agent,
    check_reuse,
    results,
    tool_names,
    turns,
)
from conformance.clients.recorder import Exchange
from conformance.clients.scenarios import AGENTS, DONE, ECHO, MODES, SCENARIOS, THOUGHT
from conformance.clients.unlisted import unlisted

both = pytest.mark.parametrize("mode", MODES)


@both
def test_fix(agent: Agent, mode: str) -> None:
    """Read, Edit and Bash over four turns: the file has changed, and its test passes."""
    run = agent.ran("fix", mode)
    thread = turns(run, 4)
    assert run.result["result"] == DONE and run.result["num_turns"] == 4
    assert 'return "hello"' in run.work.hello.read_text()
    test = [sys.executable, "-m", "unittest"]
    subprocess.run(test, cwd=run.work.folder, env=run.work.environment(), check=True)
    check_reuse(thread)


@both
def test_thoughts(agent: Agent, mode: str) -> None:
    """A thought that the client may not read comes back sealed, and is in the next prompt again.

    A token is a byte here: what the cache still has after the first prompt is the thought and more.
    """
    first, second = turns(agent.ran("fix", mode), 4)[:2]
    assert first.body["thinking"] == {"type": "adaptive", "display": "omitted"}
    thought = first.blocks[0]
    assert thought["type"] == "thinking" and thought["thinking"] == "" and thought["signature"]
    assert "thinking_delta" not in str(first.events)
    replayed = next(m for m in second.body["messages"] if m["role"] == "assistant")
    assert replayed["content"][0] == thought
    assert second.cached_tokens > first.prompt_tokens + len(THOUGHT) - PAGE


@both
def test_parallel(agent: Agent, mode: str) -> None:
    """Two calls in one turn: both run, and both results are in the next request."""
    run = agent.ran("parallel", mode)
    first, second = turns(run, 2)
    calls = [block["id"] for block in first.blocks if block["type"] == "tool_use"]
    told = {block["tool_use_id"]: block["content"] for block in results(second)}
    assert told == dict(zip(calls, (f"one-{run.work.mark}", f"two-{run.work.mark}"), strict=True))
    assert run.result["result"] == DONE
    check_reuse([first, second])


def test_search(agent: Agent) -> None:
    """A deferred tool enters the prompt where a search finds it, and can be called then."""
    first, second, third = turns(agent.ran("search", "full"), 3)
    found = {"CronDelete", "CronList"}
    assert not found & tool_names(first, deferred=True)
    assert found <= tool_names(second, deferred=True)
    (result,) = results(second)
    assert {block["tool_name"] for block in result["content"]} == found
    definitions = [t["description"] for t in second.body["tools"] if t["name"] in found]
    grown = second.prompt_tokens - first.prompt_tokens
    assert grown > sum(map(len, definitions)), "the definitions are not in the prompt"
    (answer,) = results(third)
    assert answer["content"] == "No scheduled jobs." and not answer.get("is_error")
    check_reuse([first, second, third])


@both
def test_schema(agent: Agent, mode: str) -> None:
    """--json-schema: the answer is a call of StructuredOutput."""
    run = agent.ran("schema", mode)
    (only,) = turns(run, 1)
    assert "StructuredOutput" in tool_names(only, deferred=False)
    assert run.result["structured_output"] == {"word": run.work.mark}


@both
def test_mcp(agent: Agent, mode: str) -> None:
    """The tool of an MCP server: in bare mode it is there at once, in full mode it is searched."""
    run = agent.ran("mcp", mode)
    thread = turns(run, 2 if mode == "bare" else 3)
    assert (ECHO in tool_names(thread[0], deferred=False)) is (mode == "bare")
    (result,) = results(thread[-1])
    assert result["content"] == [{"type": "text", "text": f"echo: {run.work.mark}"}]
    assert run.result["result"] == DONE
    check_reuse(thread)


def test_agents(agent: Agent) -> None:
    """Two agents work at the same time, in conversations of their own, and report."""
    run = agent.ran("agents", "full")
    threads: dict[str, list[Exchange]] = {}
    for one in turns(run, 2 + 2 * len(AGENTS)):
        threads.setdefault(one.body["messages"][0]["content"][-1]["text"], []).append(one)
    assert [len(thread) for thread in threads.values()] == [2] * (1 + len(AGENTS))
    assert set(AGENTS) <= set(threads)
    main = threads[f"{run.work.mark}: please do it."]
    assert all(f"Report of {run.work.mark}." in str(result) for result in results(main[1]))
    assert len(results(main[1])) == len(AGENTS) and run.result["result"] == DONE
    for prompt in AGENTS:
        (read,) = results(threads[prompt][1])
        assert f"Says hello: {run.work.mark}." in read["content"]
    for thread in threads.values():
        check_reuse(thread)


def test_older_model(agent: Agent) -> None:
    """For an older model's name it sends a budget for thoughts in place of an effort."""
    run = agent.ran("older", "bare")
    (only,) = turns(run, 1)
    assert only.body["thinking"]["type"] == "enabled" and only.body["thinking"]["budget_tokens"]
    assert run.result["result"] == DONE


def test_context(agent: Agent) -> None:
    """/context counts the tokens of what it would send, with many requests at once."""
    run = agent.ran("context", "full")
    assert run.status == 0 and "Context Usage" in run.result["result"]
    assert {(one.method, one.path, one.status) for one in run.exchanges} == {("POST", COUNT, 200)}
    assert len(run.exchanges) > 10


def test_fields(agent: Agent) -> None:
    """Every field that it sends has a disposition: none is handled by silence."""
    runs = [agent.ran(name, mode) for name, one in SCENARIOS.items() for mode in one.modes]
    unknown: set[str] = set()
    for one in (exchange for run in runs for exchange in run.exchanges):
        schema = "CountTokensRequest" if one.path == COUNT else "MessagesRequest"
        unknown |= unlisted(one.body, "messages", schema)
    assert not unknown


def test_unlisted() -> None:
    """What finds such fields finds them, in the kind of block that they are in."""
    text = {"type": "text", "text": "a", "citations": None, "shade": 1}
    call = {"type": "tool_use", "id": "c", "name": "t", "input": {"any": 1}, "text": "b"}
    messages = [{"role": "user", "content": [text]}, {"role": "assistant", "content": [call]}]
    body = {"messages": messages, "metadata": {"any": 1}, "taste": 2}
    found = {"taste", "messages[].content[].shade", "messages[].content[].text"}
    assert unlisted(body, "messages", "MessagesRequest") == found
