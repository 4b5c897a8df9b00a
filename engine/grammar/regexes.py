"""Regular expressions as trees, for what llguidance's own regular expressions cannot do.

Reads what Rust's regex crate and JSON Schema's patterns have in common. Raises Refused for what no
finite automaton has, and for what means something else in the one than in the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from engine.grammar.builder import ANY, escaped
from engine.grammar.document import Refused

_MOST_NESTED = 64
_QUANTIFIER = re.compile(r"(?P<count>[*+?]|\{\d+(?:,\d*)?\})\??")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|(?P<flags>[isu]*(?:-[isu]+)?)(?P<end>[:)])))?")
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|[xuU]\{([0-9A-Fa-f]{1,6})\}")
_PROPERTY = re.compile(r"p(?:[LN]|\{(?:L[ulotm]?|N[dlo]?|Letter|Number|Alphabetic)\})")
_POSIX = re.compile(r"\[:(\^?)(alpha|digit|alnum|lower|upper|xdigit|word|space|punct):\]")
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_SPACE = frozenset("\t\n\v\f\r ")

RUST_CLASSES = {"d": r"\d", "w": r"\w", "s": r"\s"}
JSON_SCHEMA_CLASSES = {
    "d": "0-9",
    "w": "A-Za-z0-9_",
    "s": r"\t\n\x0b\x0c\r \xa0\x{feff}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}"
    r"\x{205f}\x{3000}",
}
"""The insides of `\\d`, `\\w` and `\\s`."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One of some characters.

    `text` is the inside of a class. `holds` is right for ASCII characters that are no letters or
    digits. `char` is the one that there is, if it is one.
    """

    text: str
    holds: Callable[[str], bool]
    negated: bool = False
    any_case: bool = False
    char: str = ""

    def __contains__(self, char: str) -> bool:
        return self.holds(char) is not self.negated

    def __str__(self) -> str:
        text = f"[{'^' if self.negated else ''}{self.text}]"
        return f"(?i:{text})" if self.any_case else text


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`count` is `*`, `+`, `?` or in braces, as regular expressions and Lark both write it."""

    node: Node
    count: str


Node = Chars | Sequence | Choice | Repeat


@dataclass(frozen=True, slots=True)
class Branch:
    """An alternative, and whether it is anchored at the start and at the end."""

    begins: bool
    node: Node
    ends: bool


def parse(source: str, flags: str = "") -> Node:
    """What texts that match as a whole are made of."""
    return Choice(tuple(branch.node for branch in _Parser(source, flags, RUST_CLASSES).branches()))


def containing(source: str) -> str:
    """An expression for the texts in which a JSON Schema's `pattern` is found."""
    return "|".join(
        ("" if branch.begins else ANY) + written(branch.node) + ("" if branch.ends else ANY)
        for branch in _Parser(source, "", JSON_SCHEMA_CLASSES).branches()
    )


def written(node: Node) -> str:
    """The expression as llguidance reads it; a quantifier may follow."""
    match node:
        case Chars():
            return str(node)
        case Sequence(parts):
            return f"(?:{''.join(map(written, parts))})"
        case Choice(options):
            return f"(?:{'|'.join(map(written, options))})"
        case Repeat(inner, count):
            return f"(?:{written(inner)}{count})"


def leaves(node: Node) -> list[Chars]:
    """All characters of an expression, from left to right."""
    match node:
        case Chars():
            return [node]
        case Sequence(parts) | Choice(parts):
            return [leaf for part in parts for leaf in leaves(part)]
        case Repeat(inner, _):
            return leaves(inner)


def single(char: str) -> Chars:
    """One character."""
    return Chars(escaped(char), char.__eq__, char=char)


