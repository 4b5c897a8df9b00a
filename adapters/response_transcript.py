"""A conversation as a text to make notes from: who said and did what, cut to what fits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.conversation import Message, Role, Text, ToolCall, ToolResult

Measure = Callable[[str], int]
"""The tokens of a text."""

HEADING = "What came before this point is recorded in these notes, which replace it:"
"""The first line of a message that brings the note of an earlier compaction back."""

_Kind = Literal["note", "speech", "work"]
_SHARE: dict[_Kind, int] = {"note": 3, "speech": 8, "work": 16}
"""An entry may fill one part in so many of the room."""

_LABELS: dict[Role, str] = {
    "system": "instructions",
    "developer": "instructions",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_CHARS = 8  # per token, more than any prose has: what exceeds it is cut before it is measured
_MOST_GAPS = 3  # around what the user said first and the last note


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was said or done."""

    label: str
    text: str
    kind: _Kind = "speech"

    def __str__(self) -> str:
        return f"[{self.label}]\n{self.text}"


def entries_of(messages: Sequence[Message], instructions: str | None) -> list[Entry]:
    """The entries of a conversation without its thoughts, those of its instructions first."""
    entries = list(_entries(messages))
    told = instructions and not any(entry.text == instructions for entry in entries)
    return [Entry("instructions", instructions or ""), *entries] if told else entries


def _entries(messages: Sequence[Message]) -> Iterator[Entry]:
    called: dict[str, str] = {}
    for message in messages:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        text = "\n".join(texts).strip()
        if is_note(message):
            yield Entry("notes so far", text.removeprefix(HEADING).strip(), "note")
        elif text:
            yield Entry(_LABELS[message.role], text)
        for part in message.parts:
            if isinstance(part, ToolCall):
                called[part.id] = part.name
                yield Entry(f"assistant calls {part.name}", part.arguments.strip(), "work")
            elif isinstance(part, ToolResult):
                name = part.name or called.get(part.call_id, "a tool")
                label = f"{name} failed" if part.is_error else f"{name} returned"
                yield Entry(label, "\n".join(part.texts).strip(), "work")


def is_note(message: Message) -> bool:
    """Whether a message brings the note of an earlier compaction."""
    first = message.parts[0] if message.parts else None
    return (
        message.role == "developer" and isinstance(first, Text) and first.text.startswith(HEADING)
    )


def written(entries: Sequence[Entry]) -> str:
    """All entries, whole."""
    return "\n\n".join(map(str, entries))


def fitted(entries: Sequence[Entry], room: int, measure: Measure) -> str:
    """The entries in `room` tokens: long ones are cut, then the oldest are left out, which it says.

    What the user said first and the last note of an earlier compaction stay.
    """
    room = max(room - _MOST_GAPS * measure(f"{_gap(len(entries))}\n\n"), 0)
    shares = {kind: room // share for kind, share in _SHARE.items()}
    kept = list(_kept_first(entries))
    others = [place for place in reversed(range(len(entries))) if place not in kept]
    shown: dict[int, str] = {}
    for place in (*kept, *others):
        entry = entries[place]
        text, size = bounded(f"{entry}\n\n", shares[entry.kind], measure)
        if (not text or size > room) and place not in kept:
            break
        room -= size
        shown[place] = text.strip()
    return "\n\n".join(_joined(len(entries), shown))


def _kept_first(entries: Sequence[Entry]) -> Iterator[int]:
    users = [place for place, entry in enumerate(entries) if entry.label == "user"]
    notes = [place for place, entry in enumerate(entries) if entry.kind == "note"]
    yield from (*users[:1], *notes[-1:])


def _joined(count: int, shown: dict[int, str]) -> Iterator[str]:
    missing = 0
    for place in range(count):
        if not (text := shown.get(place)):
            missing += 1
            continue
        if missing:
            yield _gap(missing)
            missing = 0
        yield text
    if missing:
        yield _gap(missing)


def _gap(count: int) -> str:
    return f"[{count} entries are left out here]"


def bounded(text: str, limit: int, measure: Measure) -> tuple[str, int]:
    """The text and its tokens, at most `limit`: where it has more, its middle is left out."""
    chars = min(len(text), limit * _CHARS)
    while True:
        kept = text if chars == len(text) else _ends(text, chars)
        size = measure(kept)
        if size <= limit:
            return kept, size
        if not chars:
            return "", 0
        chars = chars * limit * 9 // (size * 10)


def _ends(text: str, chars: int) -> str:
    head = chars * 2 // 3
    tail = len(text) - (chars - head)
    return f"{text[:head]}\n[{tail - head} characters are left out here]\n{text[tail:]}"


def newest(text: str, limit: int, measure: Measure) -> str:
    """The end of a text, at most `limit` tokens, from the start of a line where one is near."""
    text = text.strip()
    end = text[-limit * _CHARS :]
    start = bisect_left(range(len(end)), True, key=lambda place: measure(end[place:]) <= limit)
    kept = end[start:]
    if len(kept) == len(text) or (start and end[start - 1] == "\n"):
        return kept
    whole_lines = kept.partition("\n")[2]
    return whole_lines.strip() if len(whole_lines) * 2 > len(kept) else kept.strip()


def extract(entries: Sequence[Entry], limit: int, measure: Measure) -> str:
    """What stands for entries without a summary: the newest text, behind the last earlier note."""
    notes = [entry.text for entry in entries if entry.kind == "note"]
    if not notes:
        return newest(written(entries), limit, measure)
    earlier = f"{newest(notes[-1], limit // 2, measure)}\n\n"
    rest = [entry for entry in entries if entry.kind != "note"]
    return (earlier + newest(written(rest), limit - measure(earlier), measure)).strip()
