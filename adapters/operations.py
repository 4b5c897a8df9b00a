"""Health, metrics and the documents made from the specs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic_core import to_json
from starlette.responses import Response

from adapters.call import Call
from engine.counters import CAPACITY, WINDOW_SECONDS
from engine.errors import EngineUnavailable, RequestError
from engine.service import Service

_GENERATED = Path(__file__).parent.parent / "generated"


async def health(call: Call) -> Response:
    """200 while the engine works and takes requests. Raises EngineUnavailable."""
    failure = call.service.client.failure
    if failure is not None:
        raise EngineUnavailable(failure)
    if call.service.draining:
        raise EngineUnavailable("the server is stopping")
    return Response(b'{"status":"ok"}', media_type="application/json")


async def metrics(call: Call) -> Response:
    """Prometheus text, or one JSON object where the query or the Accept header prefers it."""
    asked = call.request.query_params.get("format")
    if asked not in (None, "json", "prometheus"):
        raise RequestError("format must be json or prometheus", "format")
    wants_json = asked == "json" if asked else prefers_json(call.request.headers.get("accept", ""))
    if wants_json:
        return Response(to_json(snapshot(call.service)), media_type="application/json")
    registry = CollectorRegistry()
    registry.register(_Metrics(call.service))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def openapi_document(call: Call) -> Response:
    """All specs as one OpenAPI document."""
    return Response((_GENERATED / "openapi.json").read_bytes(), media_type="application/json")


async def docs(call: Call) -> Response:
    """The same for people."""
    return Response((_GENERATED / "docs.html").read_bytes(), media_type="text/html")


def prefers_json(accept: str) -> bool:
    """Whether an Accept header gives JSON a higher quality than text; a tie goes to the earlier."""
    given: dict[str, tuple[float, int]] = {}
    for place, item in enumerate(accept.lower().split(",")):
        media_range, *parameters = (part.strip() for part in item.split(";"))
        quality = 1.0
        for parameter in parameters:
            if found := re.fullmatch(r"q=([01](?:\.\d{0,3})?)", parameter):
                quality = float(found[1])
        given.setdefault(media_range, (quality, -place))

    def preference(media_type: str) -> tuple[float, int]:
        """The most specific range decides (RFC 9110, section 12.5.1)."""
        ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
        return next((given[name] for name in ranges if name in given), (0.0, 0))

    return preference("application/json") > preference("text/plain")


def snapshot(service: Service) -> dict[str, object]:
    """The JSON form."""
    first_response = service.counters.first_response
    samples = first_response.recent()
    return {
        **numbers(service),
        "draft_steps": service.client.stats.draft_steps,
        "learned_drafter": service.info.engine.learned_drafter,
        "decode_weight_bytes": service.info.engine.decode_weight_bytes,
        "first_response": {
            "median_seconds": first_response.median(),
            "samples": len(samples),
            "window_seconds": WINDOW_SECONDS,
            "capacity": CAPACITY,
            "truncated": len(samples) == CAPACITY,
        },
    }


def numbers(service: Service) -> dict[str, int]:
    """Totals since the start and gauges of this moment, by their names in the JSON form."""
    counters, stats = service.counters, service.client.stats
    return {
        "prefill_tokens": stats.prefill_tokens,
        "generated_tokens": stats.generated_tokens,
        "active": stats.active,
        "pending": stats.pending,
        "started": counters.started,
        "completed": counters.completed,
        "failed": counters.failed,
        "cancelled": counters.cancelled,
        "refused": counters.refused,
        "held": service.held,
        "steps": stats.steps,
        "step_ns": stats.step_ns,
        "kernel_ns": stats.kernel_ns,
        "preemptions": stats.preemptions,
        "forced_tokens": stats.forced_tokens,
        "verify_steps": stats.verify_steps,
        "verification_drafts": stats.verification_drafts,
        "verification_rounds": stats.verification_rounds,
        "accepted_drafts": stats.accepted_drafts,
        "draft_rounds": stats.draft_rounds,
        "repetition_cuts": stats.repetition_cuts,
        "deadline_cuts": stats.deadline_cuts,
        "reasoning_budget_cuts": stats.reasoning_budget_cuts,
        "reasoning_loop_cuts": stats.reasoning_loop_cuts,
        "malformed_calls": counters.malformed_calls,
        "dropped_reasoning": counters.dropped_reasoning,
        "reused_tokens": stats.reused_tokens,
        "cached_pages": stats.cached_pages,
        "free_pages": stats.free_pages,
        "total_pages": stats.total_pages,
        "page_tokens": service.info.engine.page_tokens,
    }


_COUNTERS = {
    "prefill_tokens": ("flare_prefill_tokens", "Prompt tokens computed"),
    "generated_tokens": ("flare_generated_tokens", "Tokens generated, stop tokens included"),
    "started": ("flare_requests_started", "Choices admitted"),
    "completed": ("flare_requests_completed", "Choices that ended well"),
    "failed": ("flare_requests_failed", "Choices that failed"),
    "cancelled": ("flare_requests_cancelled", "Choices whose client went away"),
    "refused": ("flare_requests_refused", "Choices refused because every place was taken"),
    "steps": ("flare_steps", "Steps of the engine"),
    "step_ns": ("flare_step_nanoseconds", "Time of the steps"),
    "kernel_ns": (
        "flare_kernel_nanoseconds",
        "Time of the steps in operations of the device; zero where the backend cannot tell",
    ),
    "preemptions": ("flare_preemptions", "Sequences that had to give their pages back"),
    "forced_tokens": ("flare_forced_tokens", "Tokens that a grammar left no choice about"),
    "verify_steps": ("flare_speculative_rounds", "Steps that checked drafts"),
    "verification_drafts": ("flare_verification_draft_tokens", "Drafts that were checked"),
    "verification_rounds": (
        "flare_verification_request_rounds",
        "Times that a decoding sequence got on, with drafts or without",
    ),
    "accepted_drafts": ("flare_accepted_draft_tokens", "Drafts that became output"),
    "draft_rounds": ("flare_draft_request_rounds", "Times that a sequence had drafts checked"),
    "repetition_cuts": ("flare_repetition_cuts", "Sequences ended because they looped"),
    "deadline_cuts": ("flare_deadline_cuts", "Sequences ended by their time limit"),
    "reasoning_budget_cuts": (
        "flare_reasoning_budget_cuts",
        "Thoughts closed because their budget was used up",
    ),
    "reasoning_loop_cuts": ("flare_reasoning_loop_cuts", "Thoughts closed because they looped"),
    "malformed_calls": (
        "flare_malformed_tool_calls",
        "What began like a tool call and was returned as text",
    ),
    "dropped_reasoning": (
        "flare_dropped_reasoning",
        "Sealed thoughts of clients that did not open and were left out",
    ),
    "reused_tokens": ("flare_cache_reused_tokens", "Prompt tokens found in the prefix cache"),
}
_GAUGES = {
    "active": ("flare_active_requests", "Sequences being generated"),
    "pending": ("flare_pending_requests", "Sequences waiting for the engine"),
    "held": ("flare_admitted_requests", "Choices that hold a place"),
    "cached_pages": ("flare_cached_kv_pages", "Pages that a prefix match can find"),
    "free_pages": ("flare_free_kv_pages", "Pages without an owner"),
    "total_pages": ("flare_total_kv_pages", "Pages in the pool"),
    "page_tokens": ("flare_kv_page_tokens", "Tokens of a page"),
}


class _Metrics(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        values = numbers(self._service)
        for key, (name, text) in _COUNTERS.items():
            yield CounterMetricFamily(name, text, value=values[key])
        for key, (name, text) in _GAUGES.items():
            yield GaugeMetricFamily(name, text, value=values[key])
