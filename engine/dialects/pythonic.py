"""Llama 4 and 3.2 as Meta documents them: a list of Python calls, `[f(a="x", n=None), g()]`.

`<|python_start|>` and `<|python_end|>` may stand around it. Source: Meta's prompt formats of Llama
3.2 and 4, and vLLM's tool_chat_template_llama4_pythonic.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import regex

from engine.conversation import Tool, ToolCall
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.json_text import dumps
from engine.dialects.llama_json import END, START, TAG, LlamaParser
from engine.dialects.named_arguments import named_arguments
from engine.dialects.tool_text import arguments_of, show_results, signatures
from engine.grammar.document import Refused
from engine.grammar.rules import Rules
from engine.grammar.values import Schema

_KEYWORD = regex.compile(r"[^\W\d]\w{0,200}")


def grammar(rules: Rules) -> str:
    """The list on one line; values that nothing is asked of may be Python's or JSON's."""
    literal = _literal(rules)

    def member(name: str, schema: Schema) -> str:
        return f"{rules.text(name)} {rules.text('=')} {rules.value(schema)}"

    free = f"{rules.regex('[A-Za-z_][A-Za-z0-9_]{0,99}')} {rules.text('=')} {literal}"

    def call(name: str, tool: Tool | None) -> str:
        if tool is not None and not _has_keywords(rules, tool):
            arguments = f"{rules.text('**')} {rules.arguments(tool)}"
        else:
            arguments = named_arguments(
                rules, tool, comma=rules.text(", "), member=member, free=free
            )
        return rules.rule(f"{name} {rules.text('(')} {arguments} {rules.text(')')}")

    calls = [call(rules.text(tool.name), tool) for tool in rules.tools]
    if rules.open_names:
        calls.append(call(rules.name(), None))
    listed = rules.repeated(rules.rule(" | ".join(calls)), rules.text(", "))
    return f"{rules.text('[')} {listed} {rules.text(']')}"


def _literal(rules: Rules) -> str:
    """A value as Python writes it, lists and dictionaries included."""
    comma, colon = rules.regex(", ?"), rules.regex(": ?")
    text = rules.regex(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"')
    other = rules.regex(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,15})?(?:[eE][-+]?[0-9]{1,3})?")
    word = rules.regex("True|False|None|true|false|null")
    value = rules.recursive(
        lambda value: (
            f"{text} | {other} | {word}"
            f' | "[" ({value} ({comma} {value})*)? "]"'
            f' | "{{" ({text} {colon} {value} ({comma} {text} {colon} {value})*)? "}}"'
        )
    )
    return value


def _has_keywords(rules: Rules, tool: Tool) -> bool:
    """Whether the arguments can be named one by one; else a dictionary is unpacked."""
    if tool.format is not None:
        return False
    try:
        return all(_is_keyword(name) for name, _, _ in rules.parameters(tool))
    except Refused:
        return False


def header(name: str) -> str:
    """What is certain to begin a call of a tool."""
    return f"[{name}("


def show_tools(tools: Sequence[Tool]) -> str:
    """Tools, and how Meta and Google have a model told to call them."""
    return (
        "You have access to these functions:\n\n"
        f"{signatures(tools)}\n\n"
        "To call them, answer with nothing but a list of calls in this format:\n"
        '[a_function(its="arguments"), another()]'
    )


def show_calls(calls: Sequence[ToolCall]) -> str:
    """Calls as Python; what is no keyword there is unpacked from a dictionary."""
    return f"[{', '.join(map(_shown, calls))}]"


def _shown(call: ToolCall) -> str:
    found = arguments_of(call)
    shown = [f"{name}={dumps(value)}" for name, value in found.items() if _is_keyword(name)]
    rest = {name: value for name, value in found.items() if not _is_keyword(name)}
    shown += [f"**{dumps(rest)}"] if rest else []
    return f"{call.name}({', '.join(shown)})"


def _is_keyword(name: str) -> bool:
    return _KEYWORD.fullmatch(name) is not None


def _fits(template: str, control_tokens: Container[str]) -> bool:
    is_llama = "<|header_start|>" in template or "<|start_header_id|>" in template
    return is_llama and ("func_name1(" in template or START in template)


PYTHONIC = Dialect(
    name="pythonic",
    parser=LlamaParser,
    spellings=(TAG, START, END),
    grammar=grammar,
    rendering=Rendering(show_tools, show_calls, show_results),
    fits=_fits,
    headers=header,
)
