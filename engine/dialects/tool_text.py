"""Tools and calls as the text of many families says them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from engine.conversation import Tool, ToolCall, ToolResult
from engine.dialects.json_text import dumps


def signatures(tools: Sequence[Tool]) -> str:
    """What a model is told of its tools, one JSON object a line."""
    return "\n".join(
        dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        for tool in tools
    )


def arguments_of(call: ToolCall) -> dict[str, object]:
    """The arguments of a call, whose text is a JSON object."""
    return cast(dict[str, object], json.loads(call.arguments, strict=False))


def show_results(results: Sequence[ToolResult]) -> str:
    """Results one after the other, in the order of their calls."""
    return "\n\n".join("\n\n".join(result.texts) for result in results)
