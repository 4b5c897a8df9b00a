"""Attention over pages against fp64; a row's bits depend on itself and its context alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.backend.backend import PAGE_TOKENS
from engine.backend.native.library import Library, Pool
from engine.backend.native.operations import Op, OpCode, Program
from engine.backend.native.structures import Attention, Pages, Step
from engine.model.numbers import Floats
from tests.engine.backend.native.programs import limits

CHUNK = 256  # of attention.c


@dataclass(frozen=True)
class Rows:
    """Rows `first` to `end` - 1 of a sequence in a step; `end` is its context."""

    sequence: int
    first: int
    end: int


class Cache:
    """Sequences of random queries, keys and values on random pages; NaN in every other slot."""

    def __init__(
        self,
        contexts: Sequence[int],
        heads: int = 6,
        kv_heads: int = 2,
        dim: int = 32,
        *,
        window: int = 0,
        soft_cap: float = 0.0,
    ) -> None:
        generator = np.random.default_rng(sum(contexts) + heads + dim)
        self.heads, self.kv_heads, self.dim = heads, kv_heads, dim
        self.window, self.soft_cap = window, soft_cap
        counts = [-(-context // PAGE_TOKENS) for context in contexts]
        self.pages = sum(counts) + 3
        order = (1 + generator.permutation(self.pages - 1)).astype(np.int32)
        self.tables = np.split(order, np.cumsum(counts))[:-1]
        self.q = [self._draws(generator, context, heads) for context in contexts]
        self.k = [rounded(self._draws(generator, context, kv_heads)) for context in contexts]
        self.v = [rounded(self._draws(generator, context, kv_heads)) for context in contexts]
        self.keys = np.full((self.pages, kv_heads, dim // 2, PAGE_TOKENS, 2), 0x7FC0, np.uint16)
        self.values = np.full((self.pages, kv_heads, PAGE_TOKENS // 2, dim, 2), 0x7FC0, np.uint16)
        for table, keys, values in zip(self.tables, self.k, self.v, strict=True):
            for place in range(len(keys)):
                page, slot = table[place // PAGE_TOKENS], place % PAGE_TOKENS
                self.keys[page, :, :, slot] = halves(keys[place]).reshape(kv_heads, -1, 2)
                self.values[page, :, slot // 2, :, slot % 2] = halves(values[place])
        angles = np.zeros((max(contexts), dim // 2), np.float32)
        self._attention = Attention.of(
            heads, kv_heads, dim, angles, angles,
            scale=dim**-0.5, window=window, soft_cap=soft_cap,
        )  # fmt: skip

    def _draws(self, generator: np.random.Generator, context: int, heads: int) -> Floats:
        drawn: Floats = 2 * generator.standard_normal((context, heads, self.dim), np.float32)
        return drawn

    def attend(self, library: Library, parts: Sequence[Rows], threads: int = 3) -> Floats:
        """What the rows of one step give, [N, heads * dim]."""
        q = np.concatenate([self.q[part.sequence][part.first : part.end] for part in parts])
        x = np.full((len(q), self.heads + 2 * self.kv_heads, self.dim), np.nan, np.float32)
        x[:, : self.heads] = q
        out = np.full((len(q), self.heads * self.dim), np.nan, np.float32)
        tables = [self.tables[part.sequence][: -(-part.end // PAGE_TOKENS)] for part in parts]
        positions = np.concatenate([np.arange(part.first, part.end) for part in parts])
        step = Step.of(
            np.zeros(len(q), np.int64),
            positions,
            np.zeros(len(q), np.int64),
            np.cumsum([0] + [part.end - part.first for part in parts]).astype(np.int32),
            np.cumsum([0] + [len(table) for table in tables]).astype(np.int32),
            np.concatenate(tables),
            np.zeros(0, np.int64),
        )
        op = Op.of(
            OpCode.ATTEND, len(q), attention=self._attention,
            pages=Pages.of(self.keys, self.values), input=x, output=out,
        )  # fmt: skip
        context = max(map(len, self.q))
        with Pool(library, threads) as pool:
            pool.run(Program([op], limits(len(q), pages=self.pages, context=context)), step)
        return out

    def exact(self, part: Rows) -> Floats:
        """The same in fp64."""
        group, own = self.heads // self.kv_heads, slice(part.first, part.end)
        q = self.q[part.sequence][own].astype(np.float64)
        k = self.k[part.sequence][: part.end].repeat(group, 1).astype(np.float64)
        v = self.v[part.sequence][: part.end].repeat(group, 1).astype(np.float64)
        scores = np.einsum("qhd,khd->hqk", q, k) * self.dim**-0.5
        if self.soft_cap:
            scores = self.soft_cap * np.tanh(scores / self.soft_cap)
        ages = np.arange(part.first, part.end)[:, None] - np.arange(part.end)
        seen = (ages >= 0) & ((ages < self.window) if self.window else True)
        scores = np.where(seen, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", weights, v)
        result: Floats = mixed.reshape(part.end - part.first, -1).astype(np.float32)
        return result


def halves(x: Floats) -> NDArray[np.uint16]:
    """bf16 of numbers that it holds exactly."""
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def rounded(x: Floats) -> Floats:
    """The numbers cut to bf16."""
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def same(found: Floats, wanted: Floats) -> bool:
    """Whether they agree in every bit; a NaN never does."""
    return np.array_equal(found, wanted)


@pytest.mark.parametrize("group", [1, 3, 4, 8, 16])
@pytest.mark.parametrize("dim", [16, 48, 64, 256])
def test_heads_of_all_shapes(library: Library, group: int, dim: int) -> None:
    cache = Cache([1, 300, 70], 2 * group, 2, dim)
    parts = [Rows(0, 0, 1), Rows(1, 280, 300), Rows(2, 69, 70)]
    wanted = np.concatenate([cache.exact(part) for part in parts])
    assert np.abs(cache.attend(library, parts) - wanted).max() < 3e-5


@pytest.mark.parametrize("window", [1, 7, 16, 255, 256, 257, 600])
@pytest.mark.parametrize("soft_cap", [0.0, 5.0])
def test_windows_and_soft_caps(library: Library, window: int, soft_cap: float) -> None:
    cache = Cache([700, 5], window=window, soft_cap=soft_cap)
    parts = [Rows(0, 480, 560), Rows(1, 0, 5)]
    wanted = np.concatenate([cache.exact(part) for part in parts])
    assert np.abs(cache.attend(library, parts) - wanted).max() < 2e-5


@pytest.mark.parametrize("context", [15, 16, 17, 255, 256, 257, 512, 4999])
def test_contexts_of_all_lengths(library: Library, context: int) -> None:
    cache = Cache([context])
    part = Rows(0, max(0, context - 2), context)
    assert np.abs(cache.attend(library, [part]) - cache.exact(part)).max() < 1e-5


def test_a_score_may_be_far_above_all_others(library: Library) -> None:
    cache = Cache([600])
    cache.q = [40 * q for q in cache.q]
    part = Rows(0, 590, 600)
    assert np.abs(cache.attend(library, [part]) - cache.exact(part)).max() < 2e-3


@pytest.mark.parametrize("window", [0, 40, 300])
def test_rows_are_the_same_alone_in_chunks_and_in_batches(library: Library, window: int) -> None:
    cache = Cache([600, 290, 33], window=window)
    parts = [Rows(0, 500, 600), Rows(1, 289, 290), Rows(2, 0, 33)]
    whole = cache.attend(library, parts)
    first, single, short = np.split(whole, np.cumsum([100, 1]))
    backwards = cache.attend(library, parts[::-1], threads=1)
    assert same(backwards, np.concatenate([short, single, first]))
    ends = [500, 503, CHUNK * 2, 513, 560, 600]
    chunks = [
        cache.attend(library, [Rows(0, start, end)], threads=2) for start, end in pairwise(ends)
    ]
    assert same(np.concatenate(chunks), first)
    for row in (0, 11, 12, 13, 99):
        alone = cache.attend(library, [Rows(0, 500 + row, 501 + row)], threads=1)
        assert same(alone[0], first[row])


def test_threads_and_a_split_context_change_no_bit(library: Library) -> None:
    cache = Cache([4000, 20], 9, 3, 64)
    parts = [Rows(0, 3990, 4000), Rows(1, 19, 20)]
    wanted = cache.attend(library, parts, threads=1)
    for threads in (2, 4, 9):
        assert same(cache.attend(library, parts, threads), wanted)
    many = cache.attend(library, [Rows(0, 3400, 4000), Rows(1, 0, 20)])
    assert same(many[590:600], wanted[:10])


def test_a_row_does_not_see_what_is_behind_it(library: Library) -> None:
    cache = Cache([200], window=50)
    wanted = cache.attend(library, [Rows(0, 100, 120)])
    table = cache.tables[0]
    for place in [*range(51), *range(120, 200)]:
        page, slot = table[place // PAGE_TOKENS], place % PAGE_TOKENS
        cache.keys[page, :, :, slot] = cache.values[page, :, slot // 2, :, slot % 2] = 0x7FC0
    assert same(cache.attend(library, [Rows(0, 100, 120)]), wanted)
    cache.values[table[7], :, 0, :, 1] = 0x7FC0  # of place 113
    found = cache.attend(library, [Rows(0, 100, 120)])
    assert same(found[:13], wanted[:13])
    assert np.isnan(found[13:]).all()
