"""Codex works: unmodified, offline, against a server whose model follows a script."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from conformance.clients.agent import PAGE
from conformance.clients.codex_agent import (
    CodexAgent,
    check_reuse,
    commands,
    item,
    items,
    results,
    tool,
    turns,
)
from conformance.clients.codex_scenarios import BIG, LITE, MODEL, SCENARIOS, SUMMARY
from conformance.clients.scenarios import DONE, THOUGHT
from conformance.clients.unlisted import unlisted


def test_fix(codex_agent: CodexAgent) -> None:
    """A command, a patch and a test over four turns: the file has changed, and its test passes.

    The patch is a custom tool's text under Codex's own grammar.
    """
    run = codex_agent.ran("fix")
    thread = turns(run, 4)
    form = tool(thread[0], "apply_patch")["format"]
    assert form["type"] == "grammar" and form["syntax"] == "lark"
    patch = item(thread[1], "custom_tool_call")
    assert patch["name"] == "apply_patch" and patch["input"].startswith("*** Begin Patch\n")
    assert 'return "hello"' in run.work.hello.read_text() and run.said == DONE
    test = [sys.executable, "-m", "unittest"]
    subprocess.run(test, cwd=run.work.folder, env=run.work.environment(), check=True)
    check_reuse(thread)


def test_catalogue(codex_agent: CodexAgent) -> None:
    """The server's list of models says what Codex wants to know: no metadata are made up."""
    run = codex_agent.ran("fix")
    (entry,) = json.loads(run.exchanges[0].answer)["models"]
    first = turns(run, 4)[0]
    assert first.body["model"] == entry["slug"] == MODEL
    (text,) = first.body["input"][0]["content"]
    assert text["text"] == entry["base_instructions"]
    assert "metadata" not in str([event for event in run.events if "error" in str(event)])


def test_thoughts(codex_agent: CodexAgent) -> None:
    """A thought comes back, sealed and in clear, and is in the next prompt again.

    A token is a byte here: what the cache still has after the first prompt is the thought and more.
    """
    first, second = turns(codex_agent.ran("fix"), 4)[:2]
    assert first.body["include"] == ["reasoning.encrypted_content"]
    thought = item(first, "reasoning")
    assert thought["encrypted_content"] and thought["content"][0]["text"].strip() == THOUGHT
    (replayed,) = (one for one in second.body["input"] if one["type"] == "reasoning")
    same = ("id", "content", "encrypted_content", "summary")
    assert [replayed[name] for name in same] == [thought[name] for name in same]
    assert second.cached_tokens > first.prompt_tokens + len(THOUGHT) - PAGE


def test_command(codex_agent: CodexAgent) -> None:
    """With nothing but the server's address, Codex takes its metadata of unknown models."""
    run = codex_agent.ran("command")
    first, second = turns(run, 2, "fallback")
    assert first.body["model"] == "any" and len(str(first.body["tools"])) > 10_000
    assert commands(run) == [(f"one-{run.work.mark}\n", 0)] and run.said == DONE
    check_reuse([first, second])


def test_parallel(codex_agent: CodexAgent) -> None:
    """Two calls in one turn: both run, and both results are in the next request."""
    run = codex_agent.ran("parallel")
    first, second = turns(run, 2)
    calls = [one["call_id"] for one in items(first) if one["type"] == "function_call"]
    told = {one["call_id"]: one["output"].splitlines()[-1] for one in results(second)}
    assert told == dict(zip(calls, (f"one-{run.work.mark}", f"two-{run.work.mark}"), strict=True))
    assert run.said == DONE
    check_reuse([first, second])


def test_mcp(codex_agent: CodexAgent) -> None:
    """The tool of an MCP server is one name to the model, and has a namespace for Codex."""
    run = codex_agent.ran("mcp")
    first, second = turns(run, 2, "fallback")
    assert tool(first, "mcp__stub")["type"] == "namespace"
    made = item(first, "function_call")
    assert (made["namespace"], made["name"]) == ("mcp__stub", "echo")
    (result,) = results(second)
    assert result["output"][-1] == {"type": "input_text", "text": f"echo: {run.work.mark}"}
    assert run.said == DONE
    check_reuse([first, second])


