"""The tools of a body of Responses, flat for the model and as declared on the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from adapters.decode import given, optional
from adapters.tools import Wanted, arguments_schema, check_tools, choose, introduction
from engine.conversation import CustomFormat, JsonValue, Tool, ToolChoice
from engine.errors import RequestError
from generated.responses import (
    ChooseAllowed,
    ChooseCustom,
    ChooseFunction,
    NamespaceTool,
    ResponseCustomTool,
    ResponseFunction,
    ResponseGrammarFormat,
    ToolSearchTool,
)

Kind = Literal["function", "custom", "tool_search"]
SEARCH = "tool_search"
_JOINT = "__"
_MOST_NAME = 256  # characters, which every call syntax can hold


@dataclass(frozen=True, slots=True)
class Origin:
    """What a client calls a tool that the model knows by one name."""

    kind: Kind
    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class _Declared:
    tool: Tool
    origin: Origin
    deferred: bool
    param: str


def joined(name: str, namespace: str | None) -> str:
    """The name that the model knows a tool by."""
    return f"{namespace}{_JOINT}{name}" if namespace else name


class ResponseTools:
    """The tools of `tools`, and those that a conversation adds as it goes on.

    `dropped` are the kinds of tools that only OpenAI's servers run.
    """

    def __init__(self, tools: Sequence[Any]) -> None:
        self.dropped: list[str] = []
        self._origins: dict[str, Origin] = {}
        self._listed: dict[str, Tool] = {}
        self._found: dict[str, Tool] = {}
        declared = list(self._declared(tools, "tools"))
        check_tools((item.tool, item.param) for item in declared)
        for item in declared:
            self._enter(item)

    def callable(self) -> tuple[Tool, ...]:
        """Those that the model may know by the end."""
        return (*self._listed.values(), *self._found.values())

    def origin(self, name: str) -> Origin:
        """What the client calls the tool of this name; an undeclared one is a function."""
        return self._origins.get(name, Origin("function", name))

    def declare(self, tools: Sequence[Any], param: str) -> None:
        """More tools in front of a conversation, for the prompt's list of tools."""
        for item in self._declared(tools, param):
            if item.tool.name not in self._listed:
                self._enter(item)

    def introduce(self, tools: Sequence[Any], param: str, *, found: bool = True) -> str:
        """More tools within a conversation: what the model reads there, if anything.

        Unless a search has `found` them, deferred ones wait for one that does.
        """
        texts = []
        for item in self._declared(tools, param):
            name = item.tool.name
            if item.deferred and not found:
                self._origins.setdefault(name, item.origin)
                continue
            if name in self._listed or name in self._found:
                texts.append(f"The tool {name} can be called.")
                continue
            self._origins[name] = item.origin
            self._found[name] = replace(item.tool, listed=False)
            texts.append(introduction(item.tool))
        return "\n\n".join(texts)

    def list_found(self) -> None:
        """Have the prompt list what the conversation has added, since what told of it is gone."""
        for name, tool in self._found.items():
            self._listed[name] = replace(tool, listed=True)
        self._found.clear()

    def choose(self, selected: Any) -> ToolChoice:
        """What may be called. Raises RequestError for what is not declared."""
        tools = self.callable()
        if isinstance(selected, str):
            return choose(tools, cast(Any, selected), "tool_choice")
        if isinstance(selected, ChooseFunction | ChooseCustom):
            wanted = self._wanted(selected.type, selected.name, optional(selected.namespace))
            return choose(tools, "required", "tool_choice", [wanted])
        if isinstance(selected, ChooseAllowed):
            return choose(tools, selected.mode, "tool_choice.tools", list(self._allowed(selected)))
        return choose(tools, "auto", "tool_choice")

    def _allowed(self, selected: ChooseAllowed) -> Iterator[Wanted]:
        for place, item in enumerate(selected.tools):
            name, namespace = given(item.name, ""), optional(item.namespace)
            param = f"tool_choice.tools[{place}].name"
            if item.type == "namespace" or (namespace and not name):
                yield from self._members(name or cast(str, namespace), param)
            elif item.type == SEARCH and SEARCH not in self.dropped:
                yield self._wanted("function", SEARCH, None, param)
            elif item.type in ("function", "custom"):
                yield self._wanted(item.type, name, namespace, param)

    def _members(self, namespace: str, param: str) -> Iterator[Wanted]:
        names = [n for n, origin in self._origins.items() if origin.namespace == namespace]
        if not names:
            raise RequestError(f"{param} is not among the namespaces of this request", param)
        for name in names:
            if name in self._listed or name in self._found:  # not one that is still deferred
                yield Wanted(name, custom=self._origins[name].kind == "custom", param=param)

    def _wanted(
        self, kind: str, name: str, namespace: str | None, param: str = "tool_choice.name"
    ) -> Wanted:
        """The tool of a name, which need not say the namespace where no other tool has it."""
        found = joined(name, namespace)
        if found not in self._origins:
            same = [n for n, origin in self._origins.items() if origin.name == name]
            found = same[0] if len(same) == 1 and not namespace else found
        return Wanted(found, custom=kind == "custom", param=param)

    def _enter(self, item: _Declared) -> None:
        name = item.tool.name
        self._origins[name] = item.origin
        if not item.deferred:
            self._listed[name] = item.tool

    def _declared(self, tools: Sequence[Any], param: str) -> Iterator[_Declared]:
        for place, tool in enumerate(tools):
            path = f"{param}[{place}]"
            match tool:
                case ResponseFunction() | ResponseCustomTool():
                    yield _declaration(tool, path)
                case NamespaceTool():
                    for number, member in enumerate(tool.tools):
                        yield _declaration(member, f"{path}.tools[{number}]", tool)
                case ToolSearchTool() if tool.execution == "client":
                    yield _search(tool, path)
                case _:
                    if tool.type not in self.dropped:
                        self.dropped.append(tool.type)


