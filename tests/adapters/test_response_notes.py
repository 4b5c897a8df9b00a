"""Notes that come back to the server, and what they replace."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from adapters.response_compaction import INVALID, VERSION, note_message, read_note, replaced
from adapters.seal import Seal
from engine.conversation import Text
from engine.errors import RequestError
from generated.responses import CompactionItem
from tests.adapters.asgi import SEAL
from tests.adapters.compacting import NOTE, SESSION, TENANT, USER, run, said
from tests.serving import facts, model_info

MODEL = model_info(facts()).checkpoint


def item_of(content: str) -> CompactionItem:
    return CompactionItem(type="compaction", encrypted_content=content)


def read(content: str, tenant: str = TENANT, model: str = MODEL, seal: Seal = SEAL) -> str:
    return read_note(item_of(content), "input[3]", seal, tenant, model)


def refused(content: str, **other: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        read(content, **other)
    assert (caught.value.code, caught.value.param) == (INVALID, "input[3].encrypted_content")
    assert INVALID == "compaction_payload_invalid"
    return caught.value


async def test_the_item_brings_its_note_back() -> None:
    made, _ = await run("Größe: 3 m² 🙂")
    assert set(made.item) == {"id", "type", "encrypted_content"}
    item = CompactionItem.model_validate(made.item, strict=True)
    assert str(item.id).startswith("cmp_") and "Größe" not in item.encrypted_content
    assert read(item.encrypted_content) == made.note == "Größe: 3 m² 🙂"
    payload = json.loads(SEAL.unseal(item.encrypted_content, TENANT, MODEL) or "")
    assert set(payload) == {"v", "model", "created_at", "mode", "note"}
    assert (payload["v"], payload["model"], payload["mode"]) == (VERSION, MODEL, "model")


async def test_a_note_is_for_its_server_tenant_and_model() -> None:
    made, _ = await run(NOTE)
    content = cast(str, made.item["encrypted_content"])
    refused(content, tenant="other")
    refused(content, model="other")
    refused(content, seal=Seal(bytes(32)))
    refused(content[:-2] + ("AA" if content[-2:] != "AA" else "BB"))
    for foreign in ("", "gAAAAABo", content[5:], f"{content}x"):
        refused(foreign)


def sealed(payload: object) -> str:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return SEAL.seal(text, TENANT, MODEL)


GOOD: dict[str, Any] = {
    "v": VERSION, "model": MODEL, "created_at": 1, "mode": "model", "note": NOTE,
}  # fmt: skip
BAD = [
    "thoughts that were sealed alike", "null", "[]", "[" * 100_000, {}, {**GOOD, "note": None},
    {**GOOD, "model": "other"}, {**GOOD, "v": None}, {**GOOD, "v": "1"},
]  # fmt: skip


def test_what_was_sealed_for_another_purpose_is_refused() -> None:
    assert read(sealed(GOOD)) == NOTE
    for payload in BAD:
        assert "this server made" in refused(sealed(payload)).message


@pytest.mark.parametrize("version", [0, 2, 17])
def test_another_version_is_named(version: int) -> None:
    assert f"version {version};" in refused(sealed({**GOOD, "v": version})).message


# What a note replaces


def test_the_users_words_stay_and_the_rest_before_the_last_becomes_the_note() -> None:
    system, first, calls, result, answer, last = SESSION
    developer = said("developer", "Be brief.")
    tail = (last, calls, result)
    made = replaced((system, developer, first, calls, result, developer, answer, *tail), "N")
    assert made == (system, developer, first, note_message("N"), *tail)


def test_an_earlier_note_is_replaced_too() -> None:
    system, first, *_, last = SESSION
    old = note_message("old")
    assert replaced((system, old, last), "new") == (system, note_message("new"), last)
    made = replaced((system, first, old, said("assistant", "x"), last), "new")
    assert made == (system, first, note_message("new"), last)


def test_a_conversation_of_one_user_message_keeps_it() -> None:
    assert replaced((USER,), "N") == (note_message("N"), USER)


def test_without_a_user_there_is_a_turn_to_answer() -> None:
    system, *_ = SESSION
    answer = said("assistant", "x")
    assert replaced((system, answer), "N") == (system, note_message("N"), said("user", ""))
    assert replaced((), "N") == (note_message("N"), said("user", ""))


def test_a_note_is_a_developer_message_that_says_what_it_is() -> None:
    [part] = note_message("the note").parts
    assert note_message("the note").role == "developer"
    assert cast(Text, part).text.endswith("\n\nthe note") and len(cast(Text, part).text) > 30
