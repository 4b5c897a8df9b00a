"""How much of a prompt is to be kept: up to the end of the deepest message that says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.conversation import Conversation, Message, Role, Text, Tool, ToolCall, ToolResult
from engine.text.keep import kept_tokens
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from engine.types import Prompt
from tests.engine.text.styles import STYLES, template_of

TOOL = Tool("lookup", "Finds things.")
HISTORY = (
    Message("system", (Text("Be alpha."),)),
    Message("user", (Text("the bravo"),)),
    Message("assistant", (ToolCall("c1", "lookup", '{"x": "charlie"}'),)),
    Message("tool", (ToolResult("c1", ("found delta",)),)),
    Message("assistant", (Text("so echo"),)),
    Message("user", (Text("then foxtrot"),)),
)
WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot")


def said(role: Role, text: str, *, keep: bool = False) -> Message:
    return Message(role, (Text(text),), keep=keep)


def keeping(*places: int) -> Conversation:
    marked = (replace(one, keep=at in places) for at, one in enumerate(HISTORY))
    return Conversation(tuple(marked), tools=(TOOL,))


def measured(template: ChatTemplate, asked: Conversation) -> tuple[Prompt, int]:
    prompt = template.render(asked)
    return prompt, kept_tokens(asked, prompt, template.render)


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("place", range(len(HISTORY)))
def test_the_prompt_is_kept_up_to_the_end_of_the_message(
    name: str, place: int, markup: Tokenizer
) -> None:
    template = template_of(STYLES[name].source, markup)
    prompt, keep = measured(template, keeping(place))
    text = markup.decode(prompt.token_ids[:keep])
    assert [word for word in WORDS if word in text] == list(WORDS[: place + 1])
    assert prompt == template.render(keeping())  # the hint itself is not shown
    if place == len(HISTORY) - 1:
        assert keep == len(prompt.token_ids)


@pytest.mark.parametrize("name", STYLES)
def test_what_is_kept_is_what_other_conversations_share(name: str, markup: Tokenizer) -> None:
    template = template_of(STYLES[name].source, markup)
    prompt, keep = measured(template, keeping(0))
    other = Conversation((*HISTORY[:1], said("user", "something else")), tools=(TOOL,))
    assert prompt.token_ids[:keep] == template.render(other).token_ids[:keep]


def test_nothing_is_kept_and_nothing_rendered_without_a_hint(markup: Tokenizer) -> None:
    prompt = template_of(STYLES["qwen3"].source, markup).render(keeping())
    assert kept_tokens(keeping(), prompt, lambda _: pytest.fail("rendered")) == 0
    last = keeping(0, 5)
    whole = kept_tokens(last, prompt, lambda _: pytest.fail("rendered"))
    assert whole == len(prompt.token_ids)


@pytest.mark.parametrize("places", [(0, 3), (3,), (1, 2, 3)])
def test_only_the_deepest_message_counts(places: tuple[int, ...], markup: Tokenizer) -> None:
    template = template_of(STYLES["qwen3"].source, markup)
    assert measured(template, keeping(*places))[1] == measured(template, keeping(3))[1]


def test_the_generation_prompt_and_an_open_message_are_no_part_of_the_cut(
    markup: Tokenizer,
) -> None:
    source = (
        "{% for m in messages %}{{ m.content }};{% endfor %}"
        "{% if add_generation_prompt %}<{% endif %}"
    )
    template = ChatTemplate(source, markup)
    turns = (said("user", "a", keep=True), said("assistant", "<b"))
    open_ended = Conversation(turns, add_generation_prompt=False, continue_final=True)
    for asked in (Conversation(turns), open_ended):
        prompt, keep = measured(template, asked)
        assert markup.decode(prompt.token_ids[:keep]) == "a;"


def test_a_cut_that_the_template_refuses_is_no_hint(markup: Tokenizer) -> None:
    source = (
        "{% if messages | length == 2 %}{{ raise_exception('no') }}{% endif %}"
        "{% for m in messages %}[{{ m.content }}]{% endfor %}"
    )
    template = ChatTemplate(source, markup)
    turns = [said("user", "a"), said("assistant", "b", keep=True), said("user", "c")]
    assert measured(template, Conversation(tuple(turns)))[1] == 0


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_are_kept_where_the_template_wants_a_user(
    role: Role, markup: Tokenizer
) -> None:
    source = (
        "{% if messages | selectattr('role', 'equalto', 'user') | list | length == 0 %}"
        "{{ raise_exception('no user query') }}{% endif %}"
        "{% for m in messages %}[{{ m.role }} {{ m.content }}]{% endfor %}"
    )
    template = ChatTemplate(source, markup)
    prompt, keep = measured(
        template, Conversation((said(role, "Be kind.", keep=True), said("user", "q")))
    )
    assert markup.decode(prompt.token_ids[:keep]) == "[system Be kind.][user "
