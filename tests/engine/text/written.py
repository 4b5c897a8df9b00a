"""What models of several families write, as their chat templates show it later."""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.conversation import ToolCall


def _hermes(calls: Sequence[ToolCall]) -> str:
    return "\n".join(
        f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>'
        for call in calls
    )


def _xml(calls: Sequence[ToolCall]) -> str:
    shown = []
    for call in calls:
        values = json.loads(call.arguments).items()
        inner = "".join(
            f"<parameter={key}>\n{value if isinstance(value, str) else json.dumps(value)}\n"
            "</parameter>\n"
            for key, value in values
        )
        shown.append(f"<tool_call>\n<function={call.name}>\n{inner}</function>\n</tool_call>")
    return "\n".join(shown)


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def qwen3(thought: str, text: str, calls: Sequence[ToolCall]) -> str:
    opening = f"<think>\n{thought}\n</think>\n\n" if thought else ""
    return opening + _lines(text, _hermes(calls)) + "<|im_end|>"


def coder(thought: str, text: str, calls: Sequence[ToolCall]) -> str:
    return f"{thought}\n</think>\n\n" + _lines(text, _xml(calls)) + "<|im_end|>"


def llama(thought: str, text: str, calls: Sequence[ToolCall]) -> str:
    if not calls:
        return text + "<|eot|>"
    return f'{{"name": "{calls[0].name}", "parameters": {calls[0].arguments}}}<|eot|>'


def mistral(thought: str, text: str, calls: Sequence[ToolCall]) -> str:
    shown = ", ".join(
        f'{{"name": "{call.name}", "arguments": {call.arguments}, "id": "{call.id}"}}'
        for call in calls
    )
    return (f"[TOOL_CALLS][{shown}]" if calls else text) + "<|im_end|>"


def gemma(thought: str, text: str, calls: Sequence[ToolCall]) -> str:
    return _lines(text, _hermes(calls)) + "</turn>"


def deepseek(thought: str, text: str, calls: Sequence[ToolCall]) -> str:
    shown = "".join(f"<call>function<sep>{c.name}\n{c.arguments}</call>" for c in calls)
    return (shown or text) + "<|im_end|>"


def glm(thought: str, text: str, calls: Sequence[ToolCall]) -> str:
    shown = ""
    for call in calls:
        shown += f"\n<tool_call>{call.name}\n"
        for key, value in json.loads(call.arguments).items():
            plain = value if isinstance(value, str) else json.dumps(value)
            shown += f"<arg_key>{key}</arg_key>\n<arg_value>{plain}</arg_value>\n"
        shown += "</tool_call>"
    return f"{thought}</think>" + (f"\n{text}" if text else "") + shown


def kimi(thought: str, text: str, calls: Sequence[ToolCall]) -> str:
    shown = "".join(f"<call>{call.id}<args>{call.arguments}</call>" for call in calls)
    return f"{text}{shown}<im_end>"


def harmony(thought: str, text: str, calls: Sequence[ToolCall]) -> str:
    if not calls:
        return f"<|channel|>final<|message|>{text}<|end|>"
    analysis = thought or text
    return (
        (f"<|channel|>analysis<|message|>{analysis}<|end|><|start|>assistant" if analysis else "")
        + f" to=functions.{calls[0].name}<|channel|>commentary json<|message|>"
        + f"{calls[0].arguments}<|call|>"
    )
