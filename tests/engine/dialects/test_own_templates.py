"""The templates of families whose checkpoints bring code instead: their texts, letter by letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from engine.dialects.deepseek_dsml import DEEPSEEK_V4, DEEPSEEK_V32, DEEPSEEK_V41
from engine.dialects.dialect import Dialect
from engine.dialects.kimi_k3 import KIMI_K3
from engine.text.jinja import TemplateRefusal, compile_template, render_template
from engine.text.template import ChatTemplate
from tests.engine.text.vocabularies import small

Message = Mapping[str, object]
EOS, USER, ASSISTANT = "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"
TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
}
SIGNATURE = '{"name": "f", "description": "d", "parameters": {"type": "object"}}'


def message(role: str, content: str = "", **more: object) -> Message:
    return {"role": role, "content": content, **more}


def called(name: str, arguments: object) -> Mapping[str, object]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


CALLS = [called("f", {"a": " x\n", "n": [1, None], "é": True}), called("f", {})]
ROUND = [
    message("user", "Q"),
    message("assistant", "A", reasoning_content="R", tool_calls=CALLS),
    message("tool", "r1", tool_call_id="1"),
    message("tool", "r2", tool_call_id="2"),
]


def rendered(dialect: Dialect, messages: Sequence[Message], **options: object) -> str:
    """Without thoughts, unless the options say something about them."""
    assert dialect.template is not None
    if not {"thinking", "enable_thinking", "reasoning_effort"} & options.keys():
        options["enable_thinking"] = False
    context = {
        "bos_token": "", "messages": messages, "tools": None, "add_generation_prompt": True,
        **options,
    }  # fmt: skip
    return render_template(compile_template(dialect.template), context)


def block(section: str, call: str, parameter: str) -> str:
    return (
        f"\n\n<｜DSML｜{section}>\n"
        f'<｜DSML｜{call} name="f">\n'
        f'<｜DSML｜{parameter} name="a" string="true"> x\n</｜DSML｜{parameter}>\n'
        f'<｜DSML｜{parameter} name="n" string="false">[1, null]</｜DSML｜{parameter}>\n'
        f'<｜DSML｜{parameter} name="é" string="false">true</｜DSML｜{parameter}>\n'
        f"</｜DSML｜{call}>\n"
        f'<｜DSML｜{call} name="f">\n\n</｜DSML｜{call}>\n'
        f"</｜DSML｜{section}>"
    )


def test_v32() -> None:
    calls = block("function_calls", "invoke", "parameter")
    results = (
        "\n\n<function_results>\n<result>r1</result>\n<result>r2</result>\n</function_results>\n\n"
    )
    after = f"{EOS}{results}"
    start = f"S{USER}Q{ASSISTANT}"
    system = [message("system", "S")]
    assert rendered(DEEPSEEK_V32, [*system, *ROUND]) == f"{start}</think>A{calls}{after}</think>"
    assert (
        rendered(DEEPSEEK_V32, [*system, *ROUND], thinking=True)
        == f"{start}<think>R</think>A{calls}{after}<think>"
    )
    later = [
        *system,
        *ROUND,
        message("assistant", "B", reasoning_content="T"),
        message("user", "P"),
    ]
    assert (
        rendered(DEEPSEEK_V32, later, enable_thinking=True)
        == f"{start}</think>A{calls}{after}</think>B{EOS}{USER}P{ASSISTANT}<think>"
    )


@pytest.mark.parametrize(
    ("dialect", "tags", "start"),
    [
        (DEEPSEEK_V4, ("tool_calls", "invoke", "parameter"), ""),
        (DEEPSEEK_V41, (" calls", " invoke", " parameter"), "<｜System｜>"),
    ],
)
def test_v4(dialect: Dialect, tags: tuple[str, str, str], start: str) -> None:
    calls = block(*tags)
    results = f"{USER}<tool_result>r1</tool_result>\n\n<tool_result>r2</tool_result>"
    start += "S"
    system = [message("system", "S")]
    assert (
        rendered(dialect, [*system, *ROUND])
        == f"{start}{USER}Q{ASSISTANT}</think>A{calls}{EOS}{results}{ASSISTANT}</think>"
    )
    told = [*system, *ROUND, message("user", "P")]
    assert (
        rendered(dialect, told)
        == f"{start}{USER}Q{ASSISTANT}</think>A{calls}{EOS}{results}\n\nP{ASSISTANT}</think>"
    )


def test_thoughts_of_v4_stay_where_there_are_tools() -> None:
    told = [*ROUND, message("assistant", "B", reasoning_content="T"), message("user", "P")]
    calls = block("tool_calls", "invoke", "parameter")
    results = f"{USER}<tool_result>r1</tool_result>\n\n<tool_result>r2</tool_result>{ASSISTANT}"
    end = f"{USER}P{ASSISTANT}<think>"
    free = rendered(DEEPSEEK_V4, told, thinking=True)
    assert free == f"{USER}Q{ASSISTANT}</think>A{calls}{EOS}{results}</think>B{EOS}{end}"
    kept = rendered(DEEPSEEK_V4, told, thinking=True, tools=[TOOL])
    assert kept.endswith(
        f"{USER}Q{ASSISTANT}<think>R</think>A{calls}{EOS}{results}<think>T</think>B{EOS}{end}"
    )


@pytest.mark.parametrize("dialect", [DEEPSEEK_V32, DEEPSEEK_V4, DEEPSEEK_V41], ids=lambda d: d.name)
@pytest.mark.parametrize("system", [[], [message("system", "S")]])
def test_tools_follow_the_system_text(dialect: Dialect, system: list[Message]) -> None:
    shown = rendered(dialect, [*system, message("user", "Q")], tools=[TOOL, TOOL])
    before, _, after = shown.partition("\n\n## Tools\n")
    assert before.removeprefix("<｜System｜>") == ("S" if system else "")
    assert f"\n{SIGNATURE}\n{SIGNATURE}\n" in after
    assert after.endswith(f"\n{USER}Q{ASSISTANT}</think>")
    assert shown.startswith("<｜System｜>") is (dialect is DEEPSEEK_V41)


def test_efforts() -> None:
    question = [message("user", "Q")]
    plain = f"{USER}Q{ASSISTANT}<think>"
    assert rendered(DEEPSEEK_V4, question, thinking=True, reasoning_effort="high") == plain
    most = rendered(DEEPSEEK_V4, question, thinking=True, reasoning_effort="max")
    assert most.startswith("Reasoning effort: maximum") and most.endswith(plain)
    for effort, number in (("low", 50), ("high", 75), ("max", 100), (7, 7), (None, 75)):
        told = rendered(DEEPSEEK_V41, question, thinking=True, reasoning_effort=effort)
        assert told == f"<｜System｜>Reasoning effort: {number} of 100\n\n{plain}"
    assert rendered(DEEPSEEK_V41, question, thinking=False, reasoning_effort="max") == (
        f"{USER}Q{ASSISTANT}</think>"
    )


def test_the_newer_versions_think_by_default() -> None:
    for dialect, thinks in ((DEEPSEEK_V32, False), (DEEPSEEK_V4, True), (DEEPSEEK_V41, True)):
        template = ChatTemplate(None, small(), dialect)
        assert template.controls.default_on is thinks


def test_later_instructions() -> None:
    told = [message("user", "Q"), message("system", "S"), message("user", "P")]
    assert rendered(DEEPSEEK_V41, told) == f"{USER}Q<｜System｜>S{USER}P{ASSISTANT}</think>"
    for dialect in (DEEPSEEK_V4, DEEPSEEK_V32):
        with pytest.raises(TemplateRefusal):
            rendered(dialect, told)


@pytest.mark.parametrize(
    "dialect", [DEEPSEEK_V32, DEEPSEEK_V4, DEEPSEEK_V41, KIMI_K3], ids=lambda d: d.name
)
def test_arguments_that_are_no_object_are_shown(dialect: Dialect) -> None:
    told = [message("user", "Q"), message("assistant", tool_calls=[called("f", "bro{ken")])]
    assert ">bro{ken<" in rendered(dialect, told, add_generation_prompt=False)


@pytest.mark.parametrize("dialect", [DEEPSEEK_V32, DEEPSEEK_V4, DEEPSEEK_V41], ids=lambda d: d.name)
def test_without_a_generation_prompt_a_question_stays_open(dialect: Dialect) -> None:
    assert rendered(dialect, [message("user", "Q")], add_generation_prompt=False) == f"{USER}Q"


def k3(role: str, content: str, **attributes: object) -> str:
    given = "".join(f' {key}="{value}"' for key, value in attributes.items())
    end = "<|close|>message<|sep|><|end_of_msg|>"
    return f'<|open|>message role="{role}"{given}<|sep|>{content}{end}'


def k3_argument(key: str, kind: str, value: str) -> str:
    return f'<|open|>argument key="{key}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>'


@pytest.mark.parametrize("thinks", [True, False])
def test_k3(thinks: bool) -> None:
    arguments = (
        k3_argument("a", "string", " x\n")
        + k3_argument("n", "array", "[1, null]")
        + k3_argument("é", "boolean", "true")
    )
    calls = (
        f'<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>{arguments}<|close|>call<|sep|>'
        '<|open|>call tool="f" index="2"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
    )
    thought = "<|open|>think<|sep|>R<|close|>think<|sep|>" if thinks else ""
    answer = f"{thought}<|open|>response<|sep|>A<|close|>response<|sep|>{calls}"
    effort = "Think before the response, with `thinking_effort=max`."
    schema = (
        '[{"function":{"description":"d","name":"f","parameters":{"type":"object"}},'
        '"type":"function"}]'
    )
    declared = f"# Tools\nTheir signatures, in JSON:\n\n```json\n{schema}\n```"
    told = [message("system", "S"), *ROUND]
    assert rendered(KIMI_K3, told, tools=[TOOL], enable_thinking=thinks) == (
        k3("system", declared, type="tool-declare")
        + (k3("system", effort, type="thinking-effort") if thinks else "")
        + k3("system", "S")
        + k3("user", "Q")
        + k3("assistant", answer)
        + k3("tool", "r1", tool="f", index=1)
        + k3("tool", "r2", tool="f", index=2)
        + '<|open|>message role="assistant"<|sep|>'
        + f"<|open|>{'think' if thinks else 'response'}<|sep|>"
    )
