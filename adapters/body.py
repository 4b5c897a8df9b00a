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

_MOST_DIGITS = 400
_ZSTD_WINDOW = 8 * 1024 * 1024
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
    """Strict JSON in UTF-8 (RFC 8259). Raises RequestError for what is not.

    `7.0` becomes 7, since JSON Schema calls it an integer; NaN, Infinity and halves of surrogate
    pairs are refused, since no reply could carry them.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _invalid_json(f"it is not UTF-8 at byte {error.start}") from None
    try:
        value: object = json.loads(
            text, parse_int=_integer, parse_float=_number, parse_constant=_refuse
        )
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _invalid_json("it escapes half of a surrogate pair") from None
    except RecursionError:
        raise _invalid_json("it is nested too deeply") from None
    except ValueError as error:
        raise _invalid_json(str(error)) from None
    return value


def _invalid_json(reason: str) -> RequestError:
    return RequestError(f"the body is not valid JSON: {reason}", code="invalid_json")


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"{text[:20]}... has too many digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:32]} is out of range")
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _too_large(limit: int) -> HttpError:
    return HttpError(413, f"the body is larger than {limit} bytes", code="request_too_large")


def _gzip(body: bytes, limit: int) -> bytes:
    """All members of a gzip file (RFC 1952)."""
    result = b""
    while True:
        decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
        result += decoder.decompress(body, limit + 1 - len(result))
        if len(result) > limit or (decoder.eof and not decoder.unused_data):
            return result
        if not decoder.eof:
            raise EOFError
        body = decoder.unused_data


def _deflate(body: bytes, limit: int) -> bytes:
    decoder = zlib.decompressobj()
    result = decoder.decompress(body, limit + 1)
    if len(result) <= limit and (not decoder.eof or decoder.unused_data):
        raise EOFError
    return result


def _brotli(body: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    result = decoder.process(body, output_buffer_limit=limit + 1)
    while not decoder.is_finished() and len(result) <= limit:
        if decoder.can_accept_more_data():
            raise EOFError
        result += decoder.process(b"", output_buffer_limit=limit + 1)
    return bytes(result)


def _zstd(body: bytes, limit: int) -> bytes:
    """All frames of zstd data (RFC 8878), with the windows that RFC 9659 allows.

    The reader bounds the result but does not tell a cut frame from a whole one; the second pass,
    whose result is known to be small, does.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    with decompressor.stream_reader(body, read_across_frames=True) as reader:
        result = reader.read(limit + 1)
    while len(result) <= limit:
        frame = decompressor.decompressobj()
        frame.decompress(body)
        if not frame.eof:
            raise EOFError
        if not frame.unused_data:
            break
        body = frame.unused_data
    return result


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
