"""Request bodies: read within bounds, decompressed within bounds, parsed strictly."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable

import brotli
import zstandard
from starlette.requests import ClientDisconnect, Request

from adapters.envelope import HttpError
from engine.errors import RequestError

_EXACT = 2**53  # integral floats up to here are the integer they show


async def read(request: Request, limit: int) -> bytes:
    """The body as sent. Raises HttpError 413 over `limit` bytes, 415 for another media type."""
    media_type = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if media_type.lower() != "application/json" and not media_type.lower().endswith("+json"):
        message = f"the body must be application/json, not {media_type or 'empty'}"
        raise HttpError(415, message, code="unsupported_media_type")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
    except ClientDisconnect:
        raise HttpError(400, "the client closed the connection before the body ended") from None
    return b"".join(parts)


def decompress(body: bytes, encodings: str, limit: int) -> bytes:
    """Undo the Content-Encoding, last one first.

    Raises HttpError 415 for an unknown encoding, 413 when the result is over `limit` bytes, 400 for
    corrupt data. Memory stays within the limit whatever the data says.
    """
    for name in reversed([part.strip().lower() for part in encodings.split(",") if part.strip()]):
        if name == "identity":
            continue
        decoder = _DECODERS.get(name)
        if decoder is None:
            message = f"unknown Content-Encoding {name}; known are {', '.join(_DECODERS)}"
            raise HttpError(415, message, code="unsupported_content_encoding")
        try:
            body = decoder(body, limit)
        except (zlib.error, brotli.error, zstandard.ZstdError, EOFError):
            raise HttpError(
                400, f"the body is not valid {name} data", code="invalid_body"
            ) from None
        if len(body) > limit:
            raise _too_large(limit)
    return body


def parse(body: bytes) -> object:
    """Strict JSON (RFC 8259). Raises RequestError for what is not.

    `7.0` becomes 7, since JSON Schema calls it an integer; NaN, Infinity and halves of surrogate
    pairs are refused, since no reply could carry them.
    """
    try:
        value: object = json.loads(body, parse_float=_number, parse_constant=_refuse)
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RequestError(f"the body is not valid JSON: {reason}", code="invalid_json") from None
    return value


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:32]} is out of range")
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _too_large(limit: int) -> HttpError:
    return HttpError(413, f"the body is larger than {limit} bytes", code="request_too_large")


def _inflate(body: bytes, limit: int, window_bits: int) -> bytes:
    decoder = zlib.decompressobj(window_bits)
    result = decoder.decompress(body, limit + 1)
    if not decoder.eof and len(result) <= limit:
        raise EOFError
    return result


def _gzip(body: bytes, limit: int) -> bytes:
    return _inflate(body, limit, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes, limit: int) -> bytes:
    return _inflate(body, limit, zlib.MAX_WBITS)


def _brotli(body: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    result = decoder.process(body, output_buffer_limit=limit + 1)
    while not decoder.is_finished() and len(result) <= limit:
        if decoder.can_accept_more_data():
            raise EOFError
        result += decoder.process(b"", output_buffer_limit=limit + 1)
    return bytes(result)


def _zstd(body: bytes, limit: int) -> bytes:
    with zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(body) as reader:
        return reader.read(limit + 1)


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
