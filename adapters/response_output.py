"""The items of a response's output while they are made, and the events that show them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Literal

from pydantic_core import to_json

from adapters.body import parse
from adapters.logprobs import TokenNames
from adapters.response_object import item_id
from adapters.response_tools import Origin
from engine.errors import RequestError
from engine.events import CallStart, Channel, TokenRecord

ItemStatus = Literal["in_progress", "completed", "incomplete"]
Phase = Literal["commentary", "final_answer"]

Event = tuple[bytes, bytes]
"""An event of an item: its name behind `response.`, and its JSON members behind the number."""


class OutputItem(ABC):
    """One item. `opening` are the events of its beginning, `closing` those of its end.

    It is settled before it is closed. One that is cut is never closed: it stays as it is.
    """

    prefix: ClassVar[str]

    def __init__(self, response_id: str, index: int) -> None:
        self.id = item_id(self.prefix, response_id, index)
        self._index = b'"output_index":%d' % index
        self._place = b'"item_id":' + to_json(self.id) + b"," + self._index
        self._status: ItemStatus = "in_progress"
        self._settled: bytes | None = None

    def settle(self, status: ItemStatus) -> None:
        """It is whole, or as whole as it gets."""
        self._freeze(status)

    def cut(self) -> None:
        """Nothing follows, which no event tells."""
        self._freeze("incomplete")

    def json(self) -> bytes:
        """The item as far as it is."""
        return self._settled if self._settled is not None else to_json(self._value())

    def opening(self) -> Iterator[Event]:
        yield b"output_item.added", self._index + b',"item":' + self.json()

    def closing(self) -> Iterator[Event]:
        yield b"output_item.done", self._index + b',"item":' + self.json()

    def _freeze(self, status: ItemStatus) -> None:
        self._status = status
        self._settled = to_json(self._value())

    @abstractmethod
    def _value(self) -> dict[str, object]: ...


class TextItem(OutputItem):
    """An item with one part of text. The part is there from its own event on."""

    def __init__(self, response_id: str, index: int) -> None:
        super().__init__(response_id, index)
        self._place += b',"content_index":0'
        self._texts: list[str] = []
        self._has_part = False

    def opening(self) -> Iterator[Event]:
        yield from super().opening()
        self._has_part = True
        yield b"content_part.added", self._place + b',"part":' + to_json(self._part())

    def closing(self) -> Iterator[Event]:
        part = to_json(self._part())
        yield b"content_part.done", self._place + b',"part":' + part
        yield from super().closing()

    def _content(self) -> list[dict[str, object]]:
        return [self._part()] if self._has_part else []

    @abstractmethod
    def _part(self) -> dict[str, object]: ...


class Message(TextItem):
    """Text of the answer, with an entry for each of its tokens where they are wanted."""

    prefix = "msg"

    def __init__(self, response_id: str, index: int) -> None:
        super().__init__(response_id, index)
        self._logprobs: list[dict[str, object]] = []
        self._before_delta = self._place + b',"delta":'
        self.phase: Phase | None = None

    def say(self, text: str, logprobs: list[dict[str, object]]) -> Event:
        """More text."""
        self._texts.append(text)
        entries = b"[]"
        if logprobs:
            self._logprobs += logprobs
            entries = to_json(logprobs)
        return b"output_text.delta", self._before_delta + to_json(text) + b',"logprobs":' + entries

    def closing(self) -> Iterator[Event]:
        said = {"text": "".join(self._texts), "logprobs": self._logprobs}
        yield b"output_text.done", self._place + b"," + to_json(said)[1:-1]
        yield from super().closing()

    def _part(self) -> dict[str, object]:
        text = "".join(self._texts)
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": self._logprobs}

    def _value(self) -> dict[str, object]:
        phase = {} if self.phase is None else {"phase": self.phase}
        about = {"id": self.id, "type": "message", "role": "assistant", "status": self._status}
        return {**about, **phase, "content": self._content()}


class Thought(TextItem):
    """A thought; `seal` None: nobody wants it in secret as well."""

    prefix = "rs"

    def __init__(self, response_id: str, index: int, seal: Callable[[str], str] | None) -> None:
        super().__init__(response_id, index)
        self._seal = seal
        self._encrypted: str | None = None

    def think(self, text: str) -> Event:
        """More of it."""
        self._texts.append(text)
        return b"reasoning_text.delta", self._place + b',"delta":' + to_json(text)

    def settle(self, status: ItemStatus) -> None:
        if self._seal is not None:
            self._encrypted = self._seal("".join(self._texts))
        super().settle(status)

    def closing(self) -> Iterator[Event]:
        said = {"text": "".join(self._texts)}
        yield b"reasoning_text.done", self._place + b"," + to_json(said)[1:-1]
        yield from super().closing()

    def _part(self) -> dict[str, object]:
        return {"type": "reasoning_text", "text": "".join(self._texts)}

    def _value(self) -> dict[str, object]:
        about = {"id": self.id, "type": "reasoning", "summary": [], "content": self._content()}
        secret = {} if self._encrypted is None else {"encrypted_content": self._encrypted}
        return {**about, **secret, "status": self._status}


class CallItem(OutputItem):
    """A call, for the client to run. One that is not `whole` is never announced as done."""

    def __init__(self, response_id: str, index: int, start: CallStart, origin: Origin) -> None:
        super().__init__(response_id, index)
        self._call_id = start.id
        self._origin = origin
        self._arguments: list[str] = []
        self.whole = False

    def add(self, arguments: str) -> Iterator[Event]:
        """More of what it is called with."""
        self._arguments.append(arguments)
        yield from ()

    def _named(self) -> dict[str, object]:
        """What calls of functions and of custom tools have alike."""
        origin = self._origin
        names = {"name": origin.name}
        if origin.namespace is not None:
            names["namespace"] = origin.namespace
        return {"call_id": self._call_id, **names, "status": self._status}


class SpelledCall(CallItem):
    """A call whose arguments are shown as they come, under the names of its kind."""

    _type: ClassVar[str]
    _member: ClassVar[str]
    _events: ClassVar[bytes]

    def add(self, arguments: str) -> Iterator[Event]:
        yield from super().add(arguments)
        yield self._events + b".delta", self._place + b',"delta":' + to_json(arguments)

    def closing(self) -> Iterator[Event]:
        if not self._arguments:  # D003: clients take them from the deltas
            yield from self.add("")
        yield self._events + b".done", self._place + b"," + to_json(self._done())[1:-1]
        yield from super().closing()

    def _done(self) -> dict[str, object]:
        return {self._member: "".join(self._arguments)}

    def _value(self) -> dict[str, object]:
        about = {"id": self.id, "type": self._type}
        return {**about, **self._named(), self._member: "".join(self._arguments)}


class FunctionCall(SpelledCall):
    """A call with JSON for arguments, as the model wrote it."""

    prefix = "fc"
    _type = "function_call"
    _member = "arguments"
    _events = b"function_call_arguments"

    def _done(self) -> dict[str, object]:
        return {"name": self._origin.name, **super()._done()}


class CustomCall(SpelledCall):
    """A call with free text."""

    prefix = "ctc"
    _type = "custom_tool_call"
    _member = "input"
    _events = b"custom_tool_call_input"


class ToolSearch(CallItem):
    """A search for tools; its arguments are an object, which is not shown before it is whole."""

    prefix = "tsc"

    def _value(self) -> dict[str, object]:
        return {
            "id": self.id,
            "type": "tool_search_call",
            "call_id": self._call_id,
            "execution": "client",
            "arguments": _object("".join(self._arguments)) if self.whole else {},
            "status": self._status,
        }


class Compaction(OutputItem):
    """A note in place of the conversation before it."""

    prefix = "cmp"

    def __init__(self, response_id: str, index: int) -> None:
        super().__init__(response_id, index)
        self.content = ""

    def opening(self) -> Iterator[Event]:
        yield from super().opening()
        yield b"compaction.compacting", self._place

    def _value(self) -> dict[str, object]:
        return {"id": self.id, "type": "compaction", "encrypted_content": self.content}


_CALLS: dict[str, type[CallItem]] = {
    "function": FunctionCall,
    "custom": CustomCall,
    "tool_search": ToolSearch,
}


def call_item(response_id: str, index: int, start: CallStart, origin: Origin) -> CallItem:
    """The item of a call that begins; `origin` is what the client calls its tool."""
    return _CALLS[origin.kind](response_id, index, start, origin)


def text_logprobs(records: Iterable[TokenRecord], names: TokenNames) -> list[dict[str, object]]:
    """The entries of the tokens whose first byte is answer text; forced ones have none."""

    def entry(token: int, logprob: float) -> dict[str, object]:
        data = list(names.bytes(token))
        return {"token": names.name(token), "bytes": data, "logprob": logprob}

    return [
        {
            **entry(score.token, score.logprob),
            "top_logprobs": [entry(token, logprob) for token, logprob in score.top],
        }
        for score in (record.score for record in records if record.channel is Channel.TEXT)
        if score is not None
    ]


def _object(text: str) -> dict[str, object]:
    """The object that a JSON text is; an empty one for any other."""
    try:
        found = parse(text.encode("utf-8", "replace"))
    except RequestError:
        return {}
    return found if isinstance(found, dict) else {}
