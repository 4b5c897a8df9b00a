"""What the server's own options say about dialects, tools and thoughts."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.choice import Choice
from conformance.models import MODELS
from conformance.profiles import Pool
from conformance.replies import send
from conformance.server import ROOT, Server

_DETECTED = {
    "thinker": "hermes", "coder": "qwen_xml", "mistral": "mistral", "harmony": "harmony",
    "llama": "llama_json", "pythonic": "pythonic", "glm": "glm45", "kimi": "kimi_k2",
    "gemma": "gemma4", "strict": "hermes",
}  # fmt: skip
"""The dialect of each family's template; hermes for one that says nothing of tools."""
_CALL = '<tool_call>\n{"name": "f", "arguments": {"n": "x"}}\n</tool_call>'
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {"n": {"enum": [3]}},
                "required": ["n"],
                "additionalProperties": False,
            },
        },
    }
]


def _folder(family: str) -> str:
    return str(MODELS[family].write(Path(tempfile.mkdtemp()) / family))


def _ask(server: Server, **fields: Any) -> Choice:
    body = {"messages": [{"role": "user", "content": "q"}], "return_token_ids": True, **fields}
    reply = send(server.http, "chat", body)
    assert reply.status == 200, reply.error
    return reply.choices[0]


def detected_dialects(pool: Pool, _: Callable[..., Server]) -> None:
    """The card tells the dialect that the template of each family speaks."""
    for family, dialect in _DETECTED.items():
        (card,) = pool.get(family).http.get("/v1/models").json()["data"]
        assert card["flare"]["dialect"] == dialect, f"{family}: {card['flare']['dialect']}"


def dialect_option(_: Pool, start: Callable[..., Server]) -> None:
    """--dialect wins over the template; an unknown name ends the start and lists the known ones."""
    mistral = '[TOOL_CALLS]f[ARGS]{"n": "x"}'
    server = start([{"text": mistral}], "--model", _folder("thinker"), "--dialect", "mistral")
    choice = _ask(server, tools=_TOOLS)
    assert [(call.name, call.text) for call in choice.calls] == [("f", '{"n": "x"}')]
    (card,) = server.http.get("/v1/models").json()["data"]
    assert card["flare"]["dialect"] == "mistral"
    command = [sys.executable, "-m", "adapters", "--port", "0", "--dialect", "nothing"]
    failed = subprocess.run(
        [*command, "--model", _folder("strict"), "--scripted", str(_script())],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert failed.returncode != 0 and "Traceback" not in failed.stderr, failed.stderr
    assert "nothing" in failed.stderr and "qwen_xml" in failed.stderr, failed.stderr


def _script() -> Path:
    path = Path(tempfile.mkdtemp()) / "script.json"
    path.write_text('{"replies": [{"text": "x"}]}')
    return path


def declared_tools(_: Pool, start: Callable[..., Server]) -> None:
    """--constrain-tools declared: calls of tools that are not strict match their schemas too."""
    reply = [{"text": _CALL}]
    options = ("--model", _folder("thinker"), "--constrain-tools")
    once = {"tools": _TOOLS, "parallel_tool_calls": False, "max_tokens": 200}
    for mode, arguments in (("declared", {"n": 3}), ("strict", {"n": "x"}), ("off", {"n": "x"})):
        choice = _ask(start(reply, *options, mode), **once)
        assert [call.arguments for call in choice.calls] == [arguments], f"{mode}: {choice.calls}"
        assert choice.finish == "tool_calls"


def thinking_defaults(_: Pool, start: Callable[..., Server]) -> None:
    """--thinking, --reasoning-effort and --thinking-token-budget, where a request says nothing."""
    model, harmony = MODELS["coder"], MODELS["harmony"]
    reply = [{"match": "", "text": "abcdefgh"}]
    folder = ("--model", _folder("coder"))

    def prompt(choice: Choice) -> str:
        return model.text(choice.prompt_token_ids or [])

    server = start(reply, *folder, "--thinking", "off")
    assert prompt(_ask(server)).endswith("<think>\n\n</think>\n\n")
    assert prompt(_ask(server, thinking=True)).endswith("<|im_start|>assistant\n<think>\n")
    server = start(reply, *folder, "--thinking-token-budget", "3")
    before = server.until_idle()["reasoning_budget_cuts"]
    assert (_ask(server).reasoning, _ask(server).text) == ("abc", "efgh")
    assert _ask(server, thinking_token_budget=5).reasoning == "abcde"
    assert _ask(server, thinking_token_budget=100).reasoning == "abcdefgh"
    assert server.until_idle()["reasoning_budget_cuts"] - before == 3
    (card,) = server.http.get("/v1/models").json()["data"]
    assert card["flare"]["thinking_token_budget"] == 3
    server = start(reply, "--model", _folder("harmony"), "--reasoning-effort", "low")
    shown = harmony.text(_ask(server).prompt_token_ids or [])
    assert "Reasoning: low" in shown
    shown = harmony.text(_ask(server, reasoning_effort="high").prompt_token_ids or [])
    assert "Reasoning: high" in shown
    (card,) = server.http.get("/v1/models").json()["data"]
    assert {"low", "medium", "high"} <= set(card["flare"]["reasoning_efforts"])


SCENARIOS = (detected_dialects, dialect_option, declared_tools, thinking_defaults)
