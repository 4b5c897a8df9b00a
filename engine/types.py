"""What a request asks of the loaded model, and what is known of that model.

Every protocol decodes to `GenerationRequest`, with `engine.conversation`, and encodes from
`engine.events`; nothing here knows a protocol, a tensor or a process. All values are immutable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.conversation import Conversation, Effort


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A prompt that bypasses the chat template: text to encode, or token ids taken as they are."""

    content: str | tuple[int, ...]
    add_special_tokens: bool = True


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a next token is drawn. The defaults are neutral: they change nothing.

    Transforms apply in vLLM's order: the tokens that may not come (output constraint,
    `allowed_token_ids`, `bad_words`, `min_tokens`), `logit_bias`, then the repeat penalties that
    vLLM lacks (DRY, LZ), repetition, frequency and presence penalties, top-n-sigma, temperature,
    min-p, top-k, top-p, then one draw.

    `temperature` 0 is greedy. `top_k` 0 is off. `seed` None means that the server draws one.
    `bad_words` are token sequences that may not be completed. `allowed_token_ids` None allows all.
    DRY (p-e-w, text-generation-webui pull request 5677) subtracts
    `dry_multiplier * dry_base ** (length - dry_allowed_length)` from a token that would repeat
    `length` tokens, at least `dry_allowed_length`, of what came before; a token of `dry_breakers`
    ends a repeat. LZ subtracts `lz_penalty * log2(1 + length)` from a token that would make the
    last `length` tokens, at least 2, occur again within 256.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    top_n_sigma: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_breakers: frozenset[int] = frozenset()
    lz_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    allowed_token_ids: tuple[int, ...] | None = None
    bad_words: tuple[tuple[int, ...], ...] = ()
    seed: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class SamplingOverride:
    """The sampling fields that a request names; None falls back to the model's default.

    `bad_words` and `dry_sequence_breakers` are text; the tokenizer makes token ids of them.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    top_n_sigma: float | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: int | None = None
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    lz_penalty: float | None = None
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    allowed_token_ids: tuple[int, ...] | None = None
    bad_words: tuple[str, ...] = ()
    seed: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Stops:
    """What ends a generation besides the model's own end tokens.

    `include` returns the text of what matched.
    """

    strings: tuple[str, ...] = ()
    token_ids: tuple[int, ...] = ()
    token_sequences: tuple[tuple[int, ...], ...] = ()
    include: bool = False


@dataclass(frozen=True, slots=True)
class RepetitionDetection:
    """Ends a sequence whose last tokens are `min_count` copies of one pattern.

    The pattern has `min_pattern_size` to `max_pattern_size` tokens; a `max_pattern_size` of 0 turns
    the server's own detection off.
    """

    max_pattern_size: int
    min_pattern_size: int = 1
    min_count: int = 2


@dataclass(frozen=True, slots=True)
class BeamOptions:
    """Beam search with `width` beams; see engine.beam for the score."""

    width: int
    length_penalty: float = 1.0
    early_stopping: bool = False


@dataclass(frozen=True, slots=True)
class OutputConstraint:
    """What the answer must look like: makes the mask, and says what a parser may expect.

    `source` is a JSON Schema as text, a regular expression, a Lark grammar, or, for `choice`, a
    JSON list of texts; `json_object` needs none. `param` is the field that the client set it by.
    """

    kind: Literal["json_object", "json_schema", "regex", "lark", "choice"]
    source: str
    param: str


@dataclass(frozen=True, slots=True)
class LogprobOptions:
    """Which log probabilities of generated tokens are returned.

    `top` most likely alternatives, or, when `token_ids` is not empty, exactly these ids. The chosen
    token's is always returned.
    """

    top: int = 0
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One prompt and what to do with it; the only thing that adapters create.

    `max_tokens` None means the server's default, else what remains of the context; 0 generates
    nothing. `clamps_max_tokens` shortens one that does not fit the context instead of refusing it.
    `max_time` is in seconds from admission on. `logprobs` None returns none, `prompt_top` None no
    scores of the prompt. `beams` searches instead of sampling. `records` asks for a `TokenRecord`
    of each token. `priority` lower comes first. `n` choices are generated independently. `echo`
    puts the prompt before the output. `tenant` and `cache_salt` scope every cache that outlives the
    request. `prediction` is text that the output may well repeat, to draft tokens from; `drafts`
    False drafts none. `prompt_param` and `max_tokens_param` are the names that errors use: the
    spelling of the client.
    """

    prompt: Conversation | RawPrompt
    sampling: SamplingOverride = field(default_factory=SamplingOverride)
    stops: Stops = field(default_factory=Stops)
    max_tokens: int | None = None
    clamps_max_tokens: bool = False
    max_time: float | None = None
    constraint: OutputConstraint | None = None
    repetition: RepetitionDetection | None = None
    logprobs: LogprobOptions | None = None
    prompt_top: int | None = None
    beams: BeamOptions | None = None
    records: bool = False
    priority: int = 0
    n: int = 1
    echo: bool = False
    tenant: str = ""
    cache_salt: str = ""
    prediction: str = ""
    drafts: bool = True
    prompt_param: str = "messages"
    max_tokens_param: str = "max_tokens"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model reads: made from a conversation by template and dialect, or raw.

    `tail` is the end of a rendered prompt, from where the last turn begins: what an output
    continues. A dialect sees there whether the prompt has opened the model's thoughts. `keep` is
    how many leading tokens the prefix cache should keep longer than others.
    """

    token_ids: tuple[int, ...]
    tail: str = ""
    keep: int = 0


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What the engine process found out while loading.

    `max_context` counts prompt and output tokens together. `total_pages` are KV pages of
    `page_tokens` tokens that sequences can own. `learned_drafter`: a second model drafts tokens.
    `decode_weight_bytes` are read for one token of one sequence.
    """

    backend: str
    dtype: str
    vocab_size: int
    max_context: int
    max_concurrency: int
    prefill_chunk: int
    page_tokens: int
    total_pages: int
    learned_drafter: bool = False
    decode_weight_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is served: the facts that a model card, a limit check or a reply needs.

    `id` is the name in replies: the first alias, else `checkpoint`. `names` are all names that mean
    this model. `defaults` are the sampling values that apply where a request names none;
    `sampling_ranges` bound what a request may name, `repetition` applies where it names none.
    `created` is the Unix time of the server's start. `dialect` is the name of the model's family of
    outputs, `efforts` are the reasoning levels that its template tells apart, lowest first;
    `thinking_budget` caps thoughts where a request names no budget.
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
    sampling_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    repetition: RepetitionDetection | None = None
    dialect: str = "plain"
    efforts: tuple[Effort, ...] = ()
    thinking_budget: int | None = None
