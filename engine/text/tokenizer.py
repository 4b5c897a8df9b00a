"""Text to token ids and back, byte for byte.

Client text never becomes a control token. Where a client spells `<|im_end|>`, the tokenizer yields
the ordinary tokens of those characters. vLLM and transformers parse such spellings in chat messages
and in raw completions, which lets any quoted text end a turn; clients that want a control token in
a raw prompt send token ids.

What a vocabulary cannot express is lost, as in the library: SmolLM2 has no token for 21 bytes,
among them U+0004 and the first byte of planes that Unicode has not assigned.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from tokenizers import AddedToken

from engine.errors import StartupError
from engine.text.control import Spellings, is_control
from engine.text.gguf_vocab import load_gguf
from engine.text.hf_vocab import load_folder
from engine.text.token_bytes import byte_table, strips_first_space
from engine.text.vocabulary import Vocabulary

# Around the stand-ins of control tokens. Unicode reserves these code points for such internal use.
_OPEN, _CLOSE = "\ufdee", "\ufdef"


class Tokenizer:
    """One vocabulary. Immutable once made; threads may share it.

    `vocab_size` counts the ids of the vocabulary, which a model may pad. `add_bos`: whether texts
    start with `bos_id` by default. `special_tokens` are the template's names (`bos_token`).
    `control_tokens` maps spelling to id; `control_ids` are its ids, and `special_ids` those that
    the vocabulary itself flags as special, which output text does not show. `all_bytes` are each
    token's bytes by id.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._core = vocabulary.core
        self._prefix_ids = vocabulary.prefix_ids
        self._suffix_ids = vocabulary.suffix_ids
        self.bos_id = vocabulary.bos_id
        self.eos_ids = vocabulary.eos_ids
        self.add_bos = vocabulary.bos_id is not None and vocabulary.bos_id in vocabulary.prefix_ids
        self.special_tokens = dict(vocabulary.special_tokens)
        self.all_bytes = tuple(byte_table(self._core))
        self._strips_first_space = strips_first_space(self._core)
        self.vocab_size = len(self.all_bytes)
        added = self._core.get_added_tokens_decoder()
        control = {number: token for number, token in added.items() if is_control(token)}
        self.control_tokens = {token.content: number for number, token in control.items()}
        self.control_ids = frozenset(control)
        self.special_ids = frozenset(number for number, token in added.items() if token.special)
        self.spellings = Spellings(self.control_tokens)
        self._prepare(control)

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read a Hugging Face folder or a GGUF file. Raises StartupError."""
        try:
            return cls(load_folder(path) if path.is_dir() else load_gguf(path))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StartupError(f"the tokenizer of {path} is malformed: {error!r}") from None

    def _prepare(self, control: dict[int, AddedToken]) -> None:
        """Teach the library to read control tokens as text, and a stand-in as each of them.

        The stand-ins keep the library's own rules for added tokens (`lstrip`, `rstrip`, what counts
        as the start of a text). They carry a secret, so that no client text can contain one.
        """
        unk = getattr(self._core.model, "unk_token", None)
        self._unspoken = self.control_ids - {self.control_tokens.get(unk or "", -1)}
        secret = secrets.token_hex(12)
        self._stand_ins = {
            token.content: f"{_OPEN}{secret}{number}{_CLOSE}" for number, token in control.items()
        }
        unflagged = [token for token in control.values() if not token.special]
        self._core.add_special_tokens([_like(token, token.content) for token in unflagged])
        self._core.add_tokens(
            [_like(token, self._stand_ins[token.content]) for token in control.values()]
        )
        self._core.encode_special_tokens = True
        self._control_of = {
            self._core.token_to_id(stand_in): self.control_tokens[content]
            for content, stand_in in self._stand_ins.items()
        }

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Ids of client text. Control tokens that it spells stay text."""
        ids = self._encode(text)
        if add_special_tokens:
            return [*self._prefix_ids, *ids, *self._suffix_ids]
        return ids

    def encode_rendered(
        self, text: str, *, guard: str = "", add_special_tokens: bool = False
    ) -> list[int]:
        """Ids of a template's output, in which every control token spelt without `guard` is one.

        `guard` is the character that `engine.text.guard` put into the client's spellings; it is
        removed. If the vocabulary starts texts with a BOS, it comes first exactly once, however
        often the template wrote it; `add_special_tokens` adds the rest of what goes before a text.
        """
        pieces: list[str] = []
        reached = 0
        for start, end in self.spellings.find(text):
            pieces += (text[reached:start], self._stand_ins[text[start:end]])
            reached = end
        pieces.append(text[reached:])
        marked = "".join(pieces)
        encoded = self._encode(marked.replace(guard, "") if guard else marked)
        ids = [self._control_of.get(token, token) for token in encoded]
        return self._started(ids, add_special_tokens)

    def _started(self, ids: list[int], add_special_tokens: bool) -> list[int]:
        bos = [self.bos_id] if self.add_bos and self.bos_id is not None else []
        prefix = list(self._prefix_ids) if add_special_tokens else bos
        if bos:
            first = next((at for at, token in enumerate(ids) if token != self.bos_id), len(ids))
            return prefix + ids[first:]
        return ids if ids[: len(prefix)] == prefix else prefix + ids

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._core.encode(text, add_special_tokens=False).ids
        if self._unspoken.isdisjoint(ids):
            return ids
        # A vocabulary that has a control token among its words can produce it from plain text.
        return [part for token in ids for part in self._spelt_out.get(token, (token,))]

    @cached_property
    def _spelt_out(self) -> dict[int, list[int]]:
        """The ids of each control token's characters, one by one, as inside a text."""
        inside = next(iter(self._stand_ins.values()))
        return {
            number: [
                part
                for char in content
                for part in self._core.encode(inside + char, add_special_tokens=False).ids[1:]
            ]
            for content, number in self.control_tokens.items()
            if number in self._unspoken
        }

    @cached_property
    def vocabulary_json(self) -> str:
        """The vocabulary in the library's JSON format, every control token flagged special.

        For whoever needs the library's own view of it, such as grammar masks in another process.
        """
        value = json.loads(self._core.to_str())
        value["added_tokens"] = [
            token for token in value["added_tokens"] if token["id"] not in self._control_of
        ]
        return json.dumps(value, ensure_ascii=False)

    def token_bytes(self, token: int) -> bytes:
        """Exact bytes of one token; none for ids that only a padded model has."""
        return self.all_bytes[token] if 0 <= token < self.vocab_size else b""

    @cached_property
    def visible_bytes(self) -> tuple[bytes, ...]:
        """`all_bytes` with nothing for special tokens."""
        table = list(self.all_bytes)
        for token in self.special_ids:
            table[token] = b""
        return tuple(table)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of whole ids, control tokens included; bytes that are not UTF-8 become U+FFFD.

        A sentencepiece vocabulary marks the start of a text with a space that the text does not
        have; it is dropped here. Use `Detokenizer` for what continues a prompt, where it counts.
        """
        text = b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")
        return text[1:] if self._strips_first_space and text.startswith(" ") else text


def _like(token: AddedToken, content: str) -> AddedToken:
    """Another content under the same rules for white space."""
    return AddedToken(
        content, lstrip=token.lstrip, rstrip=token.rstrip, normalized=False, special=False
    )
