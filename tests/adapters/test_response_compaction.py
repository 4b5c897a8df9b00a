"""Compaction: passes that go well and badly, notes that come back, and what they replace."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, cast

import pytest

from adapters.call import ClientGone
from adapters.response_compaction import (
    INVALID,
    VERSION,
    Compacted,
    compact,
    note_message,
    read_note,
    replaced,
)
from adapters.seal import Seal
from engine.client import TokenEvent
from engine.conversation import Conversation, Message, Reasoning, Text, ToolCall, ToolResult
from engine.errors import EngineUnavailable, GenerationFailed, RequestError
from engine.events import FinishCause, Usage
from engine.generation import Generation
from engine.types import GenerationRequest
from generated.responses import CompactionItem
from tests.adapters.asgi import SEAL
from tests.adapters.compacting import TENANT, WINDOW, Pass, Passes, call_over, said, service_of
from tests.serving import facts, ids, model_info, reply, serving

MODEL = model_info(facts()).checkpoint
USER = said("user", "Move the parser to src/parse.py, and keep Python 3.11.")
SESSION = (
    said("system", "You are a careful engineer."),
    USER,
    Message(
        "assistant",
        (
            Reasoning("secret thoughts"),
            Text("I look first."),
            ToolCall("c1", "shell", '{"cmd": "ls src"}'),
        ),
    ),
    Message("tool", (ToolResult("c1", ("main.py", "util.py")),)),
    said("assistant", "Moved. The tests remain."),
    said("user", "Go on with the tests."),
)
NOTE = "Demands\n- parser in src/parse.py, Python 3.11\n\nNext step\n- write tests/test_parse.py"
LONG = "\n".join(f"- fact number {place} is worth {place * 37 % 101}" for place in range(60))


async def run(
    *passes: Pass,
    messages: Sequence[Message] = SESSION,
    max_tokens: int | None = None,
    instructions: str | None = None,
    window: int = WINDOW,
) -> tuple[Compacted, Passes]:
    service, client = service_of(*passes, window=window)
    made = await compact(call_over(service), messages, instructions, max_tokens)
    assert service.held == 0 and not client.passes
    return made, client


def size(text: str) -> int:
    return len(ids(text))


# Passes


async def test_the_note_is_what_the_model_writes_of_the_record() -> None:
    made, client = await run(NOTE)
    assert (made.mode, made.note) == ("model", NOTE)
    [prompt] = client.prompts
    shown = [
        "[instructions]\nYou are a careful engineer.",
        "[user]\nMove the parser to src/parse.py, and keep Python 3.11.",
        "[assistant]\nI look first.",
        '[assistant calls shell]\n{"cmd": "ls src"}',
        "[shell returned]\nmain.py\nutil.py",
        "[assistant]\nMoved. The tests remain.",
        "[user]\nGo on with the tests.",
    ]
    assert "\n\n".join(shown) in prompt
    assert "secret thoughts" not in prompt and "left out here" not in prompt


async def test_a_pass_is_greedy_without_thoughts_and_belongs_to_the_tenant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, client = service_of(NOTE)
    opened: list[GenerationRequest] = []
    real = service.open

    async def watched(requests: Sequence[GenerationRequest]) -> Generation:
        opened.extend(requests)
        return await real(requests)

    monkeypatch.setattr(service, "open", watched)
    await compact(call_over(service), SESSION, None, None)
    [asked], [sent] = opened, client.requests
    thinking = cast(Conversation, asked.prompt).thinking
    assert (thinking.effort, thinking.budget, thinking.advisory) == ("none", 0, True)
    assert (sent.sampling.temperature, sent.seed) == (0.0, 0)
    assert sent.cache_scope.startswith(f"{TENANT}\0")
    assert sent.repetition is not None


async def test_the_usage_is_that_of_all_passes() -> None:
    made, client = await run(LONG, NOTE, max_tokens=200)
    prompts = [len(request.token_ids) for request in client.requests]
    assert len(prompts) == 2
    assert made.usage == Usage(sum(prompts), 0, size(LONG) + size(NOTE) + 2, 0)


async def test_a_note_over_the_budget_is_compressed_instead_of_cut() -> None:
    made, client = await run(LONG, NOTE, max_tokens=200)
    assert (made.mode, made.note) == ("compressed", NOTE)
    first, second = client.prompts
    assert LONG not in first and LONG in second
    assert "You are a careful engineer." not in second


async def test_a_note_of_exactly_the_budget_suits() -> None:
    assert (await run(NOTE, max_tokens=size(NOTE)))[0].mode == "model"
    assert (await run(NOTE, "short", max_tokens=size(NOTE) - 1))[0].mode == "compressed"


async def test_a_note_that_stays_too_long_is_trimmed_to_its_newest_lines() -> None:
    shorter = LONG.replace("worth", "now")
    made, _ = await run(LONG, shorter, max_tokens=200)
    assert made.mode == "extractive"
    assert shorter.endswith(made.note) and made.note.startswith("- fact number")
    assert 150 < size(made.note) <= 200


@pytest.mark.parametrize("second", ["", (LONG[:600], FinishCause.LIMIT)])
async def test_a_failed_second_pass_leaves_the_first_note_trimmed(second: Pass) -> None:
    made, _ = await run(LONG, second, max_tokens=200)
    assert made.mode == "extractive" and LONG.endswith(made.note)


async def test_a_cut_note_is_completed_from_the_end_of_the_record() -> None:
    made, client = await run((LONG, FinishCause.LIMIT), NOTE)
    assert (made.mode, made.note) == ("compressed", NOTE)
    assert LONG in client.prompts[1]
    assert "[user]\nGo on with the tests." in client.prompts[1]


async def test_when_both_passes_are_cut_the_record_speaks() -> None:
    made, _ = await run((LONG, FinishCause.LIMIT), (LONG, FinishCause.CONTEXT_FULL))
    assert made.mode == "extractive" and made.note.endswith("[user]\nGo on with the tests.")


async def test_lines_copied_from_the_instruction_are_dropped() -> None:
    _, client = await run("x")
    sentence = client.prompts[0].partition("<|im_start|>system\n")[2].partition(". ")[0]
    assert len(sentence.split()) > 5
    made, _ = await run(
        f"* {sentence.upper()}!\n{NOTE}\n- That was the record. Write the note now."
    )
    assert (made.mode, made.note) == ("model", NOTE)
    made, _ = await run(sentence)
    assert made.mode == "extractive"


LOOPS = {
    "engine": (NOTE, FinishCause.REPETITION),
    "lines": "Decisions\n" + "- it was decided to go on\n" * 5,
    "words": "the parser goes to the new file and " * 12,
    "tail": f"{LONG}\n" + "and then the tests are run again, " * 20,
}


@pytest.mark.parametrize("first", LOOPS.values(), ids=LOOPS)
async def test_a_loop_is_a_failed_pass(first: Pass) -> None:
    made, _ = await run(first)
    assert made.mode == "extractive"
    assert made.note.endswith("[user]\nGo on with the tests.")


async def test_the_beginning_of_a_copy_is_a_failed_pass() -> None:
    """A small model repeats the record until the limit, and never comes to its end."""
    lines = [" ".join(f"w{place}{word}" for word in range(50)) for place in range(9)]
    messages = [said("user", line) for line in lines] + [said("user", "now?")]
    made, _ = await run(("\n".join(lines[:8]), FinishCause.LIMIT), messages=messages)
    assert made.mode == "extractive" and made.note.endswith("[user]\nnow?")


@pytest.mark.parametrize("text", ["", " \n", "---\n***"])
async def test_a_pass_without_words_falls_back_to_the_newest_text(text: str) -> None:
    newest = "[assistant]\nMoved. The tests remain.\n\n[user]\nGo on with the tests."
    made, _ = await run(text, max_tokens=size(newest))
    assert (made.mode, made.note) == ("extractive", newest)
    made, _ = await run(text, max_tokens=16)
    assert (made.mode, made.note) == ("extractive", "with the tests.")


async def test_the_engine_itself_ends_a_loop() -> None:
    looping = "abcdefgh and so forth, " * 60
    async with serving(reply(looping), max_context=WINDOW) as service:
        made = await compact(call_over(service), SESSION, None, 1000)
    assert made.mode == "extractive" and made.usage.output < size(looping) / 2


async def test_compacting_is_logged_with_mode_and_size(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "heliograph.api")
    await run(NOTE)
    text = f"compacted 6 messages to a note of {size(NOTE)} tokens (model)"
    assert [record.message for record in caplog.records] == [text]


# Room


BUDGETS = [(8192, None, 1024), (65536, None, 4096), (8192, 100, 100), (8192, 9999, 2048)]


@pytest.mark.parametrize(("window", "asked", "budget"), BUDGETS)
async def test_the_budget_is_part_of_the_window(
    window: int, asked: int | None, budget: int
) -> None:
    text = " ".join(f"{place:05}" for place in range(budget // 6))
    assert budget - 6 < size(text) <= budget
    more = f"{text} {'x' * 12}"
    made, client = await run(text, max_tokens=asked, window=window)
    assert made.mode == "model"
    assert budget < client.requests[0].max_tokens <= budget + max(budget, 256)
    assert (await run(more, "ok", max_tokens=asked, window=window))[0].mode == "compressed"


LENGTHS = [(40, 400), (900, 20), (3, 30_000), (1, 90_000)]


@pytest.mark.parametrize(("count", "length"), LENGTHS)
@pytest.mark.parametrize("max_tokens", [16, None, 9999])
async def test_every_pass_fits_the_window(count: int, length: int, max_tokens: int | None) -> None:
    middle = [
        said("assistant" if place % 2 else "user", f"{place} is " + "y" * length + " end")
        for place in range(count)
    ]
    messages = (SESSION[0], USER, *middle, said("user", "The newest words."))
    made, client = await run("z" * 2500, NOTE, messages=messages, max_tokens=max_tokens)
    assert client.requests
    for request in client.requests:
        assert len(request.token_ids) + request.max_tokens <= WINDOW
    prompt = client.prompts[0]
    assert "[user]\nMove the parser to src/parse.py" in prompt
    assert prompt.index("Move the parser") < prompt.index("The newest words.")
    assert "left out here]" in prompt
    assert size(made.note) <= (max_tokens or 1024)


async def test_the_oldest_entries_go_first_and_the_record_says_so() -> None:
    middle = [said("assistant", f"entry {place:02} " + "y" * 400) for place in range(30)]
    _, client = await run(NOTE, messages=(USER, *middle))
    [prompt] = client.prompts
    shown = [place for place in range(30) if f"entry {place:02} " in prompt]
    assert 5 < len(shown) < 30 and shown == list(range(30 - len(shown), 30))
    gap = f"3.11.\n\n[{30 - len(shown)} entries are left out here]\n\n[assistant]"
    assert gap in prompt


async def test_long_entries_lose_their_middle() -> None:
    result = Message("tool", (ToolResult("c", ("BEGIN" + "y" * 20_000 + "END",)),))
    _, client = await run(NOTE, messages=(USER, result, said("user", "next")))
    assert "[a tool returned]\nBEGINyy" in client.prompts[0]
    assert "yyEND\n\n[user]\nnext" in client.prompts[0]
    assert client.prompts[0].count("y") < 600


async def test_a_window_without_room_leaves_the_newest_text() -> None:
    made, client = await run(window=512)
    assert (made.mode, made.usage, client.requests) == ("extractive", Usage(), [])
    assert made.note.endswith("Go on with the tests.") and size(made.note) <= 64


async def test_instructions_are_shown_once() -> None:
    _, client = await run(NOTE, instructions="Answer in verse.")
    assert client.prompts[0].count("[instructions]\nAnswer in verse.") == 1
    _, client = await run(NOTE, instructions="You are a careful engineer.")
    assert client.prompts[0].count("You are a careful engineer.") == 1


async def test_an_earlier_note_survives_whatever_happens() -> None:
    earlier = note_message("EARLIER: port 8131 was chosen")
    middle = [said("assistant", f"entry {place:02} " + "y" * 400) for place in range(30)]
    messages = (USER, earlier, *middle)
    _, client = await run(NOTE, messages=messages)
    assert "[notes so far]\nEARLIER: port 8131 was chosen\n\n[" in client.prompts[0]
    made, _ = await run("", messages=messages, max_tokens=300)
    assert made.note.startswith("EARLIER: port 8131 was chosen\n\n") and size(made.note) <= 300
    assert made.note.endswith("yyy")


# Failures


async def test_a_client_that_goes_ends_the_pass() -> None:
    service, client = service_of()
    client.passes = [("started", FinishCause.END)]
    with pytest.raises(ClientGone):
        await compact(call_over(service, gone=True), SESSION, None, None)
    assert service.held == 0


class Failing(Passes):
    def submit(self, requests: Any) -> Any:
        stream = super(Passes, self).submit(requests)
        failed = FinishCause.FAILED
        self.push(TokenEvent(requests[0].key, None, cause=failed, reason="out of luck"))
        return stream


async def test_a_broken_engine_is_no_empty_note() -> None:
    service, client = service_of()
    service.client = Failing()
    with pytest.raises(GenerationFailed, match="out of luck"):
        await compact(call_over(service), SESSION, None, None)
    client.failure = "gone"
    service.client = client
    with pytest.raises(EngineUnavailable):
        await compact(call_over(service), SESSION, None, None)
    assert service.held == 0


# Notes that come back


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
