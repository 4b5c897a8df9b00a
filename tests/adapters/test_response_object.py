"""What a response says besides its output, and the ids of its items."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.envelope import HttpError
from adapters.response_object import (
    CUT,
    Progress,
    ResponseForm,
    failure_of,
    item_id,
    new_response_id,
    response_id_of,
    usage_of,
)
from engine.choice import BROKEN
from engine.errors import (
    ContextOverflow,
    EngineUnavailable,
    GenerationFailed,
    Overloaded,
    RequestError,
)
from engine.events import FinishCause, Usage
from generated.responses import ResponseUsage
from tests.adapters.drafts import head, valid_object
from tests.adapters.played import ended


def written(progress: Progress | None = None, output: bytes = b"[]", **fields: Any) -> Any:
    form = ResponseForm(head(**fields))
    return valid_object(form.write(progress or Progress(), output))


def test_an_items_id_leads_back_to_its_response() -> None:
    response_id = new_response_id()
    assert response_id != new_response_id()
    for prefix in ("rs", "msg", "fc", "ctc", "tsc", "cmp"):
        for index in (0, 1, 65535, 65536):
            assert response_id_of(item_id(prefix, response_id, index)) == response_id
    ids = {item_id("msg", response_id, index) for index in range(300)}
    assert len(ids) == 300


@pytest.mark.parametrize(
    "foreign",
    [
        "", "msg_1", "msg_" + 36 * "g", "msg_" + 35 * "0", "resp_" + 32 * "0", "msg_" + 48 * "0",
        "msg_" + 36 * "0" + "\n", "MSG_" + 36 * "0", "msg_" + 36 * "٣", "x" + 10_000 * "_",
    ],
)  # fmt: skip
def test_other_ids_lead_nowhere(foreign: str) -> None:
    assert response_id_of(foreign) is None


def test_a_response_begins_with_everything_that_is_known() -> None:
    response = written()
    response_id = response.pop("id")
    assert response_id.startswith("resp_")
    assert response == {
        "object": "response", "created_at": 1, "completed_at": None, "status": "in_progress",
        "error": None, "incomplete_details": None, "model": "first", "previous_response_id": None,
        "instructions": None, "output": [], "tools": [], "tool_choice": "auto",
        "parallel_tool_calls": True, "max_tool_calls": None, "max_output_tokens": None,
        "text": {"format": {"type": "text"}}, "reasoning": None, "temperature": 0.5, "top_p": 1,
        "presence_penalty": 0, "frequency_penalty": 0, "top_logprobs": 0, "truncation": "disabled",
        "usage": None, "metadata": {}, "store": True, "background": False,
        "service_tier": "default", "safety_identifier": None, "prompt_cache_key": None,
        "prompt_cache_retention": None, "user": None, "flare": {"dropped_tools": []},
    }  # fmt: skip


SENT: dict[str, Any] = {
    "previous_response_id": "resp_1",
    "instructions": "Be brief.",
    "tool_choice": {"type": "function", "name": "f", "namespace": "n"},
    "parallel_tool_calls": False,
    "max_tool_calls": 3,
    "max_output_tokens": 16,
    "top_logprobs": 2,
    "metadata": {"k": "v"},
    "store": False,
    "safety_identifier": "s",
    "prompt_cache_key": "p",
    "prompt_cache_retention": "24h",
    "user": "u",
    "temperature": 0.3,
    "top_p": 0.9,
    "presence_penalty": 0.1,
    "frequency_penalty": -0.1,
}


def test_d008_what_was_sent_is_echoed() -> None:
    response = written(**SENT, dropped_tools=["web_search"])
    assert {name: response[name] for name in SENT} == SENT
    assert response["flare"] == {"dropped_tools": ["web_search"]}


def test_the_echo_of_tools_has_what_typed_readers_want() -> None:
    bare: dict[str, Any] = {"type": "function", "name": "f"}
    full: dict[str, Any] = {
        "type": "function", "name": "g", "description": "d", "strict": True,
        "parameters": {"type": "object"}, "defer_loading": True,
    }  # fmt: skip
    custom = {
        "type": "custom", "name": "c",
        "format": {"type": "grammar", "syntax": "regex", "definition": "a"},
    }  # fmt: skip
    space = {"type": "namespace", "name": "n", "description": None, "tools": [bare, custom]}
    search = {"type": "tool_search", "execution": "client"}
    hosted = {"type": "web_search", "filters": {"allowed_domains": ["a"]}}
    filled = {**bare, "description": None, "parameters": None, "strict": None}
    response = written(tools=[bare, full, custom, space, search, hosted])
    assert response["tools"] == [
        filled, full, custom, {**space, "description": "", "tools": [filled, custom]}, search,
        hosted,
    ]  # fmt: skip
    assert bare == {"type": "function", "name": "f"}  # the request is as it was


@pytest.mark.parametrize(
    ("sent", "echoed"),
    [
        ({"verbosity": "low"}, {"format": {"type": "text"}, "verbosity": "low"}),
        ({"format": None, "verbosity": None}, {"format": {"type": "text"}}),
        ({"format": {"type": "json_object"}}, {"format": {"type": "json_object"}}),
    ],
)
def test_the_format_is_text_when_absent(sent: Any, echoed: Any) -> None:
    assert written(text=sent)["text"] == echoed


def test_reasoning_has_both_of_its_members() -> None:
    assert written(reasoning={"effort": "low"})["reasoning"] == {"effort": "low", "summary": None}
    both = {"effort": None, "summary": "auto", "context": "auto"}
    assert written(reasoning=both)["reasoning"] == both


def test_usage_has_every_detail() -> None:
    usage = usage_of(Usage(prompt=10, cached=4, output=7, reasoning=3))
    ResponseUsage.model_validate(usage, strict=True)
    assert usage == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 17,
    }


def test_an_end_has_its_times() -> None:
    progress = Progress("completed", 2, None, Usage(1), ended(FinishCause.END, None, Usage(1)))
    response = written(progress)
    assert response["completed_at"] == 2
    times = {"time_to_first_token_ms": 250, "decode_time_ms": 500}
    assert response["flare"] == {"dropped_tools": [], **times}


def test_only_an_incomplete_response_says_why() -> None:
    details = written(Progress("incomplete"))["incomplete_details"]
    assert details == {"reason": "max_output_tokens"}
    assert written(Progress("completed", 2))["incomplete_details"] is None


def test_every_cause_completes_cuts_or_breaks() -> None:
    whole = {
        FinishCause.END, FinishCause.STOP_STRING, FinishCause.STOP_TOKEN, FinishCause.COMPLETE,
        FinishCause.TOOL_CALLS,
    }  # fmt: skip
    assert not CUT & set(BROKEN)
    assert set(FinishCause) - CUT - set(BROKEN) == whole


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ContextOverflow("too long", "input", 9, 8), "context_length_exceeded"),
        (RequestError("too long", "input", "context_length_exceeded"), "context_length_exceeded"),
        (RequestError("no token", code="no_token_allowed"), "invalid_prompt"),
        (RequestError("no such model", "model", "model_not_found"), "invalid_prompt"),
        (HttpError(413, "too large"), "invalid_prompt"),
        (Overloaded("full"), "rate_limit_exceeded"),
        (HttpError(429, "slower"), "rate_limit_exceeded"),
        (EngineUnavailable("loading"), "server_error"),
        (GenerationFailed("broke"), "server_error"),
        (KeyError("secret"), "server_error"),
    ],
)
def test_failures_have_the_codes_that_codex_acts_on(error: Exception, code: str) -> None:
    failure = failure_of(error)
    assert failure["code"] == code and failure["message"]
    assert "secret" not in json.dumps(failure)
    assert set(failure) - {"code", "message", "param"} == set()
    assert failure.get("param") == getattr(error, "param", None)
    official = code != "context_length_exceeded"
    response = ResponseForm(head()).write(Progress("failed", error=failure), b"[]")
    assert valid_object(response, official=official)["error"] == failure
