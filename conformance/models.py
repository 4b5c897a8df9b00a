"""The model folders of the families: vocabularies of bytes with the family's own control tokens.

Their templates, in templates/, are ours; they have what matters to a server: where tools, calls,
results and thoughts stand, what the prompt leaves open, and what is refused.
"""

from __future__ import annotations

from pathlib import Path

from conformance.byte_model import BYTES, ByteModel

_TEMPLATES = Path(__file__).parent / "templates"
_SHOWING = """{%- set prompt -%}
TEMPLATE
{%- endset -%}
{%- if show is defined and show -%}{{- raise_exception(prompt) -}}{%- endif -%}
{{- prompt -}}"""
"""Every template shows the prompt in an error where the request says so: no reply has it."""
_CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_THINK = ("<think>", "</think>")
_CALL = ("<tool_call>", "</tool_call>")
_RESPONSE = ("<tool_response>", "</tool_response>")


def _model(
    name: str,
    controls: tuple[str, ...],
    ends: tuple[str, ...],
    bos: str | None = None,
    markup: tuple[str, ...] = (),
) -> ByteModel:
    template = (_TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    return ByteModel(_SHOWING.replace("TEMPLATE", template), controls, ends, bos, frozenset(markup))


THINKER = _model(
    "thinker",
    (*_CHATML, *_THINK, *_CALL, *_RESPONSE),
    ends=("<|im_end|>", "<|endoftext|>"),
    markup=(*_THINK, *_CALL, *_RESPONSE),
)
"""As Qwen3: the model opens its thoughts itself, calls are JSON."""

CODER = _model(
    "coder",
    (*_CHATML, *_THINK, *_CALL, *_RESPONSE),
    ends=("<|im_end|>", "<|endoftext|>"),
    markup=(*_THINK, *_CALL, *_RESPONSE),
)
"""As Qwen3.5: the prompt opens the thoughts, calls are XML."""

MISTRAL = _model(
    "mistral",
    (
        "<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
        "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
        "[TOOL_CONTENT]", "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]",
    ),
    ends=("</s>",),
    bos="<s>",
)  # fmt: skip
"""Calls behind [TOOL_CALLS]; the template wants ids of nine characters."""

HARMONY = _model(
    "harmony",
    (
        "<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>",
        "<|start|>", "<|end|>", "<|message|>", "<|call|>",
    ),
    ends=("<|return|>", "<|endoftext|>", "<|call|>"),
)  # fmt: skip
"""As gpt-oss: channels and recipients, an effort in the prompt."""

STRICT = _model("strict", ("<bos>", "<eos>"), ends=("<eos>",), bos="<bos>")
"""A template that refuses all but user and assistant in turn, and knows no tools."""

LLAMA = _model(
    "llama",
    (
        "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
        "<|eom_id|>", "<|eot_id|>", "<|python_tag|>",
    ),
    ends=("<|eot_id|>", "<|end_of_text|>", "<|eom_id|>"),
    bos="<|begin_of_text|>",
)  # fmt: skip

PYTHONIC = _model(
    "pythonic",
    (
        "<|begin_of_text|>", "<|end_of_text|>", "<|header_start|>", "<|header_end|>", "<|eom|>",
        "<|eot|>", "<|python_start|>", "<|python_end|>",
    ),
    ends=("<|eot|>", "<|end_of_text|>", "<|eom|>"),
    bos="<|begin_of_text|>",
)  # fmt: skip

GLM = _model(
    "glm",
    (
        "<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>",
        "<|observation|>", *_THINK, *_CALL, "<arg_key>", "</arg_key>", "<arg_value>",
        "</arg_value>", *_RESPONSE,
    ),
    ends=("<|endoftext|>", "<|user|>", "<|observation|>"),
    markup=(*_THINK, *_CALL, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", *_RESPONSE),
)  # fmt: skip

KIMI = _model(
    "kimi",
    (
        "[EOS]", "<|im_end|>", "<|im_user|>", "<|im_assistant|>", "<|im_system|>",
        "<|im_middle|>", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>",
        "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", *_THINK,
    ),
    ends=("<|im_end|>", "[EOS]"),
    markup=_THINK,
)  # fmt: skip

GEMMA = _model(
    "gemma",
    (
        "<bos>", "<eos>", "<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|tool_call>",
        "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|channel>", "<channel|>",
        '<|"|>',
    ),
    ends=("<turn|>", "<eos>"),
    bos="<bos>",
)  # fmt: skip

MODELS: dict[str, ByteModel] = {
    "bytes": BYTES,
    "thinker": THINKER,
    "coder": CODER,
    "mistral": MISTRAL,
    "harmony": HARMONY,
    "strict": STRICT,
    "llama": LLAMA,
    "pythonic": PYTHONIC,
    "glm": GLM,
    "kimi": KIMI,
    "gemma": GEMMA,
}
"""By the name of the profile that serves it."""

UNCONSTRAINED = "-off"
"""Behind a profile's name: calls are not constrained, so that the script can break them."""


def model_of(profile: str) -> ByteModel | None:
    """The model that a profile serves, where its tokens are bytes."""
    return MODELS.get(profile.removesuffix(UNCONSTRAINED))
