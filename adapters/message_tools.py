"""The tools of a body of Messages: those that it declares, and what its messages do to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from adapters.decode import given, optional
from adapters.tools import arguments_schema, check_tools, introduction
from engine.conversation import JsonValue, Tool
from engine.errors import RequestError
from generated.messages import PromptFields, ToolDefinition


class MessageTools:
    """The declared tools, and what a conversation does to them as it goes on.

    A deferred tool, or one that the conversation defines, is told of where it is named: the list of
    tools in front of the prompt, and with it every cached prefix, stays as it is.
    """

    def __init__(self, body: PromptFields) -> None:
        declared: list[ToolDefinition] = given(body.tools, [])
        self._declared = {tool.name: tool for tool in check_tools(_defined(declared))}
        self._deferred = {tool.name for tool in declared if tool.defer_loading is True}
        self._found: dict[str, Tool] = {}
        self.removed: set[str] = set()
        choice = optional(body.tool_choice)
        if choice is not None and choice.type == "tool":  # to be called, it must be known
            self._deferred.discard(choice.name)

    def callable(self) -> tuple[Tool, ...]:
        """Those that the model may know by the end."""
        shown = [tool for name, tool in self._declared.items() if name not in self._deferred]
        return (*shown, *self._found.values())

    def find(self, name: str) -> str:
        """What the model reads where a tool is named: its definition, if it has not seen that."""
        self.removed.discard(name)
        if name in self._found or (name in self._declared and name not in self._deferred):
            return f"The tool {name} can be called."
        if name not in self._declared:
            return f"There is no tool {name}."
        return self._show(self._declared[name])

    def define(self, definition: ToolDefinition, param: str) -> str:
        """The same of a tool that the conversation itself defines. Raises RequestError."""
        ((tool, path),) = _defined([definition], f"{param}.definition")
        if tool.name in self._declared:
            raise RequestError(f"{path} is the name of another tool", path)
        self.removed.discard(tool.name)
        return self._show(tool)

    def remove(self, name: str) -> str:
        self.removed.add(name)
        return f"The tool {name} can no longer be called."

    def _show(self, tool: Tool) -> str:
        self._found[tool.name] = replace(tool, listed=False)
        return introduction(tool)


def _defined(
    tools: Sequence[ToolDefinition], param: str | None = None
) -> Iterator[tuple[Tool, str]]:
    """Tools with the paths of their names."""
    for place, tool in enumerate(tools):
        path = param or f"tools[{place}]"
        schema = f"{path}.input_schema"
        yield (
            Tool(
                tool.name,
                given(tool.description, ""),
                arguments_schema(cast(Mapping[str, JsonValue], tool.input_schema), schema),
                given(tool.strict, False),
                param=schema,
            ),
            f"{path}.name",
        )
