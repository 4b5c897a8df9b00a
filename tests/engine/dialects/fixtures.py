"""The recorded outputs of the canitoolcall package, fed to our parsers.

Its recordings hold token ids without a tokenizer; a delimiter in them is taken for its token, as
most tokenizers of these families would encode it. Two families never encode text to such a token:
there the ids tell which delimiters are tokens.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Sequence

from canitoolcall.fixtures import Fixture, load_families
from canitoolcall.results import ParsedToolCall, ParseResult

from engine.conversation import Tool
from engine.dialects.dialect import Dialect
from engine.dialects.marks import Marks
from engine.dialects.pieces import Arguments, Closed, Expected, Opened, Piece, Said
from engine.events import Channel

FAMILIES = load_families()


# Delimiters that are no tokens in the vocabularies of a family.
PLAIN = {"magistral": ("<think>", "</think>"), "gemma4": ("<|channel>thought",)}


def tail_of(fixture: Fixture) -> str:
    """What the prompt of a recording ends in."""
    if fixture.generation_prompt is not None:
        return fixture.generation_prompt
    models = {model.repo: model for model in FAMILIES[fixture.family].reference_models}
    model = models.get(fixture.models[0])
    return (model.default_generation_prompt if model else None) or ""


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
    tokens = [text for text in dialect.spellings if text not in PLAIN.get(dialect.name, ())]
    return Marks(dialect.spellings, {text: n for n, text in enumerate(tokens)})


# Ids of delimiters in the families whose recordings hold some as plain text.
IDS: dict[str, dict[str, set[int]]] = {
    "gpt-oss": {
        "<|return|>": {200002}, "<|constrain|>": {200003}, "<|channel|>": {200005},
        "<|start|>": {200006}, "<|end|>": {200007}, "<|message|>": {200008}, "<|call|>": {200012},
    },
    "mistral": {
        "[TOOL_CALLS]": {5, 9}, "[ARGS]": {32}, "[CALL_ID]": {33},
        "[THINK]": {34}, "[/THINK]": {35},
    },
}  # fmt: skip


def raw_of(marks: Marks, fixture: Fixture) -> str:
    """A recorded output in which delimiters that are tokens are marked."""
    known = IDS.get(fixture.family)
    if known is None:
        return marks.marked(fixture.raw_output)
    wanted = frozenset().union(*known.values())
    ids = [number for number in fixture.output_token_ids or () if number in wanted]
    spellings = "|".join(map(re.escape, known))

    def marked(found: re.Match[str]) -> str:
        if not ids or ids[0] not in known[found[0]]:
            return found[0]
        del ids[0]
        return marks.marked(found[0])

    return re.sub(spellings, marked, fixture.raw_output)


def parse(
    dialect: Dialect, marks: Marks, fixture: Fixture, parts: Sequence[str], *, cut: bool
) -> list[Piece]:
    """All pieces of an output that comes in parts."""
    tail = marks.marked(tail_of(fixture))
    parser = dialect.parser(marks, Expected(tools_of(fixture), tail))
    pieces = [piece for part in parts for piece in parser.feed(part)]
    return pieces + parser.finish(cut=cut)


def result_of(pieces: Sequence[Piece]) -> ParseResult:
    """Only calls that were closed are calls: one that the limit cut is never complete."""
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


CUTS = int(os.environ.get("HELIOGRAPH_CUTS", "24"))
"""How many places a recording is cut in two at; 0 is every one."""


def splits(text: str) -> Iterator[list[str]]:
    """Cut in two at many places, single characters, and a few random ones."""
    yield [text]
    yield list(text)
    places: Sequence[int] = range(1, len(text))
    if 0 < CUTS < len(places):
        places = random.Random(len(text)).sample(places, CUTS)
    yield from ([text[:at], text[at:]] for at in places)
    for seed in range(3):
        chance = random.Random(seed)
        parts, at = [], 0
        while at < len(text):
            size = chance.randint(1, 8)
            parts.append(text[at : at + size])
            at += size
        yield parts
