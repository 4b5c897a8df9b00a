"""What the protocols ask for alike, as parts of the neutral request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, cast

from pydantic import MISSING

from adapters.call import Call
from engine.conversation import Conversation
from engine.errors import RequestError
from engine.types import (
    BeamOptions,
    GenerationRequest,
    LogprobOptions,
    OutputConstraint,
    RawPrompt,
    RepetitionDetection,
    SamplingOverride,
    Stops,
)
from generated.shared import (
    ControlFields,
    GenerationFields,
    GenerationOptions,
    ResponseFormatJSONObject,
    ResponseFormatJSONSchema,
    StructuredOutputs,
)

T = TypeVar("T")
MAX_STOP_BYTES = 4096
MAX_TOKEN_STOPS = 16
MAX_BEAMS = 8


def given(value: Any, default: T) -> T:
    """A field's value, or the default where it is absent or null."""
    return default if value is MISSING or value is None else cast(T, value)


def optional(value: Any) -> Any:
    """A field's value; None where it is absent or null."""
    return None if value is MISSING else value


def first_given(*values: Any) -> Any:
    """The first of several spellings that the client used."""
    return next((value for value in values if value is not MISSING and value is not None), None)


def check_model(body: ControlFields, call: Call) -> None:
    """Refuse an unknown model name, and none, where the server serves known ones only."""
    check_model_name(optional(body.model), call)


def check_model_name(name: str | None, call: Call) -> None:
    """The same of a name. Raises RequestError."""
    if call.config.model_names != "known":
        return
    if not name:
        raise RequestError("model is missing: name one", "model", "missing_required_parameter")
    if name not in call.service.info.names:
        raise unknown_model(name)


def unknown_model(name: str) -> RequestError:
    return RequestError(f"The model '{name}' does not exist.", "model", "model_not_found")


def decode_controls(
    body: ControlFields,
    prompt: Conversation | RawPrompt,
    tenant: str,
    *,
    stops: Stops,
    constraints: Sequence[OutputConstraint | None] = (),
    n: int = 1,
) -> GenerationRequest:
    """What every route takes; `constraints` are those that the route has a field of its own for."""
    max_time = first_given(body.max_time_ms, body.t_max_predict_ms)
    max_time = max_time if max_time and max_time > 0 else None  # llama.cpp's 0 and -1 are no limit
    return GenerationRequest(
        prompt=prompt,
        sampling=_sampling(body),
        stops=stops,
        max_time=None if max_time is None else max_time / 1000,
        constraint=decode_constraint(body, constraints),
        repetition=_repetition(body),
        priority=given(body.priority, 0),
        n=n,
        tenant=tenant,
        cache_salt=given(body.cache_salt, ""),
        drafts=body.disable_mtp is not True,
    )


def decode_request(
    body: GenerationFields, prompt: Conversation | RawPrompt, tenant: str
) -> GenerationRequest:
    """All but the output limit, the logprobs and what only one route has."""
    prompt_top = optional(body.prompt_logprobs)
    if prompt_top is not None and body.stream is True:
        raise RequestError("prompt_logprobs cannot be streamed", "prompt_logprobs")
    value: str | list[str] = given(body.stop, [])
    strings = tuple([value] if isinstance(value, str) else value)
    n = given(body.n, 1)
    request = decode_controls(body, prompt, tenant, stops=decode_stops(body, strings, "stop"), n=n)
    return replace(
        request,
        beams=decode_beams(body, request, given(body.best_of, n), prompt_top),
        prompt_top=prompt_top,
        records=body.return_token_ids is True or body.return_token_timestamps is True,
    )


def decode_limit(
    body: GenerationFields, *spellings: tuple[str, Any]
) -> tuple[int | None, str | None]:
    """The output limit and the name that the client gave it, if any; earlier spellings win.

    -1 is no limit (llama.cpp).
    """
    options = given(body.options, GenerationOptions())
    for name, value in (*spellings, ("options.num_predict", options.num_predict)):
        if value is not MISSING and value is not None:
            return (None if value == -1 else value), name
    return None, None


def decode_logprobs(body: Any, top: int | None) -> LogprobOptions | None:
    """The options of generated tokens' log probabilities; `top` None asks for none.

    `body` is of a route that has `logprob_token_ids`.
    """
    ids = tuple(dict.fromkeys(given(body.logprob_token_ids, cast(list[int], []))))
    if top is None:
        if ids:
            raise RequestError("logprob_token_ids needs logprobs", "logprob_token_ids")
        return None
    return LogprobOptions(top, ids)


def _sampling(body: ControlFields) -> SamplingOverride:
    bias: dict[str, float] = given(body.logit_bias, {})
    allowed = optional(body.allowed_token_ids)
    breakers = optional(body.dry_sequence_breakers)
    defaults = SamplingOverride()
    return SamplingOverride(
        temperature=optional(body.temperature),
        top_p=optional(body.top_p),
        top_k=optional(body.top_k),
        min_p=optional(body.min_p),
        repetition_penalty=first_given(body.repetition_penalty, body.repeat_penalty),
        presence_penalty=optional(body.presence_penalty),
        frequency_penalty=optional(body.frequency_penalty),
        top_n_sigma=optional(body.top_n_sigma),
        dry_multiplier=optional(body.dry_multiplier),
        dry_base=optional(body.dry_base),
        dry_allowed_length=optional(body.dry_allowed_length),
        dry_sequence_breakers=(
            defaults.dry_sequence_breakers if breakers is None else tuple(breakers)
        ),
        lz_penalty=optional(body.lz_penalty),
        logit_bias={int(token): amount for token, amount in bias.items()},
        allowed_token_ids=None if allowed is None else tuple(allowed),
        bad_words=tuple(given(body.bad_words, cast(list[str], []))),
        seed=optional(body.seed),
        min_tokens=given(body.min_tokens, 0),
        ignore_eos=given(body.ignore_eos, False),
    )


