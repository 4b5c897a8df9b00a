"""The native CPU backend: a step is one call into the C library, whatever the model's size."""

from __future__ import annotations

import logging
import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.backend.backend import PAGE_TOKENS, Int64, ModelShape, Progress, StepPlan, StepResult
from engine.backend.cores import free_memory, multiplies_bf16
from engine.backend.native.drawing import Drawing
from engine.backend.native.library import Library, Pool
from engine.backend.native.load import NativeModel, load_native
from engine.backend.native.pack import BLOCK_ROWS, FORM_NAMES, GROUP
from engine.backend.native.record import Buffers, NativeDecoder, Recorder, Recording, matrices
from engine.backend.native.structures import (
    MAX_HEAD_DIM,
    MAX_HEADS_PER_GROUP,
    Attention,
    Halves16,
    Limits,
    Pages,
    Step,
)
from engine.backend.plans import warm_up_plan
from engine.config import Quantization
from engine.errors import StartupError
from engine.events import TokenScore
from engine.model.numbers import Floats
from engine.model.shape import Shape

if TYPE_CHECKING:
    from engine.backend.prefill import Copies, Prefill

log = logging.getLogger("heliograph.engine")

LEAST_ROWS = 16
MOST_SELECTED = 64  # rows whose logits exist at once; all of a prompt's would fill the memory
BF16_BYTES = 2
Number = TypeVar("Number", bound=np.generic)
NO_ROWS: Int64 = np.zeros(0, np.int64)


