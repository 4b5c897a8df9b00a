"""Recorded outputs, broken at random: no exception, no hang, no lost text.

Parts of a recording are dropped, doubled, cut off, or shuffled into those of another recording of
its family. Whatever comes out is read to its end, and every character of it has a place: the
answer, a thought, a call, or the markup around them. HELIOGRAPH_MUTATIONS sets the number.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType

import pytest

pytest.importorskip("canitoolcall")

from canitoolcall.fixtures import Fixture

from engine.dialects.dialect import Dialect
from engine.dialects.marks import Marks
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Arguments, Closed, Expected, Opened, Piece, Said
from engine.events import Channel
from tests.engine.dialects.fixtures import marks_of, raw_of, tools_of
from tests.engine.dialects.test_fixtures import COVERED, dialect_of

COUNT = int(os.environ.get("HELIOGRAPH_MUTATIONS", "500"))
GROUPS = 20
PATIENCE = 20  # seconds after which a parser hangs
SEED = 20261129

# What is markup between the delimiters of a family: a header, with whatever is its content type;
# the name of a channel, as far as it came.
JOINED = {
    **dict.fromkeys(
        ("deepseek_v32", "deepseek_v4", "deepseek_v41"), r"[</> ]*([a-z_]* ?calls|[a-z]*)[</>\s]*"
    ),
    "kimi_k3": r"([a-z]*|message[\w =\"]*)",
    "harmony": r"(assistant|analysis|commentary|final|to=\S+|\s)*.{0,64}",
    "gemma4": r"t?h?o?u?g?h?t?",
}
# Calls of tools that the family knows and nobody offered; nothing is said of them.
UNOFFERED = re.compile(r"to=python")


@dataclass(frozen=True)
class Mutation:
    """A broken output; `parts` is how it arrives, `cut` whether a limit ended it."""

    fixture: Fixture
    dialect: Dialect
    marks: Marks
    parts: tuple[str, ...]
    cut: bool

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def __str__(self) -> str:
        return f"{self.fixture.id}, cut={self.cut}: {self.marks.plain(self.text)!r}"


@dataclass(frozen=True)
class Reading:
    """What a parser made of it."""

    pieces: tuple[Piece, ...]
    spans: tuple[tuple[int, Channel], ...]


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_broken_output_is_read_to_its_end_and_nothing_is_lost(group: int) -> None:
    for number in range(group, COUNT, GROUPS):
        mutation = _mutation(number)
        with _patience(mutation):
            whole = _read(mutation, [mutation.text])
            parts = _read(mutation, mutation.parts)
        assert _joined(parts.pieces) == _joined(whole.pieces), f"a split changes it: {mutation}"
        for reading in (whole, parts):
            _check_order(mutation, reading)
            _check_spans(mutation, reading)
            _check_text(mutation, reading)


def test_the_mutations_are_of_every_kind() -> None:
    """Most of them differ from their recording, and some of each family keep a call."""
    mutations = [_mutation(number) for number in range(200)]
    recorded = {raw_of(m.marks, m.fixture) for m in mutations}
    assert sum(m.text not in recorded for m in mutations) > 150
    kept = {
        m.fixture.family
        for m in mutations
        if any(isinstance(piece, Closed) for piece in _read(m, [m.text]).pieces)
    }
    assert kept == {m.fixture.family for m in mutations}


# Making them


def _mutation(number: int) -> Mutation:
    """Always the same one for a number; all recordings have their turn."""
    chance = random.Random(SEED + number)
    fixture = COVERED[number * 97 % len(COVERED)]
    dialect = dialect_of(fixture)
    assert dialect is not None
    marks = marks_of(dialect)
    text = raw_of(marks, fixture)
    for _ in range(chance.randint(1, 3)):
        text = _mutated(text, fixture, marks, chance)
    parts, at = [], 0
    while at < len(text):
        size = chance.randint(1, 12)
        parts.append(text[at : at + size])
        at += size
    return Mutation(fixture, dialect, marks, tuple(parts), cut=chance.random() < 0.5)


def _mutated(text: str, fixture: Fixture, marks: Marks, chance: random.Random) -> str:
    """One change. Half of the places are at delimiters, where it hurts."""
    start = _place(text, marks, chance)
    end = min(len(text), start + chance.choice((1, 1, 2, 5, 20, 80)))
    match chance.choice(("drop", "duplicate", "truncate", "interleave")):
        case "drop":
            return text[:start] + text[end:]
        case "duplicate":
            return text[:end] + text[start:end] + text[end:]
        case "truncate":
            return text[:start]
    family = [other for other in COVERED if other.family == fixture.family]
    other = raw_of(marks, chance.choice(family))
    return "".join(_interleaved(text, other, chance))


def _interleaved(one: str, other: str, chance: random.Random) -> Iterator[str]:
    """Runs of both texts in turn."""
    texts = [one, other]
    while any(texts):
        size = chance.choice((3, 10, 40, 120))
        yield texts[0][:size]
        texts = [texts[1], texts[0][size:]]


def _place(text: str, marks: Marks, chance: random.Random) -> int:
    delimiters = "|".join(map(re.escape, marks.chars.values())) or r"(?!)"
    found = [match.start() for match in re.finditer(rf"{delimiters}|[<>\[\]{{}}\"]", text)]
    if found and chance.random() < 0.5:
        return chance.choice(found)
    return chance.randint(0, len(text))


# Reading them


def _read(mutation: Mutation, parts: Sequence[str]) -> Reading:
    tail = mutation.marks.marked(mutation.fixture.generation_prompt or "")
    expected = Expected(tools_of(mutation.fixture), tail)
    parser: OutputParser = mutation.dialect.parser(mutation.marks, expected)
    pieces = [piece for part in parts for piece in parser.feed(part)]
    pieces += parser.finish(cut=mutation.cut)
    spans = tuple((span.end, span.channel) for span in parser.reader.spans)
    return Reading(tuple(pieces), spans)


@contextmanager
def _patience(mutation: Mutation) -> Iterator[None]:
    """Ends a parser that never comes back."""

    def give_up(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"it hangs: {mutation}")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbours of one kind are one piece, whatever the pieces in which they came."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(piece, Said) and isinstance(last, Said) and last.channel is piece.channel:
            joined[-1] = Said(piece.channel, last.text + piece.text)
        elif isinstance(piece, Arguments) and isinstance(last, Arguments):
            joined[-1] = Arguments(last.text + piece.text)
        else:
            joined.append(piece)
    return [piece for piece in joined if not (isinstance(piece, Said) and not piece.text)]


# Judging them


def _check_order(mutation: Mutation, reading: Reading) -> None:
    """Calls open and close in turn; only the limit leaves one open; closed ones have JSON."""
    arguments: str | None = None
    for piece in reading.pieces:
        if isinstance(piece, Opened):
            assert arguments is None, f"a call in a call: {mutation}"
            assert piece.name, f"a call without a name: {mutation}"
            arguments = ""
        elif isinstance(piece, Arguments):
            assert arguments is not None, f"arguments of no call: {mutation}"
            arguments += piece.text
        elif isinstance(piece, Closed):
            assert arguments is not None, f"the end of no call: {mutation}"
            assert isinstance(json.loads(arguments), dict), f"{arguments!r}: {mutation}"
            arguments = None
        else:
            assert arguments is None, f"text in a call: {mutation}"
            piece.text.encode()  # no character that stands for a token
    assert arguments is None or mutation.cut, f"a call stays open: {mutation}"


def _check_spans(mutation: Mutation, reading: Reading) -> None:
    """Every character lies in a span."""
    ends = [0, *(end for end, _ in reading.spans)]
    assert all(start < end for start, end in pairwise(ends)), f"{ends}: {mutation}"
    assert ends[-1] == len(mutation.text), f"{ends[-1]} of {len(mutation.text)}: {mutation}"


def _check_text(mutation: Mutation, reading: Reading) -> None:
    """What is said is what stands in its spans, but for white space; markup is only markup."""
    for channel in (Channel.TEXT, Channel.REASONING):
        said = "".join(
            piece.text
            for piece in reading.pieces
            if isinstance(piece, Said) and piece.channel is channel
        )
        stands = mutation.marks.plain("".join(_spans_of(mutation, reading, channel)))
        assert _dense(said) == _dense(stands), f"{channel}: {said!r} {stands!r}: {mutation}"
    has_calls = any(isinstance(piece, Opened) for piece in reading.pieces)
    called = _dense("".join(_spans_of(mutation, _without_tail(mutation, reading), Channel.CALL)))
    lost = called.strip("".join(mutation.marks.of_token.values()))
    is_known = UNOFFERED.search(mutation.text)
    assert has_calls or is_known or not lost, f"a lost call {called!r}: {mutation}"
    for markup in _spans_of(mutation, reading, Channel.MARKUP):
        assert _is_markup(markup, mutation), f"{markup!r} is lost: {mutation}"


def _without_tail(mutation: Mutation, reading: Reading) -> Reading:
    """Where the limit cuts a call off before its name, there is nothing to show of it."""
    spans = list(reading.spans)
    while mutation.cut and spans and spans[-1][1] in (Channel.CALL, Channel.MARKUP):
        spans.pop()
    return Reading(reading.pieces, tuple(spans))


def _spans_of(mutation: Mutation, reading: Reading, channel: Channel) -> Iterator[str]:
    start = 0
    for end, found in reading.spans:
        if found is channel:
            yield mutation.text[start:end]
        start = end


def _dense(text: str) -> str:
    return "".join(text.split())


def _is_markup(text: str, mutation: Mutation) -> bool:
    """Whether a text is made of the dialect's delimiters, what may join them, and white space."""
    spellings = [mutation.marks[spelling] for spelling in mutation.dialect.spellings]
    longest_first = sorted(spellings, key=len, reverse=True)
    joined = re.compile(JOINED.get(mutation.dialect.name, ""), re.DOTALL)
    parts = re.split("|".join(map(re.escape, longest_first)), text)
    return all(joined.fullmatch(part.strip()) for part in parts)
