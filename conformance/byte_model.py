"""A model folder whose tokens are bytes, so that a prompt's token count tells what is in it."""

from __future__ import annotations

import json
from pathlib import Path

BOS, EOS, LEAD = "<s>", "</s>", "<lead>"
FIRST_BYTE = 3
"""The token id of byte 0; the three control tokens come before it.

LEAD is what the tokenizer puts before a text, besides BOS, when special tokens are wanted.
"""

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


def write(folder: Path) -> Path:
    """Write config.json, tokenizer.json and tokenizer_config.json; there are no weights."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {BOS: 0, EOS: 1, LEAD: 2}
    vocabulary |= {char: FIRST_BYTE + byte for byte, char in enumerate(_byte_characters())}
    special = [
        {"id": number, "content": content, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number, content in enumerate((BOS, EOS, LEAD))
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    tokenizer = {
        "version": "1.0",
        "added_tokens": special,
        "pre_tokenizer": byte_level | {"use_regex": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": LEAD, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 1}},
            ],
            "special_tokens": {LEAD: {"id": LEAD, "ids": [2], "tokens": [LEAD]}},
        },
        "decoder": byte_level | {"use_regex": False},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    config = {
        "bos_token": BOS,
        "eos_token": EOS,
        "add_bos_token": True,
        "chat_template": TEMPLATE,
    }
    _save(folder / "tokenizer.json", tokenizer)
    _save(folder / "tokenizer_config.json", config)
    _save(folder / "config.json", {"model_type": "llama", "bos_token_id": 0, "eos_token_id": 1})
    return folder


def _save(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _byte_characters() -> list[str]:
    """The printable character that byte-level tokenizers write for each byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    names = {byte: chr(byte) for byte in shown}
    names |= {byte: chr(256 + place) for place, byte in enumerate(hidden)}
    return [names[byte] for byte in range(256)]
