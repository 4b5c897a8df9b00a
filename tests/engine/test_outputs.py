"""From a conversation to how its outputs are constrained, read and cut."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.conversation import Conversation, Message, Text, Thinking, Tool, ToolChoice
from engine.dialects.hermes import HERMES
from engine.dialects.plain import PLAIN
from engine.errors import RequestError, StartupError
from engine.outputs import OutputPlan, OutputPlanner
from engine.text.template import ChatTemplate
from engine.types import GenerationRequest, OutputConstraint, Prompt, RepetitionDetection
from tests.engine.text.vocabularies import small
from tests.serving import tokenizer

TEMPLATE = (
    "{% if tools %}[{% for tool in tools %}{{ tool.function.name }} {% endfor %}]{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}{% endif %}"
)
ASKED = Conversation((Message("user", (Text("Q"),)),))
TOOL = Tool("f", parameters={"type": "object", "properties": {"x": {"type": "integer"}}})
JSON = OutputConstraint("json_object", "", "response_format")
THINK, CLOSE = "<think>", "</think>"


def planned(
    conversation: Conversation = ASKED,
    source: str = TEMPLATE,
    planner: OutputPlanner | None = None,
    **request: object,
) -> OutputPlan:
    template = ChatTemplate(source, tokenizer(), HERMES)
    planner = planner or OutputPlanner(template, tokenizer())
    asked = GenerationRequest(conversation, **request)  # type: ignore[arg-type]
    return planner.plan(conversation, template.render(conversation), asked)


def test_the_prompt_says_whether_a_thought_is_open() -> None:
    for options, is_open in (({}, True), ({"enable_thinking": False}, False)):
        asked = replace(ASKED, template_kwargs=options)
        plan = planned(replace(asked, thinking=Thinking(budget=9)))
        assert plan.reading is not None and plan.thinking is not None
        parser = plan.reading.parser()
        said = [*parser.feed("x"), *parser.finish(cut=True)]
        assert [piece.channel.value for piece in said] == [  # type: ignore[union-attr]
            "reasoning" if is_open else "text"
        ]
        assert plan.thinking.starts_open is is_open


def test_limits_of_thoughts_are_tokens() -> None:
    loops = RepetitionDetection(8, 1, 4)
    plan = planned(replace(ASKED, tools=(TOOL,), thinking=Thinking(budget=5)), repetition=loops)
    control = tokenizer().control_tokens
    assert plan.thinking is not None
    assert plan.thinking.close_id == control[CLOSE]
    assert plan.thinking.open_ids == (control[THINK],)
    assert plan.thinking.end_ids == (control[CLOSE], control["<tool_call>"])
    assert (plan.thinking.budget, plan.thinking.repetition) == (5, loops)


def test_nothing_is_limited_where_nothing_was_asked() -> None:
    plan = planned()
    assert plan.thinking is None and plan.grammar is None
    assert plan.reading is not None


def test_the_server_has_defaults() -> None:
    template = ChatTemplate(TEMPLATE, tokenizer(), HERMES)
    planner = OutputPlanner(template, tokenizer(), budget=7)
    limits = planned(planner=planner).thinking
    assert limits is not None and limits.budget == 7
    own = planned(replace(ASKED, thinking=Thinking(budget=3)), planner=planner).thinking
    assert own is not None and own.budget == 3


def test_a_budget_needs_thoughts_that_one_token_ends() -> None:
    plain = ChatTemplate("{{ messages[-1].content }}", tokenizer(), PLAIN)
    with pytest.raises(StartupError, match="--thinking-token-budget"):
        OutputPlanner(plain, tokenizer(), budget=7)
    planner = OutputPlanner(plain, tokenizer())
    asked = replace(ASKED, thinking=Thinking(budget=3, budget_param="thinking_budget"))
    with pytest.raises(RequestError) as refused:
        planner.plan(asked, Prompt((1,)), GenerationRequest(asked))
    assert refused.value.param == "thinking_budget"


@pytest.mark.parametrize("tools", [(), (TOOL,)])
def test_an_advisory_budget_is_not_refused_where_it_cannot_be_kept(tools: tuple[Tool, ...]) -> None:
    plain = ChatTemplate("{{ messages[-1].content }}", tokenizer(), PLAIN)
    planner = OutputPlanner(plain, tokenizer())
    asked = replace(ASKED, tools=tools, thinking=Thinking(budget=3, advisory=True))
    assert planner.plan(asked, Prompt((1,)), GenerationRequest(asked)).thinking is None
    with pytest.raises(RequestError):
        firm = replace(asked, thinking=Thinking(budget=3))
        planner.plan(firm, Prompt((1,)), GenerationRequest(firm))


def test_an_advisory_budget_is_kept_where_it_can_be() -> None:
    limits = planned(replace(ASKED, thinking=Thinking(budget=5, advisory=True))).thinking
    assert limits is not None and limits.budget == 5


def test_a_model_without_thoughts_and_tools_is_read_as_it_is() -> None:
    vocabulary = small(added=())
    plain = ChatTemplate("{{ messages[-1].content }}", vocabulary, HERMES)
    planner = OutputPlanner(plain, vocabulary)
    assert planner.plan(ASKED, Prompt((1,)), GenerationRequest(ASKED)) == OutputPlan()
    formed = planner.plan(ASKED, Prompt((1,)), GenerationRequest(ASKED, constraint=JSON))
    assert formed.reading is None and formed.grammar is not None


def test_tools_are_read_unless_none_may_be_called() -> None:
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    marks = ChatTemplate(TEMPLATE, tokenizer(), HERMES).marks
    choices = {ToolChoice(): True, ToolChoice("required"): True, ToolChoice("none"): False}
    for choice, calls in choices.items():
        asked = replace(
            ASKED,
            tools=(TOOL,),
            tool_choice=choice,
            template_kwargs={"enable_thinking": False},
        )
        plan = planned(asked)
        assert plan.reading is not None and plan.grammar is not None
        parser = plan.reading.parser()
        said = [*parser.feed(marks.marked(call)), *parser.finish(cut=False)]
        assert any(type(piece).__name__ == "Closed" for piece in said) is calls


def test_a_tool_that_is_not_listed_can_be_called() -> None:
    hidden = Tool(
        "g", parameters={"type": "object", "properties": {"deep": {"const": "sea"}}},
        strict=True, listed=False,
    )  # fmt: skip
    asked = replace(
        ASKED,
        tools=(TOOL, hidden),
        tool_choice=ToolChoice("required", frozenset({"g"})),
        template_kwargs={"enable_thinking": False},
    )
    plan = planned(asked)
    assert plan.reading is not None and plan.grammar is not None
    assert "sea" in plan.grammar
    marks = ChatTemplate(TEMPLATE, tokenizer(), HERMES).marks
    call = '<tool_call>{"name": "g", "arguments": {"deep": "sea"}}</tool_call>'
    parser = plan.reading.parser()
    said = [*parser.feed(marks.marked(call)), *parser.finish(cut=False)]
    assert any(type(piece).__name__ == "Closed" for piece in said)


def test_what_cannot_be_enforced_is_refused_with_its_field() -> None:
    strict = Tool(
        "f",
        parameters={"type": "object", "properties": {"x": {"not": {}}}, "required": ["x"]},
        strict=True,
        param="tools[0].function.parameters",
    )
    with pytest.raises(RequestError) as refused:
        planned(replace(ASKED, tools=(strict,)))
    assert refused.value.param == "tools[0].function.parameters"
    assert "'not'" in refused.value.message
    assert refused.value.code == "invalid_schema"
