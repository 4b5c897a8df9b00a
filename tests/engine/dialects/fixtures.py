"""The recorded outputs of the canitoolcall package, fed to our parsers.

Its recordings hold token ids without a tokenizer; a delimiter in them is taken for its token, as
every tokenizer of these families would encode it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from canitoolcall.fixtures import Fixture
from canitoolcall.results import ParsedToolCall, ParseResult

from engine.conversation import Tool
from engine.dialects.dialect import Dialect
from engine.dialects.marks import Marks
from engine.dialects.pieces import Arguments, Closed, Expected, Opened, Piece, Said
from engine.events import Channel


def tools_of(fixture: Fixture) -> dict[str, Tool]:
    functions = [tool["function"] for tool in fixture.tools]
    return {
        function["name"]: Tool(
            function["name"],
            function.get("description", ""),
            function.get("parameters", {"type": "object"}),
        )
        for function in functions
    }


def marks_of(dialect: Dialect) -> Marks:
    """As in the family's vocabularies: every spelling is a token, but for those of plain text."""
    return Marks(dialect.spellings, {text: n for n, text in enumerate(dialect.spellings)})


def parse(
    dialect: Dialect, marks: Marks, fixture: Fixture, parts: Sequence[str], *, cut: bool
) -> list[Piece]:
    """All pieces of an output that comes in parts."""
    tail = marks.marked(fixture.generation_prompt or "")
    parser = dialect.parser(marks, Expected(tools_of(fixture), tail))
    pieces = [piece for part in parts for piece in parser.feed(part)]
    return pieces + parser.finish(cut=cut)


def result_of(pieces: Sequence[Piece]) -> ParseResult:
    """Only calls that were closed are calls; one that the limit cut is shown, but never complete."""
    texts = {Channel.TEXT: "", Channel.REASONING: ""}
    calls: list[ParsedToolCall] = []
    name, arguments = "", ""
    for piece in pieces:
        if isinstance(piece, Said):
            texts[piece.channel] += piece.text
        elif isinstance(piece, Opened):
            name, arguments = piece.name, ""
        elif isinstance(piece, Arguments):
            arguments += piece.text
        elif isinstance(piece, Closed):
            calls.append(ParsedToolCall(name, arguments))
    return ParseResult(
        content=texts[Channel.TEXT] or None,
        reasoning_content=texts[Channel.REASONING] or None,
        tool_calls=tuple(calls),
    )


def splits(text: str) -> Iterator[list[str]]:
    """Every cut in two, single characters, and a few random ones."""
    yield [text]
    yield list(text)
    yield from ([text[:at], text[at:]] for at in range(1, len(text)))
    for seed in range(3):
        chance = random.Random(seed)
        parts, at = [], 0
        while at < len(text):
            size = chance.randint(1, 8)
            parts.append(text[at : at + size])
            at += size
        yield parts
