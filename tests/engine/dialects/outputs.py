"""Outputs fed to the parser of a dialect, at every split."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.conversation import Tool
from engine.dialects.dialect import Dialect
from engine.dialects.marks import Marks
from engine.dialects.pieces import Arguments, Closed, Expected, Opened, Piece, Said
from engine.events import Channel


@dataclass
class Output:
    """What was said in all. `calls` are the closed ones, `is_open` whether one has no end."""

    text: str = ""
    thought: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    is_open: bool = False
    arguments: str = ""


def tool(name: str, **properties: object) -> Tool:
    """A tool; a property is a type or a schema."""
    schemas = {
        key: {"type": schema} if isinstance(schema, str) else schema
        for key, schema in properties.items()
    }
    return Tool(name, parameters={"type": "object", "properties": schemas})


def read(
    dialect: Dialect,
    output: str,
    *tools: Tool,
    tail: str = "",
    tokens: bool = True,
    trusted: bool = False,
    cut: bool = False,
) -> Output:
    """What an output says, the same at every split. `tokens`: delimiters are single tokens."""
    known = {text: n for n, text in enumerate(dialect.spellings)} if tokens else {}
    marks = Marks(dialect.spellings, known)
    expected = Expected({tool.name: tool for tool in tools}, marks.marked(tail), trusted=trusted)
    marked = marks.marked(output)
    outputs = []
    for parts in splits(marked):
        parser = dialect.parser(marks, expected)
        pieces = [piece for part in parts for piece in parser.feed(part)]
        pieces += parser.finish(cut=cut)
        ends = [span.end for span in parser.reader.spans]
        assert (ends or [0])[-1] == len(marked), "characters are lost"
        outputs.append(said(pieces))
    assert all(other == outputs[0] for other in outputs), "a split changes it"
    return outputs[0]


def splits(text: str) -> Iterator[list[str]]:
    """Whole, in single characters, and every cut in two."""
    yield [text]
    yield list(text)
    yield from ([text[:at], text[at:]] for at in range(1, len(text)))


def said(pieces: Sequence[Piece]) -> Output:
    """All pieces together."""
    output = Output()
    name = ""
    for piece in pieces:
        if isinstance(piece, Said) and piece.channel is Channel.TEXT:
            output.text += piece.text
        elif isinstance(piece, Said):
            output.thought += piece.text
        elif isinstance(piece, Opened):
            name, output.arguments, output.is_open = piece.name, "", True
        elif isinstance(piece, Arguments):
            output.arguments += piece.text
        elif isinstance(piece, Closed):
            output.calls.append((name, _value(output.arguments)))
            output.is_open = False
    return output


def _value(arguments: str) -> Any:
    """Arguments as a value; a custom tool's are text."""
    return json.loads(arguments) if arguments.startswith("{") else arguments


def streamed(
    dialect: Dialect, parts: Sequence[str], tools: Mapping[str, Tool]
) -> list[list[Piece]]:
    """What each part of a constrained output says."""
    marks = Marks(dialect.spellings, {text: n for n, text in enumerate(dialect.spellings)})
    parser = dialect.parser(marks, Expected(tools, trusted=True))
    return [parser.feed(marks.marked(part)) for part in parts]
