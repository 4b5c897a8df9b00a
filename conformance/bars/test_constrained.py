"""Issue 3: constrained decoding costs at most 5 % of the throughput of eight streams."""

from __future__ import annotations

import statistics
from typing import Any

import httpx2
import pytest

from conformance.bench.measure import aggregate, prompt_of, table, together
from conformance.server import Server

STREAMS = 8
BAR = 0.95
FREE: dict[str, Any] = {}
FORMS: dict[str, dict[str, Any]] = {
    "regex": {"regex": r"([a-z]{1,12}[ ,;]){500}"},
    "schema": {
        "json_schema": {
            "type": "object",
            "properties": {
                "list": {
                    "type": "array",
                    "minItems": 400,
                    "maxItems": 400,
                    "items": {"type": "string", "pattern": "^[a-zA-Z ,.]{40,200}$"},
                }
            },
            "required": ["list"],
            "additionalProperties": False,
        }
    },
}
"""Neither can end before the limit, and neither leaves the server without a choice for long."""


@pytest.mark.bars
def test_cost(embedded: Server) -> None:
    """Seven rounds of 64 tokens; in each, every kind of stream in turn."""
    _measure(embedded.http, 7, 64, BAR, "eight streams on the model")


def _measure(client: httpx2.Client, rounds: int, tokens: int, bar: float, name: str) -> None:
    kinds = {"free": FREE, **FORMS}
    rates: dict[str, list[float]] = {kind: [] for kind in kinds}
    prompts = [prompt_of(16, 500 + number) for number in range(STREAMS)]
    for kind, fields in kinds.items():
        together(client, prompts, 8, **_fields(kind, fields))  # warm: grammars, prefixes
    for number in range(rounds):
        order = list(kinds) if number % 2 else list(reversed(kinds))
        for kind in order:
            streams = together(client, prompts, tokens, **_fields(kind, kinds[kind]))
            rates[kind].append(aggregate(streams))
    medians = {kind: statistics.median(found) for kind, found in rates.items()}
    shares = {kind: medians[kind] / medians["free"] for kind in FORMS}
    rows = [
        (
            f"{kind}, tok/s: median (least, most)",
            f"{medians[kind]:.1f} ({min(r):.1f}, {max(r):.1f})",
        )
        for kind, r in rates.items()
    ]
    rows += [(f"{kind}, share of free (bar: {bar})", f"{shares[kind]:.3f}") for kind in FORMS]
    print(f"\n{name}\n" + table(rows))
    for kind, share in shares.items():
        assert share >= bar, f"{kind}: {share:.3f} of the unconstrained throughput; {rates}"


def _fields(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Without ignore_eos, which a constraint excludes; min_tokens keeps free streams going."""
    return {**fields, "ignore_eos": False, "temperature": 1.0, "seed": 1, "cache_salt": kind}
