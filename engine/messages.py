"""What the API process and the engine process say to each other: tokens, and no text."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.events import FinishCause, TokenScore
from engine.types import LogprobOptions, RepetitionDetection, Sampling


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """What grammars are compiled over: tokenizer.json with control tokens flagged, end tokens."""

    json: str
    eos_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ThinkingLimits:
    """Where a thought begins and ends, by tokens, and what closes it early.

    A thought is open from the start where `starts_open`, and after a token of `open_ids`; a token
    of `end_ids`, which holds `close_id`, ends it. When `budget` tokens of the output were thoughts,
    or when the thought's last tokens are a loop (`repetition`), the next token is `close_id`,
    unless a grammar does not allow it. It has no score.
    """

    close_id: int
    open_ids: tuple[int, ...]
    end_ids: tuple[int, ...]
    starts_open: bool
    budget: int | None = None
    repetition: RepetitionDetection | None = None


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """One choice as the engine process sees it: tokens in, tokens out, no text.

    `key` is unique for the life of the process. `stop_ids` end the sequence, `eos_ids` do so unless
    `sampling.ignore_eos`. `cache_scope` owns the prefixes that it may share. `max_tokens` fits
    the context; 0 only scores the prompt. The first `keep_tokens` of the prompt are worth caching
    longer than others. `deadline` is on the monotonic clock. `grammar` is what
    llguidance compiles. `hint` is the text that scripted replies are matched by. `prediction` is
    what the client expects as output, to draft from; `drafts` False has none tried.
    """

    key: int
    token_ids: tuple[int, ...]
    max_tokens: int
    sampling: Sampling
    seed: int
    eos_ids: tuple[int, ...]
    stop_ids: tuple[int, ...] = ()
    cache_scope: str = ""
    keep_tokens: int = 0
    priority: int = 0
    deadline: float | None = None
    grammar: str | None = None
    repetition: RepetitionDetection | None = None
    thinking: ThinkingLimits | None = None
    logprobs: LogprobOptions | None = None
    prompt_top: int | None = None
    hint: str = ""
    prediction: tuple[int, ...] = ()
    drafts: bool = True


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Gauges and running totals of the engine process.

    `step_ns` are spent from scheduling a step to its message, `kernel_ns` of them in operations of
    the device, where the backend can tell. Of drafts: `draft_steps` tokens were drafted by a model,
    `verify_steps` steps checked any, `verification_drafts` were checked and `accepted_drafts` came
    true. `verification_rounds` are the decoding sequences of all steps, `draft_rounds` those that
    had drafts.
    """

    active: int = 0
    pending: int = 0
    free_pages: int = 0
    cached_pages: int = 0
    total_pages: int = 0
    steps: int = 0
    step_ns: int = 0
    kernel_ns: int = 0
    prefill_tokens: int = 0
    generated_tokens: int = 0
    reused_tokens: int = 0
    preemptions: int = 0
    forced_tokens: int = 0
    draft_steps: int = 0
    verify_steps: int = 0
    verification_drafts: int = 0
    verification_rounds: int = 0
    accepted_drafts: int = 0
    draft_rounds: int = 0
    repetition_cuts: int = 0
    deadline_cuts: int = 0
    reasoning_budget_cuts: int = 0
    reasoning_loop_cuts: int = 0


@dataclass(slots=True)
class StepMessage:
    """What one step made, for the whole batch: the only message from the engine process.

    `keys[i]` got `tokens[i]`; `scores` maps i to its score where one was asked for. `prompt_scores`
    holds (key, scores of prompt tokens from the second on) in pieces. `drafts` maps a key to how
    many drafts this step has checked, and to how many of its tokens, the first ones, are drafts
    that came true. `started` holds (key, cached prompt tokens) of sequences whose first token is in
    this step; `finished` holds (key, cause, reason) of those that ended with it. `stats` None: they
    are about the last ones; a message in which a sequence starts or ends has them.
    """

    keys: list[int]
    tokens: list[int]
    started: list[tuple[int, int]]
    finished: list[tuple[int, FinishCause, str | None]]
    stats: EngineStats | None = None
    scores: dict[int, TokenScore] = field(default_factory=dict)
    drafts: dict[int, tuple[int, int]] = field(default_factory=dict)
    prompt_scores: list[tuple[int, list[TokenScore]]] = field(default_factory=list)
