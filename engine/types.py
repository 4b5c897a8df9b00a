"""The nouns of the engine: what a request asks for and what a generation says back.

Every protocol decodes to `GenerationRequest` and encodes from `SemanticEvent`; nothing here knows
a protocol, a tensor or a process. All values are immutable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

Role = Literal["system", "developer", "user", "assistant"]
JsonValue = object


@dataclass(frozen=True, slots=True)
class Text:
    """A run of text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The thoughts of an earlier assistant turn, replayed by the template's own rules."""

    text: str


Part = Text | Reasoning


@dataclass(frozen=True, slots=True)
class Message:
    """One turn; `parts` in the order the client gave them."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the client meant, in order; becomes token ids through the chat template.

    `continue_final` leaves the last message open so that generation goes on inside it.
    """

    messages: tuple[Message, ...]
    template_kwargs: Mapping[str, JsonValue] = field(default_factory=dict)
    add_generation_prompt: bool = True
    continue_final: bool = False
    add_special_tokens: bool = False


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A prompt that bypasses the chat template: text to encode, or token ids taken as they are."""

    content: str | tuple[int, ...]
    add_special_tokens: bool = True


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a next token is drawn. The defaults are neutral: they change nothing.

    Transforms apply in vLLM's order: bans (`min_tokens`, `ignore_eos`), `logit_bias`, repetition,
    frequency and presence penalties, temperature, min-p, top-k, top-p, then one draw.

    `temperature` 0 is greedy. `top_k` 0 is off. `seed` None means that the server draws one.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class SamplingOverride:
    """The sampling fields that a request names; None falls back to the model's default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Stops:
    """What ends a generation besides the model's own end tokens."""

    strings: tuple[str, ...] = ()
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One prompt and what to do with it; the only thing that adapters create.

    `max_tokens` None means the server's default, else what remains of the context; 0 generates
    nothing. `n` choices are generated independently. `echo` puts the prompt before the output.
    `tenant` and `cache_salt` scope every cache that outlives the request. `prompt_param` and
    `max_tokens_param` are the names that errors use: the spelling of the client.
    """

    prompt: Conversation | RawPrompt
    sampling: SamplingOverride = field(default_factory=SamplingOverride)
    stops: Stops = field(default_factory=Stops)
    max_tokens: int | None = None
    n: int = 1
    echo: bool = False
    tenant: str = ""
    cache_salt: str = ""
    prompt_param: str = "messages"
    max_tokens_param: str = "max_tokens"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model reads: made from a conversation by template and dialect, or raw."""

    token_ids: tuple[int, ...]


class FinishCause(Enum):
    """Why a generation ended; decided once, at the terminal token."""

    END = "end"  # the model's own end token
    STOP_STRING = "stop_string"
    STOP_TOKEN = "stop_token"
    LIMIT = "limit"  # the request's output limit
    CONTEXT_FULL = "context_full"  # the window, or the pages, are used up
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Usage:
    """Native token counts. `cached` is the part of `prompt` that was not computed again."""

    prompt: int = 0
    cached: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Started:
    """The first token exists, even when it shows no text yet."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Answer text that is final: never part of a stop string, never half a character.

    `usage` counts the tokens so far, those without text included.
    """

    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every choice. `stop` is the stop string or token id that matched."""

    cause: FinishCause
    usage: Usage
    stop: str | int | None = None
    error: str | None = None


SemanticEvent = Started | TextDelta | Finished


@dataclass(frozen=True, slots=True)
class Output:
    """One finished choice, accumulated from its events."""

    text: str
    cause: FinishCause
    usage: Usage
    stop: str | int | None = None


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """One choice as the engine process sees it: tokens in, tokens out, no text.

    `key` is unique for the life of the process. `stop_ids` end the sequence, `eos_ids` do so unless
    `sampling.ignore_eos`. `cache_scope` owns the prefixes that it may share. `max_tokens` is at
    least 1 and fits the context. `hint` is the text that scripted replies are matched against.
    """

    key: int
    token_ids: tuple[int, ...]
    max_tokens: int
    sampling: Sampling
    seed: int
    eos_ids: tuple[int, ...]
    stop_ids: tuple[int, ...] = ()
    cache_scope: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Gauges and running totals of the engine process, sent with every step."""

    active: int = 0
    pending: int = 0
    free_pages: int = 0
    cached_pages: int = 0
    total_pages: int = 0
    steps: int = 0
    prefill_tokens: int = 0
    generated_tokens: int = 0
    reused_tokens: int = 0
    preemptions: int = 0


@dataclass(frozen=True, slots=True)
class StepMessage:
    """What one step made, for the whole batch: the only message from the engine process.

    `keys[i]` got `tokens[i]`. `started` holds (key, cached prompt tokens) of sequences whose first
    token is in this step; `finished` holds (key, cause, reason) of those that ended with it.
    """

    keys: list[int]
    tokens: list[int]
    started: list[tuple[int, int]]
    finished: list[tuple[int, FinishCause, str | None]]
    stats: EngineStats


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What the engine process found out while loading.

    `max_context` counts prompt and output tokens together. `total_pages` are KV pages of
    `page_tokens` tokens that sequences can own.
    """

    backend: str
    dtype: str
    vocab_size: int
    max_context: int
    max_concurrency: int
    prefill_chunk: int
    page_tokens: int
    total_pages: int


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is served: the facts that a model card, a limit check or a reply needs.

    `id` is the name in replies: the first alias, else `checkpoint`. `names` are all names that mean
    this model. `defaults` are the sampling values that apply where a request names none. `created`
    is the Unix time of the server's start.
    """

    id: str
    checkpoint: str
    names: frozenset[str]
    created: int
    eos_ids: tuple[int, ...]
    bos_id: int | None
    defaults: Sampling
    default_max_tokens: int | None
    engine: EngineFacts