def decode_stops(body: ControlFields, strings: tuple[str, ...], name: str) -> Stops:
    """The stops, of which the client calls the strings `name`.

    Raises RequestError where strings and tokens are combined (Helios).
    """
    token_ids: list[int] = given(body.stop_token_ids, [])
    sequences: list[list[int]] = given(body.stop_token_sequences, [])
    if sum(len(string.encode()) for string in strings) > MAX_STOP_BYTES:
        raise RequestError(f"{name}: the texts are longer than {MAX_STOP_BYTES} bytes", name)
    if len(token_ids) + len(sequences) > MAX_TOKEN_STOPS:
        raise RequestError(
            f"stop_token_ids and stop_token_sequences are more than {MAX_TOKEN_STOPS} together",
            "stop_token_sequences",
        )
    if strings and (token_ids or sequences):
        param = "stop_token_ids" if token_ids else "stop_token_sequences"
        raise RequestError(f"{name} and {param} cannot be combined", param)
    return Stops(
        strings,
        tuple(token_ids),
        tuple(tuple(sequence) for sequence in sequences),
        given(body.include_stop_str_in_output, False),
    )


def decode_beams(
    body: ControlFields, request: GenerationRequest, best_of: int, prompt_top: int | None = None
) -> BeamOptions | None:
    """`num_beams` above 1, or vLLM's use_beam_search, whose width is best_of, else n."""
    n = request.n
    width = given(body.num_beams, 1)
    if body.use_beam_search is True and width == 1:
        width = best_of
    searches = width > 1 or body.use_beam_search is True
    if not searches:
        if best_of != n:
            raise RequestError(f"best_of must equal n, which is {n}", "best_of")
        return None
    if n > width:
        raise RequestError(f"n is more than the {width} beams", "n")
    if body.stream is True:
        raise RequestError("beam search cannot be streamed", "stream")
    if request.constraint is not None or prompt_top is not None:
        param = "use_beam_search" if body.use_beam_search is True else "num_beams"
        raise RequestError("beam search takes no constraint and no prompt_logprobs", param)
    if width > MAX_BEAMS:
        raise RequestError(f"at most {MAX_BEAMS} beams are searched", "num_beams")
    return BeamOptions(width, given(body.length_penalty, 1.0), given(body.early_stopping, False))


def _repetition(body: ControlFields) -> RepetitionDetection | None:
    asked = optional(body.repetition_detection)
    if asked is None:
        return None
    detection = RepetitionDetection(
        max_pattern_size=given(asked.max_pattern_size, 0),
        min_pattern_size=max(given(asked.min_pattern_size, 1), 1),
        min_count=given(asked.min_count, 2),
    )
    if detection.min_pattern_size > detection.max_pattern_size > 0:
        raise RequestError(
            "min_pattern_size is more than max_pattern_size",
            "repetition_detection.min_pattern_size",
        )
    if detection.max_pattern_size and detection.min_count < 2:
        raise RequestError("min_count must be at least 2", "repetition_detection.min_count")
    return detection


def decode_constraint(
    body: ControlFields, more: Sequence[OutputConstraint | None]
) -> OutputConstraint | None:
    """The one constraint of a request. Raises RequestError when there are several."""
    known = (*more, _response_format(body), *_named_constraints(body))
    found = [item for item in known if item]
    if len(found) > 1:
        names = " and ".join(item.param for item in found)
        raise RequestError(f"{names} cannot be combined: an answer has one form", found[1].param)
    return found[0] if found else None


def _response_format(body: ControlFields) -> OutputConstraint | None:
    wanted = optional(body.response_format)
    if isinstance(wanted, ResponseFormatJSONSchema):
        schema = given(wanted.json_schema.schema_, cast(dict[str, Any], {"type": "object"}))
        param = "response_format.json_schema.schema"
        return OutputConstraint("json_schema", json.dumps(schema), param)
    if isinstance(wanted, ResponseFormatJSONObject):
        return OutputConstraint("json_object", "", "response_format")
    return None


def _named_constraints(body: ControlFields) -> list[OutputConstraint | None]:
    """vLLM's structured_outputs, its older guided_* fields, and llama.cpp's and SGLang's names."""
    outputs = given(body.structured_outputs, StructuredOutputs())
    prefix = "structured_outputs."
    made = [
        _schema(outputs.json_, f"{prefix}json"),
        _schema(body.guided_json, "guided_json"),
        _schema(body.json_schema, "json_schema"),
        _choice(outputs.choice, f"{prefix}choice"),
        _choice(body.guided_choice, "guided_choice"),
    ]
    texts: list[tuple[Literal["regex", "lark"], str, Any]] = [
        ("regex", f"{prefix}regex", outputs.regex),
        ("regex", "guided_regex", body.guided_regex),
        ("regex", "regex", body.regex),
        ("lark", f"{prefix}grammar", outputs.grammar),
        ("lark", "guided_grammar", body.guided_grammar),
        ("lark", "grammar", body.grammar),
    ]
    for kind, param, value in texts:
        source: str = given(value, "")
        made.append(OutputConstraint(kind, source, param) if source else None)
    if outputs.json_object is True:
        made.append(OutputConstraint("json_object", "", f"{prefix}json_object"))
    return made


def _schema(value: Any, param: str) -> OutputConstraint | None:
    if value is MISSING or value is None:
        return None
    source = value if isinstance(value, str) else json.dumps(value)
    return OutputConstraint("json_schema", source, param)


def _choice(value: Any, param: str) -> OutputConstraint | None:
    if value is MISSING or value is None:
        return None
    return OutputConstraint("choice", json.dumps(value), param)
