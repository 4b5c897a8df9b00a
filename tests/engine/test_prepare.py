"""Requests against the loaded model: ranges, spellings, ids, constraints, instructions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.conversation import Conversation, Message, Role, Text
from engine.errors import ContextOverflow, RequestError
from engine.grammar.instruction import instruction
from engine.prepare import Prepared, Preparer
from engine.types import (
    GenerationRequest,
    LogprobOptions,
    OutputConstraint,
    RawPrompt,
    Sampling,
    SamplingOverride,
    Stops,
)
from tests.serving import DEFAULTS, facts, ids, preparer_over, tokenizer

RANGES = {"temperature": (0.7, 1.0), "top_p": (0.8, 0.95), "top_k": (10, 20), "min_p": (0.1, 0.2)}
SCHEMA = OutputConstraint("json_schema", '{"type": "object"}', "guided_json")
OBJECT = OutputConstraint("json_object", "", "response_format")
REGEX = OutputConstraint("regex", "a+", "regex")


def prepared(preparer: Preparer | None = None, **fields: Any) -> Prepared:
    content = fields.pop("prompt", "abc")
    prompt = RawPrompt(content) if isinstance(content, str | tuple) else content
    request = GenerationRequest(prompt, prompt_param="prompt", **fields)
    return (preparer or preparer_over(facts())).prepare(request)


def sampling(preparer: Preparer | None = None, **fields: Any) -> Sampling:
    return prepared(preparer, sampling=SamplingOverride(**fields)).sampling


def refusal(**fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        prepared(**fields)
    return caught.value


@pytest.mark.parametrize(
    ("name", "value", "used"),
    [
        ("temperature", 0.0, 0.7),
        ("temperature", 0.8, 0.8),
        ("temperature", 2.0, 1.0),
        ("top_p", 1.0, 0.95),
        ("top_k", 0, 10),
        ("top_k", -1, 10),
        ("top_k", 100, 20),
        ("min_p", 0.15, 0.15),
        ("repetition_penalty", 1.9, 1.9),
    ],
)
def test_a_requested_value_is_clamped_to_the_declared_range(
    name: str, value: float, used: float
) -> None:
    preparer = preparer_over(facts(), sampling_ranges=RANGES)
    asked: dict[str, Any] = {name: value}
    assert getattr(sampling(preparer, **asked), name) == used
    assert getattr(sampling(**asked), name) == max(value, 0)  # nothing declared


def test_defaults_are_not_clamped() -> None:
    defaults = Sampling(temperature=0.1, top_p=1.0, top_k=0)
    preparer = preparer_over(facts(), sampling_ranges=RANGES, defaults=defaults)
    assert sampling(preparer) == defaults


@pytest.mark.parametrize(("asked", "used"), [(-1, 0), (0, 0), (7, 7), (10**30, None)])
def test_top_k_is_an_integer_within_the_vocabulary(asked: int, used: int | None) -> None:
    found = sampling(top_k=asked).top_k
    assert isinstance(found, int)
    assert found == (tokenizer().vocab_size if used is None else used)


@pytest.mark.parametrize(("asked", "used"), [(-1.0, 0.0), (-0.5, 0.0), (0.0, 0.0), (1.5, 1.5)])
def test_a_sigma_below_zero_is_off(asked: float, used: float) -> None:
    assert sampling(top_n_sigma=asked).top_n_sigma == used


def test_what_has_no_range_is_used_as_given_else_the_default() -> None:
    assert sampling() == DEFAULTS
    given: dict[str, Any] = {
        "dry_multiplier": 0.5, "dry_base": 2.0, "dry_allowed_length": 3, "lz_penalty": 0.25,
    }  # fmt: skip
    found = sampling(**given)
    assert {name: getattr(found, name) for name in given} == given


def test_a_bad_word_is_banned_as_spelt_and_after_a_space() -> None:
    words = sampling(bad_words=("ab", " c", "é")).bad_words
    assert words == (
        ids("ab"), ids(" ab"), ids(" c"), ids("é"), ids(" é"),
    )  # fmt: skip


def test_breakers_are_the_tokens_that_hold_one_and_only_for_dry() -> None:
    assert sampling().dry_breakers == frozenset()
    assert sampling(dry_sequence_breakers=("a",)).dry_breakers == frozenset()
    found = sampling(dry_multiplier=1.0).dry_breakers
    newlines = ids("\n\n\n")[0]
    assert {*ids("\n"), *ids(":"), *ids('"'), *ids("*"), newlines} == found
    assert sampling(dry_multiplier=1.0, dry_sequence_breakers=("z",)).dry_breakers == {*ids("z")}
    assert sampling(dry_multiplier=1.0, dry_sequence_breakers=()).dry_breakers == frozenset()
    half = sampling(dry_multiplier=1.0, dry_sequence_breakers=("é",)).dry_breakers
    assert half == frozenset()  # no token holds both bytes


@pytest.mark.parametrize("token", [-1, 10**6])
@pytest.mark.parametrize(
    "param",
    ["logit_bias", "allowed_token_ids", "stop_token_ids", "stop_token_sequences",
     "logprob_token_ids"],
)  # fmt: skip
def test_ids_outside_the_vocabulary_name_their_field(param: str, token: int) -> None:
    fields: dict[str, dict[str, Any]] = {
        "logit_bias": {"sampling": SamplingOverride(logit_bias={token: 1.0})},
        "allowed_token_ids": {"sampling": SamplingOverride(allowed_token_ids=(3, token))},
        "stop_token_ids": {"stops": Stops((), (token,))},
        "stop_token_sequences": {"stops": Stops((), (), ((1,), (2, token)))},
        "logprob_token_ids": {"logprobs": LogprobOptions(0, (1, token))},
    }
    error = refusal(**fields[param])
    assert error.param == param and str(token) in error.message


def test_the_last_id_of_the_vocabulary_is_inside() -> None:
    last = tokenizer().vocab_size - 1
    asked = SamplingOverride(logit_bias={last: 1.0}, allowed_token_ids=(0, last))
    stops = Stops((), (last,), ((last,),))
    found = prepared(sampling=asked, stops=stops, logprobs=LogprobOptions(0, (last,)))
    assert found.sampling.allowed_token_ids == (0, last)


def test_min_tokens_must_fit_the_output_limit() -> None:
    assert prepared(sampling=SamplingOverride(min_tokens=5), max_tokens=5).max_tokens == 5
    error = refusal(sampling=SamplingOverride(min_tokens=6), max_tokens=5)
    assert error.param == "min_tokens" and "6" in error.message and "5" in error.message


def test_a_constraint_becomes_a_grammar_and_excludes_ignore_eos() -> None:
    assert prepared().plan.grammar is None
    assert prepared(constraint=REGEX).plan.grammar
    error = refusal(constraint=REGEX, sampling=SamplingOverride(ignore_eos=True))
    assert error.param == "ignore_eos"
    assert prepared(sampling=SamplingOverride(ignore_eos=True)).sampling.ignore_eos


@pytest.mark.parametrize(
    ("constraint", "code", "named"),
    [
        (OutputConstraint("regex", "(", "regex"), "invalid_grammar", ""),
        (OutputConstraint("lark", "start: X", "grammar"), "invalid_grammar", "X"),
        (OutputConstraint("choice", "[]", "guided_choice"), "invalid_grammar", ""),
        (OutputConstraint("json_schema", '{"not": {}}', "guided_json"), "invalid_schema", "not"),
        (OutputConstraint("json_schema", "[", "json_schema"), "invalid_schema", ""),
    ],
    ids=str,
)
def test_what_cannot_be_enforced_is_refused_by_the_clients_own_field(
    constraint: OutputConstraint, code: str, named: str
) -> None:
    error = refusal(constraint=constraint)
    assert (error.param, error.code) == (constraint.param, code)
    assert named in error.message


def conversation(*messages: tuple[Role, str]) -> Conversation:
    return Conversation(tuple(Message(role, (Text(text),)) for role, text in messages))


def rendered(*messages: tuple[Role, str], constraint: OutputConstraint | None = None) -> str:
    found = prepared(prompt=conversation(*messages), constraint=constraint)
    return tokenizer().decode(found.prompt.token_ids)


@pytest.mark.parametrize("constraint", [SCHEMA, OBJECT], ids=str)
def test_the_form_of_json_is_added_to_the_leading_system_message(
    constraint: OutputConstraint,
) -> None:
    wanted = instruction(constraint)
    assert wanted
    for leading in (("system", "Be kind."), ("developer", "Be kind.")):
        text = rendered(leading, ("user", "hi"), constraint=constraint)
        first, rest = text.split("<|im_end|>", 1)
        assert "Be kind." in first and wanted in first
        assert first.index("Be kind.") < first.index(wanted)
        assert wanted not in rest


@pytest.mark.parametrize("constraint", [SCHEMA, OBJECT], ids=str)
def test_without_a_system_message_there_is_one(constraint: OutputConstraint) -> None:
    text = rendered(("user", "hi"), constraint=constraint)
    assert text.startswith("<|im_start|>system\n")
    assert (instruction(constraint) or "") in text.split("<|im_end|>")[0]
    assert "<|im_start|>user\nhi" in text


def test_forms_that_are_no_json_and_raw_prompts_have_no_instruction() -> None:
    plain = rendered(("user", "hi"))
    assert rendered(("user", "hi"), constraint=REGEX) == plain
    assert prepared(constraint=SCHEMA).prompt.token_ids == ids("abc")


@pytest.mark.parametrize(
    ("fields", "needs"),
    [
        ({"max_tokens": 0}, False),
        ({"max_tokens": 1}, True),
        ({"max_tokens": 0, "prompt_top": 0}, True),
        ({"max_tokens": 0, "logprobs": LogprobOptions(3)}, False),
    ],
    ids=str,
)
def test_only_output_and_scores_need_the_engine(fields: dict[str, Any], needs: bool) -> None:
    assert prepared(**fields).needs_engine is needs


@pytest.mark.parametrize(
    ("content", "echo", "shown"), [("né", True, "né"), (ids("né"), True, "né"), ("né", False, "")]
)
def test_the_echo_is_the_text_of_a_raw_prompt(content: Any, echo: bool, shown: str) -> None:
    assert prepared(prompt=content, echo=echo).echo == shown
    assert prepared(prompt=conversation(("user", "x")), echo=True).echo == ""


@pytest.mark.parametrize("constraint", [None, SCHEMA])
def test_a_kept_message_marks_the_prompt_with_all_that_is_in_front_of_it(
    constraint: OutputConstraint | None,
) -> None:
    kept = Message("system", (Text("Be kind."),), keep=True)
    asked = Conversation((kept, *conversation(("user", "hi")).messages))
    prompt = prepared(prompt=asked, constraint=constraint).prompt
    text = tokenizer().decode(prompt.token_ids[: prompt.keep])
    assert "Be kind." in text and "hi" not in text.split("<|im_end|>")[1]
    assert (instruction(SCHEMA) or "") in text or constraint is None
    unmarked = replace(asked, messages=(replace(kept, keep=False), *asked.messages[1:]))
    assert prepared(prompt=unmarked, constraint=constraint).prompt == replace(prompt, keep=0)


def test_a_prompt_that_does_not_fit_is_refused_before_grammars_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    preparer = preparer_over(facts())
    monkeypatch.setattr(preparer, "_plan", lambda *_: pytest.fail("planned"))
    with pytest.raises(ContextOverflow):
        prepared(preparer, prompt=conversation(("user", "ab " * 10_000)))
