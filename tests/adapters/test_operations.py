"""Health, metrics in both forms, and the published documents."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapters.operations import numbers, prefers_json
from engine.messages import EngineStats
from generated.operations import Health, MetricsSnapshot
from tests.adapters.asgi import app_of, app_serving, call
from tests.serving import PlayedClient, facts, reply, service_over

ASK = {"messages": [{"role": "user", "content": "hi"}]}


def samples(text: str) -> dict[str, float]:
    families = list(text_string_to_metric_families(text))
    assert all(family.documentation and family.type in ("counter", "gauge") for family in families)
    return {sample.name: sample.value for family in families for sample in family.samples}


async def test_metrics_count_what_happened_in_both_forms() -> None:
    async with app_serving("abc", reply("abc", fail_after=1)) as (app, _):
        await call(app, "POST", "/v1/chat/completions", ASK)
        await call(app, "POST", "/v1/chat/completions", ASK)
        text = await call(app, "GET", "/metrics")
        shown = await call(app, "GET", "/metrics?format=json")
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert shown.headers["content-type"] == "application/json"
    found = samples(text.content.decode())
    assert found["flare_requests_started_total"] == 2
    assert found["flare_requests_completed_total"] == 1
    assert found["flare_requests_failed_total"] == 1
    assert found["flare_generated_tokens_total"] == 5  # a b c and the end, then one before failing
    assert found["flare_free_kv_pages"] == found["flare_total_kv_pages"] > 0
    assert found["flare_kv_page_tokens"] == 16
    MetricsSnapshot.model_validate(shown.json, strict=True)
    assert shown.json["completed"] == 1 and shown.json["generated_tokens"] == 5
    assert shown.json["first_response"]["samples"] == 2
    assert shown.json["first_response"]["median_seconds"] > 0


async def test_metrics_count_what_was_forced_and_what_was_cut() -> None:
    path = "/v1/completions"
    async with app_serving(reply("ab" * 40, delay=0.002)) as (app, _):
        forced = {"prompt": "x", "regex": "abcd(e|f)", "max_tokens": 20}
        assert (await call(app, "POST", path, forced)).status == 200
        loop = {"prompt": "x", "max_tokens": 70, "repetition_detection": {"max_pattern_size": 4}}
        assert (await call(app, "POST", path, loop)).status == 200
        late = {"prompt": "x", "max_tokens": 70, "max_time_ms": 1}
        assert (await call(app, "POST", path, late)).status == 200
        text = await call(app, "GET", "/metrics")
        shown = (await call(app, "GET", "/metrics?format=json")).json
    found = samples(text.content.decode())
    for name, count in (("forced_tokens", 3), ("repetition_cuts", 1), ("deadline_cuts", 1)):
        assert found[f"flare_{name}_total"] == shown[name] == count


async def test_metrics_count_the_thoughts_that_were_closed() -> None:
    client = PlayedClient()
    client.stats = EngineStats(reasoning_budget_cuts=3, reasoning_loop_cuts=2)
    app = app_of(service_over(client, facts()))
    text = await call(app, "GET", "/metrics")
    shown = await call(app, "GET", "/metrics?format=json")
    found = samples(text.content.decode())
    MetricsSnapshot.model_validate(shown.json, strict=True)
    for name, count in (("reasoning_budget_cuts", 3), ("reasoning_loop_cuts", 2)):
        assert found[f"flare_{name}_total"] == shown.json[name] == count


async def test_metrics_tell_the_time_of_steps_and_of_kernels_in_them() -> None:
    client = PlayedClient()
    client.stats = EngineStats(steps=2, step_ns=7_000_000, kernel_ns=6_500_000)
    app = app_of(service_over(client, facts()))
    found = samples((await call(app, "GET", "/metrics")).content.decode())
    shown = (await call(app, "GET", "/metrics?format=json")).json
    MetricsSnapshot.model_validate(shown, strict=True)
    for name, short in (("step_ns", "step_nanoseconds"), ("kernel_ns", "kernel_nanoseconds")):
        assert found[f"flare_{short}_total"] == shown[name] == getattr(client.stats, name)


async def test_metrics_count_drafts_and_say_whether_a_model_makes_them() -> None:
    client = PlayedClient()
    client.stats = EngineStats(
        draft_steps=9, verify_steps=3, verification_drafts=8, verification_rounds=7,
        accepted_drafts=5, draft_rounds=4,
    )  # fmt: skip
    app = app_of(service_over(client, replace(facts(), learned_drafter=True)))
    found = samples((await call(app, "GET", "/metrics")).content.decode())
    shown = (await call(app, "GET", "/metrics?format=json")).json
    MetricsSnapshot.model_validate(shown, strict=True)
    names = {
        "verify_steps": "flare_speculative_rounds_total",
        "verification_drafts": "flare_verification_draft_tokens_total",
        "verification_rounds": "flare_verification_request_rounds_total",
        "accepted_drafts": "flare_accepted_draft_tokens_total",
        "draft_rounds": "flare_draft_request_rounds_total",
    }
    for key, name in names.items():
        assert found[name] == shown[key] == getattr(client.stats, key)
    assert (shown["draft_steps"], shown["learned_drafter"]) == (9, True)
    assert not any("draft_steps" in name or "drafter" in name for name in found)


async def test_metrics_count_the_sealed_thoughts_that_did_not_open() -> None:
    service = service_over(PlayedClient(), facts())
    service.counters.dropped_reasoning = 4
    text = await call(app_of(service), "GET", "/metrics")
    shown = await call(app_of(service), "GET", "/metrics?format=json")
    snapshot = MetricsSnapshot.model_validate(shown.json, strict=True)
    found = samples(text.content.decode())
    assert found["flare_dropped_reasoning_total"] == snapshot.dropped_reasoning == 4


async def test_every_number_of_the_json_form_is_a_metric() -> None:
    service = service_over(PlayedClient(), facts())
    text = await call(app_of(service), "GET", "/metrics")
    assert len(samples(text.content.decode())) == len(numbers(service))


@pytest.mark.parametrize(
    ("query", "accept", "wants_json"),
    [
        ("", None, False),
        ("?format=json", "text/plain", True),
        ("?format=prometheus", "application/json", False),
        ("", "application/json", True),
    ],
)
async def test_the_query_wins_over_the_accept_header(
    query: str, accept: str | None, wants_json: bool
) -> None:
    app = app_of(service_over(PlayedClient(), facts()))
    headers = {} if accept is None else {"accept": accept}
    answer = await call(app, "GET", f"/metrics{query}", headers=headers)
    assert (answer.headers["content-type"] == "application/json") is wants_json


async def test_another_format_is_refused() -> None:
    app = app_of(service_over(PlayedClient(), facts()))
    answer = await call(app, "GET", "/metrics?format=xml")
    assert (answer.status, answer.error["param"]) == (400, "format")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", True),
        ("application/*", True),
        ("Application/JSON", True),
        ("text/plain, application/json", False),
        ("application/json, text/plain", True),
        ("application/json;q=0.5, text/plain;q=0.4", True),
        ("application/json; Q=0.5, text/plain", False),
        ("application/json;q=0.5, text/plain;q=0.6", False),
        ("application/json;charset=utf-8;q=0.9, text/plain;q=0.8", True),
        ("application/json;q=0", False),
        ("application/json;q=0, */*", False),
        ("*/*, application/json", False),
        ("application/json, */*", True),
        ("text/plain;q=0.1, */*", True),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
        (
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,"
            "*/*;q=0.1",
            False,
        ),
        (";;;,,=", False),
        ("application/json;q=nonsense, text/plain", True),
        ("application/json;q=1.0001;q=", True),
        ("application/json;q=\u00e9", True),
    ],
)
def test_json_needs_a_higher_quality_or_an_earlier_place(accept: str, expected: bool) -> None:
    """Helios, "Health and metrics"; RFC 9110 section 12.5.1 for names, cases and specificity."""
    assert prefers_json(accept) is expected


async def test_health_follows_the_engine_and_the_drain() -> None:
    client = PlayedClient()
    service = service_over(client, facts())
    app = app_of(service, {"key": ""})
    well = await call(app, "GET", "/health")
    Health.model_validate(well.json, strict=True)
    assert well.status == 200
    service.draining = True
    ending = await call(app, "GET", "/health")
    assert (ending.status, ending.headers["retry-after"]) == (503, "5")
    service.draining = False
    client.failure = "the engine process has died"
    dead = await call(app, "GET", "/health")
    assert (dead.status, dead.error["message"]) == (503, "the engine process has died")


async def test_the_documents_are_self_contained() -> None:
    app = app_of(service_over(PlayedClient(), facts()), {"key": ""})
    document = json.loads((await call(app, "GET", "/openapi.json")).content)
    assert document["openapi"].startswith("3.2")
    page = await call(app, "GET", "/docs")
    assert page.headers["content-type"].startswith("text/html")
    text = page.content.decode()
    assert not any(f'{attribute}="http' in text for attribute in ("src", "href"))
    assert all(path in text for path in document["paths"])
