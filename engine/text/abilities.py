"""What a chat template can express: found by trying, not by reading it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Abilities:
    """What works under a template, and in which form.

    `system`: a system message in front, `system_stays` there whatever follows; `inline_system`: one
    between turns, at its place; `repeated_roles`: two turns of one role in a row. `parts`: contents
    are lists of parts. `reasoning` is its name for the thoughts of a turn.

    `tools`: it shows the tools, with `simple_schemas` only their main lines. `calls`: it shows
    calls and results, and then: `orphaned_results` that answer no call; `user_after_results`: a
    user turn right behind them; `arguments` as a mapping or as text; `copies_arguments`: text is
    shown too, as it is; `no_content` is the content of a turn that only calls; `ids` that it
    accepts, or "named" where the id is what names the tool; `parallel_calls`: several in a turn;
    `text_with_calls`: both in one turn, in two, or the text is not shown; `thought_with_text`: both
    beside calls.
    """

    system: bool = True
    system_stays: bool = True
    inline_system: bool = True
    repeated_roles: bool = True
    parts: bool = False
    tools: bool = False
    simple_schemas: bool = False
    calls: bool = False
    orphaned_results: bool = True
    user_after_results: bool = True
    arguments: Literal["mapping", "text"] = "mapping"
    copies_arguments: bool = False
    no_content: Literal[""] | None = ""
    ids: Literal["any", "short", "named"] = "any"
    parallel_calls: bool = True
    text_with_calls: Literal["together", "apart", "never"] = "together"
    thought_with_text: bool = True
    reasoning: str = "reasoning_content"
