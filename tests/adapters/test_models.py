"""The model in both shapes: every promised row, one value for as long as the server runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_core import from_json

from adapters.models import encode_card, encode_model
from engine.types import Sampling
from generated.models import (
    AnthropicModel,
    AnthropicModelList,
    FlareCard,
    ModelCard,
    ModelList,
    SamplingDefaults,
)
from tests.adapters.asgi import app_serving, call
from tests.serving import facts, model_info

VERSION = {"anthropic-version": "2023-06-01"}
NAMES = ("first", "second", "org/tiny")


def test_the_card_has_every_row_of_the_spec() -> None:
    info = model_info(facts(777), default_max_tokens=9)
    card = encode_card(info)
    ModelCard.model_validate(card, strict=True)
    flare = card["flare"]
    assert isinstance(flare, dict)
    assert set(flare) == set(FlareCard.model_fields)
    assert set(flare["sampling_defaults"]) == set(SamplingDefaults.model_fields)
    assert {card[name] for name in ("max_model_len", "context_length", "context_window")} == {777}
    assert (card["id"], card["root"], card["parent"]) == ("first", "org/tiny", None)
    assert card["owned_by"] == "local"


def test_the_rows_say_what_is_served() -> None:
    defaults = Sampling(temperature=0.3, top_k=7, seed=11, repetition_penalty=1.2)
    flare = encode_card(model_info(facts(), defaults=defaults, default_max_tokens=9))["flare"]
    assert isinstance(flare, dict)
    assert flare["default_max_tokens"] == 9
    assert flare["vocab_size"] == facts().vocab_size
    assert (flare["max_concurrency"], flare["prefill_chunk_size"]) == (4, 32)
    assert (
        flare["sampling_defaults"] | {"temperature": 0.3, "top_k": 7, "seed": 11}
        == (flare["sampling_defaults"])
    )
    assert all(flare[name] == 0 for name in flare if "image" in name)
    assert flare["input_modalities"] == flare["output_modalities"] == ["text"]


def test_declared_ranges_are_advertised_and_others_are_null() -> None:
    ranges = {"temperature": (0.7, 1.0), "top_k": (1.0, 40.0)}
    card = encode_card(model_info(facts(), sampling_ranges=ranges))
    ModelCard.model_validate(card, strict=True)
    flare = card["flare"]
    assert isinstance(flare, dict)
    shown = flare["sampling_ranges"]
    assert shown["temperature"] == {"min": 0.7, "max": 1.0}
    assert shown["top_k"] == {"min": 1.0, "max": 40.0}
    assert {name for name, value in shown.items() if value} == set(ranges)
    assert set(shown) == set(flare["sampling_defaults"]) - {"seed"}
    assert flare["max_top_logprobs"] == 20


def test_permissions_allow_sampling_logprobs_and_viewing_only() -> None:
    [permission] = encode_card(model_info(facts()))["permission"]  # type: ignore[misc]
    allowed = {name for name, value in permission.items() if value is True}  # type: ignore[has-type]
    assert allowed == {"allow_sampling", "allow_logprobs", "allow_view"}


async def test_the_list_and_every_name_show_the_same_card() -> None:
    async with app_serving() as (app, _):
        listed = await call(app, "GET", "/v1/models")
        ModelList.model_validate(listed.json, strict=True)
        [card] = listed.json["data"]
        for name in NAMES:
            one = await call(app, "GET", f"/v1/models/{name}")
            assert from_json(one.content) == card
        assert (await call(app, "GET", "/v1/models")).content == listed.content


async def test_an_unknown_name_is_not_found_whatever_the_policy() -> None:
    for policy in ("any", "known"):
        async with app_serving(config={"model_names": policy}) as (app, _):
            for name in ("third", "org", "org/tiny/more", "First"):
                reply = await call(app, "GET", f"/v1/models/{name}")
                assert (reply.status, reply.error["code"]) == (404, "model_not_found")
                assert name in reply.error["message"]
                told = await call(app, "GET", f"/v1/models/{name}", headers=VERSION)
                assert (told.status, told.anthropic_error["type"]) == (404, "not_found_error")
                assert name in told.anthropic_error["message"]


MODEL = {
    "id": "first",
    "type": "model",
    "display_name": "first",
    "created_at": "2026-09-21T14:13:20Z",
    "lifecycle": "active",
    "max_input_tokens": 777,
    "max_tokens": 777,
}


@pytest.mark.parametrize(("default", "most"), [(None, 777), (9, 9), (1000, 777)])
def test_anthropics_model_has_the_limits(default: int | None, most: int) -> None:
    model = encode_model(model_info(facts(777), default_max_tokens=default))
    AnthropicModel.model_validate_json(json.dumps(model), strict=True)
    assert model == {**MODEL, "max_tokens": most}


@pytest.mark.parametrize("version", ["2023-06-01", "2199-01-01", "latest", ""])
async def test_with_any_version_the_list_and_every_name_show_anthropics_model(version: str) -> None:
    headers = {"anthropic-version": version}
    async with app_serving(max_context=777) as (app, _):
        listed = await call(app, "GET", "/v1/models", headers=headers)
        AnthropicModelList.model_validate_json(listed.content, strict=True)
        ends = {"first_id": "first", "last_id": "first", "has_more": False}
        assert listed.json == {"data": [MODEL], **ends}
        for name in NAMES:
            assert (await call(app, "GET", f"/v1/models/{name}", headers=headers)).json == MODEL


@pytest.mark.parametrize("headers", [{}, VERSION], ids=["openai", "anthropic"])
@pytest.mark.parametrize("limit", ["1", "20", "999", "1000"])
async def test_a_limit_in_range_holds_the_model(limit: str, headers: dict[str, str]) -> None:
    async with app_serving() as (app, _):
        listed = await call(app, "GET", f"/v1/models?limit={limit}", headers=headers)
    assert (listed.status, len(listed.json["data"])) == (200, 1)


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "", "x", "1.5", "1e2", "٣", "9" * 9999])
async def test_another_limit_is_refused_in_both_shapes(limit: str) -> None:
    async with app_serving() as (app, _):
        refused = await call(app, "GET", f"/v1/models?limit={limit}")
        told = await call(app, "GET", f"/v1/models?limit={limit}", headers=VERSION)
    assert (refused.status, refused.error["param"]) == (400, "limit")
    assert (told.status, told.anthropic_error["type"]) == (400, "invalid_request_error")
    assert "limit" in told.anthropic_error["message"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cursor", ["after_id", "before_id"])
async def test_there_is_nothing_behind_or_before_the_model(cursor: str, name: str) -> None:
    empty: dict[str, Any] = {"data": [], "first_id": None, "last_id": None, "has_more": False}
    async with app_serving() as (app, _):
        listed = await call(app, "GET", f"/v1/models?limit=5&{cursor}={name}", headers=VERSION)
    AnthropicModelList.model_validate_json(listed.content, strict=True)
    assert (listed.status, listed.json) == (200, empty)


@pytest.mark.parametrize("query", ["after_id=third", "before_id=third", "before_id="])
async def test_an_unknown_cursor_is_refused_in_anthropics_list_only(query: str) -> None:
    async with app_serving() as (app, _):
        told = await call(app, "GET", f"/v1/models?{query}", headers=VERSION)
        plain = await call(app, "GET", "/v1/models")
        assert (await call(app, "GET", f"/v1/models?{query}")).content == plain.content
    assert (told.status, told.anthropic_error["type"]) == (400, "invalid_request_error")
    assert query.partition("=")[0] in told.anthropic_error["message"]
