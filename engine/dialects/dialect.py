"""One model family's way to think, to call tools and to be shown both: a declaration.

From it come the parser of outputs, the grammar that constrains calls, and the text that stands for
tools, calls and results where a chat template cannot show them.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from engine.conversation import Tool, ToolCall, ToolResult
from engine.dialects.parser import OutputParser
from engine.grammar.form import Composition
from engine.grammar.rules import Rules

_ALPHANUMERIC = string.ascii_letters + string.digits


def random_id() -> str:
    """A call id as the official APIs make them."""
    return "call_" + "".join(secrets.choice(_ALPHANUMERIC) for _ in range(24))


@dataclass(frozen=True, slots=True)
class Rendering:
    """Tools and calls as text, for templates that cannot show them.

    `tools` is a block for the system message, `calls` the text of an assistant turn, `results`
    that of the turn which answers it, of the role `result_role`.
    """

    tools: Callable[[Sequence[Tool]], str]
    calls: Callable[[Sequence[ToolCall]], str]
    results: Callable[[Sequence[ToolResult]], str]
    result_role: str = "user"


@dataclass(frozen=True, slots=True)
class Dialect:
    """A family.

    `spellings` are its delimiters: those that are one token in a vocabulary count only as that
    token. `grammar` builds the Lark expression of everything from the first call's opener to the
    last one's end, None for a family without calls; `opener` is the delimiter that it begins with,
    if that is a single token in the family's own vocabularies, else None, and then `headers` gives,
    for a tool's name, the text that is certain to begin a call of it. `compose` makes the grammar
    of a whole output for a family whose outputs are more than thoughts, text and calls in a row.
    `new_id` makes ids, `takes_id` tells which of the model's own its templates accept. `fits`
    recognises the family by a checkpoint's chat template and control tokens. `template` is for
    checkpoints without one.
    """

    name: str
    parser: type[OutputParser]
    spellings: tuple[str, ...]
    grammar: Callable[[Rules], str] | None
    rendering: Rendering
    fits: Callable[[str, Container[str]], bool]
    opener: str | None = None
    headers: Callable[[str], str] | None = None
    new_id: Callable[[], str] = field(default=random_id)
    takes_id: Callable[[str], bool] = field(default=bool)
    template: str | None = None
    compose: Callable[[Composition], str | None] | None = None
