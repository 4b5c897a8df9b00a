"""Wire fields to the neutral request: every field, its spellings and what cannot be combined."""

from __future__ import annotations

from typing import Any

import pytest

from engine.types import BeamOptions, LogprobOptions, RepetitionDetection, SamplingOverride, Stops
from generated.chat_completions import ChatCompletionRequest
from generated.completions import CompletionRequest
from tests.adapters.decoding import ROUTES, at, decoded, refused

FIELDS: list[tuple[dict[str, Any], str, Any]] = [
    ({"temperature": 0.5}, "sampling.temperature", 0.5),
    ({"temperature": 0}, "sampling.temperature", 0.0),
    ({"top_p": 0.4}, "sampling.top_p", 0.4),
    ({"top_k": 3}, "sampling.top_k", 3),
    ({"top_k": -1}, "sampling.top_k", -1),
    ({"min_p": 0.1}, "sampling.min_p", 0.1),
    ({"top_n_sigma": 1.5}, "sampling.top_n_sigma", 1.5),
    ({"repetition_penalty": 1.5}, "sampling.repetition_penalty", 1.5),
    ({"repeat_penalty": 1.2}, "sampling.repetition_penalty", 1.2),
    ({"repetition_penalty": 1.5, "repeat_penalty": 1.2}, "sampling.repetition_penalty", 1.5),
    ({"repetition_penalty": None, "repeat_penalty": 1.2}, "sampling.repetition_penalty", 1.2),
    ({"presence_penalty": -1.0}, "sampling.presence_penalty", -1.0),
    ({"frequency_penalty": 2.0}, "sampling.frequency_penalty", 2.0),
    ({"dry_multiplier": 0.8}, "sampling.dry_multiplier", 0.8),
    ({"dry_base": 2.0}, "sampling.dry_base", 2.0),
    ({"dry_allowed_length": 4}, "sampling.dry_allowed_length", 4),
    ({"dry_sequence_breakers": ["a", "b"]}, "sampling.dry_sequence_breakers", ("a", "b")),
    ({"dry_sequence_breakers": []}, "sampling.dry_sequence_breakers", ()),
    ({}, "sampling.dry_sequence_breakers", ("\n", ":", '"', "*")),
    ({"dry_sequence_breakers": None}, "sampling.dry_sequence_breakers", ("\n", ":", '"', "*")),
    ({"lz_penalty": 0.3}, "sampling.lz_penalty", 0.3),
    ({"logit_bias": {"007": -1.5, "8": 2}}, "sampling.logit_bias", {7: -1.5, 8: 2.0}),
    ({"allowed_token_ids": [4, 2]}, "sampling.allowed_token_ids", (4, 2)),
    ({}, "sampling.allowed_token_ids", None),
    ({"bad_words": ["a", "b c"]}, "sampling.bad_words", ("a", "b c")),
    ({"seed": -5}, "sampling.seed", -5),
    ({"min_tokens": 2}, "sampling.min_tokens", 2),
    ({"ignore_eos": True}, "sampling.ignore_eos", True),
    ({"stop": "END"}, "stops", Stops(("END",))),
    ({"stop": ["a", "b"]}, "stops", Stops(("a", "b"))),
    ({"stop": None, "stop_token_ids": []}, "stops", Stops()),
    ({"stop_token_ids": [4, 5]}, "stops", Stops((), (4, 5))),
    ({"stop_token_sequences": [[1], [2, 3]]}, "stops", Stops((), (), ((1,), (2, 3)))),
    ({"stop": "x", "include_stop_str_in_output": True}, "stops", Stops(("x",), include=True)),
    ({"max_time_ms": 1500}, "max_time", 1.5),
    ({"t_max_predict_ms": 250}, "max_time", 0.25),
    ({"max_time_ms": 1500, "t_max_predict_ms": 250}, "max_time", 1.5),
    ({"t_max_predict_ms": 0}, "max_time", None),
    ({"t_max_predict_ms": -1}, "max_time", None),
    ({"max_time_ms": 1500, "t_max_predict_ms": -1}, "max_time", 1.5),
    ({"priority": -3}, "priority", -3),
    ({"n": 3}, "n", 3),
    ({"cache_salt": "s"}, "cache_salt", "s"),
    ({"disable_mtp": True}, "drafts", False),
    ({"disable_mtp": False}, "drafts", True),
    ({"disable_mtp": None}, "drafts", True),
    ({}, "tenant", "tenant"),
    ({"prompt_logprobs": 0}, "prompt_top", 0),
    ({"prompt_logprobs": 20}, "prompt_top", 20),
    ({"return_token_ids": True}, "records", True),
    ({"return_token_timestamps": True}, "records", True),
    ({"return_token_ids": False}, "records", False),
    ({"options": {"num_predict": 9}}, "max_tokens", 9),
    ({"options": {"num_predict": 9}}, "max_tokens_param", "options.num_predict"),
    ({"options": {"num_predict": -1}}, "max_tokens", None),
    ({"n_predict": 8, "options": {"num_predict": 9}}, "max_tokens", 8),
    ({"n_predict": 8}, "max_tokens_param", "n_predict"),
    ({"n_predict": -1}, "max_tokens", None),
    ({"max_tokens": 7, "n_predict": 8}, "max_tokens", 7),
    ({"max_tokens": 7, "n_predict": -1}, "max_tokens", 7),
    ({"max_tokens": None, "n_predict": 8}, "max_tokens", 8),
    (
        {"repetition_detection": {"max_pattern_size": 8, "min_pattern_size": 2, "min_count": 3}},
        "repetition",
        RepetitionDetection(8, 2, 3),
    ),
    ({"repetition_detection": {"max_pattern_size": 8}}, "repetition", RepetitionDetection(8, 1, 2)),
    (
        {"repetition_detection": {"max_pattern_size": 8, "min_pattern_size": 0}},
        "repetition",
        RepetitionDetection(8, 1, 2),
    ),
    ({"repetition_detection": {}}, "repetition", RepetitionDetection(0, 1, 2)),
    ({"repetition_detection": None}, "repetition", None),
    ({"response_format": {"type": "text"}}, "constraint", None),
    ({"structured_outputs": {"json_object": False}}, "constraint", None),
    ({"best_of": 2, "n": 2}, "beams", None),
    ({"num_beams": 1}, "beams", None),
    ({"num_beams": 3}, "beams", BeamOptions(3)),
    ({"use_beam_search": True, "best_of": 4}, "beams", BeamOptions(4)),
    ({"use_beam_search": True, "n": 2}, "beams", BeamOptions(2)),
    (
        {"num_beams": 3, "length_penalty": 0.5, "early_stopping": True},
        "beams",
        BeamOptions(3, 0.5, True),
    ),
]  # fmt: skip


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("fields", "path", "value"), FIELDS, ids=str)
def test_a_field_reaches_the_neutral_request(
    route: str, fields: dict[str, Any], path: str, value: Any
) -> None:
    assert at(decoded(route, **fields), path) == value


