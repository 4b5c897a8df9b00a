"""From what a client asks for to a grammar that llguidance compiles, or a refusal that says why.

Needs no vocabulary: grammars are about bytes. `grammar_of` compiles each one against a vocabulary
of single bytes, so that the engine process receives only grammars that work.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from engine.errors import RequestError
from engine.grammar.cache import Cache
from engine.grammar.document import Refused
from engine.grammar.keywords import OBJECT_KEYWORDS
from engine.grammar.lark import MAX_GRAMMAR_CHARS, checked
from engine.grammar.schema import Normalised, normalise
from engine.types import OutputConstraint

LIMITS = LLParserLimits(verbose_errors=False)
MAX_CHOICES = 4096

# Matched at most once where JSON allows white space: one line break with its indent, or one blank.
# A model that prefers white space can never run to its limit on it.
WHITESPACE = r" |\n {0,24}"
_ESCAPES = 'nrbtf\\"'
_BLAME_CHARS = 500_000  # what a search for the part to blame compiles at most, about a second
_COMPILED = Cache[str](8 * 1024 * 1024)  # characters of grammars
_STRUCTURE = frozenset(("type", "items", "$ref", *OBJECT_KEYWORDS))


def grammar_of(constraint: OutputConstraint) -> str:
    """The grammar of a constraint, as text for llguidance.

    Raises RequestError, with code `invalid_schema` or `invalid_grammar` and the client's field,
    for what cannot be enforced. Call it before admission: it takes milliseconds, and large schemas
    up to a second.
    """
    try:
        return compiled(constraint.kind, constraint.source)
    except (Refused, RecursionError) as error:
        about_schema = constraint.kind == "json_schema"
        code = "invalid_schema" if about_schema else "invalid_grammar"
        reason = str(error) if isinstance(error, Refused) else "what it holds is nested too deeply"
        raise RequestError(reason, constraint.param, code) from None


def compiled(kind: str, source: str) -> str:
    """As `grammar_of`, by the kind and source of a constraint. Raises Refused."""
    return _COMPILED.get(f"{kind} {source}", lambda: _compiled(kind, source), len)


def _compiled(kind: str, source: str) -> str:
    if kind in ("json_object", "json_schema"):
        schema = normalise({"type": "object"} if kind == "json_object" else source)
        grammar = lark(f"start: %json {inline(schema)}")
        compile_schema(schema, grammar)
        return grammar
    if kind == "lark":
        grammar = lark(checked(source, inline_checked))
    elif kind == "choice":
        grammar = lark(f"start: CHOICE\nCHOICE: {choice(source)}")
    else:
        grammar = str(LLMatcher.grammar_from_regex(bounded(source)))
    _compile(grammar)
    return grammar


def lark(text: str) -> str:
    """A Lark grammar as llguidance takes it."""
    return json.dumps({"grammars": [{"lark_grammar": text}]}, ensure_ascii=False)


def inline(schema: Normalised, root: dict[str, Any] | None = None) -> str:
    """The schema with our options, which replace any `x-guidance` of the client's."""
    options = {
        "whitespace_pattern": WHITESPACE,
        "json_allowed_escapes": _ESCAPES + ("u" if schema.escapes else ""),
        "json_allow_general_unicode_escapes": schema.escapes,
    }
    return json.dumps({"x-guidance": options, **schema.document(root)}, ensure_ascii=False)


def inline_checked(source: str) -> str:
    """What stands for a schema inside a client's Lark grammar. Raises Refused."""
    schema = normalise(source)
    text = inline(schema)
    compile_schema(schema, lark(f"start: %json {text}"))
    return text


def bounded(expression: str) -> str:
    """A client's regular expression. Raises Refused when it is too long."""
    if len(expression) > MAX_GRAMMAR_CHARS:
        raise Refused(f"the expression is longer than {MAX_GRAMMAR_CHARS:,} characters")
    return expression


def choice(source: str) -> str:
    """The body of a terminal for any of some texts. Raises Refused."""
    choices = json.loads(source)
    if not isinstance(choices, list) or not choices:
        raise Refused("the choices must be a list that is not empty")
    if not all(isinstance(text, str) and text for text in choices):
        raise Refused("the choices must be texts, none of them empty")
    if len(choices) > MAX_CHOICES or len(source) > MAX_GRAMMAR_CHARS:
        raise Refused(
            f"there are more than {MAX_CHOICES:,} choices or {MAX_GRAMMAR_CHARS:,} characters"
        )
    return " | ".join(json.dumps(text, ensure_ascii=False) for text in choices)


@cache
def _single_bytes() -> LLTokenizer:
    return LLTokenizer("byte")


def _compile(grammar: str) -> None:
    """Raise Refused unless the grammar compiles and allows a text."""
    error = error_of(grammar)
    if error:
        raise Refused(error)


def compile_schema(schema: Normalised, grammar: str) -> None:
    """Raise Refused, naming keyword and place, unless a grammar of this schema compiles."""
    error = error_of(grammar)
    if error:
        raise _blamed(schema, error)


def error_of(grammar: str) -> str:
    """What is wrong with a grammar, in one line; nothing if it compiles and allows a text."""
    try:
        matcher = LLMatcher(_single_bytes(), grammar, log_level=0, limits=LIMITS)
        if matcher.is_error():
            return _one_line(matcher.get_error())
        matcher.compute_bitmask()
        if matcher.is_stopped() and not matcher.is_accepting():
            return "the grammar allows no text"
        if matcher.is_error():
            return _one_line(matcher.get_error())
    except BaseException as error:
        if not _is_panic(error):
            raise
        return _one_line(str(error))
    return ""


def _is_panic(error: BaseException) -> bool:
    """Whether the library itself failed; PyO3's panics are no Exceptions."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _one_line(message: str) -> str:
    """llguidance's message without the excerpt and the parser state that follow it."""
    head = re.split(r"<state>|\n\s+\d+ \| |\n  while processing", message)[0]
    line = " ".join(head.split())
    return re.sub(r"^at \d+\(\d+\): (failed to compile JSON schema: )?", "", line)[:500]


def _blamed(schema: Normalised, error: str) -> Refused:
    """Find the innermost part that fails alone, and the keyword without which it works."""

    def failure(part: dict[str, Any]) -> str:
        return error_of(lark(f"start: %json {inline(schema, part)}"))

    size = len(json.dumps(schema.definitions)) + 1000
    for pointer, part in list(schema.places.items())[: _BLAME_CHARS // size]:
        reason = failure(part) if part else ""
        if reason:
            for keyword in sorted(part, key=_STRUCTURE.__contains__):
                rest = {name: value for name, value in part.items() if name != keyword}
                if not failure(rest):
                    return Refused(
                        f"'{keyword}' cannot be enforced: {reason}", f"{pointer}/{keyword}"
                    )
            return Refused(reason, pointer)
    return Refused(error, "#")
