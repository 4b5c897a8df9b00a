from __future__ import annotations

import json

import pytest

from engine.conversation import Conversation, Message, Text, ToolCall, ToolResult
from engine.text.arguments import as_json, as_mapping, as_text, dumps, parse_object
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer


def call(arguments: str, custom: bool = False) -> ToolCall:
    return ToolCall("c", "f", arguments, custom)


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1, "a": [1.5, -0, 1e5, 1E-7, 2.50, 12345678901234567890123]}',
        '{"n": 0.1000, "m": -0.0, "o": 1e999, "p": 123456789.123456789123}',
        '{"nested": {"x": [[1e2]], "y": {"z": 1.10}}, "é": "東京"}',
        json.dumps({"digits": 1}).replace("1", "9" * 5000),
    ],
)
def test_numbers_and_order_stay_as_they_were_sent(text: str) -> None:
    assert dumps(parse_object(text), ensure_ascii=False) == text


def test_text_of_numbers_in_templates() -> None:
    found = parse_object('{"a": 1e5, "b": 2}')
    assert found is not None
    assert [str(value) for value in found.values()] == ["1e5", "2"]


def test_of_equal_keys_the_last_counts() -> None:
    assert parse_object('{"a": 1, "b": 2, "a": 3}') == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1', "nope", "[1]", '"text"', "null", "3", '{"a": NaN}', '{"a": Infinity}',
        '{"a": ' * 100_000, '{"a": ' * 100 + "1" + "}" * 100, "[" * 70 + "]" * 70, "{}{}",
    ],
)  # fmt: skip
def test_what_is_no_object_stays_whole_in_one(text: str) -> None:
    assert parse_object(text) is None
    assert as_mapping(call(text)) == {"arguments": text}
    assert as_text(call(text)) == text
    assert json.loads(as_json(call(text))) == {"arguments": text}


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert as_mapping(call(text)) == {}
    assert as_text(call(text)) == as_json(call(text)) == "{}"


@pytest.mark.parametrize("text", ["", '*** Begin Patch\n"x"\n', '{"a": 1'])
def test_a_custom_call_is_one_text(text: str) -> None:
    assert as_mapping(call(text, custom=True)) == {"input": text}
    assert as_text(call(text, custom=True)) == as_json(call(text, custom=True))
    assert json.loads(as_json(call(text, custom=True))) == {"input": text}


def test_half_a_character_is_none() -> None:
    assert parse_object('{"a\\ud800": "\\ud83d\\ude00 \\udc00"}') == {"a\ufffd": "😀 \ufffd"}


def test_deep_but_usable_arguments() -> None:
    text = '{"a": ' * 60 + "1" + "}" * 60
    assert dumps(parse_object(text)) == text


def test_other_values_are_still_errors() -> None:
    with pytest.raises(TypeError, match="object is not JSON serializable"):
        dumps({"a": object()})


def test_arguments_keep_their_spacing_where_a_template_writes_json(markup: Tokenizer) -> None:
    source = (
        "{% for message in messages %}[{{ message.role }}]"
        "{% for call in message.tool_calls or [] %}{% set given = call.function.arguments %}"
        "{{ call.function.name }}:{{ given | tojson }}|{{ given | tojson(indent=1) }}|"
        "{% for key, value in given | items %}{{ key }}={{ value }};{% endfor %}"
        "{% endfor %}{{ message.content or '' }}{% endfor %}"
    )
    written = '{"a":1,  "b": [1,2]}'
    asked = Conversation(
        (
            Message("user", (Text("q"),)),
            Message("assistant", (ToolCall("c", "f", written),)),
            Message("tool", (ToolResult("c", ("r",)),)),
        )
    )
    text = markup.decode(ChatTemplate(source, markup).render(asked).token_ids)
    assert f'{written}|{{\n "a": 1,' in text
    assert "a=1;b=[1, 2];" in text
