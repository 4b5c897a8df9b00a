"""Bytes, JSON and headers that no spec describes: never a 5xx, always the envelope."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote

import hypothesis
from hypothesis import strategies as st

from conformance import sse
from conformance.profiles import KEYS, Pool
from conformance.replies import PATHS
from conformance.reply import failure_of

EXAMPLES = int(os.environ.get("HELIOGRAPH_EXAMPLES", "15")) * 4
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
SEED = hypothesis.seed(20261129)

paths = st.sampled_from(
    [*PATHS.values(), "/v1/models", "/v1/models/solar", "/health", "/metrics",
     "/v1/responses/resp_0", "/v1/responses/resp_0/cancel",
     "/v1/responses/resp_0/input_items?limit=2&order=asc", "/v1/responses/resp_0?stream=true",
     "/api/version", "/api/tags"]
)  # fmt: skip
posts = st.sampled_from(list(PATHS.values()))
numbers = st.one_of(
    st.integers(),
    st.floats(),  # NaN and infinities too
    st.sampled_from([2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**30, 1e308, -0.0, 5e-324]),
)
texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["\ud800", "\udfff\ud800", "\x00", "\ufffe", "<|im_end|>", "\u202e", "e\u0301" * 9]
    ),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
fields = st.sampled_from(
    ["messages", "prompt", "model", "stream", "stream_options", "n", "stop", "stop_token_ids",
     "seed", "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty",
     "repetition_penalty", "logit_bias", "min_tokens", "ignore_eos", "max_tokens",
     "max_completion_tokens", "echo", "best_of", "tools", "tool_choice", "response_format",
     "logprobs", "chat_template_kwargs", "add_generation_prompt", "continue_final_message",
     "cache_salt", "user", "metadata", "__proto__", "__class__", "\ud800", "",
     "top_logprobs", "prompt_logprobs", "logprob_token_ids", "return_token_ids", "bad_words",
     "allowed_token_ids", "stop_token_sequences", "dry_multiplier", "dry_sequence_breakers",
     "lz_penalty", "top_n_sigma", "repetition_detection", "structured_outputs", "guided_json",
     "json_schema", "regex", "grammar", "guided_choice", "num_beams", "options", "max_time_ms",
     "system", "stop_sequences", "thinking", "output_config", "output_format", "cache_control",
     "context_management", "thread", "container", "mcp_servers", "betas", "compaction",
     "input", "instructions", "previous_response_id", "conversation", "text", "reasoning",
     "include", "store", "background", "max_output_tokens", "max_tool_calls", "truncation",
     "parallel_tool_calls", "prompt_cache_key", "client_metadata", "max_compaction_tokens"]
)  # fmt: skip
bodies = st.dictionaries(fields, values, max_size=6)
_BASE: dict[str, Any] = {
    "messages": [{"role": "user", "content": "hello"}],
    "prompt": "hello",
    "model": "solar",
    "input": [{"role": "user", "content": "hello"}],
    "max_tokens": 4,
}
# Without control characters: a parser that meets one has no request to answer.
header_values = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=30
)
header_names = st.sampled_from(
    ["accept", "content-type", "content-encoding", "authorization", "x-api-key", "expect", "range",
     "content-language", "cookie", "origin", "te", "upgrade", "x-request-id", "forwarded"]
)  # fmt: skip


@SEED
@SETTINGS
@hypothesis.given(path=paths, method=st.sampled_from(["POST", "GET", "PUT"]), body=st.binary())
def test_bytes(pool: Pool, path: str, method: str, body: bytes) -> None:
    """Random bytes to any route, by any method."""
    _send(pool, method, path, body)


@SEED
@SETTINGS
@hypothesis.given(path=posts, value=values)
def test_json(pool: Pool, path: str, value: Any) -> None:
    """Random JSON, and what Python calls JSON: NaN, infinities, halves of surrogate pairs."""
    _send(pool, "POST", path, json.dumps(value).encode())


@SEED
@SETTINGS
@hypothesis.given(path=posts, body=bodies)
def test_fields(pool: Pool, path: str, body: dict[str, Any]) -> None:
    """A good request, with some of its fields replaced by anything."""
    _send(pool, "POST", path, json.dumps({**_BASE, **body}).encode())


@SEED
@SETTINGS
@hypothesis.given(
    path=paths, headers=st.dictionaries(header_names, header_values, max_size=5), good=st.booleans()
)
def test_headers(pool: Pool, path: str, headers: dict[str, str], good: bool) -> None:
    """Random headers, with and without a good body."""
    body = json.dumps(_BASE).encode() if good else b""
    _send(pool, "POST" if good else "GET", path, body, headers)


@SEED
@SETTINGS
@hypothesis.given(path=st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=40))
@hypothesis.example("messages of another kind")
def test_paths(pool: Pool, path: str) -> None:
    """Random paths below /v1/, and in place of the ids of models and responses."""
    for prefix in ("/v1/", "/v1/models/", "/v1/responses/"):
        _send(pool, "GET", prefix + quote(path), b"")


@SEED
@SETTINGS
@hypothesis.given(depth=st.integers(1, 4000), shape=st.sampled_from(["list", "object", "content"]))
def test_depth(pool: Pool, depth: int, shape: str) -> None:
    """Nesting of any depth, in places that take anything."""
    inner = "[" * depth + "]" * depth
    if shape == "object":
        inner = '{"a":' * depth + "1" + "}" * depth
    field = "content" if shape == "content" else "chat_template_kwargs"
    body = json.dumps(_BASE)[:-1] + f', "{field}": {{"x": {inner}}}}}'
    for route in ("chat", "responses"):
        _send(pool, "POST", PATHS[route], body.encode())


def test_afterwards(pool: Pool) -> None:
    """The server has lost nothing, still answers, and its log shows no failure of its own."""
    server = pool.get("fuzzed")
    server.until_idle()
    assert server.http.get("/health").json() == {"status": "ok"}
    assert "Traceback" not in server.log, server.log[-4000:]


def _send(
    pool: Pool, method: str, path: str, body: bytes, headers: dict[str, str] | None = None
) -> None:
    """Send it; the reply is a success, or a failure of the client in the envelope."""
    server = pool.get("fuzzed")
    sent = {"authorization": f"Bearer {KEYS['ops']}", "content-type": "application/json"}
    encoded = {name: value.encode() for name, value in sent.items()}
    encoded |= {name: value.strip().encode("latin-1") for name, value in (headers or {}).items()}
    raw = [(name.encode(), value) for name, value in encoded.items()]
    response = server.http.request(method, path, content=body, headers=raw)
    assert response.status_code < 500, f"{response.status_code} {response.text[:500]}"
    assert response.headers["x-request-id"].startswith("req_")
    if response.status_code >= 400:
        sse.strict_json(response.content)
        failure_of(response)
    elif response.headers["content-type"].startswith("text/event-stream"):
        sse.parse(response.content)
    else:
        assert response.status_code == 200
