"""The fields of sampling, scores and constraints take their ranges, and replies their shapes."""

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from generated.chat_completions import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from generated.completions import Completion, CompletionChunk, CompletionRequest
from specs import sdk_types
from specs.document import load
from tests.specs.validity import accepted

SPECS = load()
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
RAW: dict[str, Any] = {"prompt": "hi"}
BODIES: dict[type[BaseModel], dict[str, Any]] = {
    ChatCompletionRequest: CHAT,
    CompletionRequest: RAW,
}


HUGE = 10**30
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
NAMED = {"name": "a", "schema": SCHEMA}
# field: (values that are taken, values that are not); null is always taken
RANGES: dict[str, tuple[list[Any], list[Any]]] = {
    "top_k": ([-1, 0, 50], [-2, 1.5, HUGE]),
    "top_n_sigma": ([-1, 0, 1.5, 1000], [-1.5, 1001, "1"]),
    "repeat_penalty": ([0.5, 1, 2], [0, 2.5]),
    "dry_multiplier": ([0, 0.8, 1000], [-1, 1001]),
    "dry_base": ([1, 1.75], [0.9, 1001]),
    "dry_allowed_length": ([1, 2, 20], [0, -1, 1.5, HUGE]),
    "dry_sequence_breakers": ([[], ["\n", ":"], ["a" * 64]], [[""], ["a" * 65], ["a"] * 17, "a"]),
    "lz_penalty": ([0, 0.5], [-0.1, 1001]),
    "allowed_token_ids": ([[0], [1, 2, 2]], [[], [-1], ["1"], [2**31]]),
    "bad_words": ([[], ["no"], ["a"] * 128], [[""], ["a"] * 129, "no"]),
    "stop_token_ids": ([[], [1] * 16], [[1] * 17, [-1]]),
    "stop_token_sequences": ([[], [[1]], [[1] * 64] * 16], [[[]], [[1] * 65], [[1]] * 17, [1]]),
    "include_stop_str_in_output": ([True, False], [1, "true"]),
    "repetition_detection": (
        [
            {},
            {"max_pattern_size": 0, "min_pattern_size": 0, "min_count": 0},
            {"max_pattern_size": 4096, "min_pattern_size": 2, "min_count": 3},
        ],
        [{"max_pattern_size": -1}, {"max_pattern_size": 4097}, {"min_count": -1}, True, []],
    ),
    "max_time_ms": ([1, 60_000], [0, -1, 0.5, HUGE]),
    "t_max_predict_ms": ([-1, 0, 1], [-2, HUGE]),
    "n_predict": ([-1, 1, 4096], [-2, 1.5, "1"]),
    "options": (
        [{}, {"num_predict": 5}, {"num_predict": -1}, {"num_ctx": 4096}, {"num_predict": None}],
        [{"num_predict": 0}, {"num_predict": "5"}, []],
    ),
    "priority": ([-(2**63), 0, 2**63 - 1], [2**63, -(2**63) - 1, 0.5]),
    "disable_mtp": ([True, False], [1, "x"]),
    "best_of": ([1, 128], [0, 129]),
    "use_beam_search": ([True, False], [1, 4]),
    "num_beams": ([1, 8], [0, 9]),
    "length_penalty": ([-10, 0, 1.5], [-11, 11, "1"]),
    "early_stopping": ([True, False], ["never", 1]),
    "skip_special_tokens": ([True], [False, 1]),
    "prompt_logprobs": ([0, 20], [-1, 21, True]),
    "logprob_token_ids": ([[], [5, 5], [0] * 128], [[0] * 129, [-1], [1.5]]),
    "return_tokens_as_token_ids": ([True, False], [1]),
    "return_token_ids": ([True, False], [1]),
    "return_token_timestamps": ([True, False], [1]),
    "response_format": (
        [
            {"type": "text"},
            {"type": "json_object"},
            {"type": "json_object", "schema": None},
            {"type": "json_schema", "json_schema": NAMED},
            {"type": "json_schema", "json_schema": {**NAMED, "strict": True, "description": "d"}},
            {"type": "json_schema", "json_schema": {"name": "a"}},
        ],
        [
            {},
            {"type": "xml"},
            {"type": "json_object", "schema": SCHEMA},
            {"type": "json_schema"},
            {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "a", "schema": "{}"}},
            "json_object",
        ],
    ),
    "structured_outputs": (
        [
            {},
            {"json": SCHEMA},
            {"json": json.dumps(SCHEMA)},
            {"regex": "[0-9]+"},
            {"choice": ["a"] * 1024},
            {"grammar": 'start: "a"'},
            {"json_object": True, "regex": None},
            {"regex": "a", "disable_any_whitespace": False, "whitespace_pattern": None},
        ],
        [
            {"json": True},
            {"choice": []},
            {"choice": ["a"] * 1025},
            {"choice": "a"},
            {"regex": 1},
            {"json_object": 1},
            {"json": SCHEMA, "whitespace_pattern": " "},
            {"json": SCHEMA, "disable_any_whitespace": True},
            {"json": SCHEMA, "disable_additional_properties": True},
            {"structural_tag": "{}"},
        ],
    ),
    "guided_json": ([SCHEMA, "{}"], [True, []]),
    "guided_regex": (["a+"], [1]),
    "guided_choice": ([["a", "b"]], [[], "a"]),
    "guided_grammar": (['start: "a"'], [{}]),
    "json_schema": ([SCHEMA, "{}"], [True, []]),
    "regex": (["a+"], [1]),
    "grammar": (['start: "a"'], [{}]),
}


