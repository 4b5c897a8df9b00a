"""What the protocols have in common about thinking: levels of effort, and budgets."""

from __future__ import annotations

import logging
from typing import cast, get_args

from engine.conversation import Effort, Thinking, nearest_effort
from engine.errors import RequestError

log = logging.getLogger("heliograph.api")

_LEVELS = get_args(Effort)


def decode_effort(value: str | int | None, param: str) -> Effort | int | None:
    """The level that a client means; None is the template's default.

    Raises RequestError for a number in quotes, which is no word (Helios).
    """
    if value is None or isinstance(value, int):
        return value
    if not value.strip():
        return None
    if value in _LEVELS:
        return cast(Effort, value)
    if not any(char.isalpha() for char in value):
        raise RequestError(f"{param} must be a word, or a number without quotes", param)
    level = nearest_effort(value)
    log.info("%s %r counts as %s", param, value[:64], level or "the default")
    return level


def decode_thinking(
    effort: Effort | int | None, budgets: dict[str, int | None], *, off: bool = False
) -> Thinking:
    """Effort and budget together; `budgets` has every name of the budget, None where not given.

    -1 is no budget and 0 is off (llama.cpp), which wins over the effort, as does `off`. Raises
    RequestError for two names with different values.
    """
    given = [(name, value) for name, value in budgets.items() if value is not None and value >= 0]
    if not given:
        return Thinking("none" if off else effort)
    (first, budget), *others = given
    for name, value in others:
        if value != budget:
            raise RequestError(f"{first} and {name} are one budget with two values", name)
    if off or budget == 0:
        return Thinking("none", budget_param=first)
    return Thinking(effort, budget, first)
