"""Recorded outputs of nine families, and what a correct parser makes of them, by canitoolcall."""

from __future__ import annotations

import pytest

pytest.importorskip("canitoolcall")

from canitoolcall.checks import run_checks
from canitoolcall.fixtures import Fixture, load_families, load_fixtures
from canitoolcall.results import Observation, Status

from engine.dialects.dialect import Dialect
from engine.dialects.registry import DIALECTS
from tests.engine.dialects.fixtures import marks_of, parse, raw_of, result_of, splits

FAMILIES = load_families()
FIXTURES = load_fixtures()
BY_NAME = {dialect.name: dialect for dialect in DIALECTS}

# The dialect of a family, or of a reference model where a family has several.
DIALECT_OF = {
    "deepseek-v3": "deepseek_v3",
    "deepseek-v31": "deepseek_v31",
    "deepseek-v32": "deepseek_v32",
    "deepseek-v4": "deepseek_v4",
    "deepseek-v41": "deepseek_v41",
    "kimi-k2-instruct": "kimi_k2",
    "kimi-k2-thinking": "kimi_k2",
    "kimi-k3-xtml": "kimi_k3",
    "qwen3-hermes": "hermes",
    "qwen3-xml": "qwen_xml",
    "glm45-newline": "glm45",
    "glm47-compact": "glm47",
    "glm53-compact": "glm47",
    "llama3-json": "llama_json",
    "llama4-pythonic": "pythonic",
    "mistral": "mistral",
    "v11-think-text": "magistral",
    "gemma4": "gemma4",
    "gpt-oss": "harmony",
}

# Recordings whose expected value is wrong, with the reason.
WRONG: dict[str, str] = {}

# Recordings whose expected text keeps the white space before a call. It is layout of the call:
# recordings of the same families (gemma4/vllm-text-before-call) and of others expect it gone.
SOFT = frozenset(
    (
        "kimi/k2i-vllm-single-call-content-before",
        "kimi/k2i-vllm-three-tool-calls",
        "kimi/k2i-vllm-multiline-json",
        "kimi/k2i-vllm-id-without-functions-prefix",
        "kimi/k2i-vllm-noise-between-markers",
        "gemma4/sglang-text-before-call",
        "llama/l3-sglang-text-before-python-tag",
    )
)


def dialect_of(fixture: Fixture) -> Dialect | None:
    variants = {model.repo: model.variant for model in FAMILIES[fixture.family].reference_models}
    variant = variants.get(fixture.models[0]) or ""
    return BY_NAME.get(DIALECT_OF.get(variant, DIALECT_OF.get(fixture.family, "")))


COVERED = [fixture for fixture in FIXTURES if dialect_of(fixture) is not None]


@pytest.mark.parametrize("fixture", COVERED, ids=lambda fixture: fixture.id)
def test_a_recorded_output_is_read_right_however_it_is_cut(fixture: Fixture) -> None:
    dialect = dialect_of(fixture)
    assert dialect is not None
    marks = marks_of(dialect)
    raw = raw_of(marks, fixture)
    cut = "truncated" in fixture.tags
    results = [result_of(parse(dialect, marks, fixture, parts, cut=cut)) for parts in splits(raw)]
    streams = {f"rand:{number}:8": result for number, result in enumerate(results)}
    rows = run_checks(fixture, FAMILIES[fixture.family], Observation(results[0], streams))
    right = (Status.PASS, Status.SOFT_PASS) if fixture.id in SOFT else (Status.PASS,)
    bad = {(row.check, row.detail) for row in rows if row.status not in right}
    if fixture.id in WRONG:
        assert bad, "no longer wrong"
    else:
        assert not bad, f"{sorted(bad, key=str)[:4]}\n{fixture.raw_output!r}"
