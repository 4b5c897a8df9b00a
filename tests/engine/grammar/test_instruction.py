from __future__ import annotations

from engine.grammar.instruction import instruction
from engine.types import OutputConstraint


def test_json_formats_are_described_and_others_are_not() -> None:
    plain = instruction(OutputConstraint("json_object", "", "response_format"))
    assert plain is not None
    assert "one JSON object and nothing else" in plain
    for kind in ("regex", "lark", "choice"):
        assert instruction(OutputConstraint(kind, "x", "p")) is None


def test_the_schema_is_part_of_it_in_the_clients_order() -> None:
    source = '{"type": "object",\n "properties": {"z": {"const": "é"}, "a": {}}}'
    text = instruction(OutputConstraint("json_schema", source, "response_format"))
    assert text is not None
    assert text.endswith('\n{"type":"object","properties":{"z":{"const":"é"},"a":{}}}')
    assert text == instruction(OutputConstraint("json_schema", source, "other"))
