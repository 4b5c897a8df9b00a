"""Requests and an engine loop without a model, for tests of the core."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from engine.backend.backend import ALL_BANNED, Int64, ModelShape, StepPlan, StepResult
from engine.backend.scripted import Reply, Script, Scripted
from engine.core.loop import Command, EngineLoop
from engine.core.masks import Constraints
from engine.core.speculation import Speculation
from engine.events import FinishCause, TokenScore
from engine.grammar.compile import grammar_of
from engine.grammar.mask import Vocabulary
from engine.messages import EngineStats, StepMessage, TokenRequest
from engine.text.token_bytes import byte_alphabet
from engine.types import OutputConstraint, Sampling

END = 1
VOCAB = 1000
PATIENCE = 10.0
_FIRST_BYTE = 2
_keys = itertools.count(1)
_OWN = {item.name for item in dataclasses.fields(TokenRequest)}


def request(
    prompt: list[int], max_tokens: int = 8, *, tenant: str = "", **options: Any
) -> TokenRequest:
    """A request; an option that the request has no field for is one of its sampling."""
    mine = {name: value for name, value in options.items() if name in _OWN}
    sampling = {name: value for name, value in options.items() if name not in _OWN}
    fields: dict[str, Any] = {
        "key": next(_keys),
        "token_ids": tuple(prompt),
        "max_tokens": max_tokens,
        "sampling": Sampling(**sampling),
        "seed": 0,
        "eos_ids": (END,),
        "cache_scope": tenant,
    }
    return TokenRequest(**(fields | mine))


@cache
def vocabulary() -> Vocabulary:
    """Padding, the end token, one token per byte, and words to fill the rest."""
    names = ["<pad>", "<end>", *byte_alphabet()]
    names += [f"w{number}" for number in range(len(names), VOCAB)]
    core = tokenizers.Tokenizer(models.BPE({name: id for id, name in enumerate(names)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_tokens([AddedToken(name, special=True, normalized=False) for name in names[:2]])
    return Vocabulary(core.to_str(), VOCAB, (END,))


def byte_ids(text: str) -> list[int]:
    """The token of each byte."""
    places = {byte: _FIRST_BYTE + place for place, byte in enumerate(byte_alphabet().values())}
    return [places[byte] for byte in text.encode()]


def text_of(tokens: Sequence[int]) -> str:
    """The text of byte tokens; others become `?`."""
    spelt = {byte_ids(char)[0]: char for char in map(chr, range(128))}
    return "".join(spelt.get(token, "?") for token in tokens)


def regex(source: str) -> str:
    return grammar_of(OutputConstraint("regex", source, "regex"))


class PageReader:
    """A backend whose next token depends on every token that its pages really hold.

    It stores ids in its pages like keys and values, and draws a hash of the context that it reads
    back, of the seed and of the position: a wrong page, slot or position changes the output.
    """

    name = "pages"
    kernel_ns = 0
    dtype = "none"
    shape = ModelShape(vocab_size=VOCAB, max_context=10_000, kv_bytes_per_token=0)

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

    def run(self, plan: StepPlan) -> StepResult:
        masks = plan.masks.copy()  # the loop's own buffer
        self.plans.append(dataclasses.replace(plan, masks=masks))
        assert len(set(plan.slots.tolist())) == len(plan.slots)
        assert plan.slots.min() >= 16  # the padding page is never written
        self.store[plan.slots] = plan.ids
        tokens = np.zeros(len(plan.logit_rows), np.int64)
        scores: dict[int, TokenScore] = {}
        failed: dict[int, str] = {}
        for row in range(len(plan.logit_rows)):
            held = self._held(plan, int(plan.logit_rows[row]))
            wanted = self.wanted(plan, row, held)
            allowed = allowed_ids(plan, row)
            if not len(allowed):
                failed[row] = ALL_BANNED
                continue
            tokens[row] = allowed[np.searchsorted(allowed, wanted) % len(allowed)]
            if plan.logprob_top[row] >= 0:
                scores[row] = score_after(held, int(tokens[row]))
        targets = zip(plan.score_rows.tolist(), plan.score_targets.tolist(), strict=True)
        prompt_scores = [score_after(self._held(plan, row), target) for row, target in targets]
        return StepResult(tokens, scores, prompt_scores, failed)

    def wanted(self, plan: StepPlan, row: int, held: list[int]) -> int:
        """What a sampled row draws after the tokens that its pages hold, unless it is banned."""
        return continuation(held, int(plan.seeds[row]), int(plan.positions_drawn[row]))

    def _held(self, plan: StepPlan, row: int) -> list[int]:
        """The context of a row, read from its pages."""
        sequence = int(np.searchsorted(plan.qo_indptr, row, "right")) - 1
        first, end = plan.kv_indptr[sequence], plan.kv_indptr[sequence + 1]
        pages = plan.kv_indices[first:end].astype(np.int64)
        context = (pages[:, None] * 16 + np.arange(16)).reshape(-1)
        held = self.store[context[: plan.positions[row] + 1]]
        assert (held >= 0).all()
        return held.tolist()  # type: ignore[no-any-return]


class Speaker(PageReader):
    """The scripted backend, with the checks of pages: sequences get its replies in their order."""

    def __init__(self, *replies: list[int]) -> None:
        super().__init__()
        said = tuple(Reply(tuple(token_ids)) for token_ids in replies)
        self.scripted = Scripted(Script(said, VOCAB, END))

    def open_sequence(self, key: int, text: str) -> None:
        super().open_sequence(key, text)
        self.scripted.open_sequence(key, text)

    def close_sequence(self, key: int) -> None:
        super().close_sequence(key)
        self.scripted.close_sequence(key)

    def run(self, plan: StepPlan) -> StepResult:
        super().run(plan)
        return self.scripted.run(plan)


def allowed_ids(plan: StepPlan, row: int) -> Int64:
    """The tokens that mask and bans leave, rising."""
    allowed: NDArray[np.bool_] = np.ones(VOCAB, bool)
    if plan.mask_rows[row] >= 0:
        words = plan.masks[plan.mask_rows[row]].astype("<u4")
        allowed = np.unpackbits(words.view(np.uint8), count=VOCAB, bitorder="little").astype(bool)
    ids, values = bias_of(plan, row)
    allowed[ids[np.isneginf(values)]] = False
    return np.flatnonzero(allowed).astype(np.int64)


def bias_of(plan: StepPlan, row: int) -> tuple[Int64, NDArray[np.float32]]:
    first, end = plan.bias_indptr[row], plan.bias_indptr[row + 1]
    return plan.bias_ids[first:end], plan.bias_values[first:end]


def continuation(context: list[int], seed: int = 0, position: int = 0) -> int:
    """The token after a context: any function that every id and its place changes."""
    value = 7 + seed * 13 + position * 17
    for token in context:
        value = (value * 31 + token + 1) % 1_000_003
    return 2 + value % 900


def score_after(context: list[int], token: int) -> TokenScore:
    return TokenScore(token, -continuation(context, token) / 8, 1)


def expected(asked: TokenRequest) -> list[int]:
    """What a sequence generates alone, computed from nothing but its tokens."""
    context = list(asked.token_ids)
    for place in range(asked.max_tokens):
        context.append(continuation(context, asked.seed, place))
    return context[len(asked.token_ids) :]


def expected_scores(asked: TokenRequest) -> list[TokenScore]:
    """The scores of the prompt from its second token on."""
    ids = list(asked.token_ids)
    return [score_after(ids[:place], ids[place]) for place in range(1, len(ids))]


class Kept(Constraints):
    """Constraints that outlive a loop, so that a harness can run several times."""

    def stop(self) -> None:
        pass


class Harness:
    """An engine loop that the test steps by hand."""

    def __init__(
        self,
        num_pages: int = 64,
        max_sequences: int = 8,
        budget: int = 64,
        chunk: int = 32,
        backend: PageReader | None = None,
        speculation: Speculation | None = None,
    ) -> None:
        self.backend = backend or PageReader()
        self.backend.allocate(num_pages)
        self.inbox: list[Command] = []
        self.tokens: dict[int, list[int]] = {}
        self.scores: dict[int, list[TokenScore]] = {}
        self.prompt_scores: dict[int, list[TokenScore]] = {}
        self.causes: dict[int, FinishCause] = {}
        self.reasons: dict[int, str | None] = {}
        self.cached: dict[int, int] = {}
        self.ended: list[int] = []
        self.drafts: dict[int, tuple[int, int]] = {}
        self.stats: list[EngineStats | None] = []
        self.woken = threading.Event()
        self.constraints = Kept(vocabulary())
        self.loop = EngineLoop(
            self.backend,
            self,
            self.constraints,
            num_pages=num_pages,
            max_sequences=max_sequences,
            max_batch_tokens=budget,
            chunk=chunk,
            speculation=speculation,
        )

    def receive(self, wait: bool) -> list[Command]:
        """The inbox. With nothing to do, wait for a grammar that compiles, else stop."""
        commands, self.inbox = self.inbox, []
        if commands or not wait:
            return commands
        if not self.is_busy:
            return [None]
        assert self.woken.wait(PATIENCE)
        self.woken.clear()
        return []

    def wake(self) -> None:
        self.woken.set()

    def send(self, message: StepMessage) -> None:
        for place, (key, token) in enumerate(zip(message.keys, message.tokens, strict=True)):
            self.tokens.setdefault(key, []).append(token)
            if place in message.scores:
                self.scores.setdefault(key, []).append(message.scores[place])
        for key, scores in message.prompt_scores:
            self.prompt_scores.setdefault(key, []).extend(scores)
        for key, (offered, right) in message.drafts.items():
            assert 0 <= right <= offered and right <= message.keys.count(key)
            before = self.drafts.get(key, (0, 0))
            self.drafts[key] = before[0] + offered, before[1] + right
        assert not self.cached.keys() & dict(message.started).keys()
        self.cached.update(message.started)
        self.causes.update({key: cause for key, cause, _ in message.finished})
        self.reasons.update({key: reason for key, _, reason in message.finished})
        self.ended += [key for key, _, _ in message.finished]
        self.stats.append(message.stats)

    @property
    def is_busy(self) -> bool:
        stats = self.loop.stats()
        return stats.active + stats.pending > 0

    def run(
        self, requests: list[TokenRequest], each_step: Callable[[], None] | None = None
    ) -> None:
        """Serve the requests to their end; nothing may be left of them."""
        self.inbox.extend(requests)
        if each_step is None:
            self.loop.run()
        while self.inbox or self.is_busy:
            for command in self.receive(wait=not self.loop.scheduler.has_work):
                assert command is not None
                self.loop.handle(command)
            if each_step is not None:
                each_step()
            self.loop.turn()
            self.loop.scheduler.check()
        self.check_empty()

    def check_empty(self) -> None:
        """Every request has one end, and its pages, masks and names are given back."""
        assert len(self.ended) == len(set(self.ended))
        assert self.loop.pool.num_free == self.loop.pool.num_usable
        assert self.backend.open == set()
        constraints = self.constraints
        assert not (constraints._matchers or constraints._allowed or constraints._compiling)
        assert not self.loop._deadlines
        assert not self.loop.speculation._paces
