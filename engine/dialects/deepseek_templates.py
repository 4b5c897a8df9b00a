"""Chat templates of DeepSeek V3.2, V4 and V4.1, whose checkpoints bring code instead of one.

The format is that of encoding/encoding_dsv32.py, encoding_dsv4.py and encoding.py in the
repositories of deepseek-ai/DeepSeek-V3.2, -V4-Flash and -V4.1-Flash; the words around it are ours.
Thoughts of earlier turns go where those drop them: before the last question, in V4 and later only
without tools. Earlier than V4.1, no place but the first is for instructions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

_TOOLS_V32 = """## Tools
These functions are there for you. To call some, end your reply with a block like this:
<｜DSML｜function_calls>
<｜DSML｜invoke name="a function">
<｜DSML｜parameter name="a parameter" string="true|false">its value</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜function_calls>
A string is written bare, with string="true"; any other value as JSON, with string="false". \
Results come back in <function_results>; think about them first where you think at all.
One JSON signature a line:
<functions>
{schemas}
</functions>
"""

_TOOLS_V4 = """## Tools

The tools below are there for you. To call some, end your reply with a block like this:

<｜DSML｜{section}>
<｜DSML｜{call} name="a tool">
<｜DSML｜{argument} name="a parameter" string="true|false">its value</｜DSML｜{argument}>
</｜DSML｜{call}>
</｜DSML｜{section}>

A string is written bare, with `string="true"`; any other value as JSON, with `string="false"`. \
Where you think, all of the thought comes before </think>, and calls and answer behind it.

### Their signatures, in JSON

{schemas}

