"""What clients may send in any number or depth is enforced, or refused by name, and soon."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from engine.conversation import CustomFormat, JsonValue, Tool
from engine.dialects.dialect import Dialect
from engine.dialects.hermes import HERMES
from engine.dialects.kimi_k2 import KIMI_K2
from engine.dialects.llama_json import LLAMA_JSON
from engine.dialects.qwen_xml import QWEN_XML
from engine.errors import RequestError
from engine.grammar import headers
from engine.grammar.arguments import listed
from engine.grammar.cache import Cache
from engine.grammar.document import Refused
from engine.grammar.form import OutputForm
from engine.grammar.output import output_grammar
from engine.grammar.regexes import containing, parse
from engine.grammar.rules import MAX_ENFORCED_CHARS
from tests.engine.grammar.outputs import Outputs

INT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}},
                       "required": ["a"], "additionalProperties": False}  # fmt: skip


def strict(name: str, parameters: dict[str, Any]) -> Tool:
    return Tool(name, parameters=parameters, strict=True, param=f"tools.{name}")


def tools(count: int, parameters: dict[str, Any] = INT) -> tuple[Tool, ...]:
    return tuple(strict(f"tool_{number}", parameters) for number in range(count))


def refusal(form: OutputForm) -> RequestError:
    with pytest.raises(RequestError) as caught:
        output_grammar(form)
    return caught.value


@pytest.mark.parametrize(
    ("dialect", "call"),
    [
        (LLAMA_JSON, '{{"name": "{}", "parameters": {}}}'),
        (KIMI_K2, "<|tool_calls_section_begin|><|tool_call_begin|>functions.{}:0"
         "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"),
    ],
)  # fmt: skip
def test_all_of_many_tools_are_enforced(dialect: Dialect, call: str) -> None:
    outputs = Outputs(dialect, has_tokens=False)
    grammar = output_grammar(outputs.form(tools(400)))
    assert grammar is not None
    for name in ("tool_0", "tool_399"):
        assert outputs.accepts(grammar.text, "hi " + call.format(name, '{"a": 1}'))
        assert not outputs.accepts(grammar.text, "hi " + call.format(name, '{"b": 1}'))


def test_a_strict_tool_whose_calls_are_not_found_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outputs = Outputs(LLAMA_JSON)
    late: dict[str, Any] = {"headers": lambda name: f"never {name}"}
    error = refusal(outputs.form(tools(2), **late))
    assert (error.param, error.code) == ("tools.tool_0", "invalid_schema")
    loose = [replace(tool, strict=False) for tool in tools(2)]
    assert output_grammar(outputs.form(loose, **late)) is None
    monkeypatch.setattr(headers, "_MOST_UNFOLDED", 0)
    monkeypatch.setattr(headers, "_MOST_PER_NAME", 10)
    error = refusal(outputs.form(tools(7)))
    assert error.param in {tool.param for tool in tools(7)} and "told from" in error.message


@pytest.mark.parametrize("source", ["a" + "?" * 2000, "a" + "{1,2}" * 2000, "(a+*)" * 70])
def test_quantifiers_of_quantifiers_are_refused_by_name(source: str) -> None:
    with pytest.raises(Refused, match="quantifiers"):
        parse(source)
    with pytest.raises(Refused, match="quantifiers"):
        containing(source)
    tool = Tool("f", format=CustomFormat("regex", source), param="tools[0]")
    error = refusal(Outputs(HERMES).form((tool,)))
    assert (error.param, error.code) == ("tools[0]", "invalid_grammar")


def test_what_is_nested_too_deeply_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: JsonValue = {}
    for _ in range(5000):
        deep = {"items": deep}
    error = refusal(Outputs(HERMES).form((strict("f", {"properties": {"a": deep}}),)))
    assert error.code == "invalid_schema" and "nested too deeply" in error.message

    def fail(source: str) -> None:
        raise RecursionError

    monkeypatch.setattr("engine.grammar.custom.parse", fail)
    tool = Tool("f", format=CustomFormat("regex", "abc?d"), param="tools[0]")
    error = refusal(Outputs(HERMES).form((tool,)))
    assert error.param == "tools[0]" and "nested too deeply" in error.message


def test_arguments_carry_only_the_definitions_that_they_refer_to() -> None:
    parts: dict[str, Any] = {
        "a/b": {"type": "array", "items": {"$ref": "#/$defs/c"}}, "c": INT, "d": INT,
    }  # fmt: skip
    given = {"p": {"$ref": "#/$defs/a~1b"}, "q": {"type": "string"}}
    found = listed(strict("f", {"properties": given, "$defs": parts}))
    assert [schema for _, schema, _ in found] == [
        {**given["p"], "$defs": {"a/b": parts["a/b"], "c": INT}},
        given["q"],
    ]


def test_definitions_do_not_cost_for_every_argument() -> None:
    parts = {f"d{number}": {"enum": ["x" * 1000]} for number in range(200)}
    given: dict[str, Any] = {f"p{number}": {"type": "integer"} for number in range(400)}
    given["q"] = {"$ref": "#/$defs/d7"}
    form = Outputs(QWEN_XML).form((strict("f", {"properties": given, "$defs": parts}),))
    started = time.process_time()
    assert output_grammar(form) is not None
    assert time.process_time() - started < 2.0


def test_what_is_enforced_is_bounded_in_all() -> None:
    large = {"properties": {"p": {"enum": ["x" * 200_000]}}}
    error = refusal(Outputs(HERMES).form(tools(6, large)))
    assert (error.param, error.code) == ("tools.tool_5", "invalid_schema")
    assert f"{MAX_ENFORCED_CHARS:,}" in error.message
    loose = [replace(tool, strict=False) for tool in tools(6, large)]
    assert output_grammar(Outputs(HERMES).form(loose)) is not None
    shared = {"properties": {f"p{number}": {"$ref": "#/$defs/d"} for number in range(400)},
              "$defs": {"d": {"enum": ["x" * 10_000]}}}  # fmt: skip
    error = refusal(Outputs(QWEN_XML).form((strict("f", shared),)))
    assert error.param == "tools.f"


def test_a_grammar_does_not_depend_on_descriptions() -> None:
    outputs = Outputs(HERMES)
    told = [replace(tool, description="What it does") for tool in tools(2)]
    assert output_grammar(outputs.form(told)) is output_grammar(outputs.form(tools(2)))


def test_a_cache_is_bounded_by_size() -> None:
    cache, made = Cache[str](1000), list[str]()

    def get(text: str, length: int = 10) -> str:
        def make() -> str:
            made.append(text)
            return text * length

        return cache.get(text, make, len)

    assert get("a") == get("a") == "a" * 10
    assert made == ["a"]
    get("b", 500)
    get("b", 500)
    assert made == ["a", "b", "b"]  # too large to keep
    for text in map(str, range(10)):
        get(text)
        get("a")
    assert made.count("a") == 1 and cache.total <= 1000
    get("0")
    assert made.count("0") == 2
    assert json.dumps(get("\ud800"))
