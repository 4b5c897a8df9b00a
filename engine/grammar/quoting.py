"""Expressions for text inside a JSON string, from expressions for the text itself.

JSON escapes each character for itself, so a language is escaped by escaping the characters that its
terminals are made of. Every character has one spelling. The lexer takes the longest lexeme and
never looks back, and every escape begins with a backslash: so the backslash is a lexeme of its own,
and an expression with characters that are escaped becomes a rule, one lexeme a character.
"""

from __future__ import annotations

import json

from engine.grammar.builder import literal, pattern
from engine.grammar.regexes import Chars, Choice, Node, Repeat, Sequence, leaves, single, written

ESCAPED = (*map(chr, range(32)), '"', "\\")
_AS_IT_IS = r'[^"\\\x00-\x1f]'
_BACKSLASH = literal("\\")


def is_escaped(node: Node) -> bool:
    """Whether some of its characters are escaped in JSON."""
    return any(char in leaf for leaf in leaves(node) for char in ESCAPED)


def is_bounded(node: Node) -> bool:
    """Whether no part of it can be repeated without end."""
    match node:
        case Chars():
            return True
        case Sequence(parts) | Choice(parts):
            return all(map(is_bounded, parts))
        case Repeat(inner, count):
            return count not in "*+" and not count.endswith(",}") and is_bounded(inner)


def quoted(node: Node) -> str:
    """A Lark expression for the escaped texts; an operator may follow."""
    return pattern(written(node)) if not is_escaped(node) else _rule(node, last=True)


def quoted_text(text: str) -> str:
    """A Lark expression for exactly one text, escaped."""
    parts: list[str] = []
    plain = ""
    for char in (*text, ""):
        if char and char not in ESCAPED:
            plain += char
            continue
        parts += [literal(plain)] if plain else []
        parts += [_chars(single(char))] if char else []
        plain = ""
    return f"({' '.join(parts)})" if parts else '""'


def one_lexeme(node: Node) -> str:
    """A terminal for the escaped texts, for where the lexer needs no second look."""
    match node:
        case Chars():
            inside = _codes(node)
            plain = f"[{node}&&{_AS_IT_IS}]"
            return f"(?:{plain}|{chr(92) * 2}(?:{'|'.join(inside)}))" if inside else str(node)
        case Sequence(parts):
            return f"(?:{''.join(map(one_lexeme, parts))})"
        case Choice(options):
            return f"(?:{'|'.join(map(one_lexeme, options))})"
        case Repeat(inner, count):
            return f"(?:{one_lexeme(inner)}{count})"


def _rule(node: Node, *, last: bool) -> str:
    """`last`: nothing of the same expression follows, so that a run of characters is one lexeme."""
    match node:
        case Chars():
            return _chars(node)
        case Sequence(parts):
            inner = [_rule(part, last=last and part is parts[-1]) for part in parts]
            return f"({' '.join(inner)})" if inner else '""'
        case Choice(options):
            return f"({' | '.join(_rule(option, last=last) for option in options)})"
        case Repeat(Chars() as chars, count) if last and count in "*+":
            return _chars(chars, run=True) + count
        case Repeat(inner, count):
            return f"({_rule(inner, last=False)}){count}"


def _chars(chars: Chars, *, run: bool = False) -> str:
    """One of some characters, or a run of those that are not escaped."""
    escapes = " | ".join(f"/{code}/" for code in _codes(chars))
    if chars.char:
        return f"({_BACKSLASH} {escapes})" if escapes else pattern(str(chars))
    plain = pattern(f"[{chars}&&{_AS_IT_IS}]{'+' if run else ''}")
    return f"({plain} | {_BACKSLASH} ({escapes}))" if escapes else plain


def _codes(chars: Chars) -> list[str]:
    """What follows the backslash of the escapes; a few expressions, since every dot has them."""
    spelt = [json.dumps(char)[2:-1] for char in ESCAPED if char in chars]
    short = "".join(text.replace("\\", r"\\") for text in spelt if len(text) == 1)
    found = [f"[{short}]"] if short else []
    for high in "01":
        low = "".join(text[4] for text in spelt if len(text) == 5 and text[3] == high)
        found += [f"u00{high}[{low}]"] if low else []
    return found
