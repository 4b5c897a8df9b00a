from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.harmony import HARMONY
from engine.dialects.marks import Marks
from engine.dialects.pieces import Arguments, Closed, Expected, Opened, Said
from engine.events import Channel
from tests.engine.dialects.outputs import read, streamed, tool

F = tool("f", a="integer")
CALL = '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}'
NEXT = "<|end|><|start|>assistant"
PATCH = Tool("patch", format=CustomFormat())
TO_PATCH = "<|channel|>commentary to=functions.patch<|message|>"


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize(
    "header",
    [
        " to=functions.f<|channel|>commentary <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.f<|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.f code<|message|>",
        "<|channel|>analysis to=functions.f<|message|>",
        "<|channel|>commentary<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.f<|channel|>commentary json<|message|>",
        "<|channel|>commentary?? to=functions.f<|message|>",
        "<|channel|>commentary to=f<|message|>",
    ],
)
@pytest.mark.parametrize("end", ["", "<|call|>", "<|end|>"])
def test_headers_of_calls(header: str, end: str, tokens: bool) -> None:
    """D123, D124"""
    output = read(
        HARMONY,
        f'<|channel|>analysis<|message|>need it{NEXT}{header}{{"a": 1}}{end}', F, tokens=tokens,
    )  # fmt: skip
    assert (output.thought, output.text, output.calls) == ("need it", "", [("f", {"a": 1})])


@pytest.mark.parametrize("tokens", [True, False])
def test_a_garbled_header_loses_no_answer(tokens: bool) -> None:
    """D125"""
    output = read(
        HARMONY,
        f"<|channel|>commentary?? text<|message|>hi{NEXT}<|channel|>final<|message|>Answer"
        "<|return|>",
        F, tokens=tokens,
    )  # fmt: skip
    assert (output.text, output.calls) == ("hi\n\nAnswer", [])


@pytest.mark.parametrize(
    ("output", "text", "thought"),
    [
        ("<|channel|>final<|message|>A", "A", ""),
        ("<|channel|>??<|end|><|start|>assistant<|channel|>analysis<|message|>B", "", "B"),
        ("<|channel|>commentary to=assistant<|channel|>analysis<|message|>B", "", "B"),
        ("<|channel|>comment<|message|>A<|end|>", "A", ""),
        ("<|channel|>final<|message|><|message|>A", "A", ""),
        ('<|channel|>final {"a": 1}', ' {"a": 1}', ""),
        ("<|channel|>final", "", ""),
        ("<|channel|>", "", ""),
        ("A", "A", ""),
        ("A long answer without any header is said as soon as it is no header. " * 2, None, ""),
        ("<|channel|>analysis<|message|>B<|end|>A", "A", "B"),
        ("<|channel|>analysis<|message|>B<|channel|>final<|message|>A", "A", "B"),
        ("<|start|>assistant<|channel|>final<|message|>A\n ", "A\n ", ""),
    ],
)
def test_headers_of_text(output: str, text: str | None, thought: str) -> None:
    found = read(HARMONY, output, F)
    assert (found.text, found.thought) == (output if text is None else text, thought)


def test_a_preamble_is_answer() -> None:
    """D126"""
    output = read(
        HARMONY, f"<|channel|>commentary<|message|>I'll check two files.{NEXT}{CALL}<|call|>", F
    )
    assert (output.text, output.thought) == ("I'll check two files.", "")
    assert output.calls == [("f", {"a": 1})]


def test_messages_of_one_kind_are_apart() -> None:
    thought = "<|channel|>analysis<|message|>"
    output = read(HARMONY, f"{thought}a{NEXT}{thought}b{NEXT}<|channel|>final<|message|>c")
    assert (output.thought, output.text) == ("a\n\nb", "c")


@pytest.mark.parametrize(
    ("tail", "thought", "text"),
    [
        ("<|start|>assistant<|channel|>analysis<|message|>", "It", "is"),
        ("<|start|>assistant<|channel|>analysis<|message|>Thus, ", "It", "is"),
        ("<|start|>assistant<|channel|>final<|message|>", "", "It\n\nis"),
        ("<|start|>assistant<|channel|>analysis", "It", "is"),
    ],
)
def test_the_prompt_may_begin_a_message(tail: str, thought: str, text: str) -> None:
    opened = "" if tail.endswith(("<|message|>", " ")) else "<|message|>"
    output = read(HARMONY, f"{opened}It{NEXT}<|channel|>final<|message|>is", tail=tail)
    assert (output.thought, output.text) == (thought, text)