def test_the_table_covers_the_sampling_of_the_neutral_request() -> None:
    covered = {path.removeprefix("sampling.") for _, path, _ in FIELDS if "sampling." in path}
    assert covered == set(SamplingOverride.__dataclass_fields__)


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_absent_or_null_is_neutral(route: str) -> None:
    model = ChatCompletionRequest if route == "chat" else CompletionRequest
    plain = decoded(route)
    assert plain.sampling == SamplingOverride()
    names = set(model.model_fields) - {"messages", "prompt"}
    assert decoded(route, **dict.fromkeys(names)) == plain


@pytest.mark.parametrize(
    ("route", "spellings"),
    [
        ("chat", ["max_completion_tokens", "max_tokens", "n_predict"]),
        ("completions", ["max_tokens", "n_predict"]),
    ],
)
def test_the_first_spelling_of_the_limit_wins_and_is_named(
    route: str, spellings: list[str]
) -> None:
    for place, name in enumerate(spellings):
        fields = {other: 10 + number for number, other in enumerate(spellings) if number >= place}
        found = decoded(route, **fields, options={"num_predict": 99})
        assert (found.max_tokens, found.max_tokens_param) == (10 + place, name)


def test_completions_have_a_limit_of_their_own_unless_one_is_given() -> None:
    assert decoded("completions").max_tokens == 16
    assert decoded("completions", n_predict=-1).max_tokens is None
    assert decoded("completions", max_tokens=0).max_tokens == 0
    assert decoded("chat").max_tokens is None


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, None),
        ({"logprobs": False}, None),
        ({"top_logprobs": 0}, None),
        ({"logprobs": True}, LogprobOptions()),
        ({"logprobs": True, "top_logprobs": 20}, LogprobOptions(20)),
        ({"logprobs": True, "logprob_token_ids": [3, 1, 3, 2, 1]}, LogprobOptions(0, (3, 1, 2))),
        ({"logprobs": True, "logprob_token_ids": []}, LogprobOptions()),
        ({"logprob_token_ids": []}, None),
        ({"logprob_token_ids": None}, None),
    ],
    ids=str,
)
def test_chat_logprobs(fields: dict[str, Any], options: LogprobOptions | None) -> None:
    assert decoded(**fields).logprobs == options


