"""The text of a grammar while it grows: rules and terminals by name, tokens, inner grammars.

Expressions are Lark as llguidance reads it. A control token is written as a rule of its own, whose
body is the token for the engine, and its spelling where no vocabulary is at hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

ANY = r"(?s:.*)"
_PIECES = re.compile(r"[A-Za-z0-9_.-]+|.", re.DOTALL)
_META = frozenset(r"\.+*?()|[]{}^$#&-~/")


def literal(text: str) -> str:
    """A terminal that is these characters."""
    return json.dumps(text)


def escaped(text: str) -> str:
    """A regular expression that matches these characters."""
    return "".join(
        f"\\{char}" if char in _META else char if char >= " " else f"\\x{ord(char):02x}"
        for char in text
    )


def pattern(expression: str) -> str:
    """A terminal that matches a regular expression."""
    whole = re.sub(r"\\.|/", lambda found: found[0] if found[0] != "/" else r"\/", expression)
    return "/" + whole.replace("\n", r"\n") + "/"


class Builder:
    """Everything of a grammar but its start."""

    def __init__(self) -> None:
        self.bodies: dict[str, str] = {}
        self._heads: dict[str, str] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._tokens: dict[str, tuple[str, str]] = {}
        self._inner: dict[str, str] = {}

    def rule(self, body: str) -> str:
        """A rule with this body; returns its name. The same body has the same name."""
        return self._define("r", "", body)

    def recursive(self, body: Callable[[str], str]) -> str:
        """A rule whose body is made of its own name."""
        name = f"v{len(self.bodies)}"
        self._heads[name], self.bodies[name] = name, ""
        self.bodies[name] = body(name)
        return name

    def lazy(self, terminal: str) -> str:
        """A rule that ends as soon as its one terminal matches."""
        return self._define("z", "[lazy]", self.terminal(terminal))

    def terminal(self, body: str) -> str:
        """A terminal: all of it is one lexeme, so `&` and `~` work on it."""
        return self._define("T", "", body)

    def text(self, literal: str) -> str:
        """Exactly these characters.

        The lexer takes the longest lexeme and never looks back: alternatives must not differ within
        one. So words are lexemes, and all other characters are one each.
        """
        pieces = [json.dumps(piece) for piece in _PIECES.findall(literal)]
        return pieces[0] if len(pieces) == 1 else self.rule(" ".join(pieces) or '""')

    def token(self, spelling: str, *ids: int) -> str:
        """Any of some control tokens, which `spelling` stands for where there are none."""
        name = f"t{'_'.join(map(str, ids))}"
        self._tokens[name] = (f"<[{','.join(map(str, ids))}]>", literal(spelling))
        return name

    def is_mark(self, name: str) -> bool:
        """Whether a name stands for control tokens."""
        return name in self._tokens

    def inner(self, grammar: str) -> str:
        """A whole Lark grammar of its own: its names and what it ignores stay inside it."""
        name = next((n for n, known in self._inner.items() if known == grammar), None)
        if name is None:
            name = f"g{len(self._inner)}"
            self._inner[name] = grammar
        return f"@{name}"

    def document(self, start: str, *, tokens: bool) -> str:
        """The whole grammar for llguidance. Without `tokens`, it needs no vocabulary."""
        lines = [f"start: {start}"]
        lines += [f"{self._heads[name]}: {body}" for name, body in self.bodies.items()]
        lines += [f"{name}: {forms[0 if tokens else 1]}" for name, forms in self._tokens.items()]
        grammars = [{"lark_grammar": "\n".join(lines)}]
        grammars += [{"name": name, "lark_grammar": text} for name, text in self._inner.items()]
        return json.dumps({"grammars": grammars}, ensure_ascii=False)

    def _define(self, letter: str, attributes: str, body: str) -> str:
        name = self._names.get((letter, body))
        if name is None:
            name = f"{letter}{len(self.bodies)}"
            self._names[letter, body] = name
            self.bodies[name] = body
            self._heads[name] = name + attributes
        return name
