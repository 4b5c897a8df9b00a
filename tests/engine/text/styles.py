"""Chat templates in the manner of several model families, and what their models write.

The texts are ours. Each has the traits of its family that a history with tools meets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from engine.conversation import ToolCall
from engine.dialects.hermes import HERMES
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.engine.text import written


@dataclass(frozen=True)
class Style:
    """`written` is the output of a model of the family, as its template shows it later."""

    source: str
    written: Callable[[str, str, Sequence[ToolCall]], str]
    parallel: bool = True
    thinks: bool = False
    text_with_calls: bool = True


_TOOL_TURNS = """
{%- elif m.role == 'tool' %}
    {{- '<|im_start|>user' if loop.first or messages[loop.index0 - 1].role != 'tool' else '' }}
    {{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
    {{- '<|im_end|>\\n' if loop.last or messages[loop.index0 + 1].role != 'tool' else '' }}
"""

QWEN3 = (
    """
{%- set ns = namespace(last=0) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}
{%- endfor %}
{%- if tools or messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' }}
    {{- messages[0].content if messages[0].role == 'system' else '' }}
    {%- for tool in tools or [] %}{{ '\\n' + tool | tojson }}{% endfor %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
{%- if m.role == 'user' or (m.role == 'system' and not loop.first) %}
    {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- elif m.role == 'assistant' %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if loop.index0 > ns.last and m.reasoning_content %}
        {{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}
    {%- endif %}
    {{- m.content }}
    {%- for call in m.tool_calls or [] %}
        {{- '\\n' if m.content or not loop.first else '' }}
        {%- set call = call.function %}
        {{- '<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}
        {{- call.arguments if call.arguments is string else call.arguments | tojson }}
        {{- '}\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
"""
    + _TOOL_TURNS
    + """
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""
)

QWEN_CODER = (
    """
{%- set levels = ('low', 'medium', 'xhigh') %}
{%- set effort = reasoning_effort | default('xhigh') %}
{%- if effort not in levels %}{{ raise_exception('Unknown effort ' ~ effort) }}{% endif %}
{{- '<|im_start|>system\\nEffort: ' + effort + '\\n' }}
{{- messages[0].content if messages[0].role == 'system' else '' }}
{%- for tool in tools or [] %}{{ '\\n' + tool | tojson }}{% endfor %}
{{- '<|im_end|>\\n' }}
{%- for m in messages %}
{%- if m.role == 'system' and not loop.first %}
    {{- raise_exception('System message must be at the beginning.') }}
{%- elif m.role == 'user' %}
    {{- '<|im_start|>user\\n' + m.content + '<|im_end|>\\n' }}
{%- elif m.role == 'assistant' %}
    {{- '<|im_start|>assistant\\n<think>\\n' + (m.reasoning_content or '') + '\\n</think>\\n\\n' }}
    {{- m.content }}
    {%- for call in m.tool_calls or [] %}
        {{- '\\n' if m.content or not loop.first else '' }}
        {{- '<tool_call>\\n<function=' + call.function.name + '>\\n' }}
        {%- for key, value in call.function.arguments | items %}
            {{- '<parameter=' + key + '>\\n' }}
            {{- value if value is string else value | tojson }}
            {{- '\\n</parameter>\\n' }}
        {%- endfor %}
        {{- '</function>\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
"""
    + _TOOL_TURNS
    + """
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}"""
)

LLAMA = """
{{- bos_token }}
{%- set system = '' %}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}{% set messages = messages[1:] %}
{%- endif %}
{{- '<|head|>system<|/head|>\\n\\n' + system + '<|eot|>' }}
{%- if tools is not none %}
    {%- set first = messages[0].content | trim %}{% set messages = messages[1:] %}
    {{- '<|head|>user<|/head|>\\n\\n' }}
    {%- for tool in tools %}{{ tool | tojson(indent=4) + '\\n\\n' }}{% endfor %}
    {{- first + '<|eot|>' }}
{%- endif %}
{%- for m in messages %}
{%- if m.role == 'tool' %}
    {{- '<|head|>ipython<|/head|>\\n\\n' + m.content | tojson + '<|eot|>' }}
{%- elif 'tool_calls' in m %}
    {%- if m.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}
    {%- set call = m.tool_calls[0].function %}
    {{- '<|head|>assistant<|/head|>\\n\\n{"name": "' + call.name + '", "parameters": ' }}
    {{- call.arguments | tojson + '}<|eot|>' }}
{%- else %}
    {{- '<|head|>' + m.role + '<|/head|>\\n\\n' + m.content | trim + '<|eot|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|head|>assistant<|/head|>\\n\\n' }}{% endif %}"""

MISTRAL = """
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}{% set messages = messages[1:] %}
{%- endif %}
{%- set ns = namespace(index=0) %}
{%- for m in messages %}
{%- if m.role != 'tool' and m.tool_calls is not defined %}
    {%- if (m.role == 'user') != (ns.index % 2 == 0) %}
        {{- raise_exception('roles must alternate') }}
    {%- endif %}
    {%- set ns.index = ns.index + 1 %}
{%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for tool in tools or [] %}{{ '[TOOLS]' + tool | tojson }}{% endfor %}
{%- for m in messages %}
{%- if m.role == 'user' %}
    {%- set text = system + '\\n\\n' + m.content if loop.last and system else m.content %}
    {{- '[INST]' + text + '[/INST]' }}
{%- elif m.tool_calls is defined %}
    {{- '[TOOL_CALLS][' }}
    {%- for call in m.tool_calls %}
        {%- if call.id | length != 9 %}{{ raise_exception('ids have 9 characters') }}{% endif %}
        {{- (call.function | tojson)[:-1] + ', "id": "' + call.id + '"}' }}
        {{- ', ' if not loop.last else ']' + eos_token }}
    {%- endfor %}
{%- elif m.role == 'assistant' %}
    {{- m.content + eos_token }}
{%- elif m.role == 'tool' %}
    {{- '[RESULT]{"content": ' + m.content | string + ', "id": "' + m.tool_call_id + '"}' }}
    {%- if m.tool_call_id | length != 9 %}{{ raise_exception('ids have 9 characters') }}{% endif %}
{%- else %}
    {{- raise_exception('Only user and assistant roles are supported!') }}
{%- endif %}
{%- endfor %}"""

GEMMA = """
{{- bos_token }}
{%- for m in messages %}
{%- if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}
    {{- raise_exception('Conversation roles must alternate') }}
{%- endif %}
{{- '<turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + m.content | trim }}
{{- '</turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<turn>model\\n' }}{% endif %}"""

DEEPSEEK = """
{%- set thinking = thinking | default(false) %}
{{- bos_token }}
{%- for m in messages %}{{ m.content if m.role == 'system' else '' }}{% endfor %}
{%- for m in messages %}
{%- if m.role == 'user' %}
    {{- '<User>' + m.content + '<Assistant>' }}
    {{- '<think>' if thinking and loop.last else '</think>' }}
{%- elif m.role == 'assistant' and m.content is none %}
    {%- for call in m.tool_calls %}
        {{- '<call>' + call.type + '<sep>' + call.function.name + '\\n' }}
        {{- call.function.arguments + '</call>' }}
    {%- endfor %}
    {{- eos_token }}
{%- elif m.role == 'assistant' %}
    {{- m.content.split('</think>')[-1] + eos_token }}
{%- elif m.role == 'tool' %}
    {{- '<output>' + m.content + '</output>' }}
{%- endif %}
{%- endfor %}"""

GLM = """
{{- '<|system|>' }}
{%- for tool in tools or [] %}{{ '\\n' + tool | tojson(ensure_ascii=False) }}{% endfor %}
{%- set ns = namespace(last=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}
{%- endfor %}
{%- for m in messages %}
{%- if m.role == 'user' %}
    {{- '<|user|>\\n' + m.content }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- '/nothink' if not m.content.endswith('/nothink') else '' }}
    {%- endif %}
{%- elif m.role == 'assistant' %}
    {{- '<|assistant|>\\n<think>' }}
    {{- m.reasoning_content if loop.index0 > ns.last and m.reasoning_content else '' }}
    {{- '</think>' }}
    {{- '\\n' + m.content if m.content else '' }}
    {%- for call in m.tool_calls or [] %}
        {{- '\\n<tool_call>' + call.function.name + '\\n' }}
        {%- for key, value in call.function.arguments.items() %}
            {{- '<arg_key>' + key + '</arg_key>\\n<arg_value>' }}
            {{- value if value is string else value | tojson }}
            {{- '</arg_value>\\n' }}
        {%- endfor %}
        {{- '</tool_call>' }}
    {%- endfor %}
{%- elif m.role == 'tool' %}
    {{- '<|observation|>' if messages[loop.index0 - 1].role != 'tool' else '' }}
    {{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
{%- elif m.role == 'system' %}
    {{- '<|system|>\\n' + m.content }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>\\n<think>' }}
    {{- '</think>' if enable_thinking is defined and not enable_thinking else '' }}
{%- endif %}"""

KIMI = """
{%- for tool in tools or [] %}{{ '<im_tools>' + tool | tojson }}{% endfor %}
{%- for m in messages %}
{{- '<im_' + m.role + '>' + (m.name or m.role) + '<im_middle>' }}
{%- if m.role == 'tool' %}{{ '## Return of ' + m.tool_call_id + '\\n' }}{% endif %}
{{- m.content }}
{%- for call in m.tool_calls or [] %}
    {{- '<call>' + call.id + '<args>' + call.function.arguments + '</call>' }}
{%- endfor %}
{{- '<im_end>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<im_assistant>assistant<im_middle>' }}{% endif %}"""

HARMONY = """
{%- set effort = reasoning_effort | default('medium') %}
{{- '<|start|>system<|message|>Reasoning: ' + effort + '<|end|>' }}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}{% set messages = messages[1:] %}
{%- endif %}
{%- if system or tools %}
    {{- '<|start|>developer<|message|>' + (system or '') }}
    {%- for tool in tools or [] %}
        {{- '// ' + tool.function.description + '\\ntype ' + tool.function.name + ' = (_: {\\n' }}
        {%- for name, spec in tool.function.parameters.properties.items() %}
            {{- name + ': ' + spec.type }}
            {{- ', // default: ' + spec.default if spec.default is defined else '' }}
        {%- endfor %}
        {{- '}) => any;' }}
    {%- endfor %}
    {{- '<|end|>' }}
{%- endif %}
{%- set last = namespace(name=none) %}
{%- for m in messages %}
{%- if m.role == 'user' %}
    {{- '<|start|>user<|message|>' + m.content + '<|end|>' }}
{%- elif m.role == 'assistant' and m.tool_calls %}
    {%- set call = m.tool_calls[0].function %}
    {%- set last.name = call.name %}
    {%- if m.content and m.thinking %}{{ raise_exception('not both') }}{% endif %}
    {%- set analysis = m.content or m.thinking %}
    {%- if analysis %}
        {{- '<|start|>assistant<|channel|>analysis<|message|>' + analysis + '<|end|>' }}
    {%- endif %}
    {{- '<|start|>assistant to=functions.' + call.name + '<|channel|>commentary json<|message|>' }}
    {{- call.arguments | tojson + '<|call|>' }}
{%- elif m.role == 'assistant' %}
    {{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}
{%- elif m.role == 'tool' %}
    {%- if last.name is none %}{{ raise_exception('a result without a call') }}{% endif %}
    {{- '<|start|>functions.' + last.name + ' to=assistant<|message|>' }}
    {{- m.content | tojson + '<|end|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"""


STYLES = {
    "qwen3": Style(QWEN3, written.qwen3, thinks=True),
    "qwen_coder": Style(QWEN_CODER, written.coder, thinks=True),
    "llama": Style(LLAMA, written.llama, parallel=False, text_with_calls=False),
    "mistral": Style(MISTRAL, written.mistral, text_with_calls=False),
    "gemma": Style(GEMMA, written.gemma),
    "deepseek": Style(DEEPSEEK, written.deepseek, text_with_calls=False),
    "glm": Style(GLM, written.glm, thinks=True),
    "kimi": Style(KIMI, written.kimi),
    "harmony": Style(HARMONY, written.harmony, parallel=False),
}


@cache
def template_of(source: str, tokenizer: Tokenizer) -> ChatTemplate:
    """A template whose model speaks the hermes dialect; compiled and probed once."""
    return ChatTemplate(source, tokenizer, HERMES)
