"""The engine process's end of the pipe, on threads of this one."""

from __future__ import annotations

import multiprocessing
import queue
import threading

from engine.core.loop import Command
from engine.core.remote import WAKE, PipeLink, build_loop, drain
from engine.events import FinishCause
from engine.messages import EngineStats, StepMessage
from tests.engine.core.sequences import request
from tests.serving import reply, settings, tokenizer_facts

MESSAGE = StepMessage([1], [2], [(1, 0)], [(1, FinishCause.END, None)], EngineStats(active=1))


def test_drain_takes_everything_and_waits_only_when_told() -> None:
    commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
    assert drain(commands, wait=False) == []
    for command in (1, 2, None):
        commands.put(command)
    assert drain(commands, wait=True) == [1, 2, None]
    threading.Timer(0.01, commands.put, [3]).start()
    assert drain(commands, wait=True) == [3]


def test_requests_and_messages_cross_the_pipe_whole() -> None:
    ours, theirs = multiprocessing.Pipe()
    link = PipeLink(theirs)
    link.start()
    asked = request([5, 6], stop_ids=(7,), tenant="t", logit_bias={3: 1.0})
    ours.send(asked)
    assert link.receive(wait=True) == [asked]
    link.send(MESSAGE)
    assert ours.recv() == MESSAGE


def test_waking_ends_a_waiting_receive_and_means_nothing_else() -> None:
    _, theirs = multiprocessing.Pipe()
    link = PipeLink(theirs)
    link.start()
    waker = threading.Timer(0.01, link.wake)
    waker.start()
    assert link.receive(wait=True) == [WAKE]
    waker.join()
    assert request([1]).key != WAKE  # keys begin at 1


def test_a_closed_pipe_is_a_stop() -> None:
    ours, theirs = multiprocessing.Pipe()
    link = PipeLink(theirs)
    link.start()
    ours.close()
    assert link.receive(wait=True) == [None]


def test_the_loop_is_built_for_the_capacity_that_is_reported() -> None:
    class Silent:
        def receive(self, wait: bool) -> list[Command]:
            return [None]

        def wake(self) -> None:
            raise AssertionError

        def send(self, message: StepMessage) -> None:
            raise AssertionError(message)

    said: list[str] = []
    asked = settings(reply("a"), max_concurrency=3)
    loop, facts = build_loop(asked, Silent(), tokenizer_facts, said.append)
    assert loop.pool.num_usable == facts.total_pages
    assert loop.scheduler.max_sequences == facts.max_concurrency == 3
    assert said and "warming up" in said[-1]
    loop.run()
