"""The grammar of arguments that a syntax names one by one, with something between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.conversation import Tool
from engine.grammar.rules import Rules
from engine.grammar.values import Schema


def named_arguments(
    rules: Rules,
    tool: Tool | None,
    *,
    comma: str,
    member: Callable[[str, Schema], str],
    free: str,
) -> str:
    """All arguments of a call: in the schema's order where it is enforced, else as they come.

    `member` makes the expression of one from its name and its schema, `free` is that of one which
    may be anything; `comma` is what stands between two. Raises Refused.
    """
    if tool is not None and rules.enforces(tool):
        listed = rules.parameters(tool)
        members = [(member(name, schema), is_required) for name, schema, is_required in listed]
        return _in_order(rules, members, comma)
    one = rules.rule(free)
    return rules.rule(f"({one} ({comma} {one})*)?")


def _in_order(rules: Rules, members: Sequence[tuple[str, bool]], comma: str) -> str:
    """Members of which those that need not be may be left out."""
    begin = later = rules.rule('""')
    for expression, is_required in reversed(members):
        one = rules.rule(expression)
        if is_required:
            begin, later = rules.rule(f"{one} {later}"), rules.rule(f"{comma} {one} {later}")
        else:
            begin = rules.rule(f"{one} {later} | {begin}")
            later = rules.rule(f"({comma} {one})? {later}")
    return begin