class _Parser:
    def __init__(self, source: str, flags: str, classes: Mapping[str, str]) -> None:
        self.source = source
        self.classes = classes
        self.at = 0
        self.depth = 0
        self.stacked = 0
        self.dot_all = "s" in flags
        self.any_case = "i" in flags

    def branches(self) -> list[Branch]:
        found = []
        while True:
            begins = self.skip("^")
            node = self.sequence(top=True)
            found.append(Branch(begins, node, self.skip("$")))
            if not self.skip("|"):
                break
        if self.at < len(self.source):
            self.refuse(f"'{self.source[self.at]}' at character {self.at}")
        return found

    def refuse(self, what: str) -> NoReturn:
        raise Refused(f"{what} in the expression cannot be enforced")

    def skip(self, text: str) -> bool:
        found = self.source.startswith(text, self.at)
        self.at += len(text) * found
        return found

    def sequence(self, *, top: bool = False) -> Node:
        parts: list[Node] = []
        while self.at < len(self.source) and self.source[self.at] not in "|)":
            char = self.source[self.at]
            if char == "$" and top and self.source[self.at + 1 : self.at + 2] in ("", "|"):
                break
            if char in "^$":
                self.refuse(f"'{char}' inside")
            part = self.group(leads=not parts) if char == "(" else self.atom()
            parts.append(self.repeated(part))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repeated(self, node: Node) -> Node:
        """What is repeated as often as the quantifiers behind it say."""
        while found := _QUANTIFIER.match(self.source, self.at):
            self.at = found.end()
            self.stacked += isinstance(node, Repeat)
            if self.stacked > _MOST_NESTED:
                self.refuse("that many quantifiers of quantifiers")
            node = Repeat(node, found["count"])
        return node

    def atom(self) -> Chars:
        char = self.source[self.at]
        if char in "*+?{":
            self.refuse(f"'{char}' with nothing to repeat")
        if char == "[":
            found = self.bracketed()
        elif char == "." and self.dot_all:
            found = Chars(r"\x00-\x{10FFFF}", lambda _: True)
        elif char == ".":
            found = Chars(r"\n", "\n".__eq__, negated=True)
        elif char == "\\":
            self.at += 1
            found = self.escape()
            return replace(found, any_case=self.any_case)
        else:
            found = single(char)
        self.at += char != "["
        return replace(found, any_case=self.any_case)

    def group(self, *, leads: bool) -> Node:
        """A group. Flags without a body hold until the group around them ends."""
        found = _GROUP.match(self.source, self.at)
        assert found is not None
        if found[0] == "(" and self.source.startswith("(?", self.at):
            self.refuse(f"'{self.source[self.at : self.at + 3]}', a look-around or unknown group,")
        if found["end"] == ")" and not leads:
            self.refuse(f"'{found[0]}' behind something")
        self.at = found.end()
        self.depth += 1
        if self.depth > _MOST_NESTED:
            self.refuse("nesting that deep")
        before = self.dot_all, self.any_case
        on, _, off = (found["flags"] or "").partition("-")
        self.dot_all = (self.dot_all or "s" in on) and "s" not in off
        self.any_case = (self.any_case or "i" in on) and "i" not in off
        options = [self.sequence()]
        while self.skip("|"):
            options.append(self.sequence())
        if found["end"] != ")" and not self.skip(")"):
            self.refuse("a group that is not closed")
        self.depth -= 1
        self.dot_all, self.any_case = before
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def escape(self) -> Chars:
        """What follows a backslash."""
        rest = self.source[self.at :]
        if not rest:
            self.refuse("a backslash at the end")
        char = rest[0]
        if found := _CODE.match(rest):
            self.at += found.end()
            return self.code(int(found[1] or found[2] or found[3], 16))
        if found := _PROPERTY.match(rest):
            self.at += found.end()
            return Chars("\\" + found[0], lambda _: False)
        self.at += 1
        if char.lower() in self.classes:
            return self.named_class(char)
        if char in _NAMED:
            return single(_NAMED[char])
        if char.isalnum():
            self.refuse(f"'\\{char}'")
        return single(char)

    def code(self, number: int) -> Chars:
        if 0xD800 <= number < 0xE000 or number > 0x10FFFF:
            self.refuse("half of a surrogate pair")
        return single(chr(number))

    def named_class(self, char: str) -> Chars:
        name = char.lower()
        holds: dict[str, Callable[[str], bool]] = {
            "d": lambda _: False, "w": "_".__eq__, "s": _SPACE.__contains__
        }  # fmt: skip
        return Chars(self.classes[name], holds[name], char.isupper())

    def bracketed(self) -> Chars:
        """A class in brackets, without the set operations that only Rust has."""
        self.at += 1
        negated = self.skip("^")
        items: list[Chars] = []
        while not items or not self.skip("]"):
            items.append(self.item(first=not items))
        text = "".join(str(item) if item.negated else item.text for item in items)
        return Chars(text, lambda char: any(char in item for item in items), negated)

    def item(self, *, first: bool) -> Chars:
        """A character, a range or a class, inside brackets."""
        if found := _POSIX.match(self.source, self.at):
            self.at = found.end()
            inside = {"space": _SPACE.__contains__, "word": "_".__eq__, "punct": _is_punctuation}
            return Chars(f"[:{found[2]}:]", inside.get(found[2], lambda _: False), bool(found[1]))
        low = self.member(first=first)
        if self.source.startswith("--", self.at):
            self.refuse("'--' in a class")
        is_range = self.source[self.at : self.at + 1] == "-"
        if not is_range or self.source[self.at + 1 : self.at + 2] in ("]", ""):
            return low
        self.at += 1
        return self.range_of(low, self.member(first=False))

    def range_of(self, low: Chars, high: Chars) -> Chars:
        first, last = low.char, high.char
        if not first or not last or first > last:
            self.refuse("a range that is none")
        return Chars(f"{low.text}-{high.text}", lambda char: first <= char <= last)

    def member(self, *, first: bool) -> Chars:
        char = self.source[self.at : self.at + 1]
        if char in ("", "[") or (char == "]" and not first):
            self.refuse("a class that is not closed, or holds another,")
        if self.source[self.at : self.at + 2] in ("&&", "--", "~~"):
            self.refuse(f"'{char * 2}' in a class")
        self.at += 1
        return self.escape() if char == "\\" else single(char)


def _is_punctuation(char: str) -> bool:
    return char.isascii() and char.isprintable() and not char.isalnum() and char != " "
