from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.gemma3 import GEMMA3
from engine.dialects.gemma4 import FUNCTIONGEMMA, GEMMA4
from engine.dialects.pieces import Arguments, Closed, Opened
from engine.dialects.registry import choose
from tests.engine.dialects.outputs import read, streamed, tool

Q = '<|"|>'
QUERY = tool(
    "q", refs={"type": "array", "items": {"type": "string"}}, opts="object", n="integer",
    b="boolean", zip="string",
)  # fmt: skip


def call(arguments: str, name: str = "q") -> str:
    return f"<|tool_call>call:{name}{{{arguments}}}<tool_call|>"


@pytest.mark.parametrize("tokens", [True, False])
def test_json_is_mixed_in(tokens: bool) -> None:
    """D128"""
    output = read(
        GEMMA4, call(f'refs:["ds_1",{Q}ds_2{Q}],opts:{{"mode": "fast",@k:1}},n:3,b:true'),
        QUERY, tokens=tokens,
    )  # fmt: skip
    expected = {"refs": ["ds_1", "ds_2"], "opts": {"mode": "fast", "@k": 1}, "n": 3, "b": True}
    assert output.calls == [("q", expected)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (f"{Q}{Q}", ""),
        (f'{Q}a "b" \\n {{c}}, d:e{Q}', 'a "b" \\n {c}, d:e'),
        (f"{Q}<tool_call|>{Q}", "<tool_call|>"),
        ("'ds_1'", "ds_1"),
        ("-0.5", -0.5),
        ("1e+21", 1e21),
        ("None", None),
        ("null", None),
        ("True", True),
        ("New York", "New York"),
        ("[]", []),
        ("[ [1], {} ]", [[1], {}]),
        (f"{{{Q}a b{Q}:1, c d : {Q}e{Q}}}", {"a b": 1, "c d": "e"}),
    ],
)
def test_values(value: str, expected: object) -> None:
    assert read(GEMMA4, call(f"x:{value},y: {value} "), QUERY).calls == [
        ("q", {"x": expected, "y": expected})
    ]


def test_bare_words_are_what_the_schema_says() -> None:
    output = read(GEMMA4, call("zip:02134,refs:[1,true],n:5.0"), QUERY)
    assert output.calls == [("q", {"zip": "02134", "refs": ["1", "true"], "n": 5})]


@pytest.mark.parametrize("end", ["<tool_call|>", "", "\n<tool_call|>"])
@pytest.mark.parametrize("cut", [True, False])
def test_the_end_may_be_missing(end: str, cut: bool) -> None:
    output = read(GEMMA4, "<|tool_call>call:q{n:1}" + end, QUERY, cut=cut)
    assert output.calls == [("q", {"n": 1})]


@pytest.mark.parametrize(
    "text",
    [
        "<|tool_call>call:q no brace<tool_call|>",
        "<|tool_call>call:q{n:1",
        call("n:1,n:2"),
        call("n:{"),
        call("a"),
        call(f"x:{Q}a{Q}b"),
        call("x:" + "[" * 100 + "]" * 100),
        "<|tool_call> begins a call",
    ],
)
def test_what_is_no_call_is_text(text: str) -> None:
    output = read(GEMMA4, text, QUERY)
    assert (output.text, output.calls, output.is_open) == (text, [], False)


def test_text_and_calls_alternate() -> None:
    output = read(GEMMA4, f"a {call('')}{call('n:1')} b", QUERY)
    assert (output.text, output.calls) == ("a  b", [("q", {}), ("q", {"n": 1})])


@pytest.mark.parametrize("tokens", [True, False])
def test_a_thought_is_a_channel(tokens: bool) -> None:
    output = read(GEMMA4, f"<|channel>thought\nHm.\n<channel|>Ha. {call('')}", QUERY, tokens=tokens)
    assert (output.thought, output.text, output.calls) == ("Hm.", "Ha.", [("q", {})])


def test_a_thought_may_begin_in_the_prompt() -> None:
    prompt = "<|turn>model\n<|channel>thought\n"
    assert read(GEMMA4, "Hm.<channel|>Ha.", tail=prompt).thought == "Hm."
    assert read(GEMMA4, "Ha.", tail=prompt + "<channel|>").text == "Ha."


def test_a_call_ends_a_thought() -> None:
    output = read(GEMMA4, f"<|channel>thought\nHm. {call('')}", QUERY)
    assert (output.thought, output.calls) == ("Hm.", [("q", {})])


def test_strings_stream_under_masks() -> None:
    parts = [f"<|tool_call>call:q{{zip:{Q}02", '13"4', f"{Q},n:", "1", "}", "<tool_call|>"]
    said = streamed(GEMMA4, parts, {"q": QUERY})
    assert said[0] == [Opened("q"), Arguments('{"zip": "02')]
    assert said[1:3] == [[Arguments('13\\"4')], [Arguments('"')]]
    assert said[3:] == [[Arguments(', "n": ')], [Arguments("1}")], [Closed()]]


def test_a_cut_call_stays_open() -> None:
    output = read(GEMMA4, f"<|tool_call>call:q{{n:1,zip:{Q}02", QUERY, cut=True)
    assert (output.is_open, output.arguments) == (True, '{"n": 1, "zip": "02')


def test_a_custom_tool_has_its_text() -> None:
    patch = Tool("patch", format=CustomFormat())
    assert read(GEMMA4, call(f"input:{Q}a\nb{Q}", "patch"), patch).calls == [("patch", "a\nb")]


def test_a_custom_tool_that_is_cut_has_what_there_is_of_its_text() -> None:
    patch = Tool("patch", format=CustomFormat())
    output = read(GEMMA4, f'<|tool_call>call:patch{{input:{Q}a "b"\n', patch, cut=True)
    assert (output.is_open, output.arguments) == (True, 'a "b"\n')


def test_function_gemma_has_other_delimiters() -> None:
    output = read(
        FUNCTIONGEMMA,
        "<start_function_call>call:q{zip:<escape>02134<escape>}<end_function_call>",
        QUERY,
    )
    assert output.calls == [("q", {"zip": "02134"})]


# Gemma 3


@pytest.mark.parametrize(
    "calls",
    [
        "[q(n=1), q()]",
        "```tool_code\nq(n=1)\nq()\n```",
        "```tool_code\n[q(n=1), q()]\n```",
        'Let me see.\n```json\n[{"name": "q", "parameters": {"n": 1}}, {"name": "q"}]\n```',
        '{"name": "q", "parameters": {"n": 1}}\n{"name": "q", "parameters": {}}',
    ],
)
def test_calls_as_gemma_3_is_prompted(calls: str) -> None:
    output = read(GEMMA3, calls, QUERY)
    assert output.calls == [("q", {"n": 1}), ("q", {})]
    assert output.text == ("Let me see." if calls.startswith("Let") else "")


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(q(n=1))\n```",
        "```python\nother(n=1)\n```",
        '```json\n{"name": "Alice", "parameters": {}}\n```',
        "Use `q(n=1)`.",
    ],
)
def test_other_code_is_text(text: str) -> None:
    output = read(GEMMA3, text, QUERY)
    assert (output.text, output.calls) == (text, [])


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("<|turn>model <|tool_call>call:", "gemma4"),
        ("<start_of_turn>developer <start_function_call>call:", "functiongemma"),
        ("<start_of_turn>user", "gemma3"),
    ],
)
def test_a_template_tells_the_dialect(template: str, name: str) -> None:
    assert choose(template, (), None).name == name
