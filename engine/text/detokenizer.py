"""Token ids to text while they are generated."""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterable

from engine.text.tokenizer import Tokenizer


class Detokenizer:
    """The text of one growing sequence of tokens.

    The pieces of `push` and a final `flush` join to the whole bytes decoded with U+FFFD for what is
    not UTF-8. A character split over tokens is held back until it is whole, at most three bytes;
    bytes that cannot become a character are U+FFFD at once.

    It continues a prompt, so the space that starts a sentencepiece word is kept even in the first
    token, unlike in `Tokenizer.decode`, which reads a whole text.

    `skip_control` leaves out the tokens that the vocabulary flags as special. Other markup, such
    as `</think>` or Gemma's `<table>`, is part of what the model says, as in vLLM and transformers.
    """

    __slots__ = ("_held", "_table")

    def __init__(self, tokenizer: Tokenizer, *, skip_control: bool) -> None:
        self._table = tokenizer.visible_bytes if skip_control else tokenizer.all_bytes
        self._held = b""

    @property
    def is_holding(self) -> bool:
        """Whether bytes of a character that is not whole are held back."""
        return bool(self._held)

    def push(self, ids: Iterable[int]) -> str:
        """The text that is final after these tokens. Ids beyond the vocabulary say nothing."""
        table = self._table
        size = len(table)
        data = b"".join([table[token] for token in ids if token < size])
        try:
            return self._continued(data) if self._held else data.decode()
        except UnicodeDecodeError:  # far slower, and rare: most tokens are whole characters
            return self._continued(data)

    def _continued(self, data: bytes) -> str:
        data = self._held + data
        text, used = utf_8_decode(data, "replace", False)
        self._held = data[used:]
        return text

    def flush(self) -> str:
        """What was held back: U+FFFD for an incomplete character, else nothing."""
        held, self._held = self._held, b""
        return held.decode("utf-8", "replace")
