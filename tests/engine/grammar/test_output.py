"""One grammar for a whole output, walked token by token over the hermes dialect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.conversation import CustomFormat, Tool, ToolChoice
from engine.dialects.hermes import HERMES
from engine.dialects.llama_json import LLAMA_JSON
from engine.errors import RequestError
from engine.grammar.form import OutputForm
from engine.grammar.output import OutputGrammar, output_grammar
from engine.types import OutputConstraint
from tests.engine.grammar.outputs import OTHER, Outputs

INT: dict[str, Any] = {"type": "integer"}
ADD = Tool(
    "add", parameters={"type": "object", "properties": {"a": INT}, "required": ["a"],
                       "additionalProperties": False}, strict=True, param="tools[0]",
)  # fmt: skip
LOOSE = Tool("look_up", parameters={"type": "object", "properties": {"q": INT}}, param="tools[1]")
REQUIRED, NONE = ToolChoice("required"), ToolChoice("none")
ANSWER = OutputConstraint("json_schema", '{"type": "object", "required": ["x"]}', "response_format")
TOKENS, TEXTS = Outputs(HERMES), Outputs(HERMES, has_tokens=False)
BOTH = pytest.mark.parametrize("outputs", [TOKENS, TEXTS], ids=["tokens", "texts"])


def call(name: str = "add", arguments: str = '{"a": 1}') -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def made(form: OutputForm) -> OutputGrammar:
    grammar = output_grammar(form)
    assert grammar is not None
    return grammar


def text_of(outputs: Outputs, tools: tuple[Tool, ...] = (ADD, LOOSE), **known: Any) -> str:
    return made(outputs.form(tools, **known)).text


def check(outputs: Outputs, grammar: str, good: list[str], bad: list[str]) -> None:
    for text in good:
        assert outputs.accepts(grammar, text), (text, outputs.refused_at(grammar, text))
    for text in bad:
        assert not outputs.accepts(grammar, text), text


# auto


@BOTH
def test_text_is_free_until_a_call_begins(outputs: Outputs) -> None:
    grammar = text_of(outputs)
    check(
        outputs, grammar,
        ["", 'say "hi" <b>\n{"name": "add"', f"I add:\n{call()}", call("look_up", '{"any": [1]}'),
         f"{call()}\n{call('look_up', '{}')}", "<think>why\n</think>\n\nso " + call(),
         f"a{OTHER}b", f"{OTHER}{call()}"],
        [f"{call()} and more", call(arguments='{"b": 1}'), call(arguments="[]"),
         call("look_up", "1"), f"x{call()[:-1]}", call(arguments='{"a":' + " " * 30 + "1}")],
    )  # fmt: skip


def test_the_opener_begins_a_call_and_is_no_text() -> None:
    grammar = text_of(TOKENS)
    matcher = TOKENS.matcher(grammar)
    opener, closer = (TOKENS.marks.tokens[text] for text in ("<tool_call>", "</tool_call>"))
    allowed = TOKENS.allowed(matcher)
    assert {opener, TOKENS.end, TOKENS.other, *TOKENS.ids("<think></think>")} <= allowed
    assert closer not in allowed
    assert matcher.consume(opener)
    texts = {TOKENS.tokenizer.token_bytes(token) for token in TOKENS.allowed(matcher)}
    assert texts == {b"\n", b"{", b'{"'}
    for text in ("<tool_call> is my tag", "<tool_call>{}", call("ad d")):
        assert not TOKENS.accepts(grammar, text)


@pytest.mark.parametrize("name", ["nope", "ad", "adder", "add.2", "look-up"])
def test_an_undeclared_name_is_possible_beside_tools_that_are_not_strict(name: str) -> None:
    assert TOKENS.accepts(text_of(TOKENS), call(name, '{"b": 1}'))
    assert not TOKENS.accepts(text_of(TOKENS, (ADD,)), call(name, '{"b": 1}'))
    assert not TOKENS.accepts(text_of(TOKENS, choice=REQUIRED), call(name, '{"b": 1}'))
    assert not TOKENS.accepts(text_of(TOKENS, constrain="declared"), call(name, '{"b": 1}'))
    names = ToolChoice("auto", frozenset(("look_up",)))
    assert not TOKENS.accepts(text_of(TOKENS, choice=names), call(name, '{"b": 1}'))


def test_prose_about_calls_stays_prose_where_calls_are_text() -> None:
    grammar = text_of(TEXTS)
    quoted = 'Write <tool_call>{"name": ...}</tool_call>, <tool_call>\n{"name": "nope"} or </think>'
    assert TEXTS.accepts(grammar, quoted)
    matcher = TEXTS.matcher(grammar)
    assert TEXTS.fed(matcher, f'{quoted} <tool_call>\n{{"name": "add"')
    assert TEXTS.allowed(matcher) == set(TEXTS.ids(","))


def test_a_header_in_a_thought_begins_nothing() -> None:
    outputs = Outputs(LLAMA_JSON)
    known: dict[str, Any] = {
        "think_open": OTHER,
        "think_close": OTHER,
        "others": (),
        "tokens": {OTHER: outputs.other},
    }
    head = '{"name": "add", "parameters": '
    for in_thought in (True, False):
        grammar = text_of(outputs, **known, in_thought=in_thought)
        opened = "" if in_thought else OTHER
        check(outputs, grammar, [f"{opened}x {head}", f"{opened}{head}{OTHER}hi"],
              [f"{opened}{OTHER}hi {head}"])  # fmt: skip
        assert outputs.accepts(grammar, f'{opened}{head}{OTHER}hi {head}{{"a": 1}}}}')


@BOTH
def test_one_call_ends_the_turn_where_calls_are_not_parallel(outputs: Outputs) -> None:
    grammar = text_of(outputs, parallel=False)
    matcher = outputs.matcher(grammar)
    assert outputs.fed(matcher, "ok " + call())
    assert matcher.is_finished
    assert outputs.allowed(matcher) == {outputs.end}
    again = outputs.matcher(text_of(outputs))
    assert outputs.fed(again, call())
    assert again.may_end
    assert not again.is_finished


def test_what_needs_no_grammar_has_none() -> None:
    for form in (
        TOKENS.form(), TOKENS.form(in_thought=True), TOKENS.form(choice=NONE),
        TOKENS.form((ADD,), constrain="off"), TEXTS.form((ADD,), choice=NONE),
        TOKENS.form((ADD,), calls=None),
    ):  # fmt: skip
        assert output_grammar(form) is None


def test_the_same_form_is_made_once() -> None:
    assert made(TOKENS.form((ADD,))) is made(TOKENS.form((ADD,)))


# none, required, named


def test_no_call_can_begin_where_none_may_be_made() -> None:
    grammar = text_of(TOKENS, choice=NONE)
    check(TOKENS, grammar, ["", f"<think>a</think>b{OTHER}"], [call(), "<tool_call>"])


@BOTH
@pytest.mark.parametrize("constrain", ["strict", "declared", "off"])
def test_a_required_call_is_made(outputs: Outputs, constrain: str) -> None:
    grammar = text_of(outputs, choice=REQUIRED, constrain=constrain)
    check(
        outputs, grammar,
        [call(), f"\n\n{call()}", f"<think>so\n\n{{x</think>\n\n{call()}\n{call()}"],
        ["", "no", f"I add {call()}", "<think>a</think>", f"<think>a</think>b{call()}",
         call("nope"), "<think>a"],
    )  # fmt: skip
    assert outputs.accepts(grammar, call(arguments='{"b": 1}')) is (constrain == "off")


@BOTH
def test_a_named_tool_is_called(outputs: Outputs) -> None:
    grammar = text_of(outputs, choice=ToolChoice("required", frozenset(("look_up",))))
    check(outputs, grammar, [call("look_up", "{}")], [call()])


@BOTH
def test_a_thought_that_the_prompt_has_opened_is_kept(outputs: Outputs) -> None:
    grammar = text_of(outputs, choice=REQUIRED, in_thought=True)
    check(outputs, grammar, [f"so</think>\n\n{call()}", f"</think>{call()}"], ["so", "so</think>"])
    # Qwen ends thoughts with the opener alone: only a token is certain not to be a part of them.
    assert outputs.accepts(grammar, f"so {call()}") is (outputs is TOKENS)


def test_a_token_ends_a_thought_whose_own_end_is_text() -> None:
    known: dict[str, Any] = {"think_open": "[T]", "think_close": "[/T]"}
    grammar = text_of(TOKENS, choice=REQUIRED, in_thought=True, **known)
    check(TOKENS, grammar, [f"so[/T] {call()}", f"a[/T{call()}"], ["so[/T]", f"a[/T]b{call()}"])


def test_a_model_that_does_not_think_calls_at_once() -> None:
    known: dict[str, Any] = {"think_open": None, "think_close": None}
    grammar = text_of(TOKENS, choice=REQUIRED, **known)
    check(TOKENS, grammar, [call()], [f"<think>a</think>{call()}"])
    assert not TOKENS.accepts(text_of(TOKENS, **known), "<think>a</think>")


def test_declared_constrains_what_it_can() -> None:
    odd = Tool("odd", parameters={"type": "object", "properties": {"a": {"not": {}}}})
    grammar = text_of(TOKENS, (LOOSE, odd), constrain="declared")
    check(TOKENS, grammar, [call("look_up", '{"q": 1}'), call("odd", '{"a": 1}')],
          [call("look_up", '{"q": "x"}')])  # fmt: skip


# an answer that has a format


@BOTH
def test_the_answer_has_its_format_behind_a_thought(outputs: Outputs) -> None:
    grammar = text_of(outputs, (), answer=ANSWER)
    check(
        outputs, grammar,
        ['{"x": 1}', '<think>a {"</think>\n\n{"x": 1}'],
        ["", "{}", "hi", '<think>a</think>hi {"x": 1}', '{"x": 1} ok', "<think>a", call()],
    )  # fmt: skip
    matcher = outputs.matcher(grammar)
    assert outputs.fed(matcher, '{"x": 1}')
    assert matcher.is_finished
    opened = text_of(outputs, (), answer=ANSWER, in_thought=True)
    check(outputs, opened, ['so</think>{"x": 1}'], ['{"x": 1}', "so</think>"])


@BOTH
def test_calls_stay_possible_beside_a_format(outputs: Outputs) -> None:
    grammar = text_of(outputs, answer=ANSWER)
    check(
        outputs, grammar,
        ['{"x": 1}', call(), f'<think>a</think>\n{call()}\n{call("look_up", "{}")}',
         '<think>a</think>{"x": 1}'],
        ["hi", f"hi {call()}", '{"x": 1}' + call(), call(arguments="{}")],
    )  # fmt: skip
    required = text_of(outputs, answer=ANSWER, choice=REQUIRED)
    check(outputs, required, [call()], ['{"x": 1}'])
    none = text_of(outputs, answer=ANSWER, choice=NONE)
    check(outputs, none, ['{"x": 1}'], [call()])


@pytest.mark.parametrize(
    ("kind", "source", "good", "bad"),
    [
        ("json_object", "", '{"a": 1}', "[]"),
        ("regex", "[a-c]+\n/", "abc\n/", "d"),
        ("lark", 'start: "a" B\nB: "b"\n%ignore " "', "a b", "ba"),
        ("choice", '["yes", "no\\n"]', "no\n", "yesno\n"),
    ],
)
def test_every_kind_of_format(kind: Any, source: str, good: str, bad: str) -> None:
    answer = OutputConstraint(kind, source, "structured_outputs")
    grammar = text_of(TOKENS, (ADD,), answer=answer)
    check(TOKENS, grammar, [good, f"<think>x</think>{good}", call()], [bad, ""])


# what cannot be enforced


def refusal(form: OutputForm) -> RequestError:
    with pytest.raises(RequestError) as caught:
        output_grammar(form)
    return caught.value


def test_a_bad_format_is_refused_in_its_own_name() -> None:
    answer = OutputConstraint("json_schema", '{"not": {}}', "response_format")
    error = refusal(TOKENS.form((ADD,), answer=answer))
    assert (error.param, error.code) == ("response_format", "invalid_schema")
    assert "'not'" in error.message


@pytest.mark.parametrize(
    ("bad", "code", "named"),
    [
        (Tool("b", parameters={"not": {}}, strict=True), "invalid_schema", "'not'"),
        (Tool("b", parameters={"type": "array"}, strict=True), "invalid_schema", "object"),
        (Tool("b", parameters={"type": "object", "properties": {"p": {"pattern": r"\bx"}}},
              strict=True), "invalid_schema", "'pattern'"),
        (Tool("b", format=CustomFormat("lark", "start: x")), "invalid_grammar", "x"),
        (Tool("b", format=CustomFormat("lark", 'start: <|im_end|>')), "invalid_grammar", "im_end"),
        (Tool("b", format=CustomFormat("regex", "(?=a)")), "invalid_grammar", "look"),
        (Tool("b", format=CustomFormat("lark", "start: /./m")), "invalid_grammar", "'m'"),
    ],
)  # fmt: skip
def test_a_bad_tool_is_refused_by_its_field(bad: Tool, code: str, named: str) -> None:
    bad = replace(bad, param="tools[7].function")
    error = refusal(TOKENS.form((ADD, LOOSE, bad)))
    assert (error.param, error.code) == ("tools[7].function", code)
    assert "'b'" in error.message
    assert named in error.message
    assert output_grammar(TOKENS.form((ADD, bad), constrain="off")) is None


def test_a_call_of_no_tool_cannot_be_asked_for() -> None:
    for form in (
        TOKENS.form(choice=REQUIRED),
        TOKENS.form((ADD,), choice=ToolChoice("required", frozenset(("nope",)))),
    ):
        assert refusal(form).param == "tool_choice"


def test_loose_tools_are_not_looked_at() -> None:
    odd = Tool("odd", parameters={"type": "array", "not": {}})
    assert TOKENS.accepts(text_of(TOKENS, (odd,)), call("odd", "{}"))


def test_calls_are_trusted_where_masks_hold_all_that_begins_like_one() -> None:
    assert made(TOKENS.form((ADD,))).trusts_calls
    assert made(TOKENS.form((ADD,), choice=REQUIRED)).trusts_calls
    assert not made(TEXTS.form((ADD,))).trusts_calls
    assert not made(TEXTS.form((ADD,), choice=REQUIRED)).trusts_calls
    plain = TEXTS.form((ADD,), choice=REQUIRED, think_open=None, think_close=None)
    assert made(plain).trusts_calls
    assert not made(TOKENS.form((), answer=ANSWER)).trusts_calls
