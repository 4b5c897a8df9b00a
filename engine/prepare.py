"""A request against the loaded model: rendered, tokenised, checked, ready for the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from engine.conversation import Conversation, Message, Text
from engine.errors import ContextOverflow, RequestError
from engine.events import FinishCause
from engine.grammar.compile import grammar_of
from engine.grammar.instruction import instruction
from engine.outputs import OutputPlan, OutputPlanner
from engine.text.keep import kept_tokens
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from engine.types import (
    GenerationRequest,
    ModelInfo,
    OutputConstraint,
    Prompt,
    RawPrompt,
    Sampling,
    SamplingOverride,
)

_MESSAGES = "messages"  # what the template calls the conversation, whose field has many names
_RANGED = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)
_UNRANGED = ("top_n_sigma", "dry_multiplier", "dry_base", "dry_allowed_length", "lz_penalty")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that is validated against the model.

    `limit_cause` is what reaching `max_tokens` means. `plan` is how outputs are constrained and
    read. `echo` is the text to put before the output, `prediction` what it may repeat, as tokens.
    """

    request: GenerationRequest
    prompt: Prompt
    sampling: Sampling
    max_tokens: int
    limit_cause: FinishCause
    plan: OutputPlan
    echo: str
    prediction: tuple[int, ...] = ()

    @property
    def needs_engine(self) -> bool:
        return self.max_tokens > 0 or self.request.prompt_top is not None