def _declaration(
    tool: ResponseFunction | ResponseCustomTool, path: str, namespace: NamespaceTool | None = None
) -> _Declared:
    outer = None if namespace is None else namespace.name
    text: str = given(tool.description, "")
    if namespace is not None and (common := given(namespace.description, "")):
        text = f"{common}\n\n{text}" if text else common
    name = joined(tool.name, outer)
    if len(name) > _MOST_NAME:
        param = f"{path}.name"
        reason = f"and the namespace have more than {_MOST_NAME} characters together"
        raise RequestError(f"{param} {reason}", param)
    if isinstance(tool, ResponseFunction):
        schema = f"{path}.parameters"
        parameters = arguments_schema(
            cast("Mapping[str, JsonValue] | None", optional(tool.parameters)), schema
        )
        made = Tool(name, text, parameters, given(tool.strict, False), param=schema)
        origin = Origin("function", tool.name, outer)
    else:
        form, param = _format(tool, f"{path}.format")
        made = Tool(name, text, format=form, param=param)
        origin = Origin("custom", tool.name, outer)
    return _Declared(made, origin, tool.defer_loading is True, f"{path}.name")


def _format(tool: ResponseCustomTool, path: str) -> tuple[CustomFormat, str]:
    wanted = optional(tool.format)
    if isinstance(wanted, ResponseGrammarFormat):
        return CustomFormat(wanted.syntax, wanted.definition), f"{path}.definition"
    return CustomFormat(), path


def _search(tool: ToolSearchTool, path: str) -> _Declared:
    schema = f"{path}.parameters"
    parameters = arguments_schema(
        cast("Mapping[str, JsonValue] | None", optional(tool.parameters)), schema
    )
    made = Tool(SEARCH, given(tool.description, "Finds tools."), parameters, param=schema)
    return _Declared(made, Origin("tool_search", SEARCH), False, path)
