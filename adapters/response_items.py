"""What the items of a body of Responses say happened so far, as messages of a conversation."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from adapters.decode import given, optional
from adapters.response_compaction import note_message, read_note
from adapters.response_object import item_id
from adapters.response_tools import SEARCH, ResponseTools, joined
from adapters.seal import Seal
from engine.conversation import Message, Part, Reasoning, Text, ToolCall, ToolResult
from engine.errors import RequestError
from generated.responses import (
    AdditionalToolsItem,
    CompactionItem,
    CompactionTriggerItem,
    ConfigurationItem,
    CustomCallItem,
    CustomOutputItem,
    FunctionCallItem,
    FunctionOutputItem,
    HostedItem,
    InputItem,
    MessageItem,
    ReasoningConfig,
    ReasoningItem,
    TextConfig,
    ToolSearchCallItem,
    ToolSearchOutputItem,
)

log = logging.getLogger("heliograph.api")

_ITEMS: TypeAdapter[list[Any]] = TypeAdapter(list[InputItem])
_INSTRUCTING = ("system", "developer")
_INPUT = 0x10000  # the numbers of items that a request brings, behind those of any output
_PREFIXES = {
    "message": "msg", "function_call": "fc", "function_call_output": "fco",
    "custom_tool_call": "ctc", "custom_tool_call_output": "ctco", "reasoning": "rs",
    "tool_search_call": "tsc", "tool_search_output": "tso", "additional_tools": "at",
    "compaction": "cmp",
}  # fmt: skip
_DONE = {"status": "completed"}
_PRIVATE = "internal_chat_message_metadata_passthrough"
_SEARCHED = {**_DONE, "call_id": None, "execution": "client"}
_USUAL: Mapping[str, Mapping[str, Any]] = {
    "message": _DONE, "function_call": _DONE, "function_call_output": _DONE,
    "custom_tool_call": _DONE, "custom_tool_call_output": _DONE, "reasoning": {"summary": ()},
    "tool_search_call": _SEARCHED, "tool_search_output": _SEARCHED,
}  # fmt: skip
"""What clients may leave out of an item although typed readers want it."""


def complete_item(item: Any) -> None:
    """Give an item of a body the type that it may leave out (specs/responses.yaml, InputItem)."""
    if not isinstance(item, dict) or item.get("type") is not None:
        return
    if "role" in item:
        item["type"] = "message"
    elif "id" in item:
        item["type"] = "item_reference"


def parse_items(stored: bytes) -> list[Any]:
    """Items that were stored, as the generated models."""
    return _ITEMS.validate_python(json.loads(stored), strict=True)


def parse_item(stored: dict[str, Any]) -> Any:
    """One of them."""
    return _ITEMS.validate_python([stored], strict=True)[0]


def input_items(given: str | list[Any] | None) -> list[Any]:
    """The items of a body's input; a text is a message of the user."""
    if isinstance(given, list):
        return given
    return [MessageItem(type="message", role="user", content=given or "")]


def written_items(items: Sequence[Any], response_id: str) -> list[dict[str, Any]]:
    """Items as JSON values in the form that lists of them have, each with an id.

    Raises RequestError for what is nested too deeply to be written.
    """
    try:
        return [_written(item, response_id, place) for place, item in enumerate(items)]
    except ValueError:
        raise RequestError("input is nested too deeply", "input") from None


def _written(item: Any, response_id: str, place: int) -> dict[str, Any]:
    value: dict[str, Any] = item.model_dump(mode="json", by_alias=True, exclude={_PRIVATE})
    prefix = _PREFIXES.get(item.type, "item")
    value["id"] = value.get("id") or item_id(prefix, response_id, _INPUT + place)
    for name, usual in _USUAL.get(item.type, {}).items():
        if value.get(name) is None:
            value[name] = usual
    if isinstance(item, MessageItem):
        content = value["content"]
        kind = "output_text" if item.role == "assistant" else "input_text"
        parts = [{"type": kind, "text": content}] if isinstance(content, str) else content
        value["content"] = [_written_part(part) for part in parts]
    return value


def _written_part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] != "output_text":
        return part
    lists = {name: part.get(name) or [] for name in ("annotations", "logprobs")}
    return {**part, **lists}


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """The conversation of a list of items.

    `reasoning` and `text` are what a configuration update in it says last, and that item's place in
    the body. `triggers`: it ends with the wish to be compacted.
    """

    messages: tuple[Message, ...]
    reasoning: tuple[ReasoningConfig, str] | None
    text: tuple[TextConfig, str] | None
    triggers: bool
    dropped_thoughts: int


