"""Compaction: passes that go well and badly, notes that come back, and what they replace."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, cast

import pytest

from adapters.call import ClientGone
from adapters.response_compaction import compact, note_message
from engine.client import TokenEvent
from engine.conversation import Conversation, Message, ToolResult
from engine.errors import EngineUnavailable, GenerationFailed
from engine.events import FinishCause, Usage
from engine.generation import Generation
from engine.types import GenerationRequest
from tests.adapters.compacting import (
    NOTE,
    SESSION,
    TENANT,
    USER,
    WINDOW,
    Pass,
    Passes,
    call_over,
    run,
    said,
    service_of,
    size,
)
from tests.serving import reply, serving

LONG = "\n".join(f"- fact number {place} is worth {place * 37 % 101}" for place in range(60))


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
