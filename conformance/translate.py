"""Chat's cases on the other routes, and its requests in Anthropic's words.

All take the same control fields (specs/shared.yaml, ControlFields). Each case that proves one of
them on Chat is run on Messages and on Responses too, with the same bodies and what they must lead
to; so a field that a route forgets shows. What a route has no word for is left out: `None`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from conformance import cases, response_translate, spec

CONTROLS = frozenset(field.path for field in spec.fields_of("shared", "ControlFields"))
"""The paths of all control fields."""
SUFFIX = "+messages"

_FINISHES = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_ONLY_CHAT = (
    "logprobs", "top_logprobs", "prompt_logprobs", "logprob_token_ids", "return_token_timestamps",
    "return_tokens_as_token_ids", "return_token_ids", "max_completion_tokens", "n_predict",
    "options", "functions", "function_call", "add_generation_prompt", "continue_final_message",
    "include_reasoning", "add_special_tokens",
)  # fmt: skip
_SAME_WORDS = (
    "text", "text_in", "text_has", "text_lacks", "text_matches", "reasoning", "reasoning_has",
    "reasoning_tokens", "calls", "first_call", "calls_named", "num_calls", "calls_valid",
    "input_matches", "json", "json_keys", "valid", "cached", "cached_least", "model", "chunks",
    "status", "content",
)  # fmt: skip
_STEPS = ("same_as", "other_text_than", "same_text_as", "same_prompt_as")
"""Expectations that name an earlier step."""
_ERRORS = {404: "not_found_error", 500: "api_error"}


# Bodies


def message_body(chat: dict[str, Any]) -> dict[str, Any] | None:
    """The body that asks Messages for the same, thinking included."""
    if any(chat.get(name) not in (None, False) for name in _ONLY_CHAT):
        return None
    if chat.get("n", 1) not in (None, 1) or chat.get("best_of", 1) not in (None, 1):
        return None
    dropped = {*_ONLY_CHAT, "n", "best_of", "stream_options", "stop", "messages", "tools"}
    dropped |= {"tool_choice", "parallel_tool_calls", "thinking", "reasoning_effort"}
    body = {name: value for name, value in chat.items() if name not in dropped}
    if "stop" in chat:
        stop = chat["stop"]
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if "messages" in chat:
        turns = [_turn(message) for message in chat["messages"]]
        if None in turns:
            return None
        body["messages"] = turns
    return body | _thinking(chat) if _with_tools(chat, body) else None


def _with_tools(chat: dict[str, Any], body: dict[str, Any]) -> bool:
    """Add the tools and what may be called of them; False where there is no word for it."""
    if chat.get("tools"):
        if any(tool["type"] != "function" for tool in chat["tools"]):
            return False
        body["tools"] = [_tool(tool["function"]) for tool in chat["tools"]]
    choice: Any = chat.get("tool_choice") or "auto"
    if isinstance(choice, str):
        chosen: dict[str, Any] = {"type": _CHOICES[choice]}
    elif choice["type"] == "function":
        chosen = {"type": "tool", "name": choice["function"]["name"]}
    else:
        return False
    if chat.get("parallel_tool_calls") is False and chosen["type"] != "none":
        chosen["disable_parallel_tool_use"] = True
    if chosen != {"type": "auto"}:
        body["tool_choice"] = chosen
    return True


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    tool: dict[str, Any] = {
        name: function[name] for name in ("name", "description", "strict") if name in function
    }
    return {**tool, "input_schema": function.get("parameters") or {"type": "object"}}


def _thinking(chat: dict[str, Any]) -> dict[str, Any]:
    """Chat thinks by default, Messages when it is told to."""
    off = chat.get("reasoning_effort") == "none" or chat.get("thinking") is False
    switch = (chat.get("chat_template_kwargs") or {}).get("enable_thinking")
    if off or switch is False:
        return {}
    thinking: dict[str, Any] = {"thinking": {"type": "adaptive"}}
    if chat.get("reasoning_effort"):
        thinking["output_config"] = {"effort": chat["reasoning_effort"]}
    return thinking


def _turn(message: dict[str, Any]) -> dict[str, Any] | None:
    """A message whose content is text."""
    plain = {"role", "content"}
    if set(message) != plain or message["role"] not in ("system", "user", "assistant"):
        return None
    return dict(message)


# Cases


@dataclass(frozen=True)
class Language:
    """How a route says what Chat says.

    `step` is a step of Chat in its words, None where it has none for it: of the step, of the new
    numbers of the steps before it, and of the server's name. `proved` is a field of Chat by its
    name here. `keeps` tells which cases are run.
    """

    route: str
    suffix: str
    step: Callable[[dict[str, Any], dict[int, int], str], dict[str, Any] | None]
    proved: Callable[[str], str | None]
    every: bool


def control_cases() -> list[cases.Case]:
    """The cases of control fields on Messages; on Responses all cases that can be said there."""
    languages = (
        Language("messages", SUFFIX, _message_step, _control, every=False),
        Language(
            "responses",
            response_translate.SUFFIX,
            response_translate.response_step,
            response_translate.proved,
            every=True,
        ),
    )
    loaded = [case for case in cases.load() if case.scenario is None]
    made = [_translated(case, language) for language in languages for case in loaded]
    return [case for case in made if case.steps]


def _control(path: str) -> str | None:
    return path if path in CONTROLS else None


def _translated(case: cases.Case, language: Language) -> cases.Case:
    proves = tuple(found for path in case.proves if (found := language.proved(path)))
    steps = _steps(case, language) if proves or language.every else []
    made = replace(
        case, id=case.id + language.suffix, proves=proves, steps=tuple(steps), routes=(), body={},
        tools={}, replies=(),
    )  # fmt: skip
    return made if language.every or made.proven() else replace(made, steps=())


def _steps(case: cases.Case, language: Language) -> list[dict[str, Any]]:
    """The steps that Chat has in the first run of a case; references count those that are kept."""
    runs = [run for run in case.sequences() if any(step["route"] == "chat" for step in run)]
    kept: list[dict[str, Any]] = []
    places: dict[int, int] = {}
    for number, step in enumerate(runs[0] if runs else []):
        made = language.step(step, places, case.server) if step["route"] == "chat" else None
        if made is None:
            continue
        places[number] = len(kept)
        kept.append({"say": case.id, **step, "route": language.route, **made})
    if any(name in step["expect"] for step in kept for name in ("cached", "cached_least")):
        for body in (step["body"] for step in kept):  # a cache that the case on Chat has not filled
            body["cache_salt"] = body.get("cache_salt", "") + language.suffix
    return kept


def _message_step(step: dict[str, Any], places: dict[int, int], _: str) -> dict[str, Any] | None:
    body = message_body(step.get("body", {}))
    expect = None if body is None else _expected(step, body, places)
    return None if body is None or expect is None else {"body": body, "expect": expect}


def _expected(
    step: dict[str, Any], body: dict[str, Any], places: dict[int, int]
) -> dict[str, Any] | None:
    """The expectations of a step, None where one of them cannot be said."""
    made: dict[str, Any] = {}
    named: list[str] = []
    asked = step.get("expect", {})
    for word, wanted in asked.items():
        if word in _SAME_WORDS:
            made[word] = wanted
        elif word in _STEPS and wanted in places:
            made[word] = places[wanted]
        elif word == "finish" and wanted in _FINISHES:
            made |= _finish(wanted, asked, body)
        elif word == "stop_reason":
            made["stop_sequence"] = wanted if isinstance(wanted, str) else None
        elif word == "usage" and set(wanted) == {"completion_tokens"}:
            made["usage"] = {"output_tokens": wanted["completion_tokens"]}
        elif word == "param_starts":
            below = [path for path in CONTROLS if path.startswith(wanted)]
            made["error_names"] = sorted({path.rpartition(".")[2] for path in below} | {wanted})
        elif word == "error":
            kind = _ERRORS.get(asked.get("status", 200), "invalid_request_error")
            made["error"] = {"type": kind}
            named += [wanted["param"].rpartition(".")[2]] if wanted.get("param") else []
        elif word == "error_has":
            named += wanted
        elif word != "choices" or wanted != 1:
            return None
    return made | ({"error_has": named} if named else {})


def _finish(wanted: str, asked: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The stop_reason; of a stop, whether a sequence was it."""
    if wanted != "stop" or not body.get("stop_sequences"):
        return {"finish": _FINISHES[wanted]}
    if "stop_reason" not in asked:
        return {"finish_in": ["end_turn", "stop_sequence"]}
    return {"finish": "end_turn" if asked["stop_reason"] is None else "stop_sequence"}
