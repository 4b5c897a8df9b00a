"""What a dialect builds the grammar of its calls from: every method returns a Lark expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.conversation import JsonValue, Tool


class Rules:
    """The tools that may be called now, and the parts of their calls.

    `tools` are those that may be called, in the client's order. `open_names`: an undeclared name
    may be written too. `parallel`: more than one call may be made.
    """

    tools: Sequence[Tool]
    open_names: bool
    parallel: bool

    def mark(self, spelling: str) -> str:
        """A delimiter: the one token where the vocabulary has it, else its characters."""
        raise NotImplementedError

    def text(self, literal: str) -> str:
        """Exactly these characters."""
        raise NotImplementedError

    def regex(self, pattern: str) -> str:
        """Text that matches."""
        raise NotImplementedError

    def rule(self, body: str) -> str:
        """A rule with this body; returns its name."""
        raise NotImplementedError

    def arguments(self, tool: Tool | None) -> str:
        """The JSON object of a call's arguments: under its schema where that is enforced.

        None is an undeclared tool: any object. A custom tool's is `{"input": "..."}`, the string
        holding text of its format.
        """
        raise NotImplementedError

    def value(self, schema: Mapping[str, JsonValue] | bool) -> str:
        """A JSON value under a schema."""
        raise NotImplementedError

    def parameters(self, tool: Tool) -> Sequence[tuple[str, Mapping[str, JsonValue] | bool, bool]]:
        """The arguments of a tool one by one, for syntaxes that write them so.

        (name, schema, whether it is required), in the schema's order. Raises Refused for a strict
        schema that says more about the object than that.
        """
        raise NotImplementedError

    def bare(self, schema: Mapping[str, JsonValue] | bool, closing: str) -> str:
        """A value and the text or delimiter that closes it: a string bare, all else as JSON."""
        raise NotImplementedError

    def custom(self, tool: Tool) -> str:
        """The free text of a custom tool as it is, for syntaxes that do not quote it."""
        raise NotImplementedError

    def name(self) -> str:
        """An undeclared tool's name."""
        raise NotImplementedError

    def until(self, *closings: str) -> str:
        """Any text up to the first of some texts or delimiters, and that."""
        raise NotImplementedError

    def repeated(self, call: str, separator: str) -> str:
        """One call, and where parallel calls are allowed, more of them, separated."""
        raise NotImplementedError
