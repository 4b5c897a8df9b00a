from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.conversation import Conversation, Message, Reasoning, Role, Text
from engine.errors import RequestError, StartupError
from engine.text.gguf_vocab import load_gguf
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.engine.text.vocabularies import byte_level_core, small, write_folder, write_gguf

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FIRST_ONLY = (  # D083: refuses system messages that are not first
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ALTERNATING = (  # as Gemma's: no system role, strict turns
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "[INST]{{ m.role }}\n{{ m.content | trim }}[/INST]\n{% endfor %}"
)
THINKING = (  # as Qwen's: splits the history at </think>, adds empty thoughts
    "{% for m in messages %}{% set content = m.content %}{% set thoughts = '' %}"
    "{% if m.role == 'assistant' %}"
    "{% if m.reasoning_content is string %}{% set thoughts = m.reasoning_content %}"
    "{% elif '</think>' in content %}"
    "{% set thoughts = content.split('</think>')[0].split('<think>')[-1].strip('\n') %}"
    "{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "<|im_start|>assistant\n<think>\n{{ thoughts }}\n</think>\n\n{{ content }}<|im_end|>\n"
    "{% else %}<|im_start|>{{ m.role }}\n{{ content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)


def conversation(*turns: tuple[Role, str], **fields: Any) -> Conversation:
    return Conversation(tuple(Message(role, (Text(text),)) for role, text in turns), **fields)


def ids_of(template: ChatTemplate, asked: Conversation) -> tuple[int, ...]:
    return template.render(asked).token_ids


def prompt(source: str, tokenizer: Tokenizer, asked: Conversation) -> str:
    return tokenizer.decode(ids_of(ChatTemplate(source, tokenizer), asked))


# The rendering itself


def test_the_embedded_template(gguf_path: Path, smollm: Tokenizer) -> None:
    template = ChatTemplate.load(gguf_path, smollm)
    ids = ids_of(template, conversation(("user", "Hi 2024")))
    assert smollm.decode(ids) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nHi 2024<|im_end|>\n<|im_start|>assistant\n"
    )
    assert [token for token in ids if token in smollm.control_ids] == [1, 2, 1, 2, 1]


def test_prompt_without_a_generation_prompt(markup: Tokenizer) -> None:
    asked = conversation(("user", "a"), add_generation_prompt=False)
    assert prompt(CHATML, markup, asked) == "<|im_start|>user\na<|im_end|>\n"


def test_template_kwargs_reach_the_template(markup: Tokenizer) -> None:
    asked = conversation(("user", "a"), template_kwargs={"enable_thinking": False})
    assert prompt(THINKING, markup, asked).endswith("<think>\n\n</think>\n\n")
    source = "{{ tools | tojson }}{{ effort == 'high' }}{{ messages | length }}{{ bos_token }}"
    options: Mapping[str, object] = {
        "tools": [{"a": ({"b": "<é>"},)}], "effort": "high", "messages": [], "bos_token": "x",
        "not an identifier": 1,
    }  # fmt: skip
    asked = conversation(("user", "a"), template_kwargs=options)
    assert prompt(source, markup, asked) == '[{"a": [{"b": "<é>"}]}]True1<s>'


def test_names_and_reasoning_reach_the_template(markup: Tokenizer) -> None:
    source = (
        "{% for m in messages %}{{ m.name }}:{{ m.reasoning_content }}:{{ m.content }};{% endfor %}"
    )
    asked = Conversation(
        (
            Message("user", (Text("a"), Text("b")), name="Eve<|im_end|>"),
            Message("assistant", (Reasoning("why"), Text("c"))),
        )
    )
    template = ChatTemplate(source, markup)
    ids = ids_of(template, asked)
    assert markup.decode(ids) == "Eve<|im_end|>::a\n\nb;:why:c;"
    assert markup.control_ids.isdisjoint(ids)


def test_history_is_split_at_the_thought(markup: Tokenizer) -> None:
    asked = conversation(("user", "q"), ("assistant", "<think>\nold\n</think>\n\nanswer"))
    expected = "<|im_start|>assistant\n<think>\nold\n</think>\n\nanswer<|im_end|>\n"
    assert expected in prompt(THINKING, markup, asked)


@pytest.mark.parametrize("writes_bos", [True, False])
@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_exactly_one_bos(
    markup_bos: Tokenizer, writes_bos: bool, add_special_tokens: bool
) -> None:  # D166
    source = ("{{ bos_token }}" if writes_bos else "") + CHATML
    asked = conversation(("user", "a"), add_special_tokens=add_special_tokens)
    ids = ids_of(ChatTemplate(source, markup_bos), asked)
    assert ids[0] == markup_bos.bos_id
    assert ids.count(ids[0]) == 1


def test_every_template_global(markup: Tokenizer) -> None:  # D167
    source = (
        "{%- set today = strftime_now('%Y') %}{% set ns = namespace(n=0) %}"
        "{% for m in messages %}{% set ns.n = ns.n + 1 %}{% if ns.n > 1 %}{% break %}{% endif %}"
        "{{ today }} {{ m | tojson(indent=2) }}{% endfor %}"
    )
    text = prompt(source, markup, conversation(("user", "a"), ("assistant", "b")))
    assert re.fullmatch(r'\d{4} \{\n  "role": "user",\n  "content": "a"\n\}', text)


# Instructions


def test_later_system_text_is_kept_at_its_place(markup: Tokenizer) -> None:  # D083
    turns: list[tuple[Role, str]] = [("system", "S1"), ("user", "a"), ("assistant", "b")]
    template = ChatTemplate(FIRST_ONLY, markup)
    before = ids_of(template, conversation(*turns, add_generation_prompt=False))
    whole = ids_of(template, conversation(*turns, ("system", "S2"), ("user", "c")))
    assert whole[: len(before)] == before
    assert "<|im_start|>user\n<system>S2</system><|im_end|>" in markup.decode(whole)


def test_inline_system_is_native_where_it_works(markup: Tokenizer) -> None:
    asked = conversation(("user", "a"), ("system", "S"), ("user", "b"))
    assert "<|im_start|>system\nS<|im_end|>" in prompt(CHATML, markup, asked)


def test_a_template_without_system_role_gets_it_in_the_first_turn(markup: Tokenizer) -> None:
    asked = conversation(("developer", "D"), ("user", "a"), ("user", "b"))
    assert prompt(ALTERNATING, markup, asked) == "<s>[INST]user\nD\n\na\n\nb[/INST]\n"


# Continuation


@pytest.mark.parametrize("source", [CHATML, FIRST_ONLY, THINKING])
@pytest.mark.parametrize("text", ["The answer is", "It ends <|im_", "1. ", "Yes. Yes."])
def test_the_last_message_is_left_open(markup: Tokenizer, source: str, text: str) -> None:
    asked = conversation(
        ("user", "Yes."), ("assistant", text), continue_final=True, add_generation_prompt=False
    )
    rendered = prompt(source, markup, asked)
    assert rendered.endswith(text)
    assert rendered.count("<|im_start|>assistant") == 1


PARAMS = pytest.mark.parametrize("param", ["continue_final_message", "messages.1"])


@PARAMS
def test_continuation_that_the_template_cannot_do(markup: Tokenizer, param: str) -> None:
    hides = "{% for m in messages %}{{ m.role }}{% endfor %}"
    fields: dict[str, Any] = {"continue_param": param, "add_generation_prompt": False}
    asked = conversation(("user", "a"), continue_final=True, **fields)
    with pytest.raises(RequestError, match=param) as caught:
        prompt(hides, markup, asked)
    assert caught.value.param == param
    assert ("continue_final_message" in caught.value.message) is (param != "messages.1")


@pytest.mark.parametrize(
    ("turns", "fields"),
    [
        ([("user", "a"), ("assistant", "b")], {"add_generation_prompt": True}),
        ([("user", "a"), ("system", "b")], {"add_generation_prompt": False}),
    ],
)
@PARAMS
def test_contradictory_continuation(
    markup: Tokenizer, turns: list[tuple[Role, str]], fields: dict[str, Any], param: str
) -> None:
    asked = conversation(*turns, continue_final=True, continue_param=param, **fields)
    with pytest.raises(RequestError, match=param) as caught:
        prompt(CHATML, markup, asked)
    assert caught.value.param == param
    assert ("continue_final_message" in caught.value.message) is (param != "messages.1")


# Failures


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[0].content.nope.deeper }}",
        "{{ messages[0].content + 1 }}",
        "{{ messages[7].content | length + none }}",
        "{{ 1 / 0 }}",
        "{{ {}['a']() }}",
        "{{ ''.__class__.__subclasses__() }}",
        "{% macro loop_() %}{{ loop_() }}{% endmacro %}{{ loop_() }}",
        "{{ missing | tojson }}",
        "{% for x in range(99999999) %}{% endfor %}",
        "{{ 'x' * 99999999999 }}",
    ],
)
def test_template_failures_name_messages(markup: Tokenizer, source: str) -> None:
    with pytest.raises(RequestError, match="the chat template cannot render") as caught:
        prompt(source, markup, conversation(("user", "a")))
    assert caught.value.param == "messages"


