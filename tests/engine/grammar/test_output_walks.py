"""Random walks over grammars of whole outputs: what masks allow is read as calls that are valid."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from engine.conversation import Tool, ToolChoice
from engine.dialects.hermes import HERMES
from engine.errors import RequestError
from tests.engine.grammar.outputs import Outputs, endings_of
from tests.engine.grammar.strategy import schemas
from tests.engine.grammar.test_output import ADD, BOTH, LOOSE, REQUIRED, TOKENS, made
from tests.engine.grammar.test_walks import finite


@pytest.mark.parametrize("number", range(12))
@BOTH
def test_a_required_call_always_comes_and_is_read_whole(outputs: Outputs, number: int) -> None:
    form = outputs.form((ADD, LOOSE), choice=REQUIRED, in_thought=number % 2 == 1)
    grammar = made(form)
    ids = outputs.walk(grammar.text, number, endings_of(HERMES))
    tail = outputs.marks.marked("<think>\n") if form.in_thought else ""
    said = outputs.read(ids, form.tools, trusted=grammar.trusts_calls, tail=tail)
    assert said.calls
    assert not said.is_open
    assert not said.text.strip()
    for name, arguments in said.calls:
        checked = dict(ADD.parameters) if name == "add" else {"type": "object"}
        assert jsonschema_rs.is_valid(checked, finite(json.loads(arguments)))


@seed(1)
@settings(
    max_examples=60, deadline=None, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(schemas())
def test_calls_of_random_strict_tools_are_valid(schema: Any) -> None:
    tool = Tool("do", parameters=schema, strict=True, param="tools[0].parameters")
    form = TOKENS.form((tool, LOOSE), choice=ToolChoice("required", frozenset(("do",))))
    try:
        grammar = made(form)
    except RequestError as error:
        assert (error.param, error.code) == ("tools[0].parameters", "invalid_schema")
        assert re.search(r"'[\w$]+'.*\(at #", error.message), error.message
        return
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    for number in range(2):
        ids = TOKENS.walk(grammar.text, number, endings_of(HERMES), 80)
        said = TOKENS.read(ids, form.tools, trusted=True)
        assert said.calls
        assert not said.is_open
        for name, arguments in said.calls:
            assert name == "do"
            assert validator.is_valid(finite(json.loads(arguments))), arguments
