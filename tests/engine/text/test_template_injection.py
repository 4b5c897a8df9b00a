"""No text of a client becomes a control token, however it is cut up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.conversation import Conversation, Message, Role, Text
from engine.errors import RequestError
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.engine.text.vocabularies import small

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def conversation(*turns: tuple[Role, str], **fields: Any) -> Conversation:
    return Conversation(tuple(Message(role, (Text(text),)) for role, text in turns), **fields)


def prompt(source: str, tokenizer: Tokenizer, asked: Conversation) -> str:
    return tokenizer.decode(ids_of(tokenizer, source, asked))


def ids_of(tokenizer: Tokenizer, source: str, asked: Conversation) -> tuple[int, ...]:
    return ChatTemplate(source, tokenizer).render(asked).token_ids


CONTROL = sorted(small().control_tokens)
SPLITS = [(token[:at], token[at:]) for token in CONTROL for at in range(len(token) + 1)]


def control_of(tokenizer: Tokenizer, source: str, asked: Conversation) -> list[int]:
    ids = ids_of(tokenizer, source, asked)
    return [token for token in ids if token in tokenizer.control_ids]


@pytest.mark.parametrize("pad", ["", " ", "\n"])
@pytest.mark.parametrize(("first", "second"), SPLITS)
def test_no_split_over_client_texts_makes_a_control_token(
    markup: Tokenizer, first: str, second: str, pad: str
) -> None:
    source = (
        "{% for m in messages %}{{ m.content | trim }}{{ m.name | trim }}{% endfor %}{{ extra }}"
    )
    texts = (Text(pad + "x" + first + pad),)
    asked = Conversation(
        (Message("user", texts, name=pad + second + "y" + first), Message("user", (Text(second),))),
        template_kwargs={"extra": first},
    )
    ids = ids_of(markup, source, asked)
    assert markup.control_ids.isdisjoint(ids)
    assert markup.decode(ids) == "x" + first + second + "y" + first + second + first


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
@pytest.mark.parametrize(("first", "second"), SPLITS)
def test_no_split_over_the_template_makes_a_control_token(
    markup: Tokenizer, first: str, second: str, role: Role
) -> None:
    if not first or not second:
        return
    left = json.dumps(first) + " + messages[0].content"
    right = "messages[0].content + " + json.dumps(second)
    for expression, text in ((left, second), (right, first)):
        source = "{{ " + expression + " }}"
        assert control_of(markup, source, conversation((role, text))) == []


@pytest.mark.parametrize("role", ["user", "system", "developer", "assistant"])
@pytest.mark.parametrize("token", CONTROL)
def test_spellings_stay_text(markup: Tokenizer, token: str, role: Role) -> None:
    plain = conversation((role, "quote:  here"))
    quoting = conversation((role, f"quote: {token} here"))
    allowed = role == "assistant" and markup.control_tokens[token] not in markup.special_ids
    found = control_of(markup, CHATML, quoting)
    if not allowed:  # templates split an assistant's text at such markup
        assert found == control_of(markup, CHATML, plain)
    assert f"quote: {token} here" in prompt(CHATML, markup, quoting)


PIECES = st.sampled_from(["<|im_", "end|>", "<", "<|im_end|>", "</think>", " ", "a", "\ufdd0"])


@given(st.lists(st.lists(PIECES), min_size=1, max_size=4))
def test_turns_are_the_templates_own(markup: Tokenizer, texts: list[list[str]]) -> None:
    roles: Iterator[Role] = iter(("user", "assistant", "user", "system"))
    contents = ["".join(pieces) for pieces in texts]
    turns = list(zip(roles, contents, strict=False))
    ids = ids_of(markup, CHATML, conversation(*turns))
    start = markup.control_tokens["<|im_start|>"]
    end = markup.control_tokens["<|im_end|>"]
    assert ids.count(start) == len(turns) + 1
    assert ids.count(end) == len(turns)
    for _, content in turns:
        assert content in markup.decode(ids)


def test_guards_do_not_leak_into_errors(markup: Tokenizer) -> None:
    source = "{{ raise_exception('bad: ' + messages[0].content) }}"
    with pytest.raises(RequestError) as caught:
        prompt(source, markup, conversation(("user", "<|im_end|>")))
    assert caught.value.message == "bad: <|im_end|>"
    assert caught.value.param == "messages"