@pytest.mark.parametrize("field", RANGES)
@pytest.mark.parametrize("model", BODIES)
def test_a_field_takes_its_range_on_both_routes(model: type[BaseModel], field: str) -> None:
    good, bad = RANGES[field]
    for value in [None, *good]:
        assert accepted(model, {**BODIES[model], field: value}), value
    for value in bad:
        body = {**BODIES[model], field: value}
        assert not accepted(model, body), value
        with pytest.raises(ValidationError) as caught:
            model.model_validate(body, strict=True)
        assert {error["loc"][0] for error in caught.value.errors()} == {field}, value


@pytest.mark.parametrize(
    ("model", "fields", "verdict"),
    [
        (ChatCompletionRequest, {"logprobs": True, "top_logprobs": 20}, True),
        (ChatCompletionRequest, {"logprobs": False, "top_logprobs": 0}, True),
        (ChatCompletionRequest, {"logprobs": True, "top_logprobs": 21}, False),
        (ChatCompletionRequest, {"logprobs": 5}, False),
        (ChatCompletionRequest, {"n_predict": 0}, False),
        (CompletionRequest, {"logprobs": 0}, True),
        (CompletionRequest, {"logprobs": 20, "echo": True, "max_tokens": 0}, True),
        (CompletionRequest, {"logprobs": 21}, False),
        (CompletionRequest, {"logprobs": True}, False),
        (CompletionRequest, {"n_predict": 0}, True),
    ],
)
def test_what_the_routes_do_not_share(
    model: type[BaseModel], fields: dict[str, Any], verdict: bool
) -> None:
    assert accepted(model, BODIES[model] | fields) == verdict


def test_a_field_that_is_not_official_names_its_source() -> None:
    official: set[str] = set()
    ours: dict[str, str] = {}
    flat = SPECS.flattened()
    for operation in flat.operations():
        if operation.request is None:
            continue
        name = operation.place.schema["x-official"]["request"]
        for member in sdk_types.members(sdk_types.find(name)):
            official |= set(sdk_types.fields(member) or ())
        for field in flat.fields(operation.request, refused=False):
            if "." not in field.path and field.place.schema["x-disposition"] == "honoured":
                ours[field.path] = field.place.schema["description"]
    assert {"best_of", "stop_sequences", "previous_response_id"} <= official
    sources = r"\(.*(vLLM|SGLang|llama\.cpp|Ollama|Helios|TinyTitan|metrale|Anthropic).*\)"
    unnamed = [f for f, text in ours.items() if f not in official and not re.search(sources, text)]
    assert unnamed == []


POSITION = {"42": {"logprob": -0.25, "rank": 1, "decoded_token": " a"}}
FLARE = {"time_to_first_token_ms": 12.5, "decode_time_ms": 0.0}
SCORE = {"token": "a", "logprob": -9999.0, "bytes": [97]}
SCORES = {"content": [{**SCORE, "top_logprobs": [SCORE]}]}
LISTS = {
    "tokens": ["a", "token_id:5"],
    "token_logprobs": [None, -0.5],
    "top_logprobs": [None, {"token_id:5": -0.5}],
    "text_offset": [0, 1],
}
TOKENS = {"token_ids": [5], "token_timestamps": [0.25]}
USAGE = {
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "total_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 0},
}
HEAD = {"id": "x", "created": 1, "model": "m"}
END = {"index": 0, "finish_reason": "stop", "stop_reason": None}
PIECE = {"index": 0, "finish_reason": None}
MESSAGE = {"role": "assistant", "content": "a"}
WHOLE_CHAT = {
    **HEAD,
    "object": "chat.completion",
    "choices": [{**END, **TOKENS, "message": MESSAGE, "logprobs": SCORES}],
    "usage": USAGE,
    "prompt_logprobs": [None, POSITION],
    "prompt_token_ids": [1, 42],
    "flare": FLARE,
}
CHAT_PIECE = {
    **HEAD,
    "object": "chat.completion.chunk",
    "choices": [{**PIECE, **TOKENS, "delta": {}, "logprobs": {**SCORES, "refusal": None}}],
    "prompt_token_ids": [1, 42],
    "flare": FLARE,
}
PROMPT = {"prompt_token_ids": [1, 42]}
WHOLE_TEXT = {
    **HEAD,
    "object": "text_completion",
    "choices": [
        {**END, **TOKENS, **PROMPT, "text": "a", "logprobs": LISTS, "prompt_logprobs": [POSITION]}
    ],
    "usage": USAGE,
    "flare": FLARE,
}
TEXT_PIECE = {
    **HEAD,
    "object": "text_completion",
    "choices": [{**PIECE, **TOKENS, **PROMPT, "text": "", "logprobs": LISTS}],
    "flare": FLARE,
}
REPLIES = [
    (ChatCompletion, WHOLE_CHAT),
    (ChatCompletionChunk, CHAT_PIECE),
    (Completion, WHOLE_TEXT),
    (CompletionChunk, TEXT_PIECE),
]


@pytest.mark.parametrize(("model", "reply"), REPLIES)
def test_replies_carry_scores_ids_and_times(model: type[BaseModel], reply: dict[str, Any]) -> None:
    assert accepted(model, reply)
    without_extras = {key: value for key, value in reply.items() if key != "flare"}
    assert accepted(model, without_extras)


@pytest.mark.parametrize(
    "position",
    [
        {"a": POSITION["42"]},
        {"42": {**POSITION["42"], "rank": 0}},
        {"42": {"logprob": -0.25, "rank": 1}},
        {"42": None},
    ],
    ids=json.dumps,
)
def test_a_wrong_prompt_score_is_not_a_reply(position: dict[str, Any]) -> None:
    assert not accepted(ChatCompletion, {**WHOLE_CHAT, "prompt_logprobs": [None, position]})
