"""Engine clients: which stream gets an event, and what a dying engine leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from engine.backend.scripted import Reply
from engine.client import ProcessClient, ThreadClient, TokenEvent, TokenStream, _Dispatcher
from engine.core.loop import Command
from engine.errors import EngineUnavailable, StartupError
from engine.events import FinishCause
from engine.messages import EngineStats, StepMessage, TokenRequest
from engine.types import EngineFacts, Sampling
from tests.serving import ids, reply, settings, tokenizer, tokenizer_facts


class Recorder(_Dispatcher):
    """A dispatcher whose engine is a list of the commands that it got."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[Command] = []

    def _send(self, command: Command) -> None:
        self.commands.append(command)

    async def close(self) -> None:
        pass


def ask(key: int, max_tokens: int = 50) -> TokenRequest:
    return TokenRequest(
        key=key,
        token_ids=ids("prompt"),
        max_tokens=max_tokens,
        sampling=Sampling(),
        seed=0,
        eos_ids=tokenizer().eos_ids,
    )


def step(
    tokens: dict[int, int],
    started: dict[int, int] | None = None,
    finished: dict[int, tuple[FinishCause, str | None]] | None = None,
    stats: EngineStats | None = None,
) -> StepMessage:
    ends = [(key, cause, reason) for key, (cause, reason) in (finished or {}).items()]
    return StepMessage(
        list(tokens), list(tokens.values()), list((started or {}).items()), ends, stats,
    )  # fmt: skip


async def rest(stream: TokenStream, ends: int = 1) -> list[TokenEvent]:
    """The events of a stream until a number of choices has ended."""
    events: list[TokenEvent] = []
    while sum(event.cause is not None for event in events) < ends:
        events += await stream.next()
    return events


async def test_what_became_of_drafts_goes_with_the_tokens() -> None:
    client = Recorder()
    stream = client.submit([ask(1), ask(2)])
    message = StepMessage([1, 1, 2, 1], [10, 11, 20, 12], [], [], EngineStats())
    message.drafts = {1: (4, 2), 2: (3, 0)}
    client._on_message(message)
    found = [(e.key, e.token, e.drafted, e.accepted) for e in await stream.next()]
    assert found == [(1, 10, 4, True), (1, 11, 0, True), (2, 20, 3, False), (1, 12, 0, False)]


async def test_a_group_shares_a_stream_that_keeps_the_engines_order() -> None:
    client = Recorder()
    group, other = client.submit([ask(1), ask(2)]), client.submit([ask(3)])
    assert [c.key for c in client.commands if isinstance(c, TokenRequest)] == [1, 2, 3]
    client._on_message(step({2: 20, 3: 30, 1: 10}, {2: 0, 1: 16, 3: 0}))
    client._on_message(step({1: 11}, finished={1: (FinishCause.END, None)}))
    assert await group.next() == [
        TokenEvent(2, 20, 0), TokenEvent(1, 10, 16), TokenEvent(1, 11, cause=FinishCause.END),
    ]  # fmt: skip
    assert await other.next() == [TokenEvent(3, 30, 0)]


async def test_an_end_without_a_token_comes_after_the_tokens() -> None:
    client = Recorder()
    stream = client.submit([ask(1), ask(2)])
    client._on_message(step({1: 10}, {1: 0}, {2: (FinishCause.FAILED, "why")}))
    assert (await stream.next())[-1] == TokenEvent(2, cause=FinishCause.FAILED, reason="why")


