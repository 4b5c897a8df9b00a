"""The model card: every promised row, one value for as long as the server runs."""

from __future__ import annotations

from pydantic_core import from_json

from adapters.models import encode_card
from engine.types import Sampling
from generated.models import FlareCard, ModelCard, ModelList, SamplingDefaults
from tests.adapters.asgi import app_serving, call
from tests.serving import facts, model_info


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
        for name in ("first", "second", "org/tiny"):
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
