"""What items of Responses bring besides messages: thoughts, notes, configuration, tools."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.response_compaction import note_message
from adapters.seal import Seal
from engine.conversation import Message, Reasoning, Text, ToolCall
from engine.errors import RequestError
from tests.adapters.asgi import SEAL
from tests.adapters.responding import (
    MODEL,
    TENANT,
    answered,
    described,
    function,
    history,
    namespace,
    reader,
    said,
    validated,
)
from tests.adapters.test_response_items import (
    CALL,
    CALLED,
    HI,
    OUTPUT,
    OWN,
    USER,
    assistant,
    compaction,
    messages,
)

# Thoughts


FOREIGN = [
    "gAAAAABo",
    SEAL.seal("sealed thought", "another tenant", MODEL),
    SEAL.seal("sealed thought", TENANT, "another model"),
    Seal(bytes(32)).seal("sealed thought", TENANT, MODEL),
]
CONTENT = [{"type": "reasoning_text", "text": "said"}, {"type": "reasoning_text", "text": "so"}]
SUMMARY = [{"type": "summary_text", "text": "in"}, {"type": "summary_text", "text": "short"}]


@pytest.mark.parametrize(
    ("fields", "thought"),
    [
        ({"content": CONTENT}, "said\n\nso"),
        ({"content": CONTENT, "encrypted_content": OWN, "summary": SUMMARY}, "said\n\nso"),
        ({"content": CONTENT, "encrypted_content": "gAAAAABo"}, "said\n\nso"),
        ({"content": [], "encrypted_content": OWN, "summary": SUMMARY}, "sealed thought"),
        ({"content": [{"type": "reasoning_text", "text": ""}], "encrypted_content": OWN},
         "sealed thought"),
        ({"encrypted_content": None, "summary": SUMMARY}, "in\n\nshort"),
        ({"content": None, "summary": None}, None),
        ({"summary": []}, None),
    ],
    ids=described,
)  # fmt: skip
def test_a_thought_is_its_content_else_its_secret_else_its_summary(
    fields: Any, thought: str | None
) -> None:
    found = history(USER, {"type": "reasoning", "id": "rs_1", **fields})
    expected = () if thought is None else (assistant(Reasoning(thought)),)
    assert (found.messages[1:], found.dropped_thoughts) == (expected, 0)


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
def test_foreign_secrets_are_dropped_and_counted(content: str) -> None:
    secret = {"type": "reasoning", "encrypted_content": content}
    found = history(USER, secret, {**secret, "summary": SUMMARY}, {**secret, "content": CONTENT})
    assert found.messages[1:] == (assistant(Reasoning("in\n\nshort"), Reasoning("said\n\nso")),)
    assert found.dropped_thoughts == 2


# Notes of compactions


def test_a_note_stands_for_the_work_before_it_and_not_for_what_was_said() -> None:
    rule = {"role": "developer", "content": "new rule"}
    found = messages(
        USER, {"role": "assistant", "content": "a"}, CALL, OUTPUT, rule, USER,
        compaction("the note"), rule, CALL, OUTPUT, USER, instructions="Be brief.",
    )  # fmt: skip
    ruled = said("developer", "new rule")
    assert found == (
        said("system", "Be brief."), HI, ruled, HI, note_message("the note"),
        ruled, assistant(CALLED), answered("c1", "a.txt"), HI,
    )  # fmt: skip


def test_the_last_note_has_what_earlier_ones_had() -> None:
    found = messages(compaction("old"), USER, CALL, compaction("new"), USER)
    assert found == (HI, note_message("new"), HI)


def test_a_note_alone_leaves_a_turn_to_answer() -> None:
    assert messages(compaction("n")) == (note_message("n"), said("user", ""))


def test_tools_whose_introduction_a_note_replaced_are_listed() -> None:
    found = {"type": "tool_search_output", "call_id": "s", "tools": [function("mail")]}
    into = reader()
    for items in ([USER, found], [USER, found, compaction("n"), USER, found]):
        into = reader()
        own: Any = validated(*items).input
        last = into.read([], own, None).messages[-1]
        [tool] = into.tools.callable()
        assert (tool.name, tool.listed) == ("mail", len(items) > 2)
    assert last == answered("s", "The tool mail can be called.")


@pytest.mark.parametrize("content", ["", "gAAAAABo", OWN])
def test_a_note_of_another_make_is_refused_by_its_place(content: str) -> None:
    bad = {"type": "compaction", "encrypted_content": content}
    with pytest.raises(RequestError) as caught:
        history(bad, earlier=[USER, USER])
    assert caught.value.param == "input[0].encrypted_content"
    assert caught.value.code == "compaction_payload_invalid"
    with pytest.raises(RequestError) as caught:
        history(USER, earlier=[USER, bad])
    assert caught.value.param == "previous_response_id.encrypted_content"


@pytest.mark.parametrize(
    ("items", "triggers"),
    [
        ([USER, {"type": "compaction_trigger"}], True),
        ([{"type": "compaction_trigger"}], True),
        ([{"type": "compaction_trigger"}, USER], False),
        ([], False),
    ],
    ids=described,
)
def test_a_trigger_counts_as_the_last_item_of_the_request(items: Any, triggers: bool) -> None:
    assert history(*items).triggers is triggers
    earlier = history(*items, earlier=[USER, {"type": "compaction_trigger"}])
    assert earlier.triggers is triggers


# Configuration


def test_the_last_configuration_counts_field_by_field() -> None:
    def update(**fields: Any) -> dict[str, Any]:
        return {"type": "configuration_update", **fields}

    json_object = {"format": {"type": "json_object"}}
    found = history(
        update(reasoning={"effort": "low"}, text=json_object),
        USER,
        update(reasoning={"effort": "high"}),
        update(reasoning=None, text=None),
        earlier=[update(reasoning={"effort": "none"})],
    )
    assert found.reasoning is not None and found.text is not None
    reasoning, place = found.reasoning
    assert (reasoning.effort, place) == ("high", "input[2].")
    text, place = found.text
    assert (text.model_dump(), place) == (json_object, "input[0].")
    assert found.messages == (HI,)
    assert history(USER).reasoning is None and history(USER).text is None


# Tools that come with the conversation


def test_tools_in_front_are_like_those_of_tools() -> None:
    more = {"type": "additional_tools", "role": "developer", "tools": [
        namespace("functions", {"type": "custom", "name": "exec"}), function("shell"),
    ]}  # fmt: skip
    into = reader([function("shell", description="the first")])
    own: Any = validated({"role": "developer", "content": "d"}, more, USER).input
    assert into.read([], own, "Be brief.").messages == (
        said("system", "Be brief."), said("developer", "d"), HI,
    )  # fmt: skip
    found = {tool.name: tool for tool in into.tools.callable()}
    assert list(found) == ["shell", "functions__exec"]
    assert found["shell"].description == "the first"
    assert all(tool.listed for tool in found.values())


@pytest.mark.parametrize(
    "before", [USER, {"role": "assistant", "content": "a"}, CALL], ids=described
)
def test_later_tools_are_shown_where_they_come(before: Any) -> None:
    more = {"type": "additional_tools", "tools": [function("mail", description="Sends.")]}
    into = reader([function("shell")])
    own: Any = validated(before, more, USER, more).input
    _, told, _, again = into.read([], own, None).messages
    assert (told.role, again.role) == ("system", "system")
    assert _text(told).startswith("The tool mail can be called from now on:\n")
    assert '"description": "Sends."' in _text(told)
    assert _text(again) == "The tool mail can be called."
    shell, mail = into.tools.callable()
    assert (shell.listed, mail.name, mail.listed) == (True, "mail", False)


def test_a_search_makes_deferred_tools_callable_and_defines_them_once() -> None:
    tools = [namespace("mail", function("send", defer_loading=True)), function("shell")]
    found = {"type": "tool_search_output", "call_id": "s1", "execution": "client", "tools": tools}
    search = {"type": "tool_search_call", "call_id": "s1", "arguments": {"query": "é mail"}}
    into = reader([*tools, {"type": "tool_search", "execution": "client"}])
    assert [tool.name for tool in into.tools.callable()] == ["shell", "tool_search"]
    own: Any = validated(USER, search, found, search, found).input
    _, call, first, _, again = into.read([], own, None).messages
    assert call == assistant(ToolCall("s1", "tool_search", '{"query": "é mail"}'))
    text = _text(first)
    assert text.count('"name": "mail__send"') == 1 and "The tool shell can be called." in text
    assert _text(again) == "The tool mail__send can be called.\n\nThe tool shell can be called."
    assert [tool.name for tool in into.tools.callable()] == ["shell", "tool_search", "mail__send"]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [({}, "{}"), (None, "{}"), ("", "{}"), ('{"q":1}', '{"q":1}'), ({"q": [1]}, '{"q": [1]}')],
)
def test_a_search_is_written_as_arguments(arguments: Any, written: str) -> None:
    found = messages(USER, {"type": "tool_search_call", "arguments": arguments})
    assert found[1] == assistant(ToolCall("", "tool_search", written))


def test_a_search_may_find_nothing() -> None:
    found = messages(USER, {"type": "tool_search_output", "call_id": "s", "tools": []})
    assert found[1] == answered("s", "No tool was found.")


def _text(message: Message) -> str:
    [part] = message.parts
    texts = [part.text] if isinstance(part, Text) else list(getattr(part, "texts", ()))
    return "".join(texts)
