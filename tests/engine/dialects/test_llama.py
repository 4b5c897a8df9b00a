from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.llama_json import LLAMA_JSON
from engine.dialects.marks import Marks
from engine.dialects.pieces import Arguments, Closed, Expected, Opened, Said
from engine.dialects.pythonic import PYTHONIC
from engine.dialects.registry import choose
from engine.events import Channel
from tests.engine.dialects.outputs import read, streamed, tool

WEATHER = '{"name": "get_weather", "parameters": {"city": "Oslo"}}'
TOOLS = (tool("get_weather", city="string"), tool("get_time"))


# What is a call


@pytest.mark.parametrize("tokens", [True, False])
def test_semicolons_separate_calls_but_not_strings(tokens: bool) -> None:
    """D112"""
    output = read(
        LLAMA_JSON,
        '<|python_tag|>{"name":"w","parameters":{"q":"a;b"}}; '
        '{"name":"t","arguments":{"tz":"EST"}}',
        tool("w", q="string"), tool("t", tz="string"), tokens=tokens,
    )  # fmt: skip
    assert output.calls == [("w", {"q": "a;b"}), ("t", {"tz": "EST"})]
    assert output.text == ""


@pytest.mark.parametrize(
    "text",
    [
        'Here is a user: {"name": "Alice", "age": 3}',
        '{"name": "Alice", "age": 3}',
        '{"name": "get_user"}',
        '{"type": "function", "parameters": {"a": 1}}',
        f"To look that up, write {WEATHER} on its own.",
        f"{WEATHER} is how a call looks.",
        f"So:\n\n{WEATHER}\n\nis how a call looks.",
        f"For example:\n```json\n{WEATHER}\n```",
        'Users:\n{"name": "other", "parameters": {"id": 1}}',
    ],
)
def test_json_in_prose_is_no_call(text: str) -> None:
    """D113"""
    output = read(LLAMA_JSON, text, tool("get_user"), *TOOLS)
    assert (output.text, output.calls, output.is_open) == (text, [], False)


@pytest.mark.parametrize("text", ["", "I will look.\n\n", "I will look: "])
def test_a_declared_call_may_end_the_answer(text: str) -> None:
    output = read(LLAMA_JSON, text + WEATHER, *TOOLS)
    assert output.calls == [("get_weather", {"city": "Oslo"})]
    assert output.text == text.rstrip()


def test_text_may_follow_a_call_on_a_line_of_its_own() -> None:
    output = read(LLAMA_JSON, f"{WEATHER}\nI have asked for it.", *TOOLS)
    assert output.calls == [("get_weather", {"city": "Oslo"})]
    assert output.text == "\nI have asked for it."


def test_an_undeclared_tool_is_called_where_the_answer_begins() -> None:
    output = read(LLAMA_JSON, '{"name": "other", "parameters": {}}', *TOOLS)
    assert output.calls == [("other", {})]


@pytest.mark.parametrize("separator", ["; ", ";", "\n", "\n\n", ""])
def test_calls_follow_each_other(separator: str) -> None:
    output = read(LLAMA_JSON, WEATHER + separator + WEATHER, *TOOLS)
    assert output.calls == [("get_weather", {"city": "Oslo"})] * 2
    assert output.text == ""


def test_calls_may_be_in_a_list() -> None:
    output = read(LLAMA_JSON, f"[{WEATHER}, {WEATHER}]", *TOOLS)
    assert output.calls == [("get_weather", {"city": "Oslo"})] * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<|python_tag|>import math", "import math"),
        ("Hi <|python_start|>there<|python_end|>", "Hi there"),
    ],
)
def test_a_tag_without_a_call_is_no_text(text: str, said: str) -> None:
    output = read(LLAMA_JSON, text, *TOOLS)
    assert (output.text, output.calls) == (said, [])


def test_the_tools_of_llama_training_are_called_with_a_method() -> None:
    output = read(LLAMA_JSON, '<|python_tag|>brave_search.call(query="cats")', *TOOLS)
    assert output.calls == [("brave_search", {"query": "cats"})]


def test_without_tools_there_are_no_calls() -> None:
    marks = Marks(LLAMA_JSON.spellings, {})
    parser = LLAMA_JSON.parser(marks, Expected(tools=None))
    assert parser.feed(WEATHER) == [Said(Channel.TEXT, WEATHER)]


# Ends


def test_a_call_that_a_limit_cuts_stays_open() -> None:
    text = '{"name": "get_weather", "parameters": {"city": "Os'
    output = read(LLAMA_JSON, text, *TOOLS, cut=True)
    assert (output.is_open, output.arguments, output.text) == (True, '{"city": "Os', "")


def test_an_answer_that_a_limit_cuts_is_kept() -> None:
    text = '{"name": "Alice", "biography": "She was'
    output = read(LLAMA_JSON, text, *TOOLS, cut=True)
    assert (output.is_open, output.text) == (False, text)


def test_a_call_without_an_end_is_text() -> None:
    text = '{"name": "get_weather", "parameters": {"city": "Os'
    assert read(LLAMA_JSON, text, *TOOLS).text == text


