"""What a parser says, and what it may expect."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from engine.conversation import Tool
from engine.events import Channel


class Said(NamedTuple):
    """Final text of the answer or of a thought."""

    channel: Channel
    text: str


class Opened(NamedTuple):
    """A call begins. `id` is the model's own, where its syntax has ids."""

    name: str
    id: str | None = None


class Arguments(NamedTuple):
    """More of the open call's arguments: JSON text, or a custom tool's free text."""

    text: str


class Closed(NamedTuple):
    """The open call is whole."""


Piece = Said | Opened | Arguments | Closed
WAIT = None
"""What a step yields when only more text can decide."""

T = TypeVar("T")
Steps = Generator[Piece | None, None, T]


class Malformed(Exception):
    """What began like a call is none."""


class Incomplete(Malformed):
    """The output ended inside a call."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a request lets the output hold.

    `tools`: the declared ones by name; None: no calls are read. `tail`: what the prompt ends in,
    its delimiters marked. `thinks`: the model may think, so the delimiters of thoughts count.
    `trusted`: masks guarantee that calls are well-formed, so their pieces go out before they are
    whole. `verbatim`: the answer has a format of its own; once it begins, all that follows is
    answer. `names`: the only tools that may be called, if not all.
    """

    tools: Mapping[str, Tool] | None = None
    tail: str = ""
    thinks: bool = True
    trusted: bool = False
    verbatim: bool = False
    names: frozenset[str] | None = None
