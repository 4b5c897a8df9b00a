"""What a client and a server said to each other, byte for byte: a relay between the two.

The relay knows nothing of HTTP, so that it can change nothing; what went through is read later.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from types import TracebackType
from typing import Any, cast
from urllib.parse import urlsplit

from conformance import sse

_PIECE = 65536


@dataclass
class Tape:
    """What one side of a connection has sent, and when its pieces arrived."""

    data: bytearray = field(default_factory=bytearray)
    pieces: list[tuple[int, float]] = field(default_factory=list)

    def add(self, piece: bytes) -> None:
        self.pieces.append((len(self.data), time.monotonic()))
        self.data += piece

    def time_of(self, offset: int) -> float:
        """When the byte there arrived."""
        return max(at for start, at in self.pieces if start <= offset)


@dataclass(frozen=True)
class Exchange:
    """A request and its answer. `status` is 0 where none came; `whole`: the answer was not cut."""

    at: float
    method: str
    target: str
    headers: Message
    body: Any
    status: int
    answer_headers: Message
    answer: bytes
    whole: bool

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The data of the events of a streamed answer."""
        return [event.data for event in sse.parse(self.answer) if event.data is not None]

    @property
    def prompt_tokens(self) -> int:
        return self._usage["input_tokens"] + self.cached_tokens

    @property
    def cached_tokens(self) -> int:
        return self._usage["cache_read_input_tokens"]

    @property
    def _usage(self) -> dict[str, int]:
        """The final counts, which are in the message_delta."""
        (usage,) = (e["usage"] for e in self.events if e["type"] == "message_delta")
        return cast(dict[str, int], usage)

    @property
    def text(self) -> str:
        """The text of a streamed message."""
        deltas = [e["delta"] for e in self.events if e["type"] == "content_block_delta"]
        return "".join(delta["text"] for delta in deltas if delta["type"] == "text_delta")

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The content blocks of a streamed message as they began, signatures in their places."""
        blocks: list[dict[str, Any]] = []
        for event in self.events:
            if event["type"] == "content_block_start":
                blocks.append(dict(event["content_block"]))
            elif event["type"] == "content_block_delta":
                blocks[-1] |= {k: v for k, v in event["delta"].items() if k == "signature"}
        return blocks


class Recorder:
    """A relay to a server, as a context manager; clients use its `url` in place of the server's."""

    def __init__(self, server_url: str) -> None:
        address = urlsplit(server_url)
        assert address.hostname and address.port, server_url
        self._relay = _Relay((address.hostname, address.port))
        self.url = f"http://127.0.0.1:{self._relay.server_address[1]}"

    def __enter__(self) -> Recorder:
        threading.Thread(target=self._relay.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._relay.shutdown()
        self._relay.server_close()

    def exchanges(self) -> list[Exchange]:
        """All requests with their answers, in the order in which they were sent."""
        found = [one for sent, came in self._relay.tapes for one in _exchanges(sent, came)]
        return sorted(found, key=lambda exchange: exchange.at)


class _Relay(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False  # a connection that idles would hold it up

    def __init__(self, target: tuple[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.target = target
        self.tapes: list[tuple[Tape, Tape]] = []


class _Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        relay = cast(_Relay, self.server)
        sent, came = Tape(), Tape()
        relay.tapes.append((sent, came))
        with socket.create_connection(relay.target) as server:
            back = threading.Thread(target=_pass, args=(server, self.request, came), daemon=True)
            back.start()
            _pass(self.request, server, sent)
            back.join()


def _pass(source: socket.socket, sink: socket.socket, tape: Tape) -> None:
    """Hand on what comes until its end, which is handed on too."""
    try:
        while piece := source.recv(_PIECE):
            tape.add(piece)
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # the other side has gone; nobody is left to tell
        pass


class _Bytes(io.BytesIO):
    """A connection's bytes for the standard library's client, which reads one answer a time."""

    def makefile(self, mode: str) -> _Bytes:
        return self

    def close(self) -> None:
        """The next answer is read from here too."""


def _exchanges(sent: Tape, came: Tape) -> Iterator[Exchange]:
    requests, answers = io.BytesIO(sent.data), _Bytes(came.data)
    while True:
        at = requests.tell()
        line = requests.readline().decode("ascii").split()
        if not line:
            return
        headers = http.client.parse_headers(requests)
        assert "transfer-encoding" not in headers, "a request body of unknown length"
        body = requests.read(int(headers.get("content-length", "0")))
        response = http.client.HTTPResponse(cast(socket.socket, answers), method=line[0])
        status, answer, whole = _read(response)
        yield Exchange(
            at=sent.time_of(at),
            method=line[0],
            target=line[1],
            headers=headers,
            body=json.loads(body) if body else None,
            status=status,
            answer_headers=response.headers if status else Message(),
            answer=answer,
            whole=whole,
        )


def _read(response: http.client.HTTPResponse) -> tuple[int, bytes, bool]:
    """The status, the body, and whether it is all of it."""
    try:
        response.begin()
    except http.client.HTTPException:
        return 0, b"", False
    try:
        return response.status, response.read(), True
    except http.client.IncompleteRead as error:
        return response.status, error.partial, False
