"""The Jinja environment that chat templates are written for: transformers' dialect, sandboxed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.text.arguments import AsWritten, dumps

_MAX_OUTPUT = 64 * 1024 * 1024  # characters
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class TemplateRefusal(Exception):
    """The template called `raise_exception`."""


class _Generation(Extension):
    """`{% generation %}` marks what a model wrote, for training; serving passes it through."""

    tags = {"generation"}  # noqa: RUF012 - declared by jinja2

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Environment(ImmutableSandboxedEnvironment):
    """Besides the sandbox's own limits, keeps one expression from making huge values."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if _huge(operator, left, right):
            raise SecurityError(f"{operator} would make too large a value")
        return super().call_binop(context, operator, left, right)


def compile_template(source: str) -> jinja2.Template:
    """Raises jinja2.TemplateError when the source is not a template."""
    environment = _Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_Generation, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment.from_string(source)


def render_template(template: jinja2.Template, context: Mapping[str, object]) -> str:
    """The whole output. Raises TemplateRefusal, and whatever a faulty template can raise."""
    chunks = []
    size = 0
    for chunk in template.generate(dict(context)):
        size += len(chunk)
        if size > _MAX_OUTPUT:
            raise SecurityError("the output is too large")
        chunks.append(chunk)
    return "".join(chunks)


def _huge(operator: str, left: Any, right: Any) -> bool:
    """Whether a power or a repetition is beyond any use; jinja2 itself bounds only `range`."""
    if operator == "**":
        return isinstance(right, int | float) and abs(right) > 64
    for sequence, times in ((left, right), (right, left)):
        if hasattr(sequence, "__len__") and isinstance(times, int):
            return len(sequence) * times > _MAX_OUTPUT
    return False


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """`json.dumps`, not Jinja's own filter, which escapes for HTML.

    Non-ASCII text is escaped here, so that a guard character stays one character.
    """
    changes = ensure_ascii or indent is not None or separators is not None or sort_keys
    if isinstance(value, AsWritten) and not changes:
        return value.text
    text = dumps(
        value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys
    )
    return _NOT_ASCII.sub(_escaped, text) if ensure_ascii else text


def _escaped(match: re.Match[str]) -> str:
    return match[0] if _is_reserved(match[0]) else json.dumps(match[0])[1:-1]


def _is_reserved(char: str) -> bool:
    return 0xFDD0 <= ord(char) <= 0xFDEF


def _raise_exception(message: object) -> NoReturn:
    raise TemplateRefusal(str(message))


def _strftime_now(format: str) -> str:
    return datetime.now().strftime(format)
