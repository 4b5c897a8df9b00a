"""A response while it is generated: one draft makes the events of a stream and the whole object."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

from adapters import sse
from adapters.logprobs import TokenNames
from adapters.response_object import CUT, Progress, ResponseForm, ResponseHead, failure_of
from adapters.response_output import (
    CallItem,
    Compaction,
    Event,
    ItemStatus,
    Message,
    OutputItem,
    Phase,
    Thought,
    call_item,
    text_logprobs,
)
from adapters.response_tools import Origin
from engine.accumulate import check_end
from engine.errors import GenerationFailed
from engine.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Delta,
    Finished,
    PromptScored,
    ReasoningDelta,
    SemanticEvent,
    Started,
    TextDelta,
)
from engine.generation import Generation


class ResponseDraft:
    """Takes what happens in a generation; makes the response and, on the way, its events.

    Events are made one by one as they are asked for, each as the bytes of one write, and numbered
    then: a sign of life between two of them gets the number between theirs. `end` or `failed` makes
    the last one, after which `final` is the whole object as JSON. `kept` are the data of all events
    in their order, where `keep_events` asks for them.

    `origin_of` tells what the client calls a tool that the model named. `names` None: log
    probabilities are not included; `seal` None: thoughts are not included in secret.
    """

    def __init__(
        self,
        head: ResponseHead,
        origin_of: Callable[[str], Origin],
        *,
        names: TokenNames | None = None,
        seal: Callable[[str], str] | None = None,
        keep_events: bool = False,
    ) -> None:
        self.final = b""
        self.kept: list[bytes] = []
        self._keeps = keep_events
        self._id = head.id
        self._created_at = head.created_at
        self._form = ResponseForm(head)
        self._origin_of = origin_of
        self._names = names
        self._seal = seal
        self._progress = Progress()
        self._number = 0
        self._items: list[OutputItem] = []
        self._open: OutputItem | None = None  # the last of them, while it grows
        self._has_cut_call = False
        self._logprobs: list[dict[str, object]] = []  # of tokens whose text is still to come

    def begin(self) -> Iterator[bytes]:
        """The first events, unless they were made already; everything else makes them by itself."""
        if self._number == 0:
            yield self._whole(b"created")
            yield self._whole(b"in_progress")

    def compacted(self, content: str) -> Iterator[bytes]:
        """An item that stands for the conversation before it."""
        yield from self.begin()
        yield from self._leave()
        item = Compaction(self._id, len(self._items))
        yield from self._enter(item)
        item.content = content
        yield from self._leave()

    def take(self, happened: SemanticEvent) -> Iterator[bytes]:
        """The events that show what happened. Raises what `check_end` does."""
        yield from self.begin()
        self._progress.usage = happened.usage
        if isinstance(happened, Finished):
            yield from self._finish(happened)
        elif not isinstance(happened, Started | PromptScored):
            yield from self._show(happened)

    def end(self) -> bytes:
        """The last event. Raises GenerationFailed where the generation has not finished."""
        progress = self._progress
        if progress.end is None:
            raise GenerationFailed("the generation ended without a finish")
        if progress.end.cause in CUT or self._has_cut_call:
            progress.status = "incomplete"
        else:
            progress.status = "completed"
            progress.completed_at = max(int(time.time()), self._created_at)
        return self._last()

    def failed(self, error: Exception) -> bytes:
        """What is left to say when something broke, the last event included.

        It takes the place of an end that was made but not sent.
        """
        first = b"".join(self.begin())
        if self.final:
            self._number -= 1
            del self.kept[-1:]
        if self._open is not None:
            self._open.cut()
            self._open = None
        progress = self._progress
        progress.status = "failed"
        progress.completed_at = None
        progress.error = failure_of(error)
        return first + self._last()

    def heartbeat(self) -> bytes:
        """A sign of life, of which there is none before the first event and after the last.

        Codex's timer ignores comments; any event resets it.
        """
        return self._whole(b"in_progress") if self._number > 0 and not self.final else b""

    def output(self) -> bytes:
        """The items so far, as a JSON array."""
        return b"[" + b",".join(item.json() for item in self._items) + b"]"

    def _show(self, happened: Delta) -> Iterator[bytes]:
        if self._names is not None and happened.records:
            self._logprobs += text_logprobs(happened.records, self._names)
        if isinstance(happened, TextDelta) and happened.text:
            if not isinstance(self._open, Message):
                yield from self._enter(Message(self._id, len(self._items)))
            yield from self._say(happened.text)
        elif self._logprobs and isinstance(self._open, Message):
            yield from self._say("")
        if isinstance(happened, ReasoningDelta) and happened.text:
            yield from self._think(happened.text)
        elif isinstance(happened, CallStart):
            origin = self._origin_of(happened.name)
            yield from self._enter(call_item(self._id, len(self._items), happened, origin))
        elif isinstance(happened, CallDelta) and happened.arguments:
            for event in self._call().add(happened.arguments):
                yield self._event(event)
        elif isinstance(happened, CallEnd):
            self._call().whole = True
            yield from self._leave()

    def _say(self, text: str) -> Iterator[bytes]:
        assert isinstance(self._open, Message)
        logprobs, self._logprobs = self._logprobs, []
        yield self._event(self._open.say(text, logprobs))

    def _think(self, text: str) -> Iterator[bytes]:
        if not isinstance(self._open, Thought):
            yield from self._enter(Thought(self._id, len(self._items), self._seal))
        assert isinstance(self._open, Thought)
        yield self._event(self._open.think(text))

    def _call(self) -> CallItem:
        assert isinstance(self._open, CallItem)
        return self._open

    def _enter(self, item: OutputItem) -> Iterator[bytes]:
        """Begin an item in place of the open one."""
        yield from self._leave()
        self._items.append(item)
        self._open = item
        for event in item.opening():
            yield self._event(event)

    def _leave(
        self, status: ItemStatus = "completed", phase: Phase = "commentary"
    ) -> Iterator[bytes]:
        """End the open item, if there is one.

        A message that something follows, be it a thought, was not the last word: its phase cannot
        wait for what that thought leads to. Codex would run a call that was cut and announced.
        """
        item, self._open = self._open, None
        if item is None:
            return
        if isinstance(item, CallItem) and not item.whole:
            item.cut()
            self._has_cut_call = True
            return
        if isinstance(item, Message):
            item.phase = phase
        item.settle(status)
        for event in item.closing():
            yield self._event(event)

    def _finish(self, end: Finished) -> Iterator[bytes]:
        check_end(end)
        yield from self._leave("incomplete" if end.cause in CUT else "completed", "final_answer")
        self._progress.end = end

    def _last(self) -> bytes:
        self.final = self._response()
        return self._event((self._progress.status.encode(), b'"response":' + self.final))

    def _response(self) -> bytes:
        return self._form.write(self._progress, self.output())

    def _whole(self, name: bytes) -> bytes:
        """An event with all of the response."""
        return self._event((name, b'"response":' + self._response()))

    def _event(self, event: Event) -> bytes:
        name = b"response." + event[0]
        number = b'","sequence_number":%d,' % self._number
        data = b'{"type":"' + name + number + event[1] + b"}"
        self._number += 1
        if self._keeps:
            self.kept.append(data)
        return sse.event(name, data)


async def response_events(
    draft: ResponseDraft,
    generation: Generation,
    save: Callable[[], Awaitable[None]] | None = None,
) -> AsyncGenerator[bytes, None]:
    """All events of a response; a buffered one, which is the draft's `final`, lets them go.

    `save` keeps the finished draft before the client learns that it is finished, since the next
    request may continue it.
    """
    for event in draft.begin():
        yield event
    async for batch in generation.batches():
        for _, happened in batch:
            for event in draft.take(happened):
                yield event
    last = draft.end()
    if save is not None:
        await save()
    yield last
