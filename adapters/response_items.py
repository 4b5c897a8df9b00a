"""What the items of a body of Responses say happened so far, as messages of a conversation."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from adapters.decode import given, optional
from adapters.response_object import item_id
from adapters.response_tools import SEARCH, ResponseTools, joined
from adapters.seal import Seal
from engine.conversation import Message, Part, Reasoning, Text, ToolCall, ToolResult
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
_WITH_STATUS = ("message", "function_call", "function_call_output", "tool_search_call",
                "tool_search_output")  # fmt: skip


def complete_item(item: Any) -> None:
    """Give an item of a body the type that it may leave out (specs/responses.yaml, InputItem)."""
    if not isinstance(item, dict) or item.get("type") is not None:
        return
    if "role" in item:
        item["type"] = "message"
    elif "id" in item:
        item["type"] = "item_reference"


def parse_items(items: bytes | list[Any]) -> list[Any]:
    """Items that were stored, as the generated models."""
    found = json.loads(items) if isinstance(items, bytes) else items
    return _ITEMS.validate_python(found)


def input_items(given: str | list[Any] | None) -> list[Any]:
    """The items of a body's input; a text is a message of the user."""
    if isinstance(given, list):
        return given
    return [MessageItem(type="message", role="user", content=given or "")]


def written_items(items: Sequence[Any], response_id: str) -> Iterator[dict[str, Any]]:
    """Items as JSON values in the form that lists of them have, each with an id."""
    for place, item in enumerate(items):
        value: dict[str, Any] = item.model_dump(mode="json", by_alias=True)
        prefix = _PREFIXES.get(item.type, "item")
        value["id"] = value.get("id") or item_id(prefix, response_id, _INPUT + place)
        if isinstance(item, MessageItem) and isinstance(item.content, str):
            value["content"] = [_written_text(item.content, item.role)]
        if item.type in _WITH_STATUS:
            value["status"] = value.get("status") or "completed"
        yield value


def _written_text(text: str, role: str) -> dict[str, Any]:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """The conversation of a list of items.

    `reasoning` and `text` are what a configuration update in it says last. `triggers`: it ends with
    the wish to be compacted.
    """

    messages: tuple[Message, ...]
    reasoning: ReasoningConfig | None
    text: TextConfig | None
    triggers: bool
    dropped_thoughts: int


@dataclass
class ItemReader:
    """Turns items, in their order, into the messages of a conversation.

    Thoughts, text and calls in a row are one turn of the model. `note` reads the note of a
    compaction item, whose path it is given for errors.
    """

    tools: ResponseTools
    seal: Seal
    tenant: str
    model: str
    note: Callable[[CompactionItem, str], str]
    _messages: list[Message] = field(default_factory=list)
    _turn: list[Part] = field(default_factory=list)
    _hosted: set[str] = field(default_factory=set)
    _reasoning: ReasoningConfig | None = None
    _text: TextConfig | None = None
    _dropped: int = 0
    _begun: bool = False

    def read(self, items: Sequence[Any], instructions: str | None) -> ItemHistory:
        """Raises RequestError for what cannot be read, naming it."""
        if instructions:
            self._messages.append(Message("system", (Text(instructions),)))
        for place, item in enumerate(items):
            self._take(item, f"input[{place}]")
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
            bool(items) and isinstance(items[-1], CompactionTriggerItem),
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
            case FunctionOutputItem() | CustomOutputItem():
                self._result(given(item.call_id, ""), _texts(item.output))
            case ToolSearchCallItem() | ToolSearchOutputItem():
                self._search(item, param)
            case AdditionalToolsItem():
                self._more_tools(item, param)
            case CompactionItem():
                self._say(Message("developer", (Text(self.note(item, param)),)))
            case ConfigurationItem():
                self._reasoning = optional(item.reasoning) or self._reasoning
                self._text = optional(item.text) or self._text
            case HostedItem():
                self._hosted.add(item.type)

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

    def _result(self, call_id: str, texts: Iterable[str]) -> None:
        self._say(Message("tool", (ToolResult(call_id, tuple(texts)),)))

    def _search(self, item: ToolSearchCallItem | ToolSearchOutputItem, param: str) -> None:
        call_id = given(item.call_id, "")
        if isinstance(item, ToolSearchOutputItem):
            text = self.tools.introduce(item.tools, f"{param}.tools")
            self._result(call_id, [text])
        elif optional(item.execution) == "server":
            self._hosted.add(item.type)
        else:
            arguments = item.arguments
            written = arguments if isinstance(arguments, str) else _dumped(arguments)
            self._turn.append(ToolCall(call_id, SEARCH, written))

    def _more_tools(self, item: AdditionalToolsItem, param: str) -> None:
        if not self._begun and not self._turn:
            self.tools.declare(item.tools, f"{param}.tools")
            return
        text = self.tools.introduce(item.tools, f"{param}.tools")
        self._say(Message("developer", (Text(text),)))

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


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
