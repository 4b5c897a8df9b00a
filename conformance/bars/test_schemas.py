"""Issue 3: random schemas on the real model: valid answers, named refusals, no endless white space.

An answer that the limit cuts proves nothing about its validity, so most have to be complete.
"""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema_rs
import pytest

from conformance.bars import schemas
from conformance.bars.examples import examples
from conformance.bench.measure import table
from conformance.replies import Reply, send
from conformance.server import Server

TOGETHER = 16
BLANKS = 26
"""The longest run of white space between two parts of a document: a line break, 24 blanks."""
Outcome = tuple[schemas.Schema, Reply]


@pytest.mark.bars
def test_five_hundred(embedded: Server) -> None:
    """500 schemas, 96 tokens each at most."""
    _run(embedded, 500, 96)


def test_subset(embedded: Server) -> None:
    """15 in the gate."""
    _run(embedded, 15, 64)


def _run(server: Server, count: int, tokens: int) -> None:
    asked = examples("documents", count)
    with ThreadPoolExecutor(TOGETHER) as threads:
        replies = threads.map(
            lambda number: send(server.http, *_request(number, asked[number], tokens)),
            range(count),
        )
        outcomes = list(zip(asked, replies, strict=True))
    server.until_idle()
    _judge(outcomes, count)


def _request(number: int, schema: schemas.Schema, tokens: int) -> tuple[str, dict[str, Any]]:
    """Chat, which says the schema in the prompt, and raw completions, which do not."""
    common = {"max_tokens": tokens, "seed": number, "temperature": (0, 1, 1.5)[number % 3]}
    if number % 2:
        return "completions", {"prompt": "A document:\n", "json_schema": schema, **common}
    form = {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": schema}}
    messages = [{"role": "user", "content": "Fill in the form."}]
    return "chat", {"messages": messages, "response_format": form, **common}


def _judge(outcomes: list[Outcome], count: int) -> None:
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    repeated = 0
    refusals: Counter[str] = Counter()
    for schema, reply in outcomes:
        kind, problem = _outcome(schema, reply)
        ends[kind] += 1
        repeated += kind == "complete" and _repeats_a_name(reply.text)
        if reply.error:
            refusals[reply.error["message"].partition(" (at")[0][:90]] += 1
        if problem:
            shown = reply.error or reply.text
            wrong.append(f"{problem}: {shown!r} under {json.dumps(schema, ensure_ascii=False)}")
    rows = [(kind, str(number)) for kind, number in sorted(ends.items())]
    rows.append(("complete, with a name twice (readers count it once)", str(repeated)))
    rows += [(f"  refused: {why}", str(number)) for why, number in refusals.most_common(12)]
    print(f"\n{len(outcomes)} random schemas, {len(wrong)} wrong\n" + table(rows))
    assert not wrong, "\n\n".join(wrong[:20])
    assert len(outcomes) >= count
    assert ends["complete"] >= ends["cut"], f"most answers are cut: {ends}"
    passed = [
        schema
        for schema, reply in outcomes
        if schemas.asks_for_refused(schema) and reply.status == 200
    ]
    assert not passed, f"these keywords are passed over: {passed[:5]}"
    assert ends["refused"], "no schema asks for what is refused"


def _outcome(schema: schemas.Schema, reply: Reply) -> tuple[str, str | None]:
    """How a request ended, and what is wrong with that."""
    if reply.status >= 500:
        return "server error", f"status {reply.status}"
    if reply.status != 200:
        return "refused", _refusal(schema, reply)
    text = reply.text
    if len(text) - len(text.rstrip()) > BLANKS:
        return "white space", "it ran to its limit on white space"
    if reply.finish != "stop":
        return "cut", None
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    try:
        value = json.loads(text)
    except ValueError as error:
        return "complete", f"not JSON ({error})"
    problems = [error.message for error in validator.iter_errors(value)]
    return "complete", f"not valid ({problems[0]})" if problems else None


def _repeats_a_name(text: str) -> bool:
    """Whether an object has a name twice: it is JSON, and masks do not forbid it."""
    twice: list[bool] = []

    def members(pairs: list[tuple[str, Any]]) -> None:
        twice.append(len({name for name, _ in pairs}) < len(pairs))

    json.loads(text, object_pairs_hook=members)
    return any(twice)


def _refusal(schema: schemas.Schema, reply: Reply) -> str | None:
    """A refusal is 400, of the schema's field, and names one of the schema's keywords."""
    error = reply.error
    if error is None or reply.status != 400 or error["code"] != "invalid_schema":
        return f"status {reply.status}, {error}"
    known = schemas.keywords(schema)
    if not any(f"'{keyword}'" in error["message"] for keyword in known):
        return "a refusal that names no keyword"
    return None