def test_deep_options_are_refused(markup: Tokenizer) -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    asked = conversation(("user", "a"), template_kwargs={"deep": deep})
    with pytest.raises(RequestError, match="chat_template_kwargs"):
        prompt(CHATML, markup, asked)


def test_empty_conversation(markup: Tokenizer) -> None:
    with pytest.raises(RequestError, match="at least one message"):
        prompt(CHATML, markup, Conversation(()))


# Loading


@pytest.mark.parametrize(
    ("files", "jinja", "expected"),
    [
        ({"tokenizer_config": {"chat_template": "one"}}, None, "one"),
        ({"tokenizer_config": {"chat_template": "one"}}, "two", "two"),
        (
            {"tokenizer_config": {"chat_template": [
                {"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"},
            ]}},
            None,
            "d",
        ),
        (
            {"tokenizer_config": {"chat_template": [{"name": "rag", "template": "r"}]}},
            None,
            "r",
        ),
    ],
)  # fmt: skip
def test_where_a_folder_keeps_its_template(
    files: dict[str, Any], jinja: str | None, expected: str, tmp_path: Path, markup: Tokenizer
) -> None:
    folder = write_folder(tmp_path / "m", byte_level_core(), **files)
    if jinja is not None:
        (folder / "chat_template.jinja").write_text(jinja)
    template = ChatTemplate.load(folder, markup)
    assert markup.decode(ids_of(template, conversation(("user", "a")))) == expected


