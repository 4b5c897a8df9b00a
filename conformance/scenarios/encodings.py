"""Compressed bodies (D031): four encodings, corrupt data, unknown names, and bombs."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import httpx2
import zstandard

from conformance.profiles import ALIASES, KEYS, SMALL_BODY, Pool
from conformance.replies import PATHS
from conformance.reply import failure_of
from conformance.server import Server

_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "identity": lambda data: data,
}


def content_encodings(pool: Pool, _: Callable[..., Server]) -> None:
    """Each encoding works; corrupt is 400, unknown 415, too large before or after decoding 413."""
    server = pool.get("guarded")

    def post(content: bytes, encoding: str, route: str = "chat") -> httpx2.Response:
        headers = {
            "authorization": f"Bearer {KEYS['ops']}",
            "content-type": "application/json",
            "content-encoding": encoding,
        }
        return server.http.post(PATHS[route], content=content, headers=headers)

    said = [{"role": "user", "content": "hello"}]
    body = json.dumps({"model": ALIASES[0], "messages": said}).encode()
    for name, encode in _ENCODERS.items():
        assert post(encode(body), name).status_code == 200, name
    assert post(gzip.compress(zlib.compress(body)), "deflate, gzip").status_code == 200
    for name in ("gzip", "deflate", "br", "zstd"):
        whole = _ENCODERS[name](body)
        _refused(post(b"\x00corrupt\xff" + body, name), 400, "invalid_request_error")
        _refused(post(whole[:-3], name), 400, "invalid_request_error")
    _refused(post(body, "snappy"), 415, "invalid_request_error")
    _refused(post(body, "gzip, snappy"), 415, "invalid_request_error")

    large = json.dumps({"messages": [], "pad": "a" * SMALL_BODY}).encode()
    for route in ("messages", "count"):
        message = json.dumps({**json.loads(body), "max_tokens": 8}).encode()
        for name, encode in _ENCODERS.items():
            assert post(encode(message), name, route).status_code == 200, name
        _refused(post(b"\x00corrupt\xff", "gzip", route), 400, "invalid_request_error")
        _refused(post(message, "snappy", route), 415, "invalid_request_error")
        _refused(post(gzip.compress(large), "gzip", route), 413, "request_too_large")
        _refused(post(large, "identity", route), 413, "request_too_large")
    _refused(post(large, "identity"), 413, "request_too_large")
    before = server.resident()["api"]
    bomb = b" " * (256 * 1024 * 1024)
    for name in ("gzip", "deflate", "br", "zstd"):
        encoded = _bomb(name, bomb)
        if len(encoded) <= SMALL_BODY:  # else it is refused for its own size
            _refused(post(encoded, name), 413, "request_too_large")
    grown = server.resident()["api"] - before
    assert grown < 64 * 1024 * 1024, f"decoding took {grown} bytes"


def _bomb(name: str, data: bytes) -> bytes:
    if name == "br":
        return bytes(brotli.compress(data, quality=1))
    if name in ("gzip", "deflate"):  # twice, since once is too large for the limit on what is sent
        return _ENCODERS[name](data[: 48 * 1024 * 1024])
    return _ENCODERS[name](data)


def _refused(response: Any, status: int, kind: str) -> None:
    assert response.status_code == status, f"{response.status_code} {response.text[:300]}"
    assert failure_of(response)["type"] == kind


SCENARIOS = (content_encodings,)