class CpuNative:
    """A Llama decoder over packed weights and paged keys and values in bf16.

    A row's logits have the same bits in any batch, chunking and cache state, unless torch computes
    long prefills: these agree with the rest within the rounding of bf16.
    """

    name = "native"

    def __init__(
        self, model: NativeModel, library: Library, threads: int, copies: Copies | None = None
    ) -> None:
        """With `copies`, torch multiplies many rows. Raises StartupError without threads."""
        shape = model.shape
        self.dtype = FORM_NAMES[model.form]
        self._model = model
        self._threads = Pool(library, threads)
        self._drawing = Drawing(library, self._threads)
        self._attention = _attention(model)
        self._copies = copies
        self._act_width = 2 if library.variant == "avx512" else 4
        self._pages: list[Pages] = []
        self._num_pages = 0
        self._recordings: dict[tuple[int, bool], Recording | Prefill] = {}
        self.shape = ModelShape(
            vocab_size=shape.vocab,
            max_context=shape.max_context,
            kv_bytes_per_token=2 * shape.layers * shape.kv_heads * shape.head_dim * BF16_BYTES,
            weight_bytes=_weight_bytes(model.decoder),
        )
        self.allocate(1)

    @classmethod
    def load(
        cls,
        path: Path,
        quantization: Quantization,
        threads: int,
        progress: Progress,
        *,
        exact: bool = False,
    ) -> CpuNative | None:
        """Read a model folder or `.gguf` file; None where this machine or the operations cannot
        compute it, which is logged. `exact`: all rows through the native operations.

        Raises `StartupError` for anything about the files that does not hold together, and where a
        quantization was asked for that only this backend has.
        """
        shape = Shape.load(path)
        obstacle = _obstacle(shape)
        if obstacle is not None:
            log.warning("%s; torch computes, slower", obstacle)
        library = Library.load(progress) if obstacle is None else None
        if library is not None:
            model = load_native(path, shape, quantization, threads, progress)
            copies = None if exact else _copies(model, threads, progress)
            return cls(model, library, threads, copies)
        if quantization in ("int8", "int4"):
            raise StartupError(f"--quantization {quantization} needs the native operations")
        return None

    @property
    def kernel_ns(self) -> int:
        return self._threads.busy_ns

    def allocate(self, num_pages: int) -> None:
        """Reserve KV memory for `num_pages` pages of 16 tokens, zeroed; page 0 is padding."""
        shape = self._model.shape
        keys = (num_pages, shape.kv_heads, shape.head_dim // 2, PAGE_TOKENS, 2)
        values = (num_pages, shape.kv_heads, PAGE_TOKENS // 2, shape.head_dim, 2)
        self._recordings.clear()  # they point into the old pages
        self._pages = [
            Pages.of(_untouched_zeros(keys), _untouched_zeros(values)) for _ in range(shape.layers)
        ]
        self._num_pages = num_pages

    def warm_up(self) -> None:
        """Run a decode row and a prefill on the padding page: memory is mapped on first use."""
        for rows in (1, PAGE_TOKENS):
            self.logits(warm_up_plan(rows))
        for pages in self._pages:
            for pool in pages.kept:
                assert isinstance(pool, np.ndarray)
                pool[0].fill(0)

    def run(self, plan: StepPlan) -> StepResult:
        """Compute the step, sample its sampled rows and score what the plan wants scored."""
        logits = self.logits(plan)
        tokens, failed = self._drawing.draw(logits, plan)
        scores = self._drawing.sampled_scores(logits, plan, tokens, failed)
        return StepResult(tokens, scores, self._prompt_scores(plan), failed)

    def logits(self, plan: StepPlan) -> Floats:
        """Compute the step and return the logits of its sampled rows, fp32 [R, vocab].

        They are valid until the next call where one program makes them, of at most 64 rows.
        """
        rows = plan.logit_rows
        made = self._made_for(plan)
        if isinstance(made, Recording) and 0 < len(rows) <= MOST_SELECTED:
            self._threads.run(made.whole, _step(plan, rows))
            return made.logits[: len(rows), : self.shape.vocab_size]
        made.forward(self._threads, _step(plan, NO_ROWS))
        slabs = [self._more_logits(plan, made, slab) for slab in _slabs(rows)]
        return np.concatenate(slabs or [made.logits[:0, : self.shape.vocab_size]])

    def _more_logits(self, plan: StepPlan, made: Recording | Prefill, rows: Int64) -> Floats:
        """Logits of some rows, at most 64, of the step that ran last; a copy."""
        self._threads.run(made.head, _step(plan, rows))
        return made.logits[: len(rows), : self.shape.vocab_size].copy()

    def _prompt_scores(self, plan: StepPlan) -> list[TokenScore]:
        """Score the S score rows of the step that ran last."""
        scores: list[TokenScore] = []
        for rows, targets, tops in zip(
            _slabs(plan.score_rows),
            _slabs(plan.score_targets),
            _slabs(plan.score_top),
            strict=True,
        ):
            logits = self._more_logits(plan, self._made_for(plan), rows)
            scores += self._drawing.target_scores(logits, targets, tops)
        return scores

    def _made_for(self, plan: StepPlan) -> Recording | Prefill:
        """What computes a step of so many rows, recorded on first use."""
        rows = len(plan.ids)
        mixed = self._copies is not None and rows >= self._copies.least_rows
        size = (max(LEAST_ROWS, 1 << (rows - 1).bit_length()), mixed)
        if size not in self._recordings:
            self._recordings[size] = self._record(*size)
        return self._recordings[size]

    def _record(self, rows: int, mixed: bool) -> Recording | Prefill:
        decoder, shape = self._model.decoder, self._model.shape
        limits = Limits(rows, shape.vocab, self._num_pages, shape.max_context, 0)
        given = (Buffers(rows), self._attention, self._pages, shape.norm_epsilon)
        if not mixed:
            return Recording.of(Recorder(*given), decoder, limits, MOST_SELECTED)
        assert self._copies is not None
        return self._copies.record(given, self._act_width, decoder, limits, MOST_SELECTED)

    def open_sequence(self, key: int, text: str) -> None:
        """Nothing to keep: a plan says all about its sequences."""

    def close_sequence(self, key: int) -> None:
        """Nothing was kept."""


def _obstacle(shape: Shape) -> str | None:
    """Why the operations cannot compute a model; None where they can."""
    queries = shape.heads * shape.head_dim
    sizes = {"hidden size": shape.hidden, "feed-forward size": shape.intermediate}
    for name, number in (sizes | {"width of all heads": queries}).items():
        if number % GROUP:
            return f"the model's {name} {number} is not a multiple of {GROUP}"
    if shape.head_dim % BLOCK_ROWS or shape.head_dim > MAX_HEAD_DIM:
        return (
            f"the model's head size {shape.head_dim} is not a multiple of 16 up to {MAX_HEAD_DIM}"
        )
    if shape.heads // shape.kv_heads > MAX_HEADS_PER_GROUP:
        return f"more than {MAX_HEADS_PER_GROUP} heads read one key/value head"
    return None


def _weight_bytes(decoder: NativeDecoder) -> int:
    read = (*matrices(decoder), decoder.head)
    return sum(matrix.blocks.nbytes for matrix in read)


def _copies(model: NativeModel, threads: int, progress: Progress) -> Copies | None:
    """bf16 weights for prefill where that is faster and half of the free memory holds them."""
    if not multiplies_bf16():
        return None
    if find_spec("torch") is None:
        progress("without torch prompts are computed with the packed weights, slower")
        return None
    needed = sum(2 * matrix.rows * matrix.columns for matrix in matrices(model.decoder))
    if 2 * needed > free_memory():
        progress("no memory for bf16 weights: prompts are computed with the packed ones, slower")
        return None
    from engine.backend.prefill import Copies  # torch takes two seconds to load

    return Copies(model.decoder, threads)


def _attention(model: NativeModel) -> Attention:
    shape = model.shape
    angles = np.outer(np.arange(shape.max_context, dtype=np.float32), model.frequencies)
    return Attention.of(
        shape.heads,
        shape.kv_heads,
        shape.head_dim,
        np.cos(angles),
        np.sin(angles),
        scale=1 / math.sqrt(shape.head_dim),
    )


def _slabs(rows: NDArray[Number]) -> list[NDArray[Number]]:
    return [rows[at : at + MOST_SELECTED] for at in range(0, len(rows), MOST_SELECTED)]


def _untouched_zeros(size: tuple[int, ...]) -> Halves16:
    """Zeros that take no memory before they are written."""
    return np.zeros(size, np.uint16)


def _step(plan: StepPlan, selected: Int64) -> Step:
    return Step.of(
        plan.ids,
        plan.positions,
        plan.slots,
        plan.qo_indptr,
        plan.kv_indptr,
        plan.kv_indices,
        selected,
    )
