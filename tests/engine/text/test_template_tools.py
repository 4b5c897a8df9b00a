"""Tools, calls and results through templates of every style."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from engine.conversation import (
    Conversation,
    CustomFormat,
    Message,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from engine.dialects.hermes import HERMES
from engine.errors import RequestError, StartupError
from engine.text.effort import Defaults
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.engine.text.styles import (
    GEMMA,
    HARMONY,
    KIMI,
    LLAMA,
    MISTRAL,
    QWEN3,
    QWEN_CODER,
    STYLES,
    template_of,
)
from tests.engine.text.vocabularies import small, write_gguf

USER, AGAIN = Message("user", (Text("q?"),)), Message("user", (Text("more"),))
CALL = ToolCall("call_1", "lookup", '{"city": "Paris"}')
TOOL = Tool(
    "lookup", "Finds things.", {"type": "object", "properties": {"city": {"type": "string"}}}
)
NAMES = sorted(STYLES)
TOKENIZER = small()


def calling(*parts: Part) -> Message:
    return Message("assistant", parts)


def answering(call_id: str, *texts: str, **fields: Any) -> Message:
    return Message("tool", (ToolResult(call_id, texts, **fields),))


def prompt(source: str, *messages: Message, **fields: Any) -> str:
    template = template_of(source, TOKENIZER)
    return TOKENIZER.decode(template.render(Conversation(messages, **fields)).token_ids)


def styled(name: str, *messages: Message, **fields: Any) -> str:
    return prompt(STYLES[name].source, *messages, **fields)


# Cases


def test_arguments_in_the_models_own_syntax() -> None:  # D077
    shown = prompt(QWEN_CODER, USER, calling(Text(""), CALL), answering("call_1", "ok"))
    assert "<function=lookup>\n<parameter=city>\nParis\n</parameter>\n</function>" in shown


@pytest.mark.parametrize("name", NAMES)
def test_no_content_beside_calls(name: str) -> None:  # D078
    call = ToolCall("c1", "get", "{}")
    without = styled(name, USER, calling(call), answering("c1", "42"))
    assert styled(name, USER, calling(Text(""), call), answering("c1", "42")) == without
    assert "None" not in without and "null" not in without
    assert "42" in without


@pytest.mark.parametrize("name", NAMES)
def test_results_are_plain_texts(name: str) -> None:  # D079
    call = ToolCall("c1", "w", "{}")
    shown = styled(name, USER, calling(call), answering("c1", "22 C", "sunny"))
    assert "22 C\n\nsunny" in shown or "22 C\\n\\nsunny" in shown
    empty = styled(name, USER, calling(call), answering("c1", ""))
    assert empty == styled(name, USER, calling(call), answering("c1"))
    assert "None" not in empty and "null" not in empty


@pytest.mark.parametrize("name", NAMES)
def test_no_tools_and_an_empty_list_are_the_same(name: str) -> None:  # D081
    assert styled(name, USER, tools=()) == styled(name, USER)
    assert "lookup" in styled(name, USER, tools=(TOOL,))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", ["", '{"city": "Par', "nope", "[1]", '{"a": ' * 5000, "{}}"])
def test_malformed_arguments_harm_nobody(name: str, arguments: str) -> None:
    bad = ToolCall("c1", "lookup", arguments)
    shown = styled(name, USER, calling(bad), answering("c1", "failed"), AGAIN, tools=(TOOL,))
    assert "failed" in shown and "more" in shown
    assert arguments.replace('"', "") in shown.replace('\\"', "").replace('"', "")


@pytest.mark.parametrize("name", NAMES)
def test_parallel_calls_and_results_in_order(name: str) -> None:
    calls = (ToolCall("a", "lookup", '{"city": "Paris"}'), ToolCall("b", "find", '{"city": "Rom"}'))
    results = (answering("b", "is-rom"), answering("a", "is-paris"))
    shown = styled(name, USER, calling(*calls), *results)
    assert shown.index("is-paris") < shown.index("is-rom")
    assert shown == styled(name, USER, calling(*calls), *reversed(results))


HISTORIES = {
    "interrupted": (USER, calling(CALL), answering("call_1", "r"), AGAIN),
    "unanswered": (USER, calling(CALL), AGAIN),
    "half answered": (
        USER, calling(CALL, ToolCall("call_2", "f", "{}")), answering("call_2", "r"), AGAIN,
    ),
    "orphaned": (USER, answering("call_1", "r"), AGAIN),
    "orphaned at the start": (answering("call_1", "r"), AGAIN),
    "orphaned after an answer": (USER, calling(Text("a")), answering("x", "r"), AGAIN),
    "of unknown ids": (USER, calling(CALL), answering("x", "r"), answering("", "r2")),
    "of equal ids": (USER, calling(CALL, CALL), answering("call_1", "r"), answering("call_1", "s")),
    "two answers": (USER, calling(CALL), answering("call_1", "r"), calling(Text("a")),
                    calling(Text("b")), AGAIN),
    "text in front": (USER, calling(Text("a")), calling(CALL), answering("call_1", "r")),
    "thought and text": (USER, calling(Reasoning("t"), Text("a"), CALL), answering("call_1", "r")),
    "nothing": (USER, calling(), AGAIN),
    "without a name": (USER, calling(ToolCall("", "", "")), answering("", "r")),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", HISTORIES)
@pytest.mark.parametrize("tools", [(), (TOOL,)])
def test_no_history_ends_a_session(name: str, kind: str, tools: tuple[Tool, ...]) -> None:
    shown = styled(name, *HISTORIES[kind], tools=tools)
    for message in HISTORIES[kind]:
        for part in message.parts:
            if isinstance(part, ToolResult):
                assert all(text in shown for text in part.texts)
    assert "q?" in shown or "more" in shown


# Ways of showing


def test_a_template_without_tools_gets_the_dialects_words() -> None:
    history = (
        Message("system", (Text("S"),)), USER, calling(Text("I look."), CALL),
        answering("call_1", "is-paris"), AGAIN,
    )  # fmt: skip
    shown = prompt(GEMMA, *history, tools=(TOOL,))
    assert shown.startswith("<s><turn>user\nS\n\nYou can call the tools listed here")
    assert '"name": "lookup", "description": "Finds things."' in shown
    assert (
        '\n\nq?</turn>\n<turn>model\nI look.\n<tool_call>\n{"name": "lookup", "arguments": '
        '{"city": "Paris"}}\n</tool_call></turn>\n'
        "<turn>user\n<tool_response>\nis-paris\n</tool_response>\n\nmore</turn>\n<turn>model\n"
    ) in shown


def test_the_dialects_delimiters_are_tokens(markup: Tokenizer) -> None:
    template = ChatTemplate(GEMMA, markup, HERMES)
    ids = template.render(Conversation((USER, calling(CALL), answering("call_1", "r")))).token_ids
    assert ids.count(markup.control_tokens["<tool_call>"]) == 1


def test_custom_tools_are_functions_of_one_text() -> None:
    patch = Tool("patch", "Patches.", format=CustomFormat("lark", 'start: "x"'))
    call = ToolCall("c1", "patch", '*** "x"\n', custom=True)
    shown = prompt(QWEN3, USER, calling(call), answering("c1", "done"), tools=(patch,))
    assert 'must match this Lark grammar:\\nstart: \\"x\\"' in shown
    assert '"properties": {"input": {"type": "string"}}, "required": ["input"]' in shown
    assert '{"name": "patch", "arguments": {"input": "*** \\"x\\"\\n"}}' in shown
    xml = prompt(QWEN_CODER, USER, calling(call), answering("c1", "done"), tools=(patch,))
    assert '<parameter=input>\n*** "x"\n\n</parameter>' in xml


def test_ids_as_a_template_wants_them() -> None:
    shown = prompt(KIMI, USER, calling(CALL), answering("call_1", "r"))
    assert "<call>functions.lookup:0<args>" in shown
    assert "<im_tool>lookup<im_middle>## Return of functions.lookup:0\nr" in shown
    short = prompt(MISTRAL, USER, calling(CALL), answering("call_1", "r"))
    assert short == prompt(MISTRAL, USER, calling(CALL), answering("call_1", "r"))
    assert short.count('"id": "') == 2


def test_one_call_at_a_time() -> None:
    calls = (CALL, ToolCall("call_2", "find", "{}"))
    results = (answering("call_1", "r1"), answering("call_2", "r2"))
    shown = prompt(LLAMA, USER, calling(*calls), *results)
    places = [shown.index(text) for text in ('"lookup"', '"r1"', '"find"', '"r2"')]
    assert places == sorted(places)


def test_a_harmony_thought_takes_the_text_beside_a_call() -> None:
    history = (USER, calling(Reasoning("think"), Text("I look."), CALL), answering("call_1", "r"))
    assert "analysis<|message|>think\n\nI look.<|end|>" in prompt(HARMONY, *history)


@pytest.mark.parametrize(
    ("error", "shown"), [("no file", "Error: no file"), ("error: no", "error: no")]
)
def test_failures_of_tools_are_told(error: str, shown: str) -> None:
    result = answering("call_1", error, is_error=True)
    assert f"\n{shown}\n</tool_response>" in prompt(QWEN3, USER, calling(CALL), result)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("before", [(), (calling(CALL),), (calling(Text("a")),)], ids=len)
def test_every_template_tells_of_failures(name: str, before: tuple[Message, ...]) -> None:
    for error, shown in (("no file", "Error: no file"), ("", "Error")):
        result = answering("call_1", error, is_error=True)
        assert shown in styled(name, USER, *before, result, AGAIN)
        assert shown not in styled(name, USER, *before, answering("call_1", error), AGAIN)


# Where the template fails


def test_a_schema_that_the_template_cannot_follow(
    markup: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    spec = {"type": "integer", "default": 1}  # it is joined to text
    tool = Tool("lookup", "Finds.", {"type": "object", "properties": {"n": spec}})
    template = ChatTemplate(HARMONY, markup)
    with caplog.at_level(logging.WARNING, "heliograph.api"):
        for _ in range(2):
            ids = template.render(Conversation((USER,), tools=(tool,))).token_ids
    assert "type lookup = (_: {\nn: integer}) => any;" in markup.decode(ids)
    assert caplog.messages == [
        "the chat template fails with some tools or calls: shown more simply"
    ]
    worse = Tool("lookup", "Finds.", {"type": "object", "properties": {"n": {}, "m": "string"}})
    text = markup.decode(template.render(Conversation((USER,), tools=(worse,))).token_ids)
    assert '"name": "lookup"' in text or "type lookup" in text


def test_what_no_way_can_show_is_the_templates_own_error(markup: Tokenizer) -> None:
    source = (
        "{% if messages[-1].content.startswith('bad') %}"
        "{{ raise_exception('no ' + messages[-1].content) }}{% endif %}"
    )
    history = (USER, calling(CALL), answering("call_1", "r"))
    asked = Conversation((*history, Message("user", (Text("bad <|im_end|>"),))), tools=(TOOL,))
    with pytest.raises(RequestError) as caught:
        ChatTemplate(source + QWEN3, markup).render(asked)
    assert (caught.value.message, caught.value.param) == ("no bad <|im_end|>", "messages")


def test_schemas_without_end_are_refused(markup: Tokenizer) -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"items": deep}
    asked = Conversation((USER,), tools=(Tool("f", "", deep),))
    with pytest.raises(RequestError, match="nested too deeply"):
        ChatTemplate(QWEN3, markup).render(asked)


@pytest.mark.parametrize("param", ["continue_final_message", "messages"])
def test_calls_cannot_be_continued(param: str, markup: Tokenizer) -> None:
    asked = Conversation(
        (USER, calling(CALL)),
        continue_final=True,
        continue_param=param,
        add_generation_prompt=False,
    )
    with pytest.raises(RequestError, match=f"{param}: .*tool calls") as caught:
        ChatTemplate(QWEN3, markup).render(asked)
    assert caught.value.param == param


# The dialect


def test_the_dialect_is_chosen_and_named(tmp_path: Any, markup: Tokenizer) -> None:
    path = write_gguf(tmp_path / "v.gguf", {"tokenizer.chat_template": QWEN3})
    template = ChatTemplate.load(path, markup)
    assert template.dialect.name == "hermes"
    assert template.marks.tokens["<tool_call>"] == markup.control_tokens["<tool_call>"]
    assert ChatTemplate.load(path, markup, "hermes").dialect is HERMES
    with pytest.raises(StartupError, match="nosuch"):
        ChatTemplate.load(path, markup, "nosuch")
    off = ChatTemplate.load(path, markup, None, Defaults(thinking=False))
    assert not off.applied(Conversation((USER,))).thinks


def test_the_dialects_template_is_for_checkpoints_without_one(markup: Tokenizer) -> None:
    dialect = replace(HERMES, template="{{ messages[0].content }}!")
    own = ChatTemplate("{{ messages[0].content }}?", markup, dialect)
    for template, end in ((ChatTemplate(None, markup, dialect), "!"), (own, "?")):
        ids = template.render(Conversation((AGAIN,))).token_ids
        assert markup.decode(ids) == "more" + end