async def test_an_ended_or_cancelled_choice_hears_no_more() -> None:
    client = Recorder()
    stream = client.submit([ask(1), ask(2)])
    client._on_message(step({1: 10}, {1: 0}, {1: (FinishCause.END, None)}))
    await stream.next()
    client.cancel(1)  # ended already: the engine need not know
    client.cancel(2)
    client.cancel(2)
    client.cancel(99)
    assert client.commands[2:] == [2]
    client._on_message(step({1: 11, 2: 20}, {2: 0}, {2: (FinishCause.CANCELLED, None)}))
    waiting = asyncio.create_task(stream.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()


async def test_the_last_stats_stand_until_the_engine_is_gone() -> None:
    client = Recorder()
    client._on_message(step({}, stats=EngineStats(active=3)))
    client._on_message(step({}))
    assert client.stats.active == 3
    client.abort("gone")
    assert client.stats == EngineStats()


async def test_an_abort_fails_every_stream_once_and_refuses_the_rest() -> None:
    client = Recorder()
    first, second = client.submit([ask(1), ask(2)]), client.submit([ask(3)])
    client.abort("the reason")
    client.abort("another")
    failed = (FinishCause.FAILED, "the reason")
    assert [event.key for event in await first.next()] == [1, 2]
    assert [(e.cause, e.reason) for e in await second.next()] == [failed]
    with pytest.raises(EngineUnavailable, match="the reason"):
        client.submit([ask(4)])
    commands = len(client.commands)
    client.cancel(1)
    assert len(client.commands) == commands


async def test_keys_are_never_used_twice() -> None:
    client = Recorder()
    assert len({client.next_key() for _ in range(100)}) == 100


async def test_a_reader_that_was_cancelled_can_read_again() -> None:
    stream = TokenStream()
    waiting = asyncio.create_task(stream.next())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    stream.push(TokenEvent(1, 2))
    assert await stream.next() == [TokenEvent(1, 2)]


async def test_the_thread_client_serves_and_ends_as_failed_when_it_closes() -> None:
    client = ThreadClient(settings(reply("abc")), tokenizer_facts())
    assert isinstance(client.facts, EngineFacts)
    client.attach()
    events = await rest(client.submit([ask(1)]))
    assert [event.token for event in events] == [*ids("abc"), tokenizer().eos_ids[0]]
    assert events[0].cached == 0 and events[-1].cause is FinishCause.END
    open_stream = client.submit([ask(2)])
    await client.close()
    assert (await rest(open_stream))[-1].cause is not None
    assert client.failure is not None


@asynccontextmanager
async def process(*replies: Reply) -> AsyncIterator[ProcessClient]:
    client = ProcessClient(settings(*replies))
    try:
        progress: list[str] = []
        facts = await asyncio.to_thread(client.wait_ready, tokenizer_facts(), progress.append)
        assert facts.backend == "scripted" and progress
        client.attach()
        yield client
    finally:
        await client.close()
        assert not client._process.is_alive()


async def test_the_process_client_serves_cancels_and_survives_a_failing_row() -> None:
    slow = reply("x" * 40, delay=0.005)
    async with process(slow, reply("ab", fail_after=1), reply("abc")) as client:
        first = client.submit([ask(1)])
        await first.next()
        second, third = client.submit([ask(2)]), client.submit([ask(3)])
        failed = await rest(second)
        assert failed[-1].cause is FinishCause.FAILED and failed[-1].reason
        assert [event.token for event in await rest(third)][:3] == list(ids("abc"))
        client.cancel(1)
        await rest(client.submit([ask(4, 1)]))  # the engine takes commands in order
        assert client.stats.free_pages == client.stats.total_pages
        assert client.failure is None


def test_more_than_the_pipe_holds_goes_through_whole_both_ways() -> None:
    """On the server's own event loop, which makes what it reads non-blocking."""

    async def serve() -> None:
        prompt = ids("x" * 400)
        scores = replace(ask(0, 1), token_ids=prompt, prompt_top=20)
        async with process(reply("abc")) as client:
            streams = [client.submit([replace(scores, key=key)]) for key in range(1, 601)]
            for stream in streams:
                events = await rest(stream)
                assert events[-1].cause is FinishCause.LIMIT
                scored = sum(len(event.prompt_scores or ()) for event in events)
                assert scored == len(prompt) - 1
            assert client.failure is None

    uvloop.run(asyncio.wait_for(serve(), 60))


async def test_a_crash_fails_every_stream_and_is_the_reason_of_the_next_refusal() -> None:
    crash = reply("abc", crash_after=2)
    async with process(crash, reply("x" * 40, delay=0.005)) as client:
        streams = [client.submit([ask(1)]), client.submit([ask(2)])]
        for stream in streams:
            last = (await rest(stream))[-1]
            assert last.cause is FinishCause.FAILED
            assert last.reason == "the engine process has died"
        with pytest.raises(EngineUnavailable, match="the engine process has died"):
            client.submit([ask(3)])


async def test_a_kill_is_noticed_and_may_be_repeated() -> None:
    async with process(reply("x" * 400, delay=0.005)) as client:
        stream = client.submit([ask(1, 500)])
        await stream.next()
        client.kill()
        client.kill()
        assert (await rest(stream))[-1].cause is FinishCause.FAILED
        assert client.failure == "the engine process has died"


def test_an_engine_that_cannot_start_says_why() -> None:
    narrow = replace(settings(), kv_tokens=16)
    client = ProcessClient(narrow)
    with pytest.raises(StartupError, match="--kv-tokens") as caught:
        client.wait_ready(tokenizer_facts(), lambda _: None)
    assert "\n" not in str(caught.value)
    client.kill()


def test_an_engine_that_dies_while_loading_is_a_startup_error(tmp_path: Path) -> None:
    broken = replace(settings(), log_level="no such level")
    client = ProcessClient(broken)
    with pytest.raises(StartupError, match="exit"):
        client.wait_ready(tokenizer_facts(), lambda _: None)
    client.kill()
