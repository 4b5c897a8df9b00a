"""Calls without delimiters of their own, told apart from prose that looks like one.

Llama and Gemma 3 write `{"name": ..., "parameters": {...}}` or `[name(key="value")]`, as they were
trained or told, mostly as the whole answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import regex

from engine.dialects.json_call import call_object
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import WAIT, Closed, Incomplete, Malformed, Opened, Piece, Steps
from engine.dialects.python_call import call_start, python_call
from engine.events import Channel

_OBJECT = r"\{\s*+\"(?:name|type|id|function|arguments|parameters)\"\s*+:"


class BareCallParser(OutputParser):
    """Calls as JSON objects or as Python: one by one, in lists, or with `;` between them.

    A call counts behind an opener, and where the answer begins. Further down it counts if its tool
    is declared and nothing but calls follows.
    """

    think_open = None
    think_close = None
    declared_only: ClassVar[bool] = False  # whether an opener alone does not make a call

    _has_text = False

    # What a dialect defines

    def openers(self) -> tuple[str, str]:
        """What may stand before calls: its possible first characters, and an expression."""
        return "", r"(?!)"

    def closer(self) -> str:
        """An expression for what may stand behind calls that had an opener."""
        return r"(?!)"

    # The shared path

    def call_head(self) -> tuple[str, str]:
        starts, openers = self.openers()
        return starts + "{[", f"{openers}|{self._bare()}"

    def _bare(self) -> str:
        return rf"{_OBJECT}|\[\s*+(?:{_OBJECT}|{call_start(self)})"

    def say(self, channel: Channel, end: int) -> Iterator[Piece]:
        for piece in super().say(channel, end):
            self._has_text = True
            yield piece

    def call(self, head: regex.Match[str]) -> Steps[None]:
        opener = yield from self.reader.take(self.openers()[1])
        if opener is None:
            yield from self._bare_calls()
            return
        if opener in self.marks.of_token.values():  # never text, whatever follows
            self.reader.pin()
            if (yield from self.reader.look(rf"\s*+(?:[{{\[]|{call_start(self)})")) is None:
                return
        yield from self.reader.skip_space()
        while True:
            yield from self._declared(self._one_or_list(), not self.declared_only)
            yield Closed()
            if not (yield from self._another(rf"{self._bare()}|{call_start(self)}")):
                break
        yield from self.reader.take(rf"\s*+(?:{self.closer()})")

    def _bare_calls(self) -> Steps[None]:
        is_start = not self._has_text
        while True:
            calls = self._declared(self._one_or_list(needs_arguments=True), is_start)
            yield from self._confirmed(calls, is_start)
            yield Closed()
            if not (yield from self._another(self._bare())):
                return

    def _one_or_list(self, *, needs_arguments: bool = False) -> Steps[None]:
        """One call, or a list of them; the end of the last is not said."""
        is_list = yield from self.reader.take(r"\[\s*+(?=\S)", Channel.CALL)
        yield from self._one(needs_arguments)
        if is_list is None:
            return
        while (yield from self.reader.take(r"\s*+,\s*+(?=[^\s\]])", Channel.CALL)) is not None:
            yield Closed()
            yield from self._one(needs_arguments)
        yield from self.reader.expect(r"\s*+(?:,\s*+)?\]", Channel.CALL)

    def _one(self, needs_arguments: bool) -> Steps[None]:
        found = yield from self.reader.match(r"\{|(?=[^{])")
        if found is not None and found[0] == "{":
            yield from call_object(self, needs_arguments=needs_arguments)
        else:
            yield from python_call(self)

    def _declared(self, steps: Steps[None], is_free: bool) -> Steps[None]:
        """The steps, which may open calls of declared tools only, unless they are free."""
        for piece in steps:
            if isinstance(piece, Opened) and not is_free and self.tool(piece.name) is None:
                raise Malformed
            yield piece

    def _confirmed(self, steps: Steps[None], is_start: bool) -> Steps[None]:
        """The steps, whose pieces go out when nothing shows that they are prose.

        What a limit cut counts as a call if it is the first and has its name.
        """
        held: list[Piece] = []
        begun = 0
        try:
            for piece in steps:
                begun += isinstance(piece, Opened)
                if piece is WAIT or self.expected.trusted:
                    yield piece
                else:
                    held.append(piece)
        except Incomplete:
            if begun == 0 or (begun > 1 and held):
                raise Malformed from None
            yield from held
            raise
        if not self.expected.trusted and not (yield from self._is_alone(is_start)):
            raise Malformed
        yield from held

    def _is_alone(self, is_start: bool) -> Steps[bool]:
        """Whether the end, another call or, at the start, another line follows."""
        line = r"[^\S\n]*+\n|" if is_start else ""
        others = f"{self.openers()[1]}|{self._bare()}"
        try:
            return (yield from self.reader.match(rf"{line}\s*+(?:;|{others})")) is not None
        except Incomplete:
            return True

    def _another(self, head: str) -> Steps[bool]:
        """Whether one more call follows; consumes what stands between."""
        opener = f"(?:{self.openers()[1]})?"
        found = yield from self.reader.look(rf"(\s*+(?:;\s*+)?)({opener})\s*+(?:{head})")
        if found is None:
            return False
        self.reader.consume(found.end(1), Channel.CALL)
        self.reader.consume(found.end(2), Channel.MARKUP)
        yield from self.reader.skip_space()
        return True
