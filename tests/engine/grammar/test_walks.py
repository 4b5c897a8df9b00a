"""Random schemas, random answers: whatever the masks allow is valid, and ends."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.engine.grammar.drive import refusal, schema_grammar, walk
from tests.engine.grammar.strategy import schemas

_BLANKS = re.compile(r'"(?:\\.|[^"\\])*"|(?P<blank>[ \t\r\n]+)')


def finite(value: Any) -> Any:
    """JSON numbers have no limit, Python's have: keep overflown ones comparable."""
    if isinstance(value, float) and abs(value) == float("inf"):
        return 1e308 if value > 0 else -1e308
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    return value


@seed(1)
@settings(
    max_examples=150, deadline=None, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(schemas())
def test_random_answers_are_valid_and_end(schema: Any) -> None:
    reason = refusal(schema)
    if reason:
        assert re.search(r"'[\w$]+'.*\(at #", reason), reason
        return
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    for number in range(2):
        text = walk(schema_grammar(schema), number)
        assert validator.is_valid(finite(json.loads(text))), text


@pytest.mark.parametrize("number", range(20))
def test_white_space_is_bounded(number: int) -> None:
    text = walk(schema_grammar({"type": "object", "minProperties": 1}), number)
    runs = [found["blank"] for found in _BLANKS.finditer(text) if found["blank"]]
    assert all(re.fullmatch(r" |\n {0,24}", run) for run in runs)
