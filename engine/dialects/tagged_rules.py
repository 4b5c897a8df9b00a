"""The grammar of calls that are written tag by tag, with bare values.

A value may hold any tag but where the syntax goes on behind it, so what ends a value includes the
beginning of what follows: the parser decides in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.conversation import Tool
from engine.grammar.compile import bounded
from engine.grammar.rules import Rules
from engine.grammar.values import closed


class Tags(NamedTuple):
    """The text around the names and the values of arguments.

    `first` stands before the first name, `behind` between a name and its value, `more` between a
    value and the next name, `last` behind the last value, `none` where there are no arguments.
    `name` is an expression for any name. Each text may hold one delimiter.
    """

    first: str
    behind: str
    more: str
    last: str
    none: str
    name: str


def calls(rules: Rules, body: Callable[[Tool | None], str]) -> str:
    """The names of tools, each with what follows it."""
    named = [f"{rules.text(tool.name)} {body(tool)}" for tool in rules.tools]
    if rules.open_names:
        named.append(f"{rules.name()} {body(None)}")
    return f"({' | '.join(named)})"


def arguments(rules: Rules, tool: Tool | None, tags: Tags) -> str:
    """All arguments of a call, in the order of the schema where that is enforced."""
    first, none = rules.text(tags.first), closed(rules, [], tags.none, rules.tokens)
    if tool is not None and tool.format is not None:
        opened = rules.text(f"{tags.first}input{tags.behind}")
        return rules.rule(f"{opened} {custom(rules, tool, tags.last)}")
    if tool is None or not rules.enforces(tool):
        opened = f"{rules.regex(tags.name)} {rules.text(tags.behind)}"
        more, last = rules.bare(True, tags.more), rules.bare(True, tags.last)
        return rules.rule(f"{none} | {first} ({opened} {more})* {opened} {last}")
    rest, may_end = "", True
    for key, schema, required in reversed(rules.parameters(tool)):
        values = [rules.bare(schema, tags.last)] if may_end else []
        values += [f"{rules.bare(schema, tags.more)} {rest}"] if rest else []
        argument = f"{rules.text(key + tags.behind)} ({' | '.join(values)})"
        rest = rules.rule(argument if required or not rest else f"{argument} | {rest}")
        may_end = may_end and not required
    options = ([f"{first} {rest}"] if rest else []) + ([none] if may_end else [])
    return rules.rule(" | ".join(options))


def custom(rules: Rules, tool: Tool, closing: str) -> str:
    """The text of a custom tool and what closes it."""
    wanted = tool.format if rules.enforces(tool) else None
    if wanted is None or wanted.kind == "text":
        return rules.bare(True, closing)
    if wanted.kind == "regex":
        return closed(rules, [bounded(wanted.source)], closing, rules.tokens)
    return f"{rules.custom(tool)} {closed(rules, [], closing, rules.tokens)}"
