"""Counting a prompt: the tokens that generating reads, without a place, a limit or an engine."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from engine.conversation import Conversation, Message, Text, Tool
from engine.errors import RequestError
from engine.types import GenerationRequest, OutputConstraint, RawPrompt, SamplingOverride
from tests.serving import PlayedClient, facts, preparer_over, service_over

SCHEMA = OutputConstraint("json_schema", '{"type": "object"}', "guided_json")
REGEX = OutputConstraint("regex", "a+", "regex")
TOOL = Tool("f", "Fetches.", {"type": "object", "properties": {"x": {"type": "integer"}}})
HIDDEN = replace(TOOL, name="g", listed=False)
WRONG = replace(TOOL, parameters={"type": "object", "properties": {"x": {"not": {}}}}, strict=True)
ASKED = Conversation((Message("user", (Text("hi"),)),))
OPEN = replace(ASKED, continue_final=True)


def request(prompt: Any, **fields: Any) -> GenerationRequest:
    content = RawPrompt(prompt) if isinstance(prompt, str | tuple) else prompt
    return GenerationRequest(content, prompt_param="prompt", **fields)


COUNTED = {
    "text": request("né"),
    "no text": request(""),
    "ids": request((5, 6)),
    "chat": request(ASKED),
    "told form": request(ASKED, constraint=SCHEMA),
    "untold form": request(ASKED, constraint=REGEX),
    "tools": request(replace(ASKED, tools=(TOOL,))),
    "unlisted": request(replace(ASKED, tools=(TOOL, HIDDEN)), constraint=SCHEMA),
    "open": request(replace(OPEN, add_generation_prompt=False)),
    "kept": request(replace(ASKED, messages=(replace(ASKED.messages[0], keep=True),))),
}


@pytest.mark.parametrize("asked", COUNTED.values(), ids=COUNTED)
def test_the_count_is_of_the_tokens_that_generating_reads(asked: GenerationRequest) -> None:
    preparer = preparer_over(facts(2000))
    assert preparer.count(asked) == len(preparer.prepare(asked).prompt.token_ids)


def test_the_parts_of_a_prompt_count() -> None:
    preparer = preparer_over(facts(2000))
    counts = {name: preparer.count(asked) for name, asked in COUNTED.items()}
    assert counts["text"] == 3
    assert counts["chat"] < counts["told form"] and counts["chat"] < counts["tools"]
    assert counts["chat"] == counts["untold form"] == counts["kept"]


def test_no_limit_is_looked_at() -> None:
    long = SamplingOverride(min_tokens=10**9)
    asked = request("x" * 10_000, max_tokens=10**30, sampling=long)
    assert preparer_over(facts()).count(asked) == 10_000


REFUSED = {
    "no text": request(""),
    "no token": request((10**6,)),
    "no messages": request(Conversation(())),
    "contradiction": request(OPEN),
    "schema": request(replace(ASKED, tools=(WRONG,))),
    "regex": request("abc", constraint=OutputConstraint("regex", "(", "regex")),
    "form": request(ASKED, constraint=OutputConstraint("json_schema", "[", "guided_json")),
    "choice": request(ASKED, constraint=OutputConstraint("choice", "[]", "guided_choice")),
}


@pytest.mark.parametrize("asked", REFUSED.values(), ids=REFUSED)
def test_what_generating_refuses_is_refused(asked: GenerationRequest) -> None:
    preparer = preparer_over(facts(2000), bos_id=None)
    found = []
    for work in (preparer.prepare, preparer.count):
        with pytest.raises(RequestError) as caught:
            work(asked)
        found.append((caught.value.message, caught.value.param, caught.value.code))
    assert found[0] == found[1]


async def test_a_full_service_without_an_engine_counts_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = PlayedClient()
    service = service_over(client, facts(20), max_queue=0)
    generation = await service.open([request("a", n=4)])
    client.failure = "gone"
    threads: list[str] = []
    count = service._preparer.count

    def counting(asked: GenerationRequest) -> int:
        threads.append(threading.current_thread().name)
        return count(asked)

    monkeypatch.setattr(service._preparer, "count", counting)
    assert await service.count(request("x" * 50)) == 50
    assert (service.held, service.counters.refused) == (4, 0)
    with pytest.raises(RequestError) as caught:
        await service.count(request((10**6,)))
    assert caught.value.param == "prompt"
    assert len(threads) == 2 and all(name.startswith("frontend") for name in threads)
    generation.close()
    service.close()
