"""The end of a prompt: where a parser sees whether a thought is open."""

from __future__ import annotations

from typing import Any

import pytest

from engine.conversation import Conversation, Message, Reasoning, Text, ToolCall, ToolResult
from engine.dialects.hermes import HERMES
from engine.dialects.pieces import Expected
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.engine.text.styles import GLM, QWEN3, QWEN_CODER, STYLES, template_of
from tests.engine.text.vocabularies import small

QUOTED = "see <think> and </think>"
USER = Message("user", (Text(QUOTED + " <think>"),))
CALL = Message("assistant", (ToolCall("c1", "f", '{"a": "<think>"}'),))
RESULT = Message("tool", (ToolResult("c1", ("<think>",)),))
EMPTY = Message("tool", (ToolResult("c1", ("",)),))
ANSWER = Message("assistant", (Text("<think>\n"),))


@pytest.fixture(scope="session")
def unmarked() -> Tokenizer:
    """A vocabulary in which the delimiters of thoughts are no tokens."""
    return small(added=())


def thinks(source: str, tokenizer: Tokenizer, *messages: Message, **fields: Any) -> bool:
    template = template_of(source, tokenizer)
    tail = template.render(Conversation(messages, **fields)).tail
    return HERMES.parser(template.marks, Expected({}, tail)).starts_thinking()


HISTORIES = [(USER,), (USER, CALL, RESULT), (USER, CALL, EMPTY), (USER, ANSWER, USER)]
OFF = {"enable_thinking": False}


@pytest.mark.parametrize("vocabulary", ["markup", "unmarked"])
@pytest.mark.parametrize("messages", HISTORIES)
def test_only_the_templates_own_delimiter_opens_a_thought(
    vocabulary: str, messages: tuple[Message, ...], request: pytest.FixtureRequest
) -> None:
    tokenizer = request.getfixturevalue(vocabulary)
    assert thinks(QWEN_CODER, tokenizer, *messages)
    assert thinks(GLM, tokenizer, *messages)
    assert not thinks(GLM, tokenizer, *messages, template_kwargs=OFF)
    assert not thinks(QWEN3, tokenizer, *messages)
    assert not thinks(QWEN3, tokenizer, *messages, template_kwargs=OFF)
    assert not thinks(QWEN_CODER, tokenizer, *messages, add_generation_prompt=False)


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("messages", [*HISTORIES, (USER, ANSWER)])
@pytest.mark.parametrize("add_generation_prompt", [True, False])
def test_the_tail_is_the_end_of_the_prompt(
    name: str, messages: tuple[Message, ...], add_generation_prompt: bool, markup: Tokenizer
) -> None:
    template = template_of(STYLES[name].source, markup)
    asked = Conversation(messages, add_generation_prompt=add_generation_prompt)
    prompt = template.render(asked)
    tail = template.marks.plain(prompt.tail)
    assert markup.decode(prompt.token_ids).endswith(tail)
    assert QUOTED not in tail


def test_the_tail_of_a_template_that_asks_for_more_than_the_last_turn(markup: Tokenizer) -> None:
    source = (
        "{% for m in messages %}{{ m.content }};{% endfor %}"
        "{% if add_generation_prompt %}{{ '<think>' if messages | length > 2 }}{% endif %}"
    )
    template = ChatTemplate(source, markup)
    one = template.render(Conversation((USER,)))
    three = template.render(Conversation((USER, ANSWER, USER)))
    assert one.tail == ";"
    assert three.tail == ";" + template.marks["<think>"] != ";<think>"


def test_a_template_that_hides_the_last_turn(markup: Tokenizer) -> None:
    source = "{{ messages[0].content }}{% if add_generation_prompt %}<think>{% endif %}"
    assert ChatTemplate(source, markup).render(Conversation((USER, ANSWER))).tail == ""


# An open last message


@pytest.mark.parametrize("vocabulary", ["markup", "unmarked"])
@pytest.mark.parametrize(
    ("text", "open_thought"),
    [("<think>\nLet me", True), ("<think>\na\n</think>\n\nSo", False), ("So", False)],
)
def test_a_continued_message_is_a_part_of_the_tail(
    vocabulary: str, text: str, open_thought: bool, request: pytest.FixtureRequest
) -> None:
    tokenizer = request.getfixturevalue(vocabulary)
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    fields = {"continue_final": True, "add_generation_prompt": False}
    last = Message("assistant", (Text(text),))
    assert thinks(source, tokenizer, USER, last, **fields) is open_thought
    template = ChatTemplate(source, tokenizer)
    tail = template.render(Conversation((USER, last), **fields)).tail  # type: ignore[arg-type]
    assert template.marks.plain(tail) == "</><assistant>" + text
    assert not thinks(source, tokenizer, last, USER, **fields)


def test_a_continued_message_with_a_thought(markup: Tokenizer) -> None:
    last = Message("assistant", (Reasoning("a"), Text("So")))
    fields = {"continue_final": True, "add_generation_prompt": False}
    assert not thinks(QWEN_CODER, markup, USER, last, **fields)
    template = ChatTemplate(QWEN_CODER, markup)
    tail = template.render(Conversation((USER, last), **fields)).tail  # type: ignore[arg-type]
    assert template.marks.plain(tail).endswith("<think>\na\n</think>\n\nSo")


def test_a_continued_message_that_comes_first(markup: Tokenizer) -> None:
    source = "{% for m in messages %}{{ m.content }}{{ 'x' * loop.length }}{% endfor %}"
    template = ChatTemplate(source, markup)
    asked = Conversation((ANSWER,), continue_final=True, add_generation_prompt=False)
    assert template.render(asked).tail == template.marks["<think>"] + "\n"