@dataclass
class ItemReader:
    """Turns items, in their order, into the messages of a conversation.

    Thoughts, text and calls in a row are one turn of the model. Of what is before a compaction item
    only what users and applications said stays: its note has the rest. Of several the last counts.
    """

    tools: ResponseTools
    seal: Seal
    tenant: str
    model: str
    _messages: list[Message] = field(default_factory=list)
    _turn: list[Part] = field(default_factory=list)
    _hosted: set[str] = field(default_factory=set)
    _reasoning: tuple[ReasoningConfig, str] | None = None
    _text: tuple[TextConfig, str] | None = None
    _dropped: int = 0
    _begun: bool = False

    def read(
        self, earlier: Sequence[Any], own: Sequence[Any], instructions: str | None
    ) -> ItemHistory:
        """The items of the response that is continued, then the request's own.

        Raises RequestError for what cannot be read, naming it.
        """
        if instructions:
            self._messages.append(Message("system", (Text(instructions),)))
        placed = [(item, "previous_response_id") for item in earlier]
        placed += [(item, f"input[{place}]") for place, item in enumerate(own)]
        notes = (at for at, (item, _) in enumerate(placed) if isinstance(item, CompactionItem))
        last_note = max(notes, default=0)
        for at, (item, param) in enumerate(placed):
            if at >= last_note or not isinstance(item, CompactionItem):
                self._take(item, param)
        self._flush()
        if not any(message.role not in _INSTRUCTING for message in self._messages):
            self._messages.append(Message("user", (Text(""),)))
        if self._hosted:
            kinds = ", ".join(sorted(self._hosted))
            log.info("left out of the prompt, since other servers' tools made them: %s", kinds)
        return ItemHistory(
            tuple(self._messages),
            self._reasoning,
            self._text,
            bool(own) and isinstance(own[-1], CompactionTriggerItem),
            self._dropped,
        )

    def _take(self, item: Any, param: str) -> None:
        match item:
            case MessageItem():
                self._message(item)
            case ReasoningItem():
                if thought := self._thought(item):
                    self._turn.append(Reasoning(thought))
            case FunctionCallItem():
                name = joined(item.name, optional(item.namespace))
                self._turn.append(ToolCall(item.call_id, name, item.arguments or "{}"))
            case CustomCallItem():
                name = joined(item.name, optional(item.namespace))
                self._turn.append(ToolCall(item.call_id, name, item.input, custom=True))
            case FunctionOutputItem():
                tool: str = given(item.name, "")
                called = joined(tool, optional(item.namespace)) if tool else None
                self._result(given(item.call_id, ""), _texts(item.output), called)
            case CustomOutputItem():
                self._result(item.call_id, _texts(item.output))
            case ToolSearchCallItem() | ToolSearchOutputItem():
                self._search(item, param)
            case AdditionalToolsItem():
                self._more_tools(item, param)
            case CompactionItem():
                self._shorten(read_note(item, param, self.seal, self.tenant, self.model))
            case ConfigurationItem():
                self._configure(item, f"{param}.")
            case HostedItem():
                self._hosted.add(item.type)

    def _configure(self, item: ConfigurationItem, place: str) -> None:
        if reasoning := optional(item.reasoning):
            self._reasoning = (reasoning, place)
        if text := optional(item.text):
            self._text = (text, place)

    def _message(self, item: MessageItem) -> None:
        parts = tuple(Text(text) for text in _texts(item.content))
        if item.role == "assistant":
            self._turn += [part for part in parts if part.text]
        elif item.role == "user" or any(part.text for part in parts):
            self._say(Message(item.role, parts))

    def _say(self, message: Message) -> None:
        self._flush()
        self._begun = self._begun or message.role not in _INSTRUCTING
        self._messages.append(message)

    def _flush(self) -> None:
        if self._turn:
            self._messages.append(Message("assistant", tuple(self._turn)))
            self._turn = []
            self._begun = True

    def _shorten(self, note: str) -> None:
        self._flush()
        said = [message for message in self._messages if message.role not in ("assistant", "tool")]
        self._messages = [*said, note_message(note)]
        self.tools.list_found()

    def _result(self, call_id: str, texts: Iterable[str], name: str | None = None) -> None:
        self._say(Message("tool", (ToolResult(call_id, tuple(texts), name),)))

    def _search(self, item: ToolSearchCallItem | ToolSearchOutputItem, param: str) -> None:
        call_id = given(item.call_id, "")
        if isinstance(item, ToolSearchOutputItem):
            text = self.tools.introduce(item.tools, f"{param}.tools")
            self._result(call_id, [text or "No tool was found."])
        elif optional(item.execution) == "server":
            self._hosted.add(item.type)
        else:
            sent = item.arguments
            arguments = sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False)
            self._turn.append(ToolCall(call_id, SEARCH, arguments if sent else "{}"))

    def _more_tools(self, item: AdditionalToolsItem, param: str) -> None:
        if not self._begun and not self._turn:
            self.tools.declare(item.tools, f"{param}.tools")
            return
        if text := self.tools.introduce(item.tools, f"{param}.tools", found=False):
            self._say(Message("system", (Text(text),), inline=True))

    def _thought(self, item: ReasoningItem) -> str | None:
        content: list[Any] = given(item.content, [])
        texts = [part.text for part in content]
        if any(texts):
            return "\n\n".join(texts)
        sealed: str = given(item.encrypted_content, "")
        if sealed:
            text = self.seal.unseal(sealed, self.tenant, self.model)
            if text is not None:
                return text
            self._dropped += 1
        summary: list[Any] = given(item.summary, [])
        return "\n\n".join(part.text for part in summary) or None


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for part in content:
        yield part.refusal if part.type == "refusal" else part.text
