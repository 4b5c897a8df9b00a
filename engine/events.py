"""What a generation says back: semantic events, and what they add up to.

Every protocol encodes from these; buffered replies accumulate them (`engine.accumulate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class TokenScore:
    """A token with the log probability that the raw next-token distribution gave it.

    `rank` is 1 + the number of tokens with a higher one. `top` holds (token, logprob) of the
    alternatives in order. Values are natural logarithms in fp32; -inf is -9999.0.
    """

    token: int
    logprob: float
    rank: int
    top: tuple[tuple[int, float], ...] = ()


class Channel(Enum):
    """Where a part of the output goes."""

    TEXT = "text"  # the answer
    REASONING = "reasoning"
    CALL = "call"
    MARKUP = "markup"  # a dialect's delimiters, which nobody sees


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A generated token that a client asked to see.

    `offset` counts the characters of the choice's output before the token's first byte, hidden ones
    included. `time` is in seconds since the request was admitted. `channel` is where that first
    byte went.
    """

    token: int
    offset: int
    time: float
    score: TokenScore | None = None
    channel: Channel = Channel.TEXT


class FinishCause(Enum):
    """Why a generation ended; decided once, at the terminal token."""

    END = "end"  # the model's own end token
    STOP_STRING = "stop_string"
    STOP_TOKEN = "stop_token"
    LIMIT = "limit"  # the request's output limit
    COMPLETE = "complete"  # the constrained answer is whole
    TOOL_CALLS = "tool_calls"  # the turn ended by itself, with at least one complete call
    DEADLINE = "deadline"  # the request's time limit
    REPETITION = "repetition"  # a loop was detected
    CONTEXT_FULL = "context_full"  # the window, or the pages, are used up
    CANCELLED = "cancelled"
    FAILED = "failed"
    DEAD_END = "dead_end"  # the request's own limits leave no token: the client's fault


@dataclass(frozen=True, slots=True)
class Usage:
    """Native token counts.

    `cached` is the part of `prompt` that was not computed again, `reasoning` the part of `output`
    that was a thought. `drafted` tokens were guessed and then checked by the model (speculative
    decoding); `accepted` of them were right and are part of `output`.
    """

    prompt: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    drafted: int = 0
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class Started:
    """The first token exists, even when it shows no text yet."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class PromptScored:
    """Scores of the next prompt tokens, in order; None for the first, which nothing predicts."""

    scores: tuple[TokenScore | None, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Answer text that is final: never part of a stop string, never half a character.

    `usage` counts the tokens so far, those without text included. `records` are the tokens that
    became certain with it; there may be some without text, and text without any. The first
    `echoed` characters of the text are the prompt's.
    """

    text: str
    usage: Usage
    records: tuple[TokenRecord, ...] = ()
    echoed: int = 0


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's thoughts; fields as in `TextDelta`."""

    text: str
    usage: Usage
    records: tuple[TokenRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class CallStart:
    """A tool call begins. Calls of a choice are numbered from 0 by `call`, in their order.

    `name` is the name that the model wrote. `custom`: the declared tool takes free text.
    """

    call: int
    id: str
    name: str
    custom: bool
    usage: Usage
    records: tuple[TokenRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of a call's arguments: JSON text, or the free text of a custom tool."""

    call: int
    arguments: str
    usage: Usage
    records: tuple[TokenRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The call is whole. A call that the output limit cuts has no end."""

    call: int
    usage: Usage
    records: tuple[TokenRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every choice. `stop` is the stop string or token id that matched.

    `first_token` and `decode` are seconds: from admission to the first token, from it to the last.
    """

    cause: FinishCause
    usage: Usage
    stop: str | int | None = None
    error: str | None = None
    first_token: float = 0.0
    decode: float = 0.0


Delta = TextDelta | ReasoningDelta | CallStart | CallDelta | CallEnd
"""The events that show a part of the output."""

SemanticEvent = PromptScored | Started | Delta | Finished


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Consecutive answer text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """Consecutive thoughts."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBlock:
    """One call; not `complete` when the output limit cut it."""

    id: str
    name: str
    arguments: str
    custom: bool
    complete: bool


Block = TextBlock | ReasoningBlock | CallBlock


@dataclass(frozen=True, slots=True)
class Output:
    """One finished choice: its events added up, in order; `echoed` as in `TextDelta`."""

    blocks: tuple[Block, ...]
    end: Finished
    echoed: int = 0
    records: tuple[TokenRecord, ...] = ()
    prompt_scores: tuple[TokenScore | None, ...] = ()

    @property
    def text(self) -> str:
        """The answer."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def reasoning(self) -> str:
        """The thoughts."""
        return "".join(block.text for block in self.blocks if isinstance(block, ReasoningBlock))

    @property
    def calls(self) -> tuple[CallBlock, ...]:
        """The tool calls."""
        return tuple(block for block in self.blocks if isinstance(block, CallBlock))
