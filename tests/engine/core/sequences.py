"""Requests and an engine loop without a model, for tests of the core."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from engine.backend.backend import Int64, ModelShape, StepPlan
from engine.core.loop import Command, EngineLoop
from engine.types import FinishCause, Sampling, StepMessage, TokenRequest

END = 1
_keys = itertools.count(1)


def request(
    prompt: list[int],
    max_tokens: int = 8,
    *,
    tenant: str = "",
    stop_ids: tuple[int, ...] = (),
    **sampling: object,
) -> TokenRequest:
    return TokenRequest(
        key=next(_keys),
        token_ids=tuple(prompt),
        max_tokens=max_tokens,
        sampling=Sampling(**sampling),  # type: ignore[arg-type]
        seed=0,
        eos_ids=(END,),
        stop_ids=stop_ids,
        cache_scope=tenant,
    )


class PageReader:
    """A backend whose next token depends on every token that its pages really hold.

    It stores ids in its pages like keys and values, and draws a hash of the context that it reads
    back: a wrong page, slot or position changes the output.
    """

    name = "pages"
    dtype = "none"
    shape = ModelShape(vocab_size=1000, max_context=10_000, kv_bytes_per_token=0)

    def __init__(self) -> None:
        self.plans: list[StepPlan] = []
        self.open: set[int] = set()

    def allocate(self, num_pages: int) -> None:
        self.store = np.full(num_pages * 16, -1, np.int64)

    def warm_up(self) -> None:
        pass

    def open_sequence(self, key: int, text: str) -> None:
        self.open.add(key)

    def close_sequence(self, key: int) -> None:
        self.open.remove(key)

    def run(self, plan: StepPlan) -> Int64:
        self.plans.append(plan)
        assert len(set(plan.slots.tolist())) == len(plan.slots)
        assert plan.slots.min() >= 16  # the padding page is never written
        self.store[plan.slots] = plan.ids
        tokens = []
        for sequence, row in zip(plan.logit_sequences, plan.logit_rows, strict=True):
            first, end = plan.kv_indptr[sequence], plan.kv_indptr[sequence + 1]
            pages = plan.kv_indices[first:end].astype(np.int64)
            context = (pages[:, None] * 16 + np.arange(16)).reshape(-1)
            held = self.store[context[: plan.positions[row] + 1]]
            assert (held >= 0).all()
            tokens.append(continuation(held.tolist()))
        return np.array(tokens, np.int64)


def continuation(context: list[int]) -> int:
    """The token after a context: any function that every id and its place changes."""
    value = 7
    for token in context:
        value = (value * 31 + token + 1) % 1_000_003
    return 2 + value % 900


class Harness:
    """An engine loop that the test steps by hand."""

    def __init__(self, num_pages: int = 64, max_sequences: int = 8, budget: int = 64) -> None:
        self.backend = PageReader()
        self.backend.allocate(num_pages)
        self.inbox: list[Command] = []
        self.tokens: dict[int, list[int]] = {}
        self.causes: dict[int, FinishCause] = {}
        self.cached: dict[int, int] = {}
        self.loop = EngineLoop(
            self.backend,
            self,
            num_pages=num_pages,
            max_sequences=max_sequences,
            max_batch_tokens=budget,
            chunk=32,
        )

    def receive(self, wait: bool) -> list[Command]:
        commands, self.inbox = self.inbox, []
        return commands or ([None] if wait else [])

    def send(self, message: StepMessage) -> None:
        for key, token in zip(message.keys, message.tokens, strict=True):
            self.tokens.setdefault(key, []).append(token)
        self.cached.update(message.started)
        self.causes.update({key: cause for key, cause, _ in message.finished})

    def run(
        self, requests: list[TokenRequest], each_step: Callable[[], None] | None = None
    ) -> None:
        """Serve the requests to their end."""
        self.inbox.extend(requests)
        if each_step is None:
            self.loop.run()
            return
        while self.inbox or self.loop.scheduler.has_work:
            for command in self.receive(wait=False):
                assert command is not None
                self.loop.handle(command)
            each_step()
            if self.loop.scheduler.has_work:
                self.loop.step()
            self.loop.scheduler.check()
