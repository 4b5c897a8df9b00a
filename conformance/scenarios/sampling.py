"""Sampling and control that a server, not only a request, decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conformance.profiles import CLAMPED, Pool
from conformance.replies import send
from conformance.server import Server

_ROUTES = ("chat", "completions", "messages", "responses")
_CUT = ("length", "max_tokens", "max_output_tokens")
_LOOP = {"match": "loop", "text": " tick tock tick tock tick tock tick tock tick tock"}
_SLOW = {
    "match": "slow",
    "text": " one two three four five six seven eight nine ten",
    "delay_ms": 40,
}


def _body(route: str, text: str, **fields: Any) -> dict[str, Any]:
    if route == "completions":
        return {"prompt": text, **fields}
    if route == "responses":
        if "max_tokens" in fields:
            fields["max_output_tokens"] = fields.pop("max_tokens")
        return {"model": "m", "input": text, **fields}
    limit = {"max_tokens": 64} if route == "messages" else {}
    return {"messages": [{"role": "user", "content": text}], **limit, **fields}


def clamped_ranges(pool: Pool, _: Callable[..., Server]) -> None:
    """A temperature outside the declared range becomes its nearest end; the card says so."""
    server = pool.get("tight")
    card = server.http.get("/v1/models").json()["data"][0]["flare"]
    ranges = card["sampling_ranges"]
    assert ranges["temperature"] == {"min": 0.0, "max": CLAMPED}, ranges
    assert ranges["top_p"] is None, "a range that nobody declared"
    for route in _ROUTES:
        ask = _body(route, "Name a color.", max_tokens=5, seed=7)
        texts = {
            heat: send(server.http, route, {**ask, "temperature": heat}).text
            for heat in (0.5, CLAMPED, 2)
        }
        assert texts[2] == texts[CLAMPED], f"{route}: not clamped: {texts}"
        assert texts[0.5] != texts[CLAMPED], f"{route}: the case shows nothing: {texts}"


def _pending(number: int) -> Callable[[dict[str, Any]], bool]:
    return lambda metrics: bool(metrics["pending"] == number)


def priority(_: Pool, start: Callable[..., Server]) -> None:
    """One place: of two that wait, the later one with the lower value runs before the other."""
    server = start([_SLOW], "--max-concurrency", "1", "--max-queue", "8")
    for route in _ROUTES:
        ended: dict[str, float] = {}

        def ask(
            name: str, number: int, route: str = route, ended: dict[str, float] = ended
        ) -> None:
            body = _body(route, f"slow {name}", priority=number, max_tokens=10)
            assert send(server.http, route, body).status == 200
            ended[name] = time.monotonic()

        with ThreadPoolExecutor(3) as threads:
            asked = [threads.submit(ask, "first", 0)]
            server.until(lambda m: m["active"] == 1, "the first one runs")
            for waiting, (name, number) in enumerate((("late", 5), ("urgent", -5)), 1):
                asked.append(threads.submit(ask, name, number))
                server.until(_pending(waiting), f"{name} waits")
            for one in asked:
                one.result()
        assert sorted(ended, key=lambda name: ended[name]) == ["first", "urgent", "late"], route


def default_loop_rule(_: Pool, start: Callable[..., Server]) -> None:
    """The server's rule for loops, a request's own rule, and what the metrics count."""
    server = start([_LOOP, _SLOW], "--repetition-detection", "4:1:3")
    before = server.metrics()
    for route in _ROUTES:
        looped = send(server.http, route, _body(route, "loop", max_tokens=40))
        assert looped.finish in _CUT and looped.text == " tick tock tick tock tick tock", looped
        own = {"max_pattern_size": 4, "min_count": 2}
        mine = send(server.http, route, _body(route, "loop", repetition_detection=own))
        assert mine.finish in _CUT and mine.text == " tick tock tick tock", mine
        late = send(server.http, route, _body(route, "slow", max_time_ms=120, max_tokens=10))
        assert late.finish in _CUT and late.text != _SLOW["text"], late
    after = server.until_idle()
    assert after["repetition_cuts"] - before["repetition_cuts"] == 2 * len(_ROUTES), after
    assert after["deadline_cuts"] - before["deadline_cuts"] == len(_ROUTES), after
    for route in _ROUTES:
        off = {"max_pattern_size": 0}  # the request's own rule: no detection
        whole = send(
            server.http, route, _body(route, "loop", repetition_detection=off, max_tokens=40)
        )
        assert whole.finish in ("stop", "end_turn", "completed"), f"{route}: {whole.outcome()}"
        assert whole.text == _LOOP["text"], f"{route}: {whole.outcome()}"


SCENARIOS = (clamped_ranges, priority, default_loop_rule)
