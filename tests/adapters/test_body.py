"""Bodies within bounds: as sent, decompressed, and as strict JSON."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from starlette.requests import Request
from starlette.types import Message

from adapters import body
from adapters.envelope import HttpError
from engine.errors import RequestError

LIMIT = 4096
ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


def sent(parts: list[bytes], **headers: str) -> Request:
    messages: list[Message] = [
        {"type": "http.request", "body": part, "more_body": place < len(parts) - 1}
        for place, part in enumerate(parts)
    ]

    async def receive() -> Message:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    pairs = [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]
    return Request({"type": "http", "method": "POST", "headers": pairs}, receive)


def status(caught: pytest.ExceptionInfo[HttpError]) -> tuple[int, str | None]:
    return caught.value.status, caught.value.code


@pytest.mark.parametrize("parts", [[b"x" * LIMIT], [b"x" * 2048, b"", b"x" * 2048]])
async def test_a_body_of_exactly_the_limit_is_read(parts: list[bytes]) -> None:
    assert await body.read(sent(parts), LIMIT) == b"x" * LIMIT


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(lambda: sent([b"x" * (LIMIT + 1)]), id="one part"),
        pytest.param(lambda: sent([b"x" * LIMIT, b"x"]), id="two parts"),
        pytest.param(lambda: sent([], content_length=str(LIMIT + 1)), id="declared"),
    ],
)
async def test_a_body_over_the_limit_is_too_large(request_: Callable[[], Request]) -> None:
    with pytest.raises(HttpError) as caught:
        await body.read(request_(), LIMIT)
    assert status(caught) == (413, "request_too_large")


@pytest.mark.parametrize(
    "media_type",
    ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json", None],
)
async def test_json_media_types_are_read(media_type: str | None) -> None:
    headers = {} if media_type is None else {"content_type": media_type}
    assert await body.read(sent([b"{}"], **headers), LIMIT) == b"{}"


@pytest.mark.parametrize("media_type", ["text/plain", "multipart/form-data; boundary=x", "json"])
async def test_other_media_types_are_refused_by_name(media_type: str) -> None:
    with pytest.raises(HttpError, match=media_type.partition(";")[0]) as caught:
        await body.read(sent([b"{}"], content_type=media_type), LIMIT)
    assert status(caught) == (415, "unsupported_media_type")


async def test_a_client_that_leaves_mid_body_is_an_error_of_its_own() -> None:
    request = sent([b"{", b"}"])
    await request.receive()

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(HttpError) as caught:
        await body.read(Request(request.scope, gone), LIMIT)
    assert caught.value.status == 400


@pytest.mark.parametrize("name", ENCODE)
def test_every_encoding_is_undone_up_to_the_limit(name: str) -> None:
    data = bytes(range(256)) * (LIMIT // 256)
    assert body.decompress(ENCODE[name](data), f" {name.upper()} ", LIMIT) == data
    assert body.decompress(ENCODE[name](b""), name, LIMIT) == b""
    with pytest.raises(HttpError) as caught:
        body.decompress(ENCODE[name](data + b"x"), name, LIMIT)
    assert status(caught) == (413, "request_too_large")


@pytest.mark.parametrize("name", ENCODE)
def test_a_bomb_is_stopped_at_the_limit(name: str) -> None:
    bomb = ENCODE[name](bytes(64 * 1024 * 1024))
    tracemalloc.start()
    try:
        with pytest.raises(HttpError) as caught:
            body.decompress(bomb, name, 256 * 1024)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert status(caught) == (413, "request_too_large")
    assert peak < 2 * 1024 * 1024


def test_a_bomb_inside_another_encoding_is_stopped_as_well() -> None:
    bomb = gzip.compress(brotli.compress(bytes(64 * 1024 * 1024)))
    with pytest.raises(HttpError) as caught:
        body.decompress(bomb, "br, gzip", LIMIT)
    assert caught.value.status == 413


def test_several_encodings_are_undone_last_first() -> None:
    data = b'{"a": 1}'
    twice = gzip.compress(zstandard.compress(data))
    assert body.decompress(twice, "zstd, identity,, gzip", LIMIT) == data
    with pytest.raises(HttpError):
        body.decompress(twice, "gzip, zstd", LIMIT)


@pytest.mark.parametrize("names", ["compress", "gzip, magic", "magic, gzip"])
def test_an_unknown_encoding_is_named(names: str) -> None:
    with pytest.raises(HttpError, match=r"compress|magic") as caught:
        body.decompress(gzip.compress(b"{}"), names, LIMIT)
    assert status(caught) == (415, "unsupported_content_encoding")


@pytest.mark.parametrize("name", ENCODE)
@pytest.mark.parametrize("harm", ["garbage", "truncated", "trailing", "empty"])
def test_corrupt_data_is_the_clients_error(name: str, harm: str) -> None:
    whole = ENCODE[name](b'{"a": "some text that is long enough"}')
    data = {
        "garbage": b"\x00\x01nonsense\xff" * 4,
        "truncated": whole[: len(whole) // 2],
        "trailing": whole + b"more",
        "empty": b"",
    }[harm]
    with pytest.raises(HttpError) as caught:
        body.decompress(data, name, LIMIT)
    assert status(caught) == (400, "invalid_body")


def test_a_gzip_body_of_several_members_is_read_whole() -> None:
    """RFC 1952 section 2.2: a file is a series of members."""
    data = gzip.compress(b'{"a":') + gzip.compress(b"1}")
    assert body.decompress(data, "gzip", LIMIT) == b'{"a":1}'


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"7.0", 7),
        (b"-7.0", -7),
        (b"1e3", 1000),
        (b"0.5", 0.5),
        (b"1e300", 1e300),
        (b"9007199254740993", 9007199254740993),
        (b"1" + b"0" * 100, 10**100),
        (b'"\\ud83d\\ude00"', "😀"),
        ('"😀é"'.encode(), "😀é"),
        (b'"\\u0000"', "\0"),
        (b' \n{"a": [null, true]}\t', {"a": [None, True]}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    ],
)
def test_json_means_what_it_says(raw: bytes, value: object) -> None:
    parsed = body.parse(raw)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"  ",
        b"{",
        b'{"a": 1,}',
        b"{'a': 1}",
        b"{} {}",
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"1e999",
        b"-1e999",
        b"01",
        b'"\\ud800"',
        b'"\\ude00\\ud83d"',
        b'{"\\ud800": 1}',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'"a\nb"',
        b"[" * 100_000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b"1" * 5000,
        '{"a": 1}'.encode("utf-16"),
        '{"a": "\\ud800"}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-32-be"),
    ],
    ids=lambda raw: repr(raw[:24]),
)
def test_what_is_not_json_in_utf8_is_refused_readably(raw: bytes) -> None:
    """RFC 8259 section 8.1: UTF-8, without exception."""
    with pytest.raises(RequestError) as caught:
        body.parse(raw)
    assert caught.value.code == "invalid_json"
    assert caught.value.message.startswith("the body is not valid JSON: ")
    assert len(caught.value.message) < 200
    assert "sys." not in caught.value.message and "codec" not in caught.value.message
    caught.value.message.encode()
