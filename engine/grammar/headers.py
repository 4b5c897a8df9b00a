"""Where calls that begin with ordinary text are certain to have begun: their literal beginnings.

An expression is unfolded from the left, over all its alternatives, until its text names a tool, or
until a token follows. What remains then is the grammar of the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.grammar.builder import Builder

_MOST_UNFOLDED = 4096
_MOST_PER_NAME = 256
_WORD = r"[A-Za-z0-9_.-]"
_BEHIND_WORD = re.compile(rf"({_WORD}+)(?!{_WORD}).", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<literal> "(?:\\.|[^"\\])*" (?!i) )
  | (?P<other> "(?:\\.|[^"\\])*"i | /(?:\\.|[^/\\])+/[a-z]* | @\w+ | <[^<>\s]*> )
  | (?P<json> %json\s* )
  | (?P<name> \w+ )
  | (?P<count> [?*+] | \{\d+(?:,\d*)?\} )
  | (?P<sign> [()|] )
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Literal:
    text: str


@dataclass(frozen=True, slots=True)
class _Opaque:
    """What has no literal beginning, or a name that may stand for one."""

    text: str


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple[tuple[_Node, ...], ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    node: _Node
    count: str


_Node = _Literal | _Opaque | _Choice | _Repeat
_Nodes = tuple[_Node, ...]


class Header(NamedTuple):
    """The beginning of calls, and an expression for what follows it.

    `is_certain`: nothing else begins so. Otherwise, the token that follows decides.
    """

    text: str
    rest: str
    is_certain: bool


class Found(NamedTuple):
    """What calls begin with, and the tools whose calls do not all begin so, as far as is known."""

    headers: list[Header]
    missed: list[str]


def headers(
    rules: Builder, calls: str, names: Sequence[str], given: Callable[[str], str] | None
) -> Found:
    """The beginnings of calls that name one of some tools; none where a call names it too late.

    `given` makes the beginning of a tool's name, where the syntax knows better than that it ends
    behind the name and one character more.
    """
    end_of = _Given(names, given) if given is not None else _Named(names)
    unfolding = _Unfolding(rules, end_of, _MOST_UNFOLDED + _MOST_PER_NAME * len(names))
    found = list(dict.fromkeys(unfolding.run(_Reader(calls).choice().options[0], "")))
    # Behind a token, calls of any tool may follow, unless the unfolding has stopped before.
    is_whole = not unfolding.is_stopped and any(not header.is_certain for header in found)
    missed = [] if is_whole else [name for name in names if name not in unfolding.named]
    return Found(found, missed)


End = tuple[int, str]
"""Where the beginning of a call ends, and the tool that it names."""


class _Given:
    """The ends of beginnings that are known."""

    def __init__(self, names: Sequence[str], given: Callable[[str], str]) -> None:
        self.known = {given(name): name for name in reversed(names)}
        self.lengths = sorted({len(text) for text in self.known})

    def __call__(self, text: str) -> End | None:
        for length in self.lengths:
            if length <= len(text) and (name := self.known.get(text[:length])) is not None:
                return length, name
        return None


class _Named:
    """The ends of beginnings behind a tool's name and one character more."""

    def __init__(self, names: Sequence[str]) -> None:
        self.words = {name for name in names if re.fullmatch(f"{_WORD}+", name)}
        odd = "|".join(re.escape(name) for name in names if name not in self.words)
        self.odd = re.compile(rf"(?<!{_WORD})({odd})(?!{_WORD}).", re.DOTALL) if odd else None

    def __call__(self, text: str) -> End | None:
        ends = []
        for found in _BEHIND_WORD.finditer(text):
            word = found[1]
            starts = [0, *(at + 1 for at, char in enumerate(word) if char == ".")]
            names = [word[at:] for at in starts if word[at:] in self.words]
            if names:
                ends.append((found.end(), names[0]))
                break
        if self.odd is not None and (other := self.odd.search(text)):
            ends.append((other.end(), other[1]))
        return min(ends, default=None)


class _Unfolding:
    """`named` are the tools whose calls were found to begin."""

    def __init__(self, rules: Builder, end_of: Callable[[str], End | None], most: int) -> None:
        self.rules = rules
        self.end_of = end_of
        self.most = most
        self.steps = 0
        self.named: set[str] = set()
        self.bodies: dict[str, _Choice] = {}

    @property
    def is_stopped(self) -> bool:
        return self.steps > self.most

    def body(self, name: str) -> _Choice | None:
        """What a rule consists of; None for what is no plain rule."""
        if name not in self.bodies and name.startswith("r") and name in self.rules.bodies:
            self.bodies[name] = _Reader(self.rules.bodies[name]).choice()
        return self.bodies.get(name)

    def run(self, nodes: _Nodes, text: str) -> Iterator[Header]:
        """All headers that begin with `text`, if these nodes follow it."""
        self.steps += 1
        if self.is_stopped or not nodes:
            return
        first, rest = nodes[0], nodes[1:]
        match first:
            case _Literal(literal):
                whole = text + literal
                found = self.end_of(whole)
                if found is None:
                    yield from self.run(rest, whole)
                else:
                    end, name = found
                    self.named.add(name)
                    left = (_Literal(whole[end:]), *rest) if end < len(whole) else rest
                    yield Header(whole[:end], self.written(left), True)
            case _Choice(options):
                for option in options:
                    yield from self.run((*option, *rest), text)
            case _Repeat(node, count):
                if count in "?*":
                    yield from self.run(rest, text)
                more = () if count == "?" else (_Repeat(node, "*"),)
                if count in "?*+":
                    yield from self.run((node, *more, *rest), text)
            case _Opaque(name):
                if (body := self.body(name)) is not None:
                    yield from self.run((body, *rest), text)
                elif self.rules.is_mark(name):
                    yield Header(text, self.written(nodes), False)

    def written(self, nodes: _Nodes) -> str:
        return " ".join(self._text(node) for node in nodes) or '""'

    def _text(self, node: _Node) -> str:
        match node:
            case _Literal(text):
                return self.rules.text(text)
            case _Opaque(text):
                return text
            case _Choice(options):
                return f"({' | '.join(self.written(option) for option in options)})"
            case _Repeat(inner, count):
                return f"({self._text(inner)}){count}"


class _Reader:
    """Expressions as dialects write them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0

    def choice(self) -> _Choice:
        options: list[_Nodes] = []
        nodes: list[_Node] = []
        while found := _TOKEN.match(self.source, self.at):
            if found["sign"] == ")":
                break
            self.at = found.end()
            if found["sign"] == "|":
                options.append(tuple(nodes))
                nodes = []
            elif found["count"]:
                nodes[-1] = _Repeat(nodes[-1], found["count"])
            else:
                nodes.append(self.node(found))
        return _Choice((*options, tuple(nodes)))

    def node(self, found: re.Match[str]) -> _Node:
        if found["literal"]:
            return _Literal(json.loads(found["literal"]))
        if found["json"]:
            start = found.start("json")
            self.at = json.JSONDecoder().raw_decode(self.source, self.at)[1]
            return _Opaque(self.source[start : self.at])
        if found["sign"] == "(":
            inner = self.choice()
            self.at += len(self.source[self.at :]) - len(self.source[self.at :].lstrip()) + 1
            return inner
        return _Opaque(found[0].strip())