class Preparer:
    """Prepares requests; thread-safe, and run off the event loop."""

    def __init__(
        self,
        info: ModelInfo,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        planner: OutputPlanner,
        *,
        clamp_max_tokens: bool,
    ) -> None:
        self.info = info
        self.tokenizer = tokenizer
        self.template = template
        self._planner = planner
        self._clamp_max_tokens = clamp_max_tokens
        self._breakers = lru_cache(maxsize=64)(self._find_breakers)

    def prepare(self, request: GenerationRequest) -> Prepared:
        """Raises RequestError for what the client got wrong, naming the field."""
        self._check_token_ids(request)
        sampling = self._sampling(request.sampling)
        prompt = self._render(request)
        max_tokens, limit_cause = self._output_limit(request, len(prompt.token_ids))
        if sampling.min_tokens > max_tokens:
            raise RequestError(
                f"min_tokens {sampling.min_tokens} is more than the output limit of {max_tokens}",
                "min_tokens",
            )
        plan = self._plan(request, prompt)  # takes time: behind all that refuses at once
        if plan.grammar is not None and sampling.ignore_eos:
            raise RequestError("ignore_eos cannot be combined with a constraint", "ignore_eos")
        echo = self._echo(request, prompt)
        prompt = replace(prompt, keep=self._keep(request, prompt))
        prediction = self.tokenizer.encode(request.prediction, add_special_tokens=False)
        predicted = tuple(prediction[: self.info.engine.max_context])  # no output is longer
        return Prepared(request, prompt, sampling, max_tokens, limit_cause, plan, echo, predicted)

    def count(self, request: GenerationRequest) -> int:
        """The tokens of the prompt that the request would be generated from, whatever their number.

        Raises RequestError for a prompt, tools or a form of the answer that `prepare` refuses too.
        Limits and sampling are not looked at.
        """
        prompt = self._render(request)
        self._plan(request, prompt)
        return len(prompt.token_ids)

    def _sampling(self, override: SamplingOverride) -> Sampling:
        chosen = {name: self._in_range(name, getattr(override, name)) for name in _RANGED}
        for name in _UNRANGED:
            value = getattr(override, name)
            chosen[name] = getattr(self.info.defaults, name) if value is None else value
        chosen["top_n_sigma"] = max(chosen["top_n_sigma"], 0.0)
        chosen["top_k"] = min(max(int(chosen["top_k"]), 0), self.info.engine.vocab_size)
        breakers = self._breakers(override.dry_sequence_breakers)
        seed = self.info.defaults.seed if override.seed is None else override.seed
        return Sampling(
            **chosen,  # type: ignore[arg-type]
            dry_breakers=breakers if chosen["dry_multiplier"] else frozenset(),
            logit_bias=override.logit_bias,
            allowed_token_ids=override.allowed_token_ids,
            bad_words=self._bad_words(override.bad_words),
            seed=seed,
            min_tokens=override.min_tokens,
            ignore_eos=override.ignore_eos,
        )

    def _in_range(self, name: str, value: float | None) -> float:
        """The requested value within the operator's range, if one is declared (Helios)."""
        if value is None:
            return float(getattr(self.info.defaults, name))
        low, high = self.info.sampling_ranges.get(name, (value, value))
        return min(max(value, low), high)

    def _find_breakers(self, texts: tuple[str, ...]) -> frozenset[int]:
        """Every token whose text contains one of the texts."""
        needles = [text.encode() for text in texts]
        table = self.tokenizer.all_bytes
        return frozenset(
            token for token, data in enumerate(table) if any(needle in data for needle in needles)
        )

    def _bad_words(self, words: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """Each word as it is tokenised at the start of a text and after a space (as in vLLM)."""
        spellings = [spelling for word in words for spelling in (word, f" {word.lstrip()}")]
        encoded = [tuple(self.tokenizer.encode(s, add_special_tokens=False)) for s in spellings]
        return tuple(dict.fromkeys(ids for ids in encoded if ids))

    def _check_token_ids(self, request: GenerationRequest) -> None:
        fields: Mapping[str, Iterable[int]] = {
            "logit_bias": request.sampling.logit_bias,
            "allowed_token_ids": request.sampling.allowed_token_ids or (),
            "stop_token_ids": request.stops.token_ids,
            "stop_token_sequences": [t for ids in request.stops.token_sequences for t in ids],
            "logprob_token_ids": request.logprobs.token_ids if request.logprobs else (),
        }
        for param, ids in fields.items():
            self._check_ids(ids, param)

    def _check_ids(self, ids: Iterable[int], param: str) -> None:
        vocab_size = self.info.engine.vocab_size
        for token in ids:
            if not 0 <= token < vocab_size:
                raise RequestError(
                    f"token id {token} is outside the vocabulary of {vocab_size}", param
                )

    def _plan(self, request: GenerationRequest, prompt: Prompt) -> OutputPlan:
        if isinstance(request.prompt, Conversation):
            return self._planner.plan(request.prompt, prompt, request)
        constraint = request.constraint
        return OutputPlan(grammar=None if constraint is None else grammar_of(constraint))

    def _render(self, request: GenerationRequest) -> Prompt:
        if request.constraint is not None:
            grammar_of(request.constraint)  # what cannot be read cannot be asked for either
        if isinstance(request.prompt, Conversation):
            conversation = _instructed(request.prompt, request.constraint)
            try:
                return self.template.render(conversation)
            except RequestError as error:
                if error.param != _MESSAGES:
                    raise
                raise RequestError(error.message, request.prompt_param, error.code) from None
        raw: RawPrompt = request.prompt
        if isinstance(raw.content, str):
            ids = self.tokenizer.encode(raw.content, add_special_tokens=raw.add_special_tokens)
            if not ids and self.info.bos_id is not None:
                ids = [self.info.bos_id]
        else:
            ids = list(raw.content)
            self._check_ids(ids, request.prompt_param)
        if not ids:
            raise RequestError("the prompt is empty", request.prompt_param)
        return Prompt(tuple(ids))

    def _keep(self, request: GenerationRequest, prompt: Prompt) -> int:
        asked = request.prompt
        if not isinstance(asked, Conversation) or not any(one.keep for one in asked.messages):
            return 0
        conversation = _instructed(asked, request.constraint)
        return kept_tokens(conversation, prompt, self.template.render)

    def _output_limit(self, request: GenerationRequest, prompt: int) -> tuple[int, FinishCause]:
        """The output limit, and whether reaching it means the request's limit or a full window."""
        window = self.info.engine.max_context
        clamps = self._clamp_max_tokens or request.clamps_max_tokens
        wanted = request.max_tokens
        if prompt + min(1 if wanted is None else wanted, 1) > window:
            raise ContextOverflow(
                f"This model's maximum context length is {window} tokens, "
                f"but the prompt alone has {prompt} tokens. Shorten the {request.prompt_param}.",
                request.prompt_param,
                prompt,
                window,
            )
        remaining = window - prompt
        if wanted is None:
            wanted = self.info.default_max_tokens or remaining
        elif wanted > remaining and not clamps:
            raise ContextOverflow(
                f"This model's maximum context length is {window} tokens, but {prompt + wanted} "
                f"were requested: {prompt} in the {request.prompt_param} and {wanted} as "
                f"{request.max_tokens_param}. Shorten one of them.",
                request.max_tokens_param,
                prompt,
                window,
            )
        if wanted >= remaining:
            full = wanted > remaining or request.max_tokens is None
            return remaining, FinishCause.CONTEXT_FULL if full else FinishCause.LIMIT
        return wanted, FinishCause.LIMIT

    def _echo(self, request: GenerationRequest, prompt: Prompt) -> str:
        if not request.echo or isinstance(request.prompt, Conversation):
            return ""
        content = request.prompt.content
        return content if isinstance(content, str) else self.tokenizer.decode(prompt.token_ids)


def _instructed(conversation: Conversation, constraint: OutputConstraint | None) -> Conversation:
    """The conversation with the output's form in its system text, as Helios has it."""
    text = instruction(constraint) if constraint is not None else None
    if text is None:
        return conversation
    messages = conversation.messages
    if messages and messages[0].role in ("system", "developer"):
        leading = replace(messages[0], parts=(*messages[0].parts, Text(text)))
        return replace(conversation, messages=(leading, *messages[1:]))
    return replace(conversation, messages=(Message("system", (Text(text),)), *messages))
