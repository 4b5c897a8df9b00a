"""The free text of custom tools: as it is, or inside a JSON string."""

from __future__ import annotations

from engine.conversation import CustomFormat
from engine.grammar.builder import ANY, Builder, pattern
from engine.grammar.compile import bounded, inline_checked
from engine.grammar.document import Refused
from engine.grammar.lark import checked
from engine.grammar.quoted_lark import quoted_lark
from engine.grammar.quoting import quoted
from engine.grammar.regexes import parse

# Any text inside a JSON string, each character in one spelling
_ANY_QUOTED = r'([^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00[01][0-9a-f])*'


def raw(rules: Builder, wanted: CustomFormat | None) -> str:
    """Text of a format; None is any text. Raises Refused."""
    if wanted is None or wanted.kind == "text":
        return pattern(ANY)
    if wanted.kind == "regex":
        return pattern(bounded(wanted.source))
    return rules.inner(checked(wanted.source, inline_checked))


def wrapped(rules: Builder, wanted: CustomFormat | None) -> str:
    """`{"input": "..."}` around text of a format, escaped as JSON asks. Raises Refused."""
    if wanted is None or wanted.kind == "text":
        text = pattern(_ANY_QUOTED)
    elif wanted.kind == "regex":
        text = quoted(parse(bounded(wanted.source)))
    else:
        text = rules.inner(quoted_lark(checked(wanted.source, _no_schema)))
    name, quote = rules.text('"input"'), rules.text('"')
    return rules.rule(f'"{{" {name} ":" " "? {quote} {text} {quote} "}}"')


def _no_schema(source: str) -> str:
    raise Refused("'%json' cannot be enforced in a call that quotes its text")