# Calls


def test_without_tools_a_call_is_text() -> None:
    marks = Marks(HARMONY.spellings, {text: n for n, text in enumerate(HARMONY.spellings)})
    parser = HARMONY.parser(marks, Expected(tools=None))
    assert parser.feed(marks.marked(CALL)) == [Said(Channel.TEXT, '{"a": 1}')]


@pytest.mark.parametrize("body", ["", " "])
def test_an_empty_call_has_no_arguments(body: str) -> None:
    for end in ("", "<|call|>"):
        output = read(HARMONY, f"<|channel|>commentary to=functions.f<|message|>{body}{end}", F)
        assert output.calls == [("f", {})]


@pytest.mark.parametrize("body", ['{"a": 1,', "{'a': 1}", "a = 1", "[1]"])
def test_a_malformed_call_is_its_text(body: str) -> None:
    output = read(HARMONY, f"<|channel|>commentary to=functions.f<|message|>{body}<|call|>", F)
    assert (output.text, output.calls) == (body, [])


def test_a_tool_of_the_training_may_be_called_if_it_is_json() -> None:
    header = "<|channel|>analysis to={}<|message|>"
    output = read(HARMONY, header.format("browser.search") + '{"query": "cats"}<|call|>', F)
    assert output.calls == [("browser.search", {"query": "cats"})]
    output = read(HARMONY, header.format("python") + "print(1)<|call|>", F)
    assert (output.text, output.thought, output.calls) == ("", "", [])


def test_text_behind_the_arguments_is_answer() -> None:
    output = read(HARMONY, f"{CALL}\nThat was it.<|end|>", F)
    assert (output.text.strip(), output.calls) == ("That was it.", [("f", {"a": 1})])


def test_arguments_stream_under_masks() -> None:
    said = streamed(HARMONY, [CALL[:-2], "1", "}", "<|call|>"], {"f": F})
    assert said == [
        [Opened("f"), Arguments('{"a": ')],
        [Arguments("1")],
        [Arguments("}"), Closed()],
        [],
    ]


@pytest.mark.parametrize("header", [CALL[:-3], CALL[:-8]])
def test_a_cut_call_stays_open(header: str) -> None:
    output = read(HARMONY, header, F, cut=True)
    has_name = header.endswith('"a":')
    assert (output.is_open, output.text) == (has_name, "")


# Custom tools


@pytest.mark.parametrize("end", ["", "<|call|>"])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("*** Begin Patch\n{\n", "*** Begin Patch\n{\n"),
        ('{"input": "a\\nb"}', "a\nb"),
        ('{"other": 1}', '{"other": 1}'),
        ("{ block }", "{ block }"),
    ],
)
def test_a_custom_tool_has_its_text_bare_or_in_an_object(body: str, text: str, end: str) -> None:
    marks = Marks(HARMONY.spellings, {text: n for n, text in enumerate(HARMONY.spellings)})
    for size in (1, 5, 1000):
        parser = HARMONY.parser(marks, Expected({"patch": PATCH}))
        marked = marks.marked(TO_PATCH + body + end)
        parts = [marked[at : at + size] for at in range(0, len(marked), size)]
        pieces = [piece for part in parts for piece in parser.feed(part)]
        pieces += parser.finish(cut=False)
        assert pieces == [Opened("patch"), Arguments(text), Closed()]


def test_a_cut_object_of_a_custom_tool_says_its_text() -> None:
    output = read(HARMONY, TO_PATCH + '{"input": "a\\nb', PATCH, cut=True)
    assert (output.is_open, output.arguments) == (True, "a\nb")


def test_free_text_streams_under_masks() -> None:
    said = streamed(HARMONY, [f"{TO_PATCH}***", " Begin", "\n{", "<|call|>"], {"patch": PATCH})
    assert said[0] == [Opened("patch"), Arguments("***")]
    assert said[1:] == [[Arguments(" Begin")], [Arguments("\n{")], [Closed()]]