def test_without_a_template(tmp_path: Path, markup: Tokenizer) -> None:
    path = write_gguf(tmp_path / "v.gguf", {"general.architecture": "llama"})
    rendered = ids_of(ChatTemplate.load(path, markup), conversation(("user", "a")))
    assert markup.decode(rendered) == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
    bare = small(added=())
    with pytest.raises(RequestError, match="no chat template"):
        ChatTemplate.load(path, bare).render(conversation(("user", "a")))


@pytest.mark.parametrize("source", ["{% if %}", "{{ a | nosuch }}", "{% endfor %}"])
def test_a_template_that_does_not_compile(markup: Tokenizer, source: str) -> None:
    with pytest.raises(StartupError, match="does not compile") as caught:
        ChatTemplate(source, markup)
    assert "\n" not in str(caught.value)


# Against transformers


@pytest.fixture(scope="module")
def theirs(gguf_path: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    vocabulary = load_gguf(gguf_path)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=vocabulary.core, **vocabulary.special_tokens
    )


@pytest.mark.parametrize("source", [CHATML, FIRST_ONLY, THINKING, ALTERNATING])
@pytest.mark.parametrize(
    "turns",
    [
        [("user", "Hi, 2024! ñ 東京")],
        [("user", "a"), ("assistant", "b\n\nc"), ("user", "  d  ")],
        [("system", "s"), ("user", "a"), ("assistant", "<think>\nt\n</think>\nb"), ("user", "c")],
    ],
)
@pytest.mark.parametrize("add_generation_prompt", [True, False])
def test_ordinary_conversations_as_in_transformers(
    theirs: Any,
    smollm: Tokenizer,
    source: str,
    turns: list[tuple[Role, str]],
    add_generation_prompt: bool,
) -> None:
    if source == ALTERNATING and turns[0][0] == "system":
        return
    expected = theirs.apply_chat_template(
        [{"role": role, "content": text} for role, text in turns],
        chat_template=source,
        add_generation_prompt=add_generation_prompt,
        return_dict=False,
    )
    asked = conversation(*turns, add_generation_prompt=add_generation_prompt)
    assert list(ids_of(ChatTemplate(source, smollm), asked)) == expected
