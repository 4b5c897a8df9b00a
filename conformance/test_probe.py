"""The live probe of canitoolcall: its scenarios, whole and streamed.

Scripted servers answer each scenario as its model would, in the syntax of their family. The
embedded model cannot call tools by itself: there every scenario forces a call, and masks alone make
it the right one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("canitoolcall")

from canitoolcall.probe import (
    BUILTIN_SCENARIOS,
    ProbeExpectation,
    ProbeReport,
    Scenario,
    probe,
)

from conformance.models import MODELS
from conformance.server import Server

Call = tuple[str, dict[str, Any]]

ATTENDEES = [
    {"name": "Ana", "email": "ana@example.com"},
    {"name": "Bo", "email": "bo@example.com"},
]
ANSWERS: dict[str, tuple[str, str, list[Call]]] = {
    "single-call": ("", "", [("get_weather", {"city": "Paris"})]),
    "parallel-calls": (
        "",
        "Both at once.",
        [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Tokyo", "unit": "c"})],
    ),
    "no-call": ("17 + 25 is 42.", "42", []),
    "nested-args": (
        "",
        "",
        [
            (
                "create_event",
                {
                    "title": "Design review",
                    "start": "2026-10-01T15:00:00Z",
                    "attendees": ATTENDEES,
                    "location": {"city": "Berlin", "room": "4.12"},
                },
            )
        ],
    ),
    "unicode-args": (
        "",
        "",
        [
            (
                "save_note",
                {"title": "Grüße aus Zürich", "body": "Café ☕ in 東京 — naïve résumé 🚀"},
            )
        ],
    ),
    "empty-args": ("", "", [("get_server_time", {})]),
    "forced-tool-choice": ("They want Lisbon.", "", [("get_weather", {"city": "Lisbon"})]),
    "tool-result-followup": ("", "It is 18 °C and clear in Paris.", []),
    "reasoning-then-call": (
        "9.9 is 9.90, and 90 is more than 11.",
        "",
        [("record_answer", {"answer": "9.9"})],
    ),
}
"""What a good model makes of each scenario: thought, text, calls."""


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _hermes(thought: str, text: str, calls: list[Call]) -> str:
    thoughts = [f"<think>\n{thought}\n</think>\n\n"] if thought else []
    made = [
        f'<tool_call>\n{{"name": "{name}", "arguments": {_dumps(arguments)}}}\n</tool_call>'
        for name, arguments in calls
    ]
    return "".join(thoughts) + "\n".join(filter(None, [text, *made]))


def _xml(thought: str, text: str, calls: list[Call]) -> str:
    made = []
    for name, arguments in calls:
        values = {
            key: value if isinstance(value, str) else _dumps(value)
            for key, value in arguments.items()
        }
        shown = "".join(
            f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items()
        )
        made.append(f"<tool_call>\n<function={name}>\n{shown}</function>\n</tool_call>")
    return f"{thought}\n</think>\n\n" + "\n".join(filter(None, [text, *made]))


def _mistral(_: str, text: str, calls: list[Call]) -> str:
    made = [f"[TOOL_CALLS]{name}[ARGS]{_dumps(arguments)}" for name, arguments in calls]
    return text + "".join(made)


SYNTAX: dict[str, Callable[[str, str, list[Call]], str]] = {
    "thinker": _hermes,
    "coder": _xml,
    "mistral": _mistral,
}


def _replies(family: str) -> Iterator[dict[str, Any]]:
    """A reply to each scenario, by its last message; a tool's result counts as no text."""
    for scenario in BUILTIN_SCENARIOS:
        said = MODELS[family].ids(SYNTAX[family](*ANSWERS[scenario.id]))
        text = str(scenario.messages[-1]["content"])
        yield {"match": f"^{re.escape(text)}$", "token_ids": said}


def _judge(report: ProbeReport, scenarios: int) -> None:
    """Everything passes, without a warning: both modes of each scenario, and their comparison."""
    print("\n" + report.render_text())
    assert report.summary() == {"pass": 3 * scenarios, "fail": 0, "error": 0, "skip": 0}, (
        report.render_text()
    )
    assert not [outcome.warnings for outcome in report.outcomes if outcome.warnings]


@pytest.mark.parametrize("family", SYNTAX)
def test_scripted(
    family: str,
    start: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The probe as it is; the model's own syntax is found from the template."""
    folder = MODELS[family].write(tmp_path_factory.mktemp("model") / family)
    server = start(list(_replies(family)), "--model", str(folder), "--max-context", "8192")
    report = probe(f"{server.url}/v1", "m")
    _judge(report, len(BUILTIN_SCENARIOS))
    thought = {
        o.scenario_id for o in report.outcomes if o.observed and o.observed.reasoning_content
    }
    wanted = {name for name, (thoughts, _, _) in ANSWERS.items() if thoughts}
    assert thought == (wanted if family != "mistral" else set())


def test_every_scenario_has_an_answer() -> None:
    """The package's scenarios are those that are answered here."""
    assert [scenario.id for scenario in BUILTIN_SCENARIOS] == list(ANSWERS)


# The embedded model


def _bounded(schema: Any) -> Any:
    """A schema whose strings and arrays end, for a model that does not."""
    if isinstance(schema, list):
        return [_bounded(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bounded = {key: _bounded(value) for key, value in schema.items()}
    if bounded.get("type") == "string" and "enum" not in bounded:
        bounded["maxLength"] = 8
    if bounded.get("type") == "array":
        bounded |= {"minItems": 1, "maxItems": 2}
    if bounded.get("type") == "object":
        bounded["additionalProperties"] = False
    return bounded


def _forced(scenario: Scenario) -> Scenario:
    """The scenario with strict tools, and with a call to the first of them where it needs one."""
    tools: list[dict[str, Any]] = []
    for tool in scenario.tools:
        function = {**tool["function"], "strict": True}
        function["parameters"] = _bounded(function["parameters"])
        tools.append({"type": "function", "function": function})
    called = scenario.expect.tool_names[:1] or (tools[0]["function"]["name"],)
    expect = ProbeExpectation(
        tool_names=called,
        required_argument_keys=scenario.expect.required_argument_keys,
        expect_content=False,
        expect_reasoning=False,
    )
    choice = scenario.tool_choice if len(tools) > 1 else "required"
    return replace(
        scenario,
        tools=tuple(tools),
        tool_choice=choice,
        expect=expect,
        extra_body={"parallel_tool_calls": False, "max_tokens": 200},
    )


def test_forced(embedded: Server) -> None:
    """Right tool, valid arguments, no leak, both modes the same: all of it by masks."""
    scenarios = [_forced(scenario) for scenario in BUILTIN_SCENARIOS]
    report = probe(f"{embedded.url}/v1", "m", scenarios=scenarios, concurrency=16, timeout_s=300)
    _judge(report, len(scenarios))
    embedded.until_idle()
