"""Places in the service: taken and given back on every path, and what cancels what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from engine.accumulate import accumulate
from engine.client import TokenEvent
from engine.errors import EngineUnavailable, GenerationFailed, Overloaded, RequestError
from engine.events import FinishCause, SemanticEvent, TextDelta
from engine.generation import Generation
from engine.service import Service
from engine.types import GenerationRequest, RawPrompt, Stops
from tests.serving import PlayedClient, facts, ids, reply, service_over, serving

PLACES = 6  # four run, two wait


def ask(n: int = 1, **fields: Any) -> GenerationRequest:
    return GenerationRequest(RawPrompt("abc"), n=n, prompt_param="prompt", **fields)


def played_service() -> tuple[Service, PlayedClient]:
    client = PlayedClient()
    return service_over(client, facts(), max_queue=PLACES - 4), client


async def outputs(generation: Generation) -> list[str]:
    found = await accumulate(generation.batches(), generation.num_choices)
    return [output.text for output in found]


async def test_every_choice_takes_a_place_until_it_is_closed() -> None:
    service, _ = played_service()
    assert service.idle.is_set()
    first = await service.open([ask(2), ask(3)])
    assert (service.held, service.idle.is_set()) == (5, False)
    second = await service.open([ask()])
    with pytest.raises(Overloaded) as caught:
        await service.open([ask(2)])
    assert caught.value.retry_after >= 1
    assert (service.held, service.counters.refused) == (PLACES, 2)
    first.close()
    assert (service.held, service.idle.is_set()) == (1, False)
    second.close()
    assert (service.held, service.idle.is_set()) == (0, True)


async def test_closing_twice_gives_back_once() -> None:
    service, client = played_service()
    generation, other = await service.open([ask()]), await service.open([ask()])
    generation.close()
    generation.close()
    assert service.held == 1
    assert client.cancelled == [client.requests[0].key]
    assert service.counters.cancelled == 1
    other.close()


async def test_more_choices_than_places_is_the_requests_own_fault() -> None:
    service, _ = played_service()
    with pytest.raises(RequestError) as caught:
        await service.open([ask(PLACES), ask()])
    assert caught.value.param == "n"
    assert (service.held, service.counters.refused) == (0, 0)
    (await service.open([ask(PLACES)])).close()


def _engine_gone(service: Service, client: PlayedClient) -> None:
    client.failure = "gone"


def _wrong_ids(service: Service, client: PlayedClient) -> None:
    def broken(request: object) -> object:
        raise RequestError("m", "p")

    service._preparer.prepare = broken  # type: ignore[method-assign, assignment]


def _template_breaks(service: Service, client: PlayedClient) -> None:
    def broken(request: object) -> object:
        raise MemoryError

    service._preparer._render = broken  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize(
    ("harm", "error"),
    [
        (_engine_gone, EngineUnavailable),
        (_wrong_ids, RequestError),
        (_template_breaks, MemoryError),
    ],
)
async def test_an_opening_that_fails_gives_its_places_back(
    harm: Callable[[Service, PlayedClient], None], error: type[Exception]
) -> None:
    service, client = played_service()
    harm(service, client)
    with pytest.raises(error):
        await service.open([ask(3)])
    assert service.held == 0 and service.idle.is_set()
    assert service.counters.started == 0


async def test_an_opening_that_is_cancelled_gives_its_places_back() -> None:
    service, client = played_service()
    release = asyncio.Event()
    started = asyncio.Event()

    async def slow(work: Callable[[], Any]) -> Any:
        started.set()
        await release.wait()
        return work()

    service.offload = slow  # type: ignore[method-assign]
    task = asyncio.create_task(service.open([ask(3)]))
    await started.wait()
    assert service.held == 3
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service.held == 0 and client.requests == []


async def test_a_finished_generation_still_holds_its_place_until_it_is_delivered() -> None:
    """Helios: finished responses awaiting delivery count toward the admission limit."""
    service, client = played_service()
    generation = await service.open([ask()])
    client.say("hi", FinishCause.END)
    assert await outputs(generation) == ["h"]
    assert service.held == 1
    generation.close()
    assert (service.held, client.cancelled) == (0, [])
    assert (service.counters.completed, service.counters.cancelled) == (1, 0)


async def test_a_stop_string_cancels_the_engine_and_ignores_what_it_ran_ahead() -> None:
    service, client = played_service()
    generation = await service.open([ask(2, stops=Stops(("END",)))])
    first, second = (request.key for request in client.requests)
    client.say("aENDmore", None)
    client.say("b", FinishCause.LIMIT, place=1)
    assert await outputs(generation) == ["a", "b"]
    assert client.cancelled == [first]
    generation.close()
    assert client.cancelled == [first] and second not in client.cancelled
    assert service.counters.completed == 2


async def test_a_stop_string_on_the_engines_last_token_needs_no_cancel() -> None:
    service, client = played_service()
    generation = await service.open([ask(stops=Stops(("END",)))])
    client.say("aEND", FinishCause.LIMIT)
    assert await outputs(generation) == ["a"]
    generation.close()
    assert client.cancelled == []


async def test_closing_mid_way_cancels_only_what_still_runs() -> None:
    service, client = played_service()
    generation = await service.open([ask(3)])
    client.say("x", FinishCause.LIMIT, place=1)
    async for batch in generation.batches():
        assert {index for index, _ in batch} == {1}
        break
    generation.close()
    assert client.cancelled == [client.requests[0].key, client.requests[2].key]
    assert (service.counters.completed, service.counters.cancelled) == (1, 2)


async def test_a_failure_mid_way_is_raised_and_the_others_are_cancelled() -> None:
    service, client = played_service()
    generation = await service.open([ask(2)])
    client.say("ab")
    client.push(TokenEvent(client.requests[0].key, cause=FinishCause.FAILED, reason="why"))
    with pytest.raises(GenerationFailed, match="why"):
        await outputs(generation)
    generation.close()
    assert client.cancelled == [client.requests[1].key]
    assert (service.counters.failed, service.counters.cancelled, service.held) == (1, 1, 0)


async def test_pages_that_run_out_end_the_choice_well() -> None:
    service, client = played_service()
    generation = await service.open([ask()])
    client.say("ab")
    client.push(TokenEvent(client.requests[0].key, cause=FinishCause.CONTEXT_FULL))
    [output] = await accumulate(generation.batches(), 1)
    assert (output.text, output.end.cause) == ("ab", FinishCause.CONTEXT_FULL)
    generation.close()
    assert service.counters.completed == 1


async def test_text_that_arrives_together_is_one_delta_for_each_choice() -> None:
    service, client = played_service()
    generation = await service.open([ask(2)])
    client.say("ab")
    client.say("cd", place=1)
    batch = await anext(generation.batches())
    assert [(i, e.text) for i, e in batch if isinstance(e, TextDelta)] == [(0, "ab"), (1, "cd")]
    assert len(service.counters.first_response.recent()) == 1
    generation.close()


async def test_a_token_without_an_event_wakes_nobody() -> None:
    service, client = played_service()
    generation = await service.open([ask()])
    batches = generation.batches()
    client.say("a")
    await anext(batches)
    client.push(TokenEvent(client.requests[0].key, ids("é")[0]))

    async def read() -> list[tuple[int, SemanticEvent]]:
        return await anext(batches)

    waiting = asyncio.create_task(read())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    client.push(TokenEvent(client.requests[0].key, ids("é")[1]))
    [(_, event)] = await waiting
    assert isinstance(event, TextDelta) and event.text == "é"
    generation.close()


async def test_a_close_reaches_the_engine_and_its_pages_come_back() -> None:
    async with serving(reply("x" * 200, delay=0.002)) as service:
        generation = await service.open([ask(3)])
        await anext(generation.batches())
        generation.close()
        after = await service.open([ask(max_tokens=1)])  # the engine takes commands in order
        assert await outputs(after) == ["x"]
        after.close()
        stats = service.client.stats
        assert stats.free_pages == stats.total_pages
        assert stats.generated_tokens < 3 * 200


async def test_a_dead_engine_fails_what_runs_and_refuses_what_comes() -> None:
    async with serving(reply("x" * 200, delay=0.002)) as service:
        generation = await service.open([ask(2)])
        await anext(generation.batches())
        service.client.abort("it died")
        with pytest.raises(GenerationFailed, match="it died"):
            await outputs(generation)
        generation.close()
        with pytest.raises(EngineUnavailable, match="it died"):
            await service.open([ask()])
        assert service.held == 0