@pytest.mark.parametrize(
    ("fields", "options", "prompt_top"),
    [
        ({}, None, None),
        ({"logprobs": 0}, LogprobOptions(), None),
        ({"logprobs": 5}, LogprobOptions(5), None),
        ({"logprobs": 5, "logprob_token_ids": [9]}, LogprobOptions(5, (9,)), None),
        ({"logprobs": 5, "echo": True}, LogprobOptions(5), 5),
        ({"logprobs": 0, "echo": True}, LogprobOptions(), 0),
        ({"logprobs": 5, "echo": True, "prompt_logprobs": 2}, LogprobOptions(5), 5),
        ({"logprobs": 2, "echo": True, "prompt_logprobs": 7}, LogprobOptions(2), 7),
        ({"prompt_logprobs": 7}, None, 7),
        ({"echo": True}, None, None),
    ],
    ids=str,
)
def test_completions_logprobs_and_those_of_an_echoed_prompt(
    fields: dict[str, Any], options: LogprobOptions | None, prompt_top: int | None
) -> None:
    found = decoded("completions", **fields)
    assert (found.logprobs, found.prompt_top) == (options, prompt_top)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"logprob_token_ids": [1]}, "logprob_token_ids"),
    ({"prompt_logprobs": 0, "stream": True}, "prompt_logprobs"),
    ({"stop": "a", "stop_token_ids": [1]}, "stop_token_ids"),
    ({"stop": "a", "stop_token_sequences": [[1]]}, "stop_token_sequences"),
    ({"stop": ["é" * 1024, "é" * 1024 + "x"]}, "stop"),
    ({"stop_token_ids": [1] * 10, "stop_token_sequences": [[1]] * 7}, "stop_token_sequences"),
    (
        {"repetition_detection": {"max_pattern_size": 3, "min_pattern_size": 4}},
        "repetition_detection.min_pattern_size",
    ),
    (
        {"repetition_detection": {"max_pattern_size": 3, "min_count": 1}},
        "repetition_detection.min_count",
    ),
    ({"best_of": 2}, "best_of"),
    ({"n": 2, "best_of": 1}, "best_of"),
    ({"num_beams": 2, "n": 3}, "n"),
    ({"num_beams": 2, "stream": True}, "stream"),
    ({"num_beams": 2, "regex": "a"}, "num_beams"),
    ({"use_beam_search": True, "prompt_logprobs": 1}, "use_beam_search"),
    ({"use_beam_search": True, "best_of": 9}, "num_beams"),
]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("fields", "param"), REFUSED, ids=str)
def test_what_cannot_be_combined_names_its_field(
    route: str, fields: dict[str, Any], param: str
) -> None:
    assert refused(route, **fields).param == param


def test_alternatives_need_logprobs_in_chat() -> None:
    assert refused(top_logprobs=1).param == "top_logprobs"
    assert refused(top_logprobs=1, logprobs=False).param == "top_logprobs"


def test_limits_are_inclusive() -> None:
    decoded(stop=["é" * 1024] * 2)
    decoded(stop_token_ids=[1] * 10, stop_token_sequences=[[1]] * 6)
    decoded(use_beam_search=True, best_of=8)
