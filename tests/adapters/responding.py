"""Bodies of Responses, a service that plays its answers, and the application around them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from starlette.types import ASGIApp

from adapters.app import build_app
from adapters.auth import Keys
from adapters.response_items import ItemHistory, ItemReader
from adapters.response_tools import ResponseTools
from adapters.responses import complete_body
from adapters.store import ResponseStore, StoreLimits, open_store
from adapters.validation import validate
from engine.config import Config
from engine.conversation import Conversation, Message, Reasoning, Text, ToolCall, ToolResult
from engine.counters import Counters
from engine.events import SemanticEvent
from engine.generation import Generation
from engine.service import Service
from engine.types import GenerationRequest, ModelInfo
from generated.responses import ResponseRequest
from tests.adapters.asgi import SEAL, Exchange, call
from tests.adapters.drafts import Reader, valid_event, valid_object
from tests.adapters.played import Batch, Played, finished, text
from tests.adapters.stores import ROOMY
from tests.serving import facts, model_info, tokenizer

T = TypeVar("T")
TENANT = ""
"""The tenant of a server without keys."""
MODEL = model_info(facts()).checkpoint
WINDOW = 8192
PATH = "/v1/responses"
HELLO: Batch = [text("hello"), finished()]


# Items


def validated(*items: Any, **fields: Any) -> ResponseRequest:
    """A body that the spec allows."""
    body = {"input": list(items), **fields}
    complete_body(body)
    return validate(ResponseRequest, body)


def reader(tools: Sequence[dict[str, Any]] = (), tenant: str = TENANT) -> ItemReader:
    declared: Any = validated(tools=list(tools)).tools
    return ItemReader(ResponseTools(declared), SEAL, tenant, MODEL)


def history(
    *items: Any,
    tools: Sequence[dict[str, Any]] = (),
    earlier: Sequence[Any] = (),
    instructions: str | None = None,
) -> ItemHistory:
    own: Any = validated(*items).input
    before: Any = validated(*earlier).input
    return reader(tools).read(before, own, instructions)


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, **more}


def namespace(name: str, *tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "tools": list(tools), **more}


def said(role: str, *texts: str) -> Message:
    return Message(cast(Any, role), tuple(Text(part) for part in texts))


def answered(call_id: str, *texts: str, name: str | None = None) -> Message:
    return Message("tool", (ToolResult(call_id, texts, name),))


# The service


class PlayedService:
    """Stands in for a `Service`: each generation plays the next list of batches, or raises.

    A token of a prompt is a character that a client sent in it.
    """

    def __init__(self, *answers: Sequence[Batch] | Exception, **info: Any) -> None:
        self.info: ModelInfo = model_info(facts(WINDOW), **info)
        self.tokenizer = tokenizer()
        self.counters = Counters()
        self.draining = False
        self.asked: list[GenerationRequest] = []
        self.generations: list[PlayedGeneration] = []
        self._answers = list(answers)

    async def open(self, requests: Sequence[GenerationRequest]) -> Generation:
        self.asked += requests
        answer = self._answers.pop(0) if self._answers else [HELLO]
        if isinstance(answer, Exception):
            raise answer
        self.generations.append(PlayedGeneration(answer))
        return cast(Generation, self.generations[-1])

    async def count(self, request: GenerationRequest) -> int:
        messages = cast(Conversation, request.prompt).messages
        return sum(len(part) for message in messages for part in texts_of(message))

    async def offload(self, work: Callable[[], T]) -> T:
        return work()

    @property
    def conversation(self) -> Conversation:
        """The one that was answered last."""
        return cast(Conversation, self.asked[-1].prompt)

    def heard(self) -> tuple[Message, ...]:
        """Its messages."""
        return self.conversation.messages


class PlayedGeneration(Played):
    """Remembers whether it was closed.

    An exception among the batches is raised at its place, a number is a wait in seconds.
    """

    num_choices = 1

    def __init__(self, batches: Sequence[Batch]) -> None:
        super().__init__(batches, [])
        self.closed = False

    async def batches(self) -> AsyncIterator[Batch]:
        for step in cast(Sequence[Any], self._batches):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                yield step

    def close(self) -> None:
        self.closed = True


def texts_of(message: Message) -> Sequence[str]:
    """All text of a message, whoever said it."""
    found: list[str] = []
    for part in message.parts:
        match part:
            case Text() | Reasoning():
                found.append(part.text)
            case ToolCall():
                found.append(part.arguments)
            case ToolResult():
                found += part.texts
    return found


def whole_text(*words: str) -> list[Batch]:
    """A generation of one text."""
    return [[text(word)] for word in words] + [[finished()]]


def of(*events: Batch | tuple[int, SemanticEvent]) -> Batch:
    """One batch of events and of whole calls."""
    flat: Batch = []
    for event in events:
        flat += event if isinstance(event, list) else [event]
    return flat


# The application


@asynccontextmanager
async def app_of(
    service: PlayedService | Service,
    folder: Path | None = None,
    keys: Mapping[str, str] | None = None,
    limits: StoreLimits = ROOMY,
    **options: Any,
) -> AsyncIterator[ASGIApp]:
    """The whole application, with a store in a folder or with none."""
    store = None if folder is None else open_store("sqlite", folder, limits)
    try:
        yield app_over(service, store, keys, **options)
    finally:
        if store is not None:
            await store.close()


def app_over(
    service: PlayedService | Service,
    store: ResponseStore | None,
    keys: Mapping[str, str] | None = None,
    **options: Any,
) -> ASGIApp:
    return build_app(cast(Service, service), Config(**options), Keys(keys or {}), SEAL, store)


async def post(app: ASGIApp, *items: Any, key: str | None = None, **fields: Any) -> Exchange:
    """A request to create a response; no items are the text `hi`."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    body = {"input": list(items) if items else "hi", **fields}
    return await call(app, "POST", PATH, body, headers)


async def created(app: ASGIApp, *items: Any, **fields: Any) -> dict[str, Any]:
    """The response, whole and valid."""
    answer = await post(app, *items, **fields)
    assert answer.status == 200, answer.content
    return valid_object(answer.content)


def events_of(answer: Exchange) -> list[dict[str, Any]]:
    """The events of a stream, each valid, in order, and together the final object."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = [valid_event(part) for part in answer.parts]
    together = Reader()
    for event in found:
        together.take(event)
    assert together.response is not None
    return found


def refusal_of(answer: Exchange) -> tuple[int, str | None, str | None]:
    """Status, code and param of an error."""
    return answer.status, answer.error["code"], answer.error["param"]


def described(value: object) -> str:
    """A name of a case."""
    return json.dumps(value)[:60] if isinstance(value, dict | list) else str(value)[:60]
