"""Recorded outputs of nine families, and what a correct parser makes of them, by canitoolcall."""

from __future__ import annotations

import pytest

pytest.importorskip("canitoolcall")

from canitoolcall.checks import run_checks
from canitoolcall.fixtures import Fixture, load_families, load_fixtures
from canitoolcall.results import Observation, Status

from engine.dialects.dialect import Dialect
from engine.dialects.registry import DIALECTS
from tests.engine.dialects.fixtures import marks_of, parse, result_of, splits

FAMILIES = load_families()
FIXTURES = load_fixtures()
BY_NAME = {dialect.name: dialect for dialect in DIALECTS}

# The dialect of a family, or of a reference model where a family has several.
DIALECT_OF = {
    "qwen3-hermes": "hermes",
}

# Recordings whose expected value is wrong, with the reason.
WRONG: dict[str, str] = {}


def dialect_of(fixture: Fixture) -> Dialect | None:
    variants = {model.repo: model.variant for model in FAMILIES[fixture.family].reference_models}
    variant = variants.get(fixture.models[0], "")
    return BY_NAME.get(DIALECT_OF.get(variant, DIALECT_OF.get(fixture.family, "")))


COVERED = [fixture for fixture in FIXTURES if dialect_of(fixture) is not None]


@pytest.mark.parametrize("fixture", COVERED, ids=lambda fixture: fixture.id)
def test_a_recorded_output_is_read_right_however_it_is_cut(fixture: Fixture) -> None:
    dialect = dialect_of(fixture)
    assert dialect is not None
    marks = marks_of(dialect)
    raw = marks.marked(fixture.raw_output)
    cut = "truncated" in fixture.tags
    results = [result_of(parse(dialect, marks, fixture, parts, cut=cut)) for parts in splits(raw)]
    streams = {f"rand:{number}:8": result for number, result in enumerate(results)}
    rows = run_checks(fixture, FAMILIES[fixture.family], Observation(results[0], streams))
    bad = {(row.check, row.detail) for row in rows if row.status not in (Status.PASS,)}
    if fixture.id in WRONG:
        assert bad, "no longer wrong"
    else:
        assert not bad, f"{sorted(bad, key=str)[:4]}\n{fixture.raw_output!r}"
