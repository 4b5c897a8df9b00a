"""Model folders whose tokens are bytes, so that token ids tell what is in a prompt or an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BOS, EOS, LEAD = "<s>", "</s>", "<lead>"

TEMPLATE = """
{%- set ns = namespace(said=0) -%}
{%- for message in messages -%}
  {%- if message.role == 'system' and not loop.first -%}
    {{- raise_exception('a system message must come first') -}}
  {%- endif -%}
{%- endfor -%}
{%- if messages[-1].content == 'SHOW' -%}
  {{- raise_exception(messages | tojson) -}}
{%- elif messages[-1].content == 'RAISE' -%}
  {{- raise_exception('the template says no') -}}
{%- elif messages[-1].content == 'FUNCTIONS' -%}
  {%- for number in [1, 2, 3] -%}
    {%- if number == 3 -%}{%- break -%}{%- endif -%}
    {%- set ns.said = ns.said + number -%}
  {%- endfor -%}
  {{- raise_exception(
    [ns.said, strftime_now('%d %b %Y'), {'a': 1} | tojson(indent=2), greeting] | tojson) -}}
{%- endif -%}
{%- if not bare -%}{{- bos_token -}}{%- endif -%}
{%- for message in messages -%}
  {{- '[' + message.role + ']' + message.content + '.' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}[assistant]{%- endif -%}
"""
"""Shows its messages in an error when the last one is SHOW; emits BOS itself; wants system first.

A message is `[role]content.`, so it costs the length of both and three tokens.
"""


def _byte_characters() -> list[str]:
    """The printable character that byte-level tokenizers write for each byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    names = {byte: chr(byte) for byte in shown}
    names |= {byte: chr(256 + place) for place, byte in enumerate(hidden)}
    return [names[byte] for byte in range(256)]


@dataclass(frozen=True)
class ByteModel:
    """A vocabulary of control tokens, then the 256 bytes.

    `controls` have the ids from 0 on. `ends` end an answer, the first of them by the tokenizer's
    own word. `markup` are the controls that are not flagged as special, as `<think>` in Qwen3's
    vocabulary. LEAD, where it is among the controls, is what the tokenizer puts before a text,
    besides BOS, when special tokens are wanted. `options` are those of the server.
    """

    template: str
    controls: tuple[str, ...]
    ends: tuple[str, ...]
    bos: str | None = None
    markup: frozenset[str] = frozenset()
    options: tuple[str, ...] = field(default=())

    def ids(self, text: str) -> list[int]:
        """Token ids of a text, spellings of control tokens being the tokens."""
        longest_first = sorted(self.controls, key=len, reverse=True)
        found: list[int] = []
        for part in re.split("(" + "|".join(map(re.escape, longest_first)) + ")", text):
            if part in self.controls:
                found.append(self.controls.index(part))
            else:
                found += self.plain_ids(part)
        return found

    def plain_ids(self, text: str) -> list[int]:
        """Token ids of a text without control tokens, whatever it spells."""
        return [len(self.controls) + byte for byte in text.encode()]

    def text(self, token_ids: Sequence[int]) -> str:
        """What tokens spell."""
        first = len(self.controls)
        parts = [
            bytes([token - first]) if token >= first else self.controls[token].encode()
            for token in token_ids
        ]
        return b"".join(parts).decode("utf-8", "replace")

    def count(self, token_ids: Sequence[int]) -> dict[str, int]:
        """How often each control token is there."""
        return {control: token_ids.count(n) for n, control in enumerate(self.controls)}

    def write(self, folder: Path) -> Path:
        """Write config.json, tokenizer.json and tokenizer_config.json; there are no weights."""
        folder.mkdir(parents=True, exist_ok=True)
        ends = [self.controls.index(end) for end in self.ends]
        config: dict[str, Any] = {
            "eos_token": self.ends[0],
            "chat_template": self.template,
        }
        end_id = ends if len(ends) > 1 else ends[0]
        model: dict[str, Any] = {"model_type": "llama", "eos_token_id": end_id}
        if self.bos is not None:
            config |= {"bos_token": self.bos, "add_bos_token": True}
            model["bos_token_id"] = self.controls.index(self.bos)
        _save(folder / "tokenizer.json", self._tokenizer())
        _save(folder / "tokenizer_config.json", config)
        _save(folder / "config.json", model)
        return folder

    def _tokenizer(self) -> dict[str, Any]:
        vocabulary = {control: number for number, control in enumerate(self.controls)}
        first = len(self.controls)
        vocabulary |= {char: first + byte for byte, char in enumerate(_byte_characters())}
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        added = [
            {"id": number, "content": content, "special": content not in self.markup} | flags
            for number, content in enumerate(self.controls)
        ]
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
        tokenizer: dict[str, Any] = {
            "version": "1.0",
            "added_tokens": added,
            "pre_tokenizer": byte_level | {"use_regex": False},
            "decoder": byte_level | {"use_regex": False},
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
        }
        if LEAD in self.controls:
            tokenizer["post_processor"] = self._lead()
        return tokenizer

    def _lead(self) -> dict[str, Any]:
        return {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": LEAD, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 1}},
            ],
            "special_tokens": {
                LEAD: {"id": LEAD, "ids": [self.controls.index(LEAD)], "tokens": [LEAD]}
            },
        }


def _save(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


BYTES = ByteModel(TEMPLATE, (BOS, EOS, LEAD), ends=(EOS,), bos=BOS)
"""The model of the profile bytes: a template that shows what it gets, and no family's syntax."""
