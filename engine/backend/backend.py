"""The seam between the scheduler and a device: a flat plan goes in, one token per row comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.events import TokenScore

PAGE_TOKENS = 16

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Float32 = NDArray[np.float32]
UInt32 = NDArray[np.uint32]
UInt64 = NDArray[np.uint64]

ALL_BANNED = "every token is banned"
"""Why a row failed that the request itself left without a token."""
NOT_FINITE = "the model returned no finite logits"
"""Why a row failed that the model gave nothing to draw from."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step: N token rows of B sequences, of which R rows want a next token.

    Row r of the step belongs to the sequence b with `qo_indptr[b] <= r < qo_indptr[b + 1]`, whose
    pages are `kv_indices[kv_indptr[b]:kv_indptr[b + 1]]`; the rows of one sequence are consecutive
    positions, and its context after the step ends at the last of them. `slots` is where a row's key
    and value go: page * 16 + offset.

    Per sampled row: `bias_*` and `seen_*` are CSR lists. A bias of -inf bans the token. `seen_ids`
    holds the distinct tokens of prompt and output, `seen_counts` how often each occurs in the
    output (0: in the prompt only). `mask_rows` names the row of `masks` whose set bits are the only
    tokens allowed (bit t % 32 of word t // 32), -1 for none. `seeds` and `positions_drawn` key the
    random draw: nothing else does, so a seeded row gives the same token in any batch.

    Scores are of the raw distribution, before any transform. `logprob_top` is the number of
    alternatives per sampled row, -1 for no score; a row whose slice of `logprob_ids` is not empty
    gets exactly these ids as alternatives instead. `score_rows` are rows whose next token is known
    (a prompt's): they are scored as `score_targets` with `score_top` alternatives.
    """

    ids: Int64  # [N]
    positions: Int64  # [N]
    slots: Int64  # [N]
    qo_indptr: Int32  # [B + 1]
    kv_indptr: Int32  # [B + 1]
    kv_indices: Int32  # [pages]
    sequence_keys: Int64  # [B] stable for the life of a sequence
    logit_rows: Int64  # [R] rows of the step whose logits are sampled
    logit_sequences: Int32  # [R] the sequence of each sampled row
    temperature: Float32  # [R]
    top_p: Float32  # [R]
    top_k: Int32  # [R], 0 = off
    min_p: Float32  # [R]
    repetition_penalty: Float32  # [R]
    presence_penalty: Float32  # [R]
    frequency_penalty: Float32  # [R]
    seeds: UInt64  # [R]
    positions_drawn: Int64  # [R] number of output tokens before this one
    bias_indptr: Int32  # [R + 1]
    bias_ids: Int64
    bias_values: Float32
    seen_indptr: Int32  # [R + 1]
    seen_ids: Int64
    seen_counts: Int32
    top_n_sigma: Float32  # [R], 0 = off
    mask_rows: Int32  # [R]
    masks: UInt32  # [G, words]
    logprob_top: Int32  # [R]
    logprob_indptr: Int32  # [R + 1]
    logprob_ids: Int64
    score_rows: Int64  # [S]
    score_targets: Int64  # [S]
    score_top: Int32  # [S]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step made: R tokens, the scores of the sampled rows that want one, by row, and the S
    scores of the score rows. `failed` maps a sampled row to the reason that it has no token.
    """

    tokens: Int64
    scores: dict[int, TokenScore] = field(default_factory=dict)
    prompt_scores: list[TokenScore] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The numbers of a loaded model that others need; `weight_bytes` are read to decode a row."""

    vocab_size: int
    max_context: int
    kv_bytes_per_token: int
    weight_bytes: int = 0


class Backend(Protocol):
    """A loaded model on a device. All calls come from the engine's step thread.

    `kernel_ns` is the time in operations of the device since the start, in nanoseconds; 0 where a
    backend cannot tell it from the time around them.
    """

    name: str
    dtype: str
    shape: ModelShape

    @property
    def kernel_ns(self) -> int: ...

    def allocate(self, num_pages: int) -> None:
        """Reserve KV memory for `num_pages` pages of 16 tokens, zeroed; page 0 is padding."""

    def warm_up(self) -> None:
        """Run once what the first request would otherwise wait for."""

    def run(self, plan: StepPlan) -> StepResult:
        """Compute the step."""

    def open_sequence(self, key: int, text: str) -> None:
        """Announce a sequence; `text` is what it answers, which scripted replies are matched by."""

    def close_sequence(self, key: int) -> None:
        """Forget a sequence."""
