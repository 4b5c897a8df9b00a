"""A client's Lark grammar, checked for what must not reach llguidance."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from engine.grammar.document import Refused

MAX_GRAMMAR_CHARS = 64 * 1024
# llguidance recurses along rules without a limit: chains of 2,500 overflow the stack.
MAX_PARTS = 1000

_TOKEN = re.compile(
    r"""
    (?P<skip> //[^\n]* | \#[^\n]* | "(?:\\.|[^"\\\n])*"i? | /(?:\\.|[^/\\\n])+/[a-z]* )
  | %json\b\s* (?P<json>)
  | (?P<option> %llguidance\b )
  | (?P<token> <[^<>\s]*> )
  | (?P<other> @[\w-]+ )
  | \b(?P<attribute> stop | stop_capture | max_tokens | temperature )\s*=
  | (?P<part> [(\[{*+?~] | \w\s*: )
    """,
    re.VERBOSE,
)


def checked(grammar: str, inline_schema: Callable[[str], str]) -> str:
    """The grammar with every inline `%json` replaced by what `inline_schema` makes of it.

    Raises Refused for what could write control tokens, for switches of llguidance itself, for what
    keeps drafts from being taken back, and for a grammar that is too large.
    """
    if len(grammar) > MAX_GRAMMAR_CHARS:
        raise Refused(f"the grammar is longer than {MAX_GRAMMAR_CHARS:,} characters")
    pieces: list[str] = []
    at = parts = 0
    while found := _TOKEN.search(grammar, at):
        pieces.append(grammar[at : found.end()])
        at = found.end()
        parts += found["part"] is not None
        if found["json"] is not None:
            at = _end_of_json(grammar, at)
            pieces.append(inline_schema(grammar[found.end() : at]))
        _refuse(found)
    if parts > MAX_PARTS:
        raise Refused(f"the grammar has more than {MAX_PARTS:,} rules, groups and repeats")
    return "".join(pieces) + grammar[at:]


def _end_of_json(grammar: str, at: int) -> int:
    try:
        return json.JSONDecoder().raw_decode(grammar, at)[1]
    except (ValueError, RecursionError):
        raise Refused(f"no JSON object follows '%json' at character {at}") from None


def _refuse(found: re.Match[str]) -> None:
    if found["token"]:
        raise Refused(f"the special token {found['token']} cannot be part of an answer")
    for name in ("option", "other", "attribute"):
        if found[name]:
            raise Refused(f"'{found[name]}' is not supported")