Names and arguments must be as they say.
"""

_MOST_EFFORT = (
    "Reasoning effort: maximum.\n"
    "Think this through completely: break the problem down, look for the root cause, try every "
    "case that could go wrong, and write each step, each alternative and why you drop it.\n\n"
)

# What all have in common: whether the model thinks, the last question, tools and calls.
_HEAD = """
{%- set thinks = @THINKS@ %}
{%- if reasoning_effort is defined %}{% set thinks = reasoning_effort not in [none, 'none'] %}
{%- endif %}
{%- if enable_thinking is defined %}{% set thinks = enable_thinking %}{% endif %}
{%- if thinking is defined %}{% set thinks = thinking %}{% endif %}
{%- set opening = '<think>' if thinks else '</think>' %}
{%- set last = namespace(question=-1) %}
{%- for message in messages %}
{%- if @IS_QUESTION@ %}{% set last.question = loop.index0 %}{% endif %}
{%- endfor %}
{%- macro tool_block() %}
{%- set schemas %}
{%- for tool in tools %}{{ (tool.function or tool) | tojson }}{{ '' if loop.last else '\\n' }}
{%- endfor %}
{%- endset %}
{{- '\\n\\n' + @TOOLS@.replace('{schemas}', schemas) }}
{%- endmacro %}
{%- macro call_block(calls) %}
{{- '\\n\\n<｜DSML｜@SECTION@>\\n' }}
{%- for call in calls %}
{%- set function = call.function or call %}
{%- set given = function.arguments or {} %}
{%- set given = given if given is mapping else {'arguments': given} %}
{{- '<｜DSML｜@CALL@ name="' + function.name + '">\\n' }}
{%- for key, value in given.items() %}
{{- '<｜DSML｜@ARGUMENT@ name="' + key + '" string="' + ('true' if value is string else 'false') }}
{{- '">' + (value if value is string else value | tojson) + '</｜DSML｜@ARGUMENT@>' }}
{{- '' if loop.last else '\\n' }}
{%- endfor %}
{{- '\\n</｜DSML｜@CALL@>\\n' }}
{%- endfor %}
{{- '</｜DSML｜@SECTION@>' }}
{%- endmacro %}
{{- bos_token }}"""

_ASSISTANT = """
{%- if thinks and @THOUGHT@ %}{{ (message.reasoning_content or '') + '</think>' }}{% endif %}
{{- message.content }}
{%- if message.tool_calls %}{{ call_block(message.tool_calls) }}{% endif %}
{{- '<｜end▁of▁sentence｜>' }}"""

_V32 = (
    _HEAD
    + """
{%- if tools and messages[0].role != 'system' %}{{ tool_block() }}{% endif %}
{%- for message in messages %}
{%- set goes_on = add_generation_prompt or not loop.last %}
{%- if message.role == 'system' %}
{%- if not loop.first %}{{ raise_exception('only the first message can be a system message') }}
{%- endif %}
{{- message.content }}
{%- if tools %}{{ tool_block() }}{% endif %}
{%- elif message.role == 'user' %}
{{- '<｜User｜>' + message.content }}
{%- if goes_on %}
{{- '<｜Assistant｜>' + (opening if loop.index0 == last.question else '</think>') }}
{%- endif %}
{%- elif message.role == 'tool' %}
{%- if loop.previtem is undefined or loop.previtem.role != 'tool' %}
{{- '\\n\\n<function_results>' }}
{%- endif %}
{{- '\\n<result>' + message.content + '</result>' }}
{%- if loop.nextitem is undefined or loop.nextitem.role != 'tool' %}
{{- '\\n</function_results>' }}
{%- if goes_on %}
{{- '\\n\\n' + (opening if loop.index0 >= last.question else '</think>') }}
{%- endif %}
{%- endif %}
{%- elif message.role == 'assistant' %}"""
    + _ASSISTANT
    + """
{%- endif %}
{%- endfor %}"""
)

_V4 = (
    _HEAD
    + """
{%- set keeps = true if tools else false %}
@START@
{%- if tools and messages[0].role != 'system' %}{{ tool_block() }}{% endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}"""
    + _ASSISTANT
    + """
{%- else %}
{%- if message.role == 'system' %}
{%- if not loop.first %}@LATER_SYSTEM@{% endif %}
{{- message.content }}
{%- if tools and loop.first %}{{ tool_block() }}{% endif %}
{%- else %}
{%- set joins = loop.previtem is defined and loop.previtem.role in ['user', 'tool'] %}
{{- '\\n\\n' if joins else '<｜User｜>' }}
{%- if message.role == 'tool' %}{{ '<tool_result>' + message.content + '</tool_result>' }}
{%- else %}{{ message.content }}{% endif %}
{%- endif %}
{%- set answered = loop.nextitem.role == 'assistant' if loop.nextitem else add_generation_prompt %}
{%- if answered and @IS_QUESTION@ %}
{{- '<｜Assistant｜>' + (opening if keeps or loop.index0 >= last.question else '</think>') }}
{%- endif %}
{%- endif %}
{%- endfor %}"""
)


@dataclass(frozen=True, slots=True)
class Version:
    """What a version writes its own way.

    `tags` name a section, a call and an argument. `tools` tells the model how to call tools, which
    stand at `{schemas}`.
    """

    name: str
    tags: tuple[str, str, str]
    tools: str
    template: str


def _version(
    name: str, skeleton: str, tools: str, tags: tuple[str, str, str], **parts: str
) -> Version:
    """`parts` are what stands in the skeleton at their names."""
    for place, tag in zip(("{section}", "{call}", "{argument}"), tags, strict=True):
        tools = tools.replace(place, tag)
    known = dict(zip(("SECTION", "CALL", "ARGUMENT"), tags, strict=True))
    known |= {"TOOLS": json.dumps(tools, ensure_ascii=False), **parts}
    for place, text in known.items():
        skeleton = skeleton.replace(f"@{place}@", text)
    return Version(name, tags, tools, skeleton)


V32 = _version(
    "deepseek_v32",
    _V32,
    _TOOLS_V32,
    ("function_calls", "invoke", "parameter"),
    THINKS="false",
    THOUGHT="loop.index0 > last.question",
    IS_QUESTION="message.role == 'user'",
)
V4 = _version(
    "deepseek_v4",
    _V4,
    _TOOLS_V4,
    ("tool_calls", "invoke", "parameter"),
    START="""{%- set effort = reasoning_effort if reasoning_effort in ['high', 'max'] else 'high' %}
{%- if thinks and effort == 'max' %}{{ """
    + json.dumps(_MOST_EFFORT)
    + """ }}{% endif %}""",
    LATER_SYSTEM="{{ raise_exception('only the first message can be a system message') }}",
    THINKS="true",
    THOUGHT="(keeps or loop.index0 > last.question)",
    IS_QUESTION="message.role in ['user', 'tool']",
)
V41 = _version(
    "deepseek_v41",
    _V4,
    _TOOLS_V4,
    (" calls", " invoke", " parameter"),
    START="""{%- set levels = {'low': 50, 'high': 75, 'xhigh': 75, 'max': 100} %}
{%- set effort = reasoning_effort if reasoning_effort is number else levels.get(reasoning_effort) %}
{%- if thinks or tools or messages[0].role == 'system' %}{{ '<｜System｜>' }}{% endif %}
{%- if thinks %}
{{- 'Reasoning effort: ' + (effort or 75) | string + ' of 100\\n\\n' }}{% endif %}""",
    LATER_SYSTEM="{{ '<｜System｜>' }}",
    THINKS="true",
    THOUGHT="(keeps or loop.index0 > last.question)",
    IS_QUESTION="(message.role in ['user', 'tool'] or message.role == 'system' and not loop.first)",
)
