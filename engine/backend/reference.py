"""The torch backend: always present, and the oracle that every other backend is tested against."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from engine.backend.attention import Heads, exact_row_multiple
from engine.backend.backend import (
    PAGE_TOKENS,
    Int64,
    ModelShape,
    Progress,
    StepPlan,
    StepResult,
)
from engine.backend.cores import multiplies_bf16, usable_cores
from engine.backend.linear import Linear, packing_is_exact
from engine.backend.plans import warm_up_plan
from engine.backend.sampling import sample
from engine.backend.scores import log_softmax, sampled_scores, score
from engine.backend.torch_ops import KvPool, Rotations, TorchStep
from engine.backend.torch_weights import TorchWeights, as_tensor, single_threaded
from engine.events import TokenScore
from engine.model.decoder import Decoder
from engine.model.shape import Shape
from engine.model.weights import load_decoder, open_checkpoint, rotary_frequencies

Dtype = Literal["auto", "fp32", "bf16"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
SLAB_ROWS = 64  # prompt rows whose logits exist at once; all of a prompt's would fill the memory


class TorchReference:
    """A Llama decoder on CPU tensors. In fp32 a row's logits have the same bits in any batch,
    chunking and cache state; in bf16 they agree within that type's rounding.
    """

    name = "reference"
    kernel_ns = 0

    def __init__(
        self,
        model: Shape,
        decoder: Decoder[Tensor, Linear, Tensor],
        rotations: Rotations,
        dtype: str,
    ) -> None:
        self.dtype = dtype
        self._model = model
        self._decoder = decoder
        self._rotations = rotations
        numbers = 2 * model.layers * model.kv_heads * model.head_dim
        self.shape = ModelShape(
            vocab_size=model.vocab,
            max_context=model.max_context,
            kv_bytes_per_token=numbers * DTYPES[dtype].itemsize,
            weight_bytes=_num_weights(model) * DTYPES[dtype].itemsize,
        )
        with torch.inference_mode():
            multiple = exact_row_multiple(model.head_dim)
            self._pool = KvPool(model, 1, DTYPES[dtype])
        self._heads = Heads(model.heads, model.kv_heads, model.head_dim, multiple)

    @classmethod
    def load(
        cls, path: Path, dtype: Dtype, progress: Progress, threads: int | None = None
    ) -> TorchReference:
        """Read a model folder or `.gguf` file; `auto` is bf16 where the CPU multiplies it.

        `threads` None are as many as there are usable cores. Raises `StartupError` for anything
        about the files that does not hold together.
        """
        start = time.perf_counter()
        torch.set_num_threads(threads or usable_cores())
        chosen = dtype if dtype != "auto" else ("bf16" if multiplies_bf16() else "fp32")
        shape = Shape.load(path)
        checkpoint = open_checkpoint(path, shape)
        progress(f"loading {shape.layers} layers as {chosen}")
        with torch.inference_mode():
            packed = packing_is_exact(_matrix_sizes(shape), DTYPES[chosen])
            weights = TorchWeights(
                checkpoint,
                DTYPES[chosen],
                lambda weight, bias: Linear.pack(weight, bias, packed),
            )
            with single_threaded() as loaders:
                decoder = load_decoder(weights, shape, loaders)
            frequencies = as_tensor(rotary_frequencies(checkpoint, shape))
            rotations = Rotations.build(frequencies, shape.max_context)
        progress(f"loaded in {time.perf_counter() - start:.1f} s")
        return cls(shape, decoder, rotations, chosen)

    def allocate(self, num_pages: int) -> None:
        """Reserve KV memory for `num_pages` pages of 16 tokens, zeroed; page 0 is padding."""
        with torch.inference_mode():
            self._pool = KvPool(self._model, num_pages, DTYPES[self.dtype])

    def warm_up(self) -> None:
        """Run a decode row and a prefill on the padding page: kernels are made on first use."""
        for rows in (1, PAGE_TOKENS):
            self.logits(warm_up_plan(rows))
        with torch.inference_mode():
            self._pool.clear_page(0)

    def run(self, plan: StepPlan) -> StepResult:
        """Compute the step, sample its sampled rows and score what the plan wants scored."""
        with torch.inference_mode():
            step = self._step(plan)
            hidden = self._decoder.forward(step)  # [N, hidden]
            logits = self._logits(step, hidden, plan.logit_rows)  # [R, vocab]
            tokens, failed = sample(logits, plan)
            scores = sampled_scores(logits.numpy(), plan, tokens, failed)
            return StepResult(tokens, scores, self._prompt_scores(step, hidden, plan), failed)

    def logits(self, plan: StepPlan) -> Tensor:
        """Compute the step and return the logits of its sampled rows, fp32 [R, vocab]."""
        with torch.inference_mode():
            step = self._step(plan)
            return self._logits(step, self._decoder.forward(step), plan.logit_rows)

    def _step(self, plan: StepPlan) -> TorchStep:
        return TorchStep(plan, self._model, self._heads, self._pool, self._rotations)

    def _logits(self, step: TorchStep, hidden: Tensor, rows: Int64) -> Tensor:
        """Logits, fp32 [len(rows), vocab], of some rows of hidden [N, hidden]."""
        chosen = hidden.index_select(0, torch.from_numpy(rows))
        return self._decoder.logits(step, chosen).float()

    def _prompt_scores(self, step: TorchStep, hidden: Tensor, plan: StepPlan) -> list[TokenScore]:
        """Score the S score rows by hidden [N, hidden]."""
        wanted = zip(plan.score_targets.tolist(), plan.score_top.tolist(), strict=True)
        scores: list[TokenScore] = []
        for start in range(0, len(plan.score_rows), SLAB_ROWS):
            slab = plan.score_rows[start : start + SLAB_ROWS]
            logits = self._logits(step, hidden, slab).numpy()  # [SLAB_ROWS, vocab]
            scores += [score(log_softmax(row), *next(wanted)) for row in logits]
        return scores

    def open_sequence(self, key: int, text: str) -> None:
        """Nothing to keep: a plan says all about its sequences."""

    def close_sequence(self, key: int) -> None:
        """Nothing was kept."""


def _num_weights(shape: Shape) -> int:
    """Weights that a decode row meets."""
    layer = sum(rows * columns for rows, columns in _matrix_sizes(shape))
    return shape.layers * layer + shape.vocab * shape.hidden


def _matrix_sizes(shape: Shape) -> list[tuple[int, int]]:
    """(out, in) of a layer's matrices; the head is like gate_up, only higher."""
    queries = shape.heads * shape.head_dim
    return [
        (queries + 2 * shape.kv_heads * shape.head_dim, shape.hidden),
        (shape.hidden, queries),
        (2 * shape.intermediate, shape.hidden),
        (shape.hidden, shape.intermediate),
    ]
