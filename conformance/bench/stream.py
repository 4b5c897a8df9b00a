"""One lenient reader for every server, ours and others', so that all are timed alike.

The strict readers of `conformance` hold our replies to their protocol; here only times and counts
matter, and other servers have other habits: blanks, comments, where the usage stands.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from conformance.bench.measure import Timed


@dataclass(frozen=True)
class Stream(Timed):
    """One streamed completion of any server. Times are seconds of the monotonic clock.

    `arrivals` are the times of the pieces of text; `first` is the first of them, 0 if there was
    none; `ended` is that of the last chunk with a choice. `tokens`, `cached` and `prompt_tokens`
    are what the usage says, `accepted` how many output tokens came from drafts. `fault` says why
    the numbers may not be used; it is empty when they may.
    """

    arrivals: tuple[float, ...] = ()
    prompt_tokens: int = 0
    accepted: int = 0
    fault: str = ""

    @property
    def rate(self) -> float:
        """Tokens a second after the first one; 0 where no time passed between them."""
        return super().rate if self.ended > self.first else 0.0

    @property
    def gaps(self) -> list[float]:
        """Seconds between one piece of text and the next."""
        pairs = zip(self.arrivals, self.arrivals[1:], strict=False)
        return [later - earlier for earlier, later in pairs]


@dataclass
class Reading:
    """A stream while it arrives."""

    pieces: list[str] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    ended: float = 0.0
    usage: dict[str, Any] = field(default_factory=dict)
    timings: dict[str, Any] = field(default_factory=dict)
    fault: str = ""

    def take(self, chunk: dict[str, Any], now: float) -> None:
        """Add one chunk, which arrived at `now`."""
        if error := chunk.get("error"):
            self.fault = self.fault or f"error: {_message(error)}"
        # The last usage counts: some servers send a growing one with every chunk.
        self.usage = chunk.get("usage") or self.usage
        self.timings = chunk.get("timings") or self.timings
        for choice in chunk.get("choices") or ():
            self.ended = now
            if text := _text(choice):
                self.pieces.append(text)
                self.arrivals.append(now)

    def finished(self, begun: float, wanted: int) -> Stream:
        """The whole. It has a fault unless the usage says that `wanted` tokens were made."""
        usage, details = self.usage, self.usage.get("completion_tokens_details") or {}
        tokens = usage.get("completion_tokens") or 0
        fault = self.fault
        if not fault and not usage:
            fault = "sends no usage"
        elif not fault and tokens != wanted:
            fault = f"made {tokens} of {wanted} tokens"
        elif not fault and not self.arrivals:
            fault = "made no text"
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        accepted = details.get("accepted_prediction_tokens")
        return Stream(
            text="".join(self.pieces),
            begun=begun,
            first=self.arrivals[0] if self.arrivals else 0.0,
            ended=self.ended,
            tokens=tokens,
            # llama.cpp says these beside the usage.
            cached=cached or self.timings.get("cache_n") or 0,
            arrivals=tuple(self.arrivals),
            prompt_tokens=usage.get("prompt_tokens") or 0,
            accepted=accepted or self.timings.get("draft_n_accepted") or 0,
            fault=fault,
        )


def streamed(client: httpx2.Client, path: str, body: dict[str, Any], wanted: int) -> Stream:
    """Send a streaming request and time its reply; what goes wrong is the stream's fault."""
    reading = Reading()
    begun = time.monotonic()
    try:
        with client.stream("POST", path, json=body) as response:
            if response.status_code == 200:
                for chunk in chunks(response.iter_bytes()):
                    reading.take(chunk, time.monotonic())
            else:
                said = response.read().decode("utf-8", "replace")
                reading.fault = f"status {response.status_code}: {said[:200]}"
    except (httpx2.HTTPError, ValueError) as error:
        reading.fault = f"{type(error).__name__}: {error}"
    return reading.finished(begun, wanted)


def chunks(parts: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects of an event stream, each as soon as its line is complete.

    Raises ValueError for data that is no JSON object.
    """
    rest = b""
    for part in parts:
        # Only line feeds end a line: JSON may hold what `splitlines` takes for another end.
        *lines, rest = (rest + part).split(b"\n")
        yield from filter(None, map(_chunk, lines))
    if last := _chunk(rest):
        yield last


def _chunk(line: bytes) -> dict[str, Any] | None:
    name, _, value = line.partition(b":")
    value = value.strip()
    if name not in (b"data", b"error") or value in (b"", b"[DONE]"):
        return None
    found = json.loads(value)
    if not isinstance(found, dict):
        raise ValueError(f"not an object: {value[:80]!r}")
    return {"error": found} if name == b"error" else found


def _text(choice: dict[str, Any]) -> str:
    delta = choice.get("delta") or {}
    return choice.get("text") or delta.get("content") or delta.get("reasoning_content") or ""


def _message(error: Any) -> str:
    return str(error.get("message", error) if isinstance(error, dict) else error)[:200]