def test_arguments_stream_under_masks() -> None:
    parts = ['{"name": "get_weather", "param', 'eters": {"ci', 'ty": "O', 'slo"}', "}"]
    said = streamed(LLAMA_JSON, parts, {"get_weather": TOOLS[0]})
    assert said[1] == [Opened("get_weather"), Arguments('{"ci')]
    assert said[2:4] == [[Arguments('ty": "O')], [Arguments('slo"}')]]
    assert said[4] == [Closed()]


def test_a_custom_tool_has_its_text() -> None:
    patch = Tool("patch", format=CustomFormat())
    output = read(LLAMA_JSON, '{"name": "patch", "parameters": {"input": "a\\nb"}}', patch)
    assert output.calls == [("patch", "a\nb")]


# Python


def test_values_of_python_nest() -> None:
    """D114"""
    output = read(
        PYTHONIC,
        '[search(queries=["a b", "c"], opts={"k": [1, 2], "deep": True}, n=None)]',
        tool("search"),
    )
    expected = {"queries": ["a b", "c"], "opts": {"k": [1, 2], "deep": True}, "n": None}
    assert output.calls == [("search", expected)]


@pytest.mark.parametrize("tokens", [True, False])
def test_the_list_may_stand_between_tags(tokens: bool) -> None:
    output = read(
        PYTHONIC,
        "Sure. <|python_start|>[get_weather(city='Oslo'), get_time()]<|python_end|>",
        *TOOLS, tokens=tokens,
    )  # fmt: skip
    assert output.calls == [("get_weather", {"city": "Oslo"}), ("get_time", {})]
    assert output.text == "Sure."


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it\\'s'", "it's"),
        ('"a\\nb\\t\\u00e9\\x41"', "a\nb\té" + "A"),
        ('"\\ud83d\\ude00"', "😀"),
        ('"C:\\\\new\\d"', "C:\\new\\d"),
        ('"""a "b"\nc"""', 'a "b"\nc'),
        ("''", ""),
        ('"<|python_end|>] )"', "<|python_end|>] )"),
        ("-1.5e-3", -0.0015),
        ("+7", 7),
        ("true", True),
        ("null", None),
        ("(1, 2)", [1, 2]),
        ("[]", []),
        ("[1, 2,]", [1, 2]),
        ("{'a': {}, \"b\": [None]}", {"a": {}, "b": [None]}),
        ("{1: 'one', True: 'yes'}", {"1": "one", "true": "yes"}),
    ],
)
def test_values_of_python(literal: str, value: object) -> None:
    output = read(PYTHONIC, f"[f(a={literal}, b = {literal} )]", tool("f"))
    assert output.calls == [("f", {"a": value, "b": value})]


@pytest.mark.parametrize(
    "text",
    [
        "[f(x)](https://example.com) is a link",
        "[f(a=1), and so on]",
        "[f(a=1)] is the list",
        "[f(a=b)]",
        "[f(a=1, a=2)]",
        "[f(a=1e999)]",
        "[f(1)]",
        "Write:\n[other(a=1)]",
        "In text [f(a=1)] is a call.",
        "In text [other(a=1)]",
        "[f(a=" + "[" * 500,
    ],
)
def test_what_is_no_call_of_python_is_text(text: str) -> None:
    output = read(PYTHONIC, text, tool("f"))
    assert (output.text, output.calls, output.is_open) == (text, [], False)


def test_an_argument_is_said_when_it_is_whole() -> None:
    parts = ["[f(a=1", ", b='x", "y'", ", c={", "'d': 1})", ", f()]"]
    said = streamed(PYTHONIC, parts, {"f": tool("f")})
    assert said[0] == [Opened("f"), Arguments('{"a": ')]
    assert said[1] == [Arguments('1, "b": ')]
    assert said[2] == [Arguments('"xy"')]
    assert said[3] == [Arguments(', "c": ')]
    assert said[4] == [Arguments('{"d": 1}}')]
    assert said[5] == [Closed(), Opened("f"), Arguments("{}"), Closed()]


def test_a_custom_tool_of_python_has_its_text() -> None:
    patch = Tool("patch", format=CustomFormat())
    assert read(PYTHONIC, "[patch(input='a b')]", patch).calls == [("patch", "a b")]


# Which checkpoints


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("<|start_header_id|>... '\"parameters\": ' ...", "llama_json"),
        ("<|header_start|>... '<|python_start|>' ... '\"parameters\": '", "llama_json"),
        ("<|header_start|>... [func_name1(param1=value1)]", "pythonic"),
        ("<|start_header_id|>assistant", "hermes"),
    ],
)
def test_a_template_tells_the_dialect(template: str, name: str) -> None:
    assert choose(template, (), None).name == name


def test_text_is_said_as_it_comes() -> None:
    said = streamed(LLAMA_JSON, ["Hello {", "world}"], {"get_time": TOOLS[1]})
    assert said == [[Said(Channel.TEXT, "Hello")], [Said(Channel.TEXT, " {world}")]]
