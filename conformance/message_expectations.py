"""What a case can expect of Messages, besides the words for every reply."""

from __future__ import annotations

import re
from typing import Any

from conformance.chat_expectations import ChatExpectation
from conformance.expectations import subset

_TURN = "<|im_start|>"


class MessageExpectation(ChatExpectation):
    """More words, for content blocks, for context edits and for prompts by their size."""

    def on_blocks(self, wanted: list[dict[str, Any]]) -> None:
        """The content in its order: so many blocks, each with at least these members."""
        found = [block.shown() for block in self.reply.blocks]
        assert len(found) == len(wanted), f"{self.where}: {found}"
        for place, (block, part) in enumerate(zip(found, wanted, strict=True)):
            subset(part, block, f"{self.where} block {place}")

    def on_stop_sequence(self, wanted: str | None) -> None:
        self._equal(self.reply.choices[0].stop_reason, wanted)

    def on_finish_in(self, wanted: list[str]) -> None:
        assert self.reply.finish in wanted, f"{self.where}: {self.reply.finish}"

    def on_pings(self, at_least: int) -> None:
        """So many signs of life of a stream at least."""
        if self.reply.chunks:
            assert self.reply.comments >= at_least, f"{self.where}: {self.reply.comments}"

    def on_error_matches(self, wanted: str) -> None:
        """The whole sentence."""
        assert self.reply.error is not None, f"{self.where}: no error"
        message = self.reply.error["message"]
        assert re.fullmatch(wanted, message, re.DOTALL), f"{self.where}: {message!r}"

    def on_error_names(self, any_of: list[str]) -> None:
        """One of these fields."""
        assert self.reply.error is not None, f"{self.where}: no error"
        message = self.reply.error["message"]
        assert any(name in message for name in any_of), f"{self.where}: {message!r}"

    def on_open_block(self, wanted: dict[str, Any]) -> None:
        """A stream that failed left this block without its end; nothing takes it for whole."""
        assert self.reply.blocks, f"{self.where}: no block"
        last = self.reply.blocks[-1]
        assert last.open, f"{self.where}: {last} is presented as whole"
        subset(wanted, {"kind": last.kind, "name": last.name, "raw": last.raw}, self.where)

    # Prompts

    def on_prompt_tokens(self, wanted: int) -> None:
        self._equal(self.reply.prompt_tokens, wanted)

    def on_other_prompt_than(self, step: int) -> None:
        """A prompt of another size."""
        found = self.reply.prompt_tokens
        assert found != self.before[step].prompt_tokens, f"{self.where}: {found} tokens, as before"

    def on_prompt_starts_as(self, step: int) -> None:
        """It begins with all turns of an earlier prompt, whose answer was open: a cache keeps them.

        For the templates whose turns begin alike.
        """
        turns, _, opened = self._text(self.before[step]).rpartition(_TURN)
        assert turns and opened.startswith("assistant"), f"{self.where}: {opened!r}"
        assert self._prompt().startswith(turns), f"{self.where}: {self._prompt()!r} not {turns!r}"

    # Context edits

    def on_edits(self, wanted: list[dict[str, Any]] | None) -> None:
        """What was cleared: so many edits, each with at least these members; null is no word."""
        if wanted is None:
            self._equal(self.reply.edits, None)
            return
        assert self.reply.edits is not None, f"{self.where}: no word of edits"
        found = self.reply.edits["applied_edits"]
        assert len(found) == len(wanted), f"{self.where}: {found}"
        for edit, part in zip(found, wanted, strict=True):
            subset(part, edit, self.where)

    def on_cleared_from(self, step: int) -> None:
        """The edits say by how much the prompt is shorter than that of an earlier step."""
        assert self.reply.edits is not None, f"{self.where}: no word of edits"
        said = sum(edit["cleared_input_tokens"] for edit in self.reply.edits["applied_edits"])
        self._equal(said, self.before[step].prompt_tokens - self.reply.prompt_tokens)

    def on_original_as(self, step: int) -> None:
        """A count tells what the prompt was before the edits."""
        assert self.reply.edits is not None, f"{self.where}: no word of edits"
        original = self.reply.edits["original_input_tokens"]
        self._equal(original, self.before[step].prompt_tokens)
