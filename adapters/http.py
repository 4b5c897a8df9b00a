"""HTTP/1.1 as uvicorn speaks it, but for offers to leave it."""

from __future__ import annotations

import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_OFFER = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)
_REQUEST_WITH_BODY = re.compile(rb"(?!GET )[A-Z]+ \S+ HTTP/1\.[01]\r\n")
_HEAD_END = b"\r\n\r\n"


class HttpProtocol(HttpToolsProtocol):
    """Passes offers of other protocols over where a body follows (RFC 9110, section 7.8).

    The parser takes what follows such an offer for the other protocol and drops the body. Java's
    HttpClient offers HTTP/2 with its first request, body included.
    """

    def data_received(self, data: bytes) -> None:
        head, end, rest = data.partition(_HEAD_END)
        if end and _REQUEST_WITH_BODY.match(head) and _OFFER.search(head):
            data = _OFFER.sub(b"", head) + end + rest
        super().data_received(data)
