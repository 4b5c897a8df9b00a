"""Schemathesis over every operation of the specs, against the running scripted server.

HELIOGRAPH_EXAMPLES sets the random examples of each operation (15 in the gate, 200 for the bars).
Of the coverage phase, which is systematic, the gate sends a fixed quarter and the bars send all;
its cases are thousands. Every run has the same seed. All checks
of Schemathesis run but one: positive_data_acceptance knows statuses only, and our own `explained`
wants a reason for each refusal. 413 counts as a rejection, since bodies are bounded too.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from typing import Any

import hypothesis
import schemathesis
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS
from schemathesis.generation.meta import TestPhase
from schemathesis.schemas import BaseSchema

from conformance.fuzz import checks
from conformance.fuzz.bundle import bundle
from conformance.profiles import KEYS, Pool
from conformance.replies import BUFFERED, PATHS
from conformance.server import Server

EXAMPLES = int(os.environ.get("HELIOGRAPH_EXAMPLES", "15"))
ALL = 100
"""From so many examples on, the coverage phase is sent whole."""
SEED = 20261129
REJECTIONS = ["400", "401", "404", "405", "413", "415"]
AUTHORIZATION = {"Authorization": f"Bearer {KEYS['ops']}"}
SEEN: Counter[tuple[str, int, str]] = Counter()
"""What came back: (path, status, media type)."""
_TELLING = {"role", "id"}
OWN = (checks.envelope, checks.explained, checks.stream)
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)


def _schema(file: str) -> BaseSchema:
    schema = schemathesis.openapi.from_dict(bundle(file))
    schema.config.seed = SEED
    schema.config.max_stream_events = 1_000_000  # it leaves a stream after a hundred
    schema.config.checks.negative_data_rejection.expected_statuses = REJECTIONS
    schema.config.checks.positive_data_acceptance.enabled = False
    return schema


def _run(case: Case[Any], pool: Pool) -> None:
    url = pool.get("fuzzed").url
    assert case.meta is not None
    systematic = case.meta.phase.name is TestPhase.COVERAGE
    if systematic and EXAMPLES < ALL and zlib.crc32(repr(case.body).encode()) % 4:
        return
    if not set(case.query or ()) <= {parameter.name for parameter in case.operation.query}:
        return  # unknown ones are passed over, as Claude Code needs (D053)
    if case.meta.generation.mode is GenerationMode.POSITIVE:
        _name_stored(case, pool.get("fuzzed"))
    elif _is_completed(case.body):
        return  # a body that lacks the type of an item is whole with it
    if isinstance(case.body, dict):
        asked = case.body.get("stream")
        if asked is None or asked is False:  # 0 is neither
            # Streams are rare among random bodies; a valid one stays valid, an invalid one invalid.
            case.body["stream"] = len(str(case.body)) % 2 == 1
    response = case.call_and_validate(base_url=url, headers=AUTHORIZATION, timeout=60)
    media = response.headers.get("content-type", ["none"])[0].partition(";")[0]
    SEEN[case.operation.path, response.status_code, media] += 1


def _is_completed(body: Any) -> bool:
    """Whether an item has no type, or null, and gets one (specs/responses.yaml, InputItem)."""
    items = body.get("input") if isinstance(body, dict) else None
    return isinstance(items, list) and any(
        isinstance(item, dict) and item.get("type") is None and not item.keys().isdisjoint(_TELLING)
        for item in items
    )


def _name_stored(case: Case[Any], server: Server) -> None:
    """Let three of four ids of responses be those of responses that are there."""
    asked = case.body if isinstance(case.body, dict) else {}
    name = (case.path_parameters or {}).get("response_id") or asked.get("previous_response_id")
    if not name or zlib.crc32(repr((name, case.query)).encode()) % 4 == 0:
        return
    made = server.http.post(
        PATHS["responses"], json={"model": "solar", "input": "hello"}, headers=AUTHORIZATION
    )
    assert made.status_code == 200, made.text
    if "previous_response_id" in asked:
        asked["previous_response_id"] = made.json()["id"]
    else:
        case.path_parameters = {"response_id": made.json()["id"]}


@_schema("chat_completions").parametrize()
@SETTINGS
def test_chat_completions(case: Case[Any], pool: Pool) -> None:
    """POST /v1/chat/completions."""
    _run(case, pool)


@_schema("completions").parametrize()
@SETTINGS
def test_completions(case: Case[Any], pool: Pool) -> None:
    """POST /v1/completions."""
    _run(case, pool)


@_schema("messages").parametrize()
@SETTINGS
def test_messages(case: Case[Any], pool: Pool) -> None:
    """POST /v1/messages, /v1/messages/count_tokens."""
    _run(case, pool)


@_schema("responses").parametrize()
@SETTINGS
def test_responses(case: Case[Any], pool: Pool) -> None:
    """POST /v1/responses, /input_tokens and /compact, and all that is done with a stored one."""
    _run(case, pool)


@_schema("ollama").parametrize()
@SETTINGS
def test_ollama(case: Case[Any], pool: Pool) -> None:
    """GET /api/version, GET /api/tags."""
    _run(case, pool)


@_schema("models").parametrize()
@SETTINGS
def test_models(case: Case[Any], pool: Pool) -> None:
    """GET /v1/models, GET /v1/models/{model}."""
    _run(case, pool)


@_schema("operations").parametrize()
@SETTINGS
def test_operations(case: Case[Any], pool: Pool) -> None:
    """GET /health, /metrics, /openapi.json, /docs."""
    _run(case, pool)


def test_afterwards(pool: Pool) -> None:
    """The fuzzed server has lost nothing and still answers; the fuzzer saw every kind of reply."""
    for route, path in PATHS.items():
        kinds = [(200, "application/json"), (400, "application/json")]
        if route not in BUFFERED:
            kinds.append((200, "text/event-stream"))
        for kind in kinds:
            assert SEEN[path, *kind] >= 3, f"{path} {kind}: {SEEN}"
    stored = "/v1/responses/{response_id}"
    for kind in ((200, "application/json"), (200, "text/event-stream"), (404, "application/json")):
        assert SEEN[stored, *kind], f"{stored} {kind}: {SEEN}"
    for path, status in (("/input_items", 200), ("/cancel", 400)):
        assert SEEN[stored + path, status, "application/json"], f"{path}: {SEEN}"
    server = pool.get("fuzzed")
    server.until_idle()
    assert server.http.get("/health").json() == {"status": "ok"}


def test_our_checks_run() -> None:
    """They are registered, beside those of Schemathesis."""
    names = CHECKS.get_all_names()
    assert {check.__name__ for check in OWN} < set(names)
    assert {"response_schema_conformance", "ignored_auth", "unsupported_method"} < set(names)