def test_search(codex_agent: CodexAgent) -> None:
    """A deferred tool enters the prompt where a search finds it, and can be called then."""
    run = codex_agent.ran("search")
    first, second, third = turns(run, 3)
    assert tool(first, "tool_search")["execution"] == "client"
    assert "mcp__stub" not in str(first.body["tools"])
    assert item(first, "tool_search_call")["execution"] == "client"
    (found,) = results(second)
    (space,) = (one for one in found["tools"] if one["name"] == "mcp__stub")
    assert space["tools"][0]["name"] == "echo" and space["tools"][0]["defer_loading"]
    assert second.body["tools"] == first.body["tools"]
    (result,) = results(third)
    assert result["output"][-1] == {"type": "input_text", "text": f"echo: {run.work.mark}"}
    assert run.said == DONE
    check_reuse([first, second, third])


def test_schema(codex_agent: CodexAgent) -> None:
    """--output-schema: the answer has the form that is asked for."""
    run = codex_agent.ran("schema")
    (only,) = turns(run, 1)
    assert only.body["text"]["format"]["type"] == "json_schema"
    assert json.loads(run.said) == {"word": run.work.mark}


def test_compaction(codex_agent: CodexAgent) -> None:
    """A conversation that has grown too long is summed up, and goes on behind the summary."""
    run = codex_agent.ran("compaction")
    first, second, third, fourth = turns(run, 4)
    assert second.prompt_tokens > first.prompt_tokens + BIG
    assert third.body["tools"] == [] and results(third) == []
    assert fourth.headers["x-codex-window-id"].endswith(":1")
    assert SUMMARY in fourth.body["input"][-1]["content"][0]["text"]
    check_reuse([first, second])
    assert fourth.cached_tokens > first.prompt_tokens - 2 * PAGE
    assert run.said == DONE


def test_remote_compaction(codex_agent: CodexAgent) -> None:
    """As OpenAI's own server: a WebSocket is refused at once, and the server makes the summary."""
    run = codex_agent.ran("remote")
    upgrade = run.exchanges[0].headers["upgrade"]
    first, second, third, fourth = turns(run, 4, "builtin")
    assert upgrade == "websocket" and len(run.exchanges) == 5
    assert third.body["input"][-1] == {"type": "compaction_trigger"}
    (summary,) = items(third)
    assert summary["type"] == "compaction" and fourth.body["input"][-1] == summary
    assert first.prompt_tokens < fourth.prompt_tokens < second.prompt_tokens - BIG
    check_reuse([first, second])
    assert run.said == DONE


def test_resume(codex_agent: CodexAgent) -> None:
    """A session that another process goes on with has its prompt in the cache."""
    before, after = codex_agent.runs("resume")
    (first,), (second,) = turns(before, 1), turns(after, 1)
    assert first.body["prompt_cache_key"] == second.body["prompt_cache_key"]
    assert second.body["input"][: len(first.body["input"])] == first.body["input"]
    check_reuse([first, second])


@pytest.mark.parametrize("provider", ["ollama", "lmstudio"])
def test_oss(codex_agent: CodexAgent, provider: str) -> None:
    """--oss: Codex finds the model as it would find one of Ollama or LM Studio."""
    run = codex_agent.ran(provider)
    thread = turns(run, 2, provider)
    if provider == "lmstudio":
        probe = run.exchanges[-3]
        assert probe.body == {"model": MODEL, "input": "", "max_output_tokens": 1}
    assert commands(run) == [(f"one-{run.work.mark}\n", 0)] and run.said == DONE
    check_reuse(thread)


def test_lite(codex_agent: CodexAgent) -> None:
    """A model whose tools are in an item of the input, and whose calls are programs."""
    run = codex_agent.ran("lite")
    thread = turns(run, 3, "fallback")
    for one in thread:
        assert one.body["model"] == LITE and "tools" not in one.body
        assert one.body["input"][0]["type"] == "additional_tools"
    made = item(thread[0], "custom_tool_call")
    assert (made["namespace"], made["name"]) == ("functions", "exec")
    assert 'return "hello"' in run.work.hello.read_text()
    assert len(commands(run)) == 1 and run.said == DONE
    check_reuse(thread)


def test_fields(codex_agent: CodexAgent) -> None:
    """Every field that it sends has a disposition: none is handled by silence."""
    unknown: set[str] = set()
    for run in (run for name in SCENARIOS for run in codex_agent.runs(name)):
        for one in run.exchanges:
            if one.method == "POST":
                unknown |= unlisted(one.body, "responses", "ResponseRequest")
    assert not unknown
