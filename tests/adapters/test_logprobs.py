"""The encoders of log probabilities, against the generated models."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from adapters.logprobs import CompletionLogprobs, TokenNames, chat_logprobs, prompt_logprobs
from engine.events import TokenRecord, TokenScore
from generated.chat_completions import ChatLogprobs
from generated.completions import CompletionLogprobs as CompletionModel
from generated.shared import PromptLogprobs
from tests.serving import ids, tokenizer

A, B, C = ids("abc")
FIRST, SECOND = ids("é")  # halves of a character: both are U+FFFD as text
THINK = tokenizer().control_tokens["<think>"]
TEXT, AS_IDS = TokenNames(tokenizer(), as_ids=False), TokenNames(tokenizer(), as_ids=True)


def record(token: int, offset: int, *top: tuple[int, float], logprob: float = -0.5) -> TokenRecord:
    return TokenRecord(token, offset, 0.0, TokenScore(token, logprob, 1, top))


def chat(*records: TokenRecord, names: TokenNames = TEXT) -> Any:
    found = chat_logprobs(records, names)
    ChatLogprobs.model_validate(found, strict=True)
    return found["content"]


def arrays(*records: TokenRecord, names: TokenNames = TEXT, echoed: int = 0) -> dict[str, Any]:
    made = CompletionLogprobs(names)
    made.add(records, echoed)
    found: dict[str, Any] = made.encode()
    CompletionModel.model_validate(found, strict=True)
    return found


def test_a_chat_entry_has_text_bytes_and_alternatives_in_order() -> None:
    assert chat(record(A, 0, (B, -0.25), (A, -0.5))) == [
        {
            "token": "a", "logprob": -0.5, "bytes": [97],
            "top_logprobs": [
                {"token": "b", "logprob": -0.25, "bytes": [98]},
                {"token": "a", "logprob": -0.5, "bytes": [97]},
            ],
        }
    ]  # fmt: skip


def test_bytes_are_exact_where_text_cannot_be() -> None:
    [first, second, think] = chat(record(FIRST, 0), record(SECOND, 0), record(THINK, 1))
    assert (first["token"], first["bytes"]) == ("\ufffd", [0xC3])
    assert (second["token"], second["bytes"]) == ("\ufffd", [0xA9])
    assert (think["token"], bytes(think["bytes"])) == ("<think>", b"<think>")


def test_ids_replace_texts_but_not_bytes() -> None:
    [entry] = chat(record(A, 0, (B, -0.25)), names=AS_IDS)
    assert (entry["token"], entry["bytes"]) == (f"token_id:{A}", [97])
    assert entry["top_logprobs"][0]["token"] == f"token_id:{B}"
    assert entry["top_logprobs"][0]["bytes"] == [98]


def test_records_without_a_score_have_no_entry() -> None:
    assert chat(TokenRecord(A, 0, 0.0)) == []
    assert chat() == []


def test_completions_have_parallel_arrays() -> None:
    found = arrays(record(A, 0, (B, -0.25), (A, -0.5)), record(THINK, 1), record(C, 8))
    assert found == {
        "tokens": ["a", "<think>", "c"],
        "token_logprobs": [-0.5, -0.5, -0.5],
        "top_logprobs": [{"b": -0.25, "a": -0.5}, {"<think>": -0.5}, {"c": -0.5}],
        "text_offset": [0, 1, 8],
    }


def test_the_chosen_token_is_appended_where_it_is_no_alternative() -> None:
    assert arrays(record(A, 0, (B, -0.25), (C, -0.3)))["top_logprobs"] == [
        {"b": -0.25, "c": -0.3, "a": -0.5}
    ]


def test_of_alternatives_with_one_text_the_first_is_kept() -> None:
    tops = ((SECOND, -0.1), (FIRST, -0.2), (A, -0.3))
    assert arrays(record(FIRST, 0, *tops))["top_logprobs"] == [{"\ufffd": -0.1, "a": -0.3}]
    assert arrays(record(FIRST, 0, *tops, logprob=-0.2), names=AS_IDS)["top_logprobs"] == [
        {f"token_id:{SECOND}": -0.1, f"token_id:{FIRST}": -0.2, f"token_id:{A}": -0.3}
    ]


def test_offsets_begin_after_the_echoed_text() -> None:
    assert arrays(record(A, 0), record(B, 1), echoed=7)["text_offset"] == [7, 8]


def test_prompt_offsets_count_the_characters_of_the_texts_before() -> None:
    made = CompletionLogprobs(TEXT)
    prompt = (A, THINK, FIRST, SECOND, B)
    scores = [None, *(TokenScore(token, -1.0, 1) for token in prompt[1:])]
    end = made.add_prompt(prompt, scores, 0, 3)
    found: dict[str, Any] = made.encode()
    CompletionModel.model_validate(found, strict=True)
    assert found["text_offset"] == [3, 4, 11, 12, 13]
    assert end == 14
    assert found["token_logprobs"] == [None, -1.0, -1.0, -1.0, -1.0]
    assert found["top_logprobs"][0] is None


def test_prompt_entries_have_as_many_alternatives_as_the_arrays_ask_for() -> None:
    made = CompletionLogprobs(TEXT)
    score = TokenScore(A, -3.0, 4, ((B, -0.5), (C, -1.0)))
    made.add_prompt((A, A), (None, score), 1, 0)
    assert made.encode()["top_logprobs"] == [None, {"b": -0.5, "a": -3.0}]


def prompt(
    *scores: TokenScore | None, top: int = 20, names: TokenNames = TEXT
) -> list[dict[str, Any] | None]:
    found: list[Any] = [*prompt_logprobs(scores, top, names)]
    TypeAdapter(PromptLogprobs).validate_python(found, strict=True)
    return found


def test_prompt_scores_have_ranks_with_ties_and_the_token_itself() -> None:
    tops = ((B, -0.5), (C, -1.0), (A, -1.0), (THINK, -2.0))
    found = prompt(None, TokenScore(A, -1.0, 2, tops), TokenScore(FIRST, -9999.0, 300, tops))
    assert found[0] is None
    ranks = [
        {token: (entry["rank"], entry["logprob"]) for token, entry in (place or {}).items()}
        for place in found[1:]
    ]
    shared = {
        str(B): (1, -0.5), str(C): (2, -1.0), str(A): (2, -1.0), str(THINK): (4, -2.0),
    }  # fmt: skip
    assert ranks == [shared, {**shared, str(FIRST): (300, -9999.0)}]
    assert (found[1] or {})[str(THINK)]["decoded_token"] == "<think>"


def test_prompt_scores_show_as_many_rivals_as_asked_for_and_decode_in_any_case() -> None:
    score = TokenScore(A, -3.0, 9, ((B, -0.5), (C, -1.0)))
    for top, tokens in ((0, {A}), (1, {A, B}), (2, {A, B, C})):
        [place] = prompt(score, top=top, names=AS_IDS)
        assert place is not None
        assert set(place) == {str(token) for token in tokens}
        assert place[str(A)]["decoded_token"] == "a"


@pytest.mark.parametrize("top", [0, 2])
def test_the_rank_of_a_rival_is_among_all_it_was_given_with(top: int) -> None:
    score = TokenScore(C, -1.0, 2, ((B, -0.5), (A, -1.0), (C, -1.0)))
    [place] = prompt(score, top=top)
    assert place is not None and place[str(C)]["rank"] == 2
    if top:
        assert place[str(A)]["rank"] == 2
