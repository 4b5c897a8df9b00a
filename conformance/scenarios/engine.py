"""What holds whatever else runs: equal text, whole caches, counters that add up."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from conformance import sse
from conformance.profiles import Pool
from conformance.replies import Reply, opened, send
from conformance.server import Server

TOPICS = ("rain", "iron", "bread", "maps", "owls", "chess", "salt", "the night sky")


def question(number: int, **fields: Any) -> dict[str, Any]:
    """A conversation of its own length for each number, answered greedily."""
    topic = TOPICS[number % len(TOPICS)]
    text = f"Question {number}: write about {topic}. " + f"{topic}. " * number
    return {"messages": [{"role": "user", "content": text}], "temperature": 0, **fields}


def same_text_in_company(pool: Pool, _: Callable[..., Server]) -> None:
    """D180: greedy text of a prompt alone, in a batch of six, with a cold and a warm cache."""
    server = pool.get("embedded")

    def ask(number: int) -> Reply:
        return send(server.http, "chat", question(number, max_tokens=6, cache_salt=str(number)))

    with ThreadPoolExecutor(6) as threads:
        together = [reply.text for reply in threads.map(ask, range(6))]
        again = [reply.text for reply in threads.map(ask, range(6))]
    alone = ask(5)
    assert together == again, "a warm cache changed a text"
    assert alone.text == together[5], "company changed a text"
    assert alone.usage and alone.usage["prompt_tokens_details"]["cached_tokens"] > 0
    fresh = send(server.http, "chat", question(5, max_tokens=6, cache_salt="another"))
    assert fresh.text == alone.text


def aborted_prefill(pool: Pool, _: Callable[..., Server]) -> None:
    """D181: a prompt dropped during its prefill; what it left in the cache is whole or absent."""
    server = pool.get("scripted")
    before = server.until_idle()
    slow = {"prompt": "D181" + " word" * 6000, "stream": True, "max_tokens": 4}
    with opened(server.http, "completions", slow):
        begun = before["prefill_tokens"]
        server.until(lambda m: m["prefill_tokens"] > begun, "the prefill has begun")
    computed = server.until_idle_since(before)["prefill_tokens"]
    assert 0 < computed < 6000, "the prefill was not stopped"
    for words in (1000, 6000):
        reply = send(server.http, "completions", {**slow, "prompt": "D181" + " word" * words})
        assert reply.text == "ok" and reply.done
    moved = server.until_idle_since(before)
    assert moved["reused_tokens"] <= computed + 1000, "pages that nobody computed were reused"


def aborted_prefill_for_real(pool: Pool, _: Callable[..., Server]) -> None:
    """D181 on the model: text after an abort equals the text of an untouched cache."""
    server = pool.get("embedded")
    story = " ".join(f"Line {number} speaks of {TOPICS[number % 8]}." for number in range(30))
    ask = {"prompt": story, "max_tokens": 8, "temperature": 0}
    before = server.metrics()["prefill_tokens"]
    with opened(server.http, "completions", {**ask, "stream": True, "cache_salt": "aborted"}):
        server.until(lambda m: m["prefill_tokens"] > before, "the prefill has begun")
    server.until_idle()
    resent = send(server.http, "completions", {**ask, "cache_salt": "aborted"})
    fresh = send(server.http, "completions", {**ask, "cache_salt": "fresh"})
    assert resent.text == fresh.text
    part = {**ask, "prompt": story[: len(story) // 2]}
    resent = send(server.http, "completions", {**part, "cache_salt": "aborted"})
    fresh = send(server.http, "completions", {**part, "cache_salt": "new"})
    assert resent.text == fresh.text
    server.until_idle()


def counters(pool: Pool, _: Callable[..., Server]) -> None:
    """D184: one completed, one cancelled, one failed; the counters add up, the gauges return."""
    server = pool.get("scripted")
    before = server.until_idle()

    def chat(text: str, **fields: Any) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": text}], **fields}

    with opened(server.http, "chat", chat("D184 long", stream=True)) as response:
        stream = sse.events(response.iter_raw())
        next(stream)
        during = server.metrics()
        assert (during["active"], during["held"]) == (1, 1), during
        assert during["free_pages"] < during["total_pages"], during
    assert send(server.http, "chat", chat("hello")).finish == "stop"
    assert send(server.http, "chat", chat("D184 bad")).status == 500
    moved = server.until_idle_since(before)
    ends = {name: moved[name] for name in ("started", "completed", "failed", "cancelled")}
    assert ends == {"started": 3, "completed": 1, "failed": 1, "cancelled": 1}
    text = server.http.get("/metrics").text
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    started, ended = samples["flare_requests_started_total"], 0.0
    for name in ("completed", "failed", "cancelled"):
        ended += samples[f"flare_requests_{name}_total"]
    assert started == ended == before["started"] + 3


def prefill_is_counted(pool: Pool, _: Callable[..., Server]) -> None:
    """Helios: prefill_tokens are the prompt tokens computed; with the reused ones, all of them."""
    server = pool.get("scripted")
    before = server.until_idle()
    total = 0
    for _turn in range(3):
        body = {"prompt": "PREFILL-COUNT" + " word" * 50, "max_tokens": 1}
        reply = send(server.http, "completions", body)
        assert reply.usage
        total += reply.usage["prompt_tokens"]
    moved = server.until_idle_since(before)
    assert moved["prefill_tokens"] + moved["reused_tokens"] == total, moved
    assert moved["generated_tokens"] == 3, moved


SCENARIOS = (
    same_text_in_company,
    aborted_prefill,
    aborted_prefill_for_real,
    counters,
    prefill_is_counted,
)
