"""Discovery as clients of Ollama do it: a version that is new enough, and the model by its name."""

from __future__ import annotations

import re

import pytest

from adapters.ollama import encode_tag
from engine.types import EngineFacts
from generated.ollama import OllamaTags, OllamaVersion
from tests.adapters.asgi import app_serving, call
from tests.serving import NAMES, facts, model_info

KEYS = {"secret": "tenant"}


async def test_the_version_is_new_enough_for_codex() -> None:
    async with app_serving() as (app, _):
        shown = await call(app, "GET", "/api/version")
    OllamaVersion.model_validate(shown.json, strict=True)
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", shown.json["version"])
    assert found is not None
    assert tuple(map(int, found.groups())) >= (0, 13, 4)


async def test_every_name_of_the_model_is_listed_the_first_in_front() -> None:
    async with app_serving() as (app, service):
        listed = await call(app, "GET", "/api/tags")
        again = await call(app, "GET", "/api/tags")
    assert listed.status == 200 and again.content == listed.content
    OllamaTags.model_validate_json(listed.content, strict=True)
    names = [entry["name"] for entry in listed.json["models"]]
    assert names == ["first", "org/tiny", "second"] and set(names) == NAMES == service.info.names
    for entry in listed.json["models"]:
        assert entry == encode_tag(service.info, entry["model"])


def test_an_entry_says_what_is_known() -> None:
    info = model_info(facts(), dialect="hermes")
    entry = encode_tag(info, "second")
    assert (entry["name"], entry["model"], entry["size"]) == ("second", "second", 0)
    assert entry["modified_at"] == "2026-09-21T14:13:20Z"
    assert entry["details"] == {
        "parent_model": "",
        "format": "",
        "family": "hermes",
        "families": ["hermes"],
        "parameter_size": "",
        "quantization_level": "none",
    }


def test_the_digest_is_that_of_the_weights_not_of_the_name() -> None:
    info = model_info(facts())
    other = EngineFacts("fake", "bfloat16", 300, 512, 4, 32, 16, 64)
    digest = str(encode_tag(info, "first")["digest"])
    assert re.fullmatch(r"[0-9a-f]{64}", digest)
    assert encode_tag(info, "second")["digest"] == digest
    assert encode_tag(model_info(facts(), created=5), "first")["digest"] == digest
    assert encode_tag(model_info(facts(), checkpoint="org/big"), "first")["digest"] != digest
    assert encode_tag(model_info(other), "first")["digest"] != digest


@pytest.mark.parametrize("path", ["/api/version", "/api/tags"])
async def test_other_methods_and_missing_keys_are_refused(path: str) -> None:
    async with app_serving(keys=KEYS) as (app, _):
        assert (await call(app, "GET", path)).status == 401
        bearer = {"authorization": "Bearer secret"}
        assert (await call(app, "GET", path, headers=bearer)).status == 200
        refused = await call(app, "POST", path, {}, headers=bearer)
    assert (refused.status, refused.error["code"]) == (405, "method_not_allowed")
