"""Constraints that are not schemas, and what becomes of errors."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from engine.errors import RequestError
from engine.grammar import compile as compiling
from engine.grammar.compile import grammar_of
from engine.types import OutputConstraint
from tests.engine.grammar.drive import accepts

Kind = Literal["json_object", "json_schema", "regex", "lark", "choice"]


def grammar(kind: Kind, source: str = "") -> str:
    return grammar_of(OutputConstraint(kind, source, "structured_outputs"))


def refusal(kind: Kind, source: str) -> str:
    with pytest.raises(RequestError) as caught:
        grammar(kind, source)
    assert (caught.value.param, caught.value.code) == ("structured_outputs", "invalid_grammar")
    return caught.value.message


def test_a_json_object_is_an_object() -> None:
    for text in ("{}", '{"a": [1, {"b": null}],\n  "c": "\\u00e9"}'):
        assert accepts(grammar("json_object"), text)
    for text in ("1", "[]", '"a"', " {}", "{} ", '{"a":  1}', '{"a":\t1}'):
        assert not accepts(grammar("json_object"), text)


@pytest.mark.parametrize(
    ("expression", "good", "bad"),
    [
        ("a|b", ["a", "b"], ["ab", ""]),
        ("^a+$", ["aa"], ["ab"]),
        (r"\d{4}-\d\d", ["2026-11"], ["26-11"]),
        ("[^a]/\\w", ["日/x"], ["a/x"]),
        (r"<\|im_end\|>", ["<|im_end|>"], [""]),
        ("a\nb", ["a\nb"], ["ab"]),
        ("(?s).*", ["", "a\n"], []),
    ],
)
def test_a_regular_expression_matches_the_whole_answer(
    expression: str, good: list[str], bad: list[str]
) -> None:
    made = grammar("regex", expression)
    assert all(accepts(made, text) for text in good)
    assert not any(accepts(made, text) for text in bad)


@pytest.mark.parametrize(
    ("expression", "named"),
    [("(?=a)b", "look-around"), (r"(a)\1", "backreference"), ("[", "unclosed"),
     (r"\bfoo", "lookaround"), ("a" * 70_000, "longer than")],
)  # fmt: skip
def test_an_expression_that_cannot_be_enforced_is_refused(expression: str, named: str) -> None:
    message = refusal("regex", expression)
    assert named in message
    assert "\n" not in message
    assert len(message) < 600


def test_a_choice_is_one_of_the_texts_exactly() -> None:
    choices = ["yes", "yes please", 'a"b\\', "日本\n", "/x|y/", "\u0001<s>"]
    made = grammar("choice", json.dumps(choices))
    for text in choices:
        assert accepts(made, text), text
    for text in ("ye", "yes ", "x", "", "yesyes"):
        assert not accepts(made, text), text


@pytest.mark.parametrize("choices", [[], [""], [1], ["a"] * 5000])
def test_choices_that_are_none_are_refused(choices: list[object]) -> None:
    assert "choices" in refusal("choice", json.dumps(choices))


LARK = """
start: greeting (" " NAME)+ // <[5]> in a comment is text
greeting: "hello" | "<s>" | /x{1,3}/   # and %json here
NAME: /[a-z]+/
"""


def test_a_lark_grammar_works_as_given() -> None:
    made = grammar("lark", LARK)
    assert accepts(made, "hello bob eve")
    assert accepts(made, "<s> bob")
    assert not accepts(made, "hello")


def test_codex_patches_compile() -> None:
    made = grammar(
        "lark",
        'start: begin hunk+ end\nbegin: "*** Begin Patch" LF\nend: "*** End Patch" LF?\n'
        'hunk: "*** Add File: " filename LF add_line+ -> add_hunk\nfilename: /(.+)/\n'
        'add_line: "+" /(.*)/ LF -> line\n%import common.LF\n',
    )
    assert accepts(made, "*** Begin Patch\n*** Add File: a.py\n+x = 1\n*** End Patch")


def test_schemas_inside_lark_are_checked_and_bounded_too() -> None:
    made = grammar("lark", 'start: "x" %json {"type": "object", "required": ["a"]} "y"')
    assert accepts(made, 'x{"a": 1}y')
    assert not accepts(made, "x{}y")
    assert not accepts(made, 'x{"a":   1}y')
    message = refusal("lark", 'start: %json {"type": "array", "items": {"uniqueItems": true}}')
    assert "'uniqueItems'" in message
    assert "#/items/uniqueItems" in message


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("start: <|im_end|>", "<|im_end|>"),
        ('start: "a" <[5]>', "<[5]>"),
        ("start: <[*]>", "<[*]>"),
        ('%llguidance {"no_forcing": true}\nstart: "a"', "%llguidance"),
        ("start: @other", "@other"),
        ('start[stop="x"]: /a*/', "stop"),
        ("start[max_tokens=3]: /a*/", "max_tokens"),
        ("start[temperature=0.5]: /a*/", "temperature"),
        ("start: nothing", "nothing"),
        ("start: %json [", "%json"),
        ("start: /(?=a)b/", "look-around"),
        ("x: /a/", "start"),
        ("start: start", "no text"),
        ("", "start"),
        ('start: "' + "x" * 70_000 + '"', "longer than"),
        ("start: r0\n" + "\n".join(f'r{at}: "a" r{at + 1}' for at in range(3000)), "more than"),
        ("start: " + "(" * 500 + '"a"' + ")" * 500, "nested"),
        ('{"grammars": [{"json_schema": {}}]}', "expecting rule"),
    ],
)
def test_lark_that_cannot_be_enforced_is_refused(source: str, named: str) -> None:
    assert named in refusal("lark", source)


def test_a_panic_of_the_library_is_the_grammars_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(*_: object, **__: object) -> None:
        raise PanicException("unwrap on None")

    monkeypatch.setattr(compiling, "LLMatcher", panic)
    assert compiling.error_of("x") == "unwrap on None"


def test_an_interrupt_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compiling, "LLMatcher", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compiling.error_of("x")
