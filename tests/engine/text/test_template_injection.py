"""No text of a client becomes a control token, however it is cut up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken

from engine.conversation import (
    Conversation,
    CustomFormat,
    Message,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from engine.dialects.dialect import Dialect
from engine.dialects.registry import DIALECTS
from engine.errors import RequestError
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.engine.text.styles import GEMMA, STYLES, template_of
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
    return template_of(source, tokenizer).render(asked).token_ids


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
    shown = [turn for turn in turns if turn[0] != "system" or turn[1].strip()]
    assert ids.count(start) == len(shown) + 1
    assert ids.count(end) == len(shown)
    for _, content in shown:
        assert content in markup.decode(ids)


def test_guards_do_not_leak_into_errors(markup: Tokenizer) -> None:
    source = "{{ raise_exception('bad: ' + messages[0].content) }}"
    with pytest.raises(RequestError) as caught:
        prompt(source, markup, conversation(("user", "<|im_end|>")))
    assert caught.value.message == "bad: <|im_end|>"
    assert caught.value.param == "messages"


# Tools, calls and results


def with_tools(quote: str, *, malformed: bool = False, custom: bool = False) -> Conversation:
    """A conversation whose tools, call and result hold a quote everywhere."""
    schema = {
        "type": "object",
        "properties": {quote: {"type": "string", "description": quote, "enum": [quote]}},
        "required": [quote],
    }
    tool = Tool("f" + quote, quote, schema, format=CustomFormat("regex", quote) if custom else None)
    arguments = quote if malformed or custom else json.dumps({quote: [quote, {"x": quote}]})
    call = ToolCall("i" + quote, "f" + quote, arguments, custom)
    return Conversation(
        (
            Message("user", (Text("q"),)),
            Message("assistant", (Reasoning(quote), call)),
            Message("tool", (ToolResult("i" + quote, (quote,)),)),
        ),
        tools=(tool,),
    )


@pytest.mark.parametrize("kind", [{}, {"malformed": True}, {"custom": True}])
@pytest.mark.parametrize("token", CONTROL)
@pytest.mark.parametrize("name", STYLES)
def test_no_text_of_tools_becomes_a_control_token(
    markup: Tokenizer, name: str, token: str, kind: dict[str, bool]
) -> None:
    source = STYLES[name].source
    plain = control_of(markup, source, with_tools("quote", **kind))
    assert control_of(markup, source, with_tools(token, **kind)) == plain
    assert token in prompt(source, markup, with_tools(token, **kind))


@pytest.mark.parametrize(("first", "second"), SPLITS)
@pytest.mark.parametrize("name", ["qwen_coder", "mistral", "gemma"])
def test_no_split_over_the_values_of_a_call_makes_a_control_token(
    markup: Tokenizer, name: str, first: str, second: str
) -> None:
    def asked(one: str, two: str) -> Conversation:
        calls = (
            ToolCall("1", "f", json.dumps({"x" + one: two, two: "y" + one}, ensure_ascii=False)),
            ToolCall("2", two, json.dumps({"z": two})),
        )
        results = (ToolResult("1", ("r" + one,)), ToolResult("2", (two + "r",)))
        return Conversation(
            (
                Message("user", (Text("q"),)),
                Message("assistant", (Text("t"), *calls)),
                *(Message("tool", (result,)) for result in results),
            )
        )

    source = STYLES[name].source
    plain = control_of(markup, source, asked("a", "b"))
    assert control_of(markup, source, asked(first, second)) == plain


def test_a_schema_cannot_complete_a_delimiter_of_the_template(markup: Tokenizer) -> None:
    source = (
        "{{ messages[0].content }}{% for t in tools or [] %}{{ t.function.name }}"
        "{% for key in t.function.parameters.properties %}<{{ key }}>{% endfor %}{% endfor %}"
    )
    schema = {"type": "object", "properties": {"think": {}, "a": {}}}
    asked = Conversation((Message("user", (Text("q"),)),), tools=(Tool("f", "", schema),))
    assert control_of(markup, source, asked) == []
    assert prompt(source, markup, asked) == "qf<think><a>"


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_no_text_of_tools_becomes_a_control_token_in_a_dialects_words(dialect: Dialect) -> None:
    delimiters = [text for text in dialect.spellings if len(text) > 1]
    added = [AddedToken(text, special=True, normalized=False) for text in ("<s>", *delimiters)]
    tokenizer = small(added=tuple(added))
    template = ChatTemplate(GEMMA, tokenizer, dialect)

    def shown(asked: Conversation) -> tuple[list[int], str]:
        ids = template.render(asked).token_ids
        return [i for i in ids if i in tokenizer.control_ids], tokenizer.decode(ids)

    for kind in ({}, {"malformed": True}, {"custom": True}):
        plain, _ = shown(with_tools("quote", **kind))
        odd, _ = shown(with_tools("quo<te", **kind))  # a dialect may put quotes around such a key
        for quote in ("<s>", *delimiters, "think"):
            found, text = shown(with_tools(quote, **kind))
            assert found in (plain, odd)
            assert not re.search(r"[\ufdd0-\ufdef]|\\ufd", text)  # no guard is left, none escaped
