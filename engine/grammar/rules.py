"""What a dialect builds the grammar of its calls from: every method returns a Lark expression."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from engine.conversation import Tool
from engine.grammar import arguments, custom, values
from engine.grammar.arguments import Parameter
from engine.grammar.builder import ANY, Builder, escaped, pattern
from engine.grammar.document import RefusedTool
from engine.grammar.values import Schema

MAX_ENFORCED_CHARS = 1024 * 1024
_NAME = r"[A-Za-z0-9_.-]{1,128}"


class Rules(Builder):
    """The tools that may be called now, and the parts of their calls.

    `tools` are those that may be called, in the client's order. `open_names`: an undeclared name
    may be written too. `parallel`: more than one call may be made. `tokens` are the delimiters that
    are one token in this vocabulary, by spelling. `enforced` are the names of the tools whose calls
    must be valid; others are only well-formed. Methods raise Refused for what cannot be enforced.

    The lexer takes the longest lexeme that is possible anywhere and never looks back. Alternatives
    must part at the ends of lexemes, or within ones that exclude each other: write a declared name
    and an undeclared one with the same `text` around them, and a value with its closing text in one
    (`bare`, `until`).
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        open_names: bool = False,
        parallel: bool = True,
        tokens: Mapping[str, int] | None = None,
        enforced: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.tools = tools
        self.open_names = open_names
        self.parallel = parallel
        self.tokens = dict(tokens or {})
        self._enforced = enforced
        self._sizes: dict[str, int] = {}

    def mark(self, spelling: str) -> str:
        """A delimiter: the one token where the vocabulary has it, else its characters.

        One that is made of several has each of them as its token.
        """
        parts = []
        while spelling:
            token, at = self._first_token(spelling)
            parts += [self.text(spelling[:at])] if at else []
            parts += [self.token(token, self.tokens[token])] if token else []
            spelling = spelling[at + len(token) :]
        return parts[0] if len(parts) == 1 else self.rule(" ".join(parts))

    def starts_as_token(self, spelling: str) -> bool:
        """Whether a delimiter begins with a token, so that no text can be taken for it."""
        return self._first_token(spelling)[1] == 0

    def _first_token(self, text: str) -> tuple[str, int]:
        """The first token that a text spells, the longest there, and where; none at its end."""
        found = [(text.find(spelling), -len(spelling), spelling) for spelling in self.tokens]
        at, _, token = min((one for one in found if one[0] >= 0), default=(len(text), 0, ""))
        return token, at

    def is_token(self, spelling: str) -> bool:
        """Whether a delimiter is one token."""
        return spelling in self.tokens

    def regex(self, expression: str) -> str:
        """Text that matches, as one lexeme."""
        return pattern(expression)

    def enforces(self, tool: Tool) -> bool:
        """Whether calls of this tool must be valid, and not only well-formed.

        Where they need not be, a syntax that names arguments one by one lets any name come, any
        number of times, with any value (`bare(True, closing)`).
        """
        return tool.name in self._enforced

    def _count(self, tool: Tool, size: int) -> None:
        """Raise Refused when all that is enforced is too long, this tool's part with it."""
        self._sizes[tool.name] = size
        if sum(self._sizes.values()) > MAX_ENFORCED_CHARS:
            what = "the schemas of the arguments that must be valid"
            raise RefusedTool(f"{what} have more than {MAX_ENFORCED_CHARS:,} characters", tool)

    def arguments(self, tool: Tool | None) -> str:
        """The JSON object of a call's arguments: under its schema where that is enforced.

        None is an undeclared tool: any object. A custom tool's is `{"input": "..."}`, the string
        holding text of its format.
        """
        if tool is not None and self.enforces(tool):
            self._count(tool, arguments.size(tool))
        if tool is not None and tool.format is not None:
            return custom.wrapped(self, tool.format if self.enforces(tool) else None)
        if tool is None or not self.enforces(tool):
            return self.rule(f"%json {values.json_object({})}")
        return self.rule(f"%json {values.json_object(tool.parameters)}")

    def value(self, schema: Schema) -> str:
        """A JSON value under a schema."""
        return self.rule(f"%json {values.json_value(schema)}")

    def parameters(self, tool: Tool) -> Sequence[Parameter]:
        """The arguments of a tool one by one, for syntaxes that write them so.

        (name, schema, whether it is required), in the schema's order. Refused for a schema that is
        enforced and says more about the object than that.
        """
        if not self.enforces(tool):
            return arguments.declared(tool)
        self._count(tool, arguments.listed_size(tool))
        return arguments.listed(tool)

    def bare(self, schema: Schema, closing: str) -> str:
        """A value and the text or delimiter that closes it: a string bare, all else as JSON.

        The closing text may hold one delimiter that is a token. A value that may be any string, or
        something else, is any text.
        """
        return values.bare(self, schema, closing, self.tokens)

    def custom(self, tool: Tool) -> str:
        """The free text of a custom tool as it is, for syntaxes that do not quote it."""
        if self.enforces(tool):
            self._count(tool, arguments.size(tool))
        return custom.raw(self, tool.format if self.enforces(tool) else None)

    def name(self) -> str:
        """An undeclared tool's name."""
        declared = "|".join(escaped(tool.name) for tool in self.tools)
        return self.terminal(f"{pattern(_NAME)} & ~{pattern(f'({declared})')}")

    def until(self, *closings: str) -> str:
        """Any text up to the first of some texts or delimiters, and that."""
        tokens = [self.mark(closing) for closing in closings if closing in self.tokens]
        texts = [closing for closing in closings if closing not in self.tokens]
        if not texts:
            return self.rule(f"{pattern(ANY)} ({' | '.join(tokens)})")
        ends = "|".join(map(escaped, texts))
        closed = self.lazy(pattern(f"{ANY}({ends})"))
        if not tokens:
            return closed
        free = self.terminal(f"{pattern(ANY)} & ~{pattern(f'{ANY}({ends}){ANY}')}")
        return self.rule(f"{closed} | {free} ({' | '.join(tokens)})")

    def repeated(self, call: str, separator: str) -> str:
        """One call, and where parallel calls are allowed, more of them, separated."""
        return self.rule(f"{call} ({separator} {call})*") if self.parallel else call
