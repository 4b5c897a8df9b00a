"""The bodies of a case's steps, from the short words that the files use."""

from __future__ import annotations

from typing import Any

from conformance.profiles import ALIASES
from conformance.reply import ANTHROPIC, RESPONSES, Reply

SHOW = {"show": True}
"""What has the templates of the families answer with the prompt that they would have made."""


def declared(tools: dict[str, dict[str, Any]], route: str) -> list[dict[str, Any]]:
    """Tools in the words of a route: each name with its properties, a type or a schema each."""
    made = []
    for name, properties in tools.items():
        schemas = {
            key: {"type": value} if isinstance(value, str) else value
            for key, value in properties.items()
        }
        parameters = {"type": "object", "properties": schemas}
        if route in ANTHROPIC:
            made.append({"name": name, "input_schema": parameters})
        elif route in RESPONSES:
            made.append({"type": "function", "name": name, "parameters": parameters})
        else:
            made.append({"type": "function", "function": {"name": name, "parameters": parameters}})
    return made


def body_of(case_id: str, step: dict[str, Any]) -> dict[str, Any]:
    """The body of a step without the words that say how it is sent."""
    body: dict[str, Any] = dict(step.get("body", {}))
    text = step.get("say", case_id)
    if "say_repeat" in step:
        part, times = step["say_repeat"]
        text += part * times
    if step["route"] == "completions":
        body.setdefault("prompt", text)
    elif step["route"] in RESPONSES:
        body.setdefault("input", text)
    else:
        body.setdefault("messages", [{"role": "user", "content": text}])
    if step["route"] == "messages" and not step.get("bare"):
        body.setdefault("max_tokens", 64)
    if step["route"] in RESPONSES and not step.get("bare"):
        body.setdefault("model", ALIASES[-1])
    if step.get("show") and step["route"] != "compact":
        body["chat_template_kwargs"] = {**body.get("chat_template_kwargs", {}), **SHOW}
    return body


def streamed(route: str, body: dict[str, Any]) -> dict[str, Any]:
    """The same request for a stream with all that a buffered reply has."""
    if route in ANTHROPIC or route in RESPONSES:
        return {"stream": True} | body
    return {"stream": True, "stream_options": {"include_usage": True}} | body


def shown_prompt(reply: Reply) -> str | None:
    """The prompt that a template showed; the message may name the field before it."""
    if reply.error is None:
        return None
    return str(reply.error["message"]).removeprefix("messages: ").removeprefix("input: ")
