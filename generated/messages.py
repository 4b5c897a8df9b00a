# Generated from specs/; do not edit. Run: nox -s generate

from __future__ import annotations

from typing import Annotated, Any, Literal

from generated.literals import Off
from pydantic import MISSING, BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from . import shared
from .shared import ControlFields


class CacheControl(BaseModel):
    """A hint that the prompt up to here will come again."""

    type: Annotated[
        Literal['ephemeral'],
        Field(
            description='The only kind.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    ttl: Annotated[
        str | None | MISSING,
        Field(
            description='The cache knows no times.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


ClearAt = TypeAliasType(
    "ClearAt",
    Annotated[
        Literal['next_user_message', 'never'],
        Field(description='When a system message ends.'),
    ],
)


class InputText(BaseModel):
    """A piece of text."""

    type: Annotated[
        Literal['text'],
        Field(
            description='A piece of text.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    text: Annotated[
        str,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The prompt up to this message is worth keeping in the prefix cache; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    citations: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='Citations are not shown to the model.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class PlainTextSource(BaseModel):
    """Text as it is."""

    type: Annotated[
        Literal['text'],
        Field(
            description='Text as it is.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    media_type: Annotated[
        str | None | MISSING,
        Field(
            description='Text is text.', json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    data: Annotated[
        str,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]


SourceTexts = TypeAliasType(
    "SourceTexts",
    Annotated[
        list[InputText], Field(description='Texts in their order.', max_length=16384)
    ],
)
"""Texts in their order."""


class InputThinking(BaseModel):
    """An earlier thought."""

    type: Annotated[
        Literal['thinking'],
        Field(description='A thought.', json_schema_extra={'disposition': 'honoured'}),
    ]
    thinking: Annotated[
        str,
        Field(
            description="The thought, replayed by the template's own rules.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    signature: Annotated[
        str | None | MISSING,
        Field(
            description="Of this server's own signatures one that does not fit the text is an error, and one that carries an omitted thought gives it back. Signatures from elsewhere say nothing.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class InputRedactedThinking(BaseModel):
    """An earlier thought in secret."""

    type: Annotated[
        Literal['redacted_thinking'],
        Field(
            description='A thought in secret.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    data: Annotated[
        str,
        Field(
            description='What this server sealed is opened; anything else is dropped.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


class DirectCaller(BaseModel):
    """The model itself."""

    type: Annotated[
        Literal['direct'],
        Field(
            description='The model itself.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


class ToolReferenceBlock(BaseModel):
    """A deferred tool that a search of the client found."""

    type: Annotated[
        Literal['tool_reference'],
        Field(description='A tool.', json_schema_extra={'disposition': 'honoured'}),
    ]
    tool_name: Annotated[
        str,
        Field(
            description='Its name. From here on the model knows its definition and may call it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The prompt up to this message is worth keeping in the prefix cache; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class ToolNameReference(BaseModel):
    """A tool of this request by its name."""

    type: Annotated[
        Literal['tool_reference'],
        Field(
            description='A tool by its name.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    name: Annotated[
        str,
        Field(description='The name.', json_schema_extra={'disposition': 'honoured'}),
    ]


class CompactionBlock(BaseModel):
    """A summary that replaced what was before it; shown to the model as text."""

    type: Annotated[
        Literal['compaction'],
        Field(description='A summary.', json_schema_extra={'disposition': 'honoured'}),
    ]
    content: Annotated[
        str | None | MISSING,
        Field(
            description='The summary.', json_schema_extra={'disposition': 'honoured'}
        ),
    ] = MISSING
    encrypted_content: Annotated[
        str | None | MISSING,
        Field(
            description="Nobody else's secrets can be read.",
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    signature: Annotated[
        str | None | MISSING,
        Field(
            description='Signatures from elsewhere say nothing.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    tool_changes: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='Tools are those of tools, and of additions outside of summaries.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The prompt up to this message is worth keeping in the prefix cache; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class HostedBlock(BaseModel):
    """What a tool of Anthropic's servers did in an earlier turn; left out of the prompt, which is logged."""

    type: Annotated[
        Literal['server_tool_use', 'web_search_tool_result', 'web_fetch_tool_result', 'advisor_tool_result', 'code_execution_tool_result', 'bash_code_execution_tool_result', 'text_editor_code_execution_tool_result', 'tool_search_tool_result', 'mcp_tool_use', 'mcp_tool_result', 'mcp_tool_listing', 'container_upload', 'fallback'],
        Field(
            description='The kind of block, which says that it is left out.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


Callers = TypeAliasType(
    "Callers", Annotated[list[str], Field(description='Who may call a tool.')]
)
"""Who may call a tool."""


class SelectAuto(BaseModel):
    """A call is up to the model."""

    type: Annotated[
        Literal['auto'],
        Field(
            description='A call is up to the model.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    disable_parallel_tool_use: Annotated[
        bool | None | MISSING,
        Field(
            description='The answer ends after its first call.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class SelectAny(BaseModel):
    """Some tool must be called."""

    type: Annotated[
        Literal['any'],
        Field(
            description='Some tool must be called.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    disable_parallel_tool_use: Annotated[
        bool | None | MISSING,
        Field(
            description='The answer ends after its first call.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class SelectTool(BaseModel):
    """This tool must be called."""

    type: Annotated[
        Literal['tool'],
        Field(
            description='This tool must be called.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    name: Annotated[
        str,
        Field(
            description='The tool; it must be declared.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    disable_parallel_tool_use: Annotated[
        bool | None | MISSING,
        Field(
            description='The answer ends after its first call.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class SelectNone(BaseModel):
    """No tool may be called."""

    type: Annotated[
        Literal['none'],
        Field(
            description='No tool may be called.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


class ThinkingBetweenTools(BaseModel):
    """The same as adaptive; a template has no way to think only then."""

    type: Annotated[
        Literal['between_tools'],
        Field(
            description='The model thinks.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


class ThinkingDisabled(BaseModel):
    """The model does not think, where its template can say so."""

    type: Annotated[
        Literal['disabled'],
        Field(
            description='The model does not think.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


ThinkingDisplay = TypeAliasType(
    "ThinkingDisplay",
    Annotated[
        Literal['summarized', 'omitted', 'updates'],
        Field(
            description='summarized and updates return the thoughts as they are, since nothing summarizes them. omitted returns none; the signature then carries the thought in secret, and gives it back when it is replayed.'
        ),
    ],
)


EffortName = TypeAliasType(
    "EffortName", Annotated[str, Field(description='A level of effort.', max_length=64)]
)


class JSONOutputFormat(BaseModel):
    """The answer is JSON."""

    type: Annotated[
        Literal['json_schema'],
        Field(
            description='The only form.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    schema_: Annotated[
        dict[str, Any],
        Field(
            alias='schema',
            description='The JSON Schema that it matches.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


class KeepTurns(BaseModel):
    """The last turns with thoughts."""

    type: Annotated[
        Literal['thinking_turns'],
        Field(
            description='The last turns with thoughts.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    value: Annotated[
        int,
        Field(
            description='How many.', ge=1, json_schema_extra={'disposition': 'honoured'}
        ),
    ]


class KeepAll(BaseModel):
    """All thoughts."""

    type: Annotated[
        Literal['all'],
        Field(
            description='All thoughts.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


KeepAllWord = TypeAliasType(
    "KeepAllWord", Annotated[Literal['all'], Field(description='All thoughts.')]
)


class InputTokensCount(BaseModel):
    """Tokens of the prompt."""

    type: Annotated[
        Literal['input_tokens'],
        Field(
            description='Tokens of the prompt.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    value: Annotated[
        int,
        Field(
            description='How many.', ge=0, json_schema_extra={'disposition': 'honoured'}
        ),
    ]


class ToolUsesCount(BaseModel):
    """Calls of the conversation."""

    type: Annotated[
        Literal['tool_uses'],
        Field(
            description='Calls of the conversation.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    value: Annotated[
        int,
        Field(
            description='How many.', ge=0, json_schema_extra={'disposition': 'honoured'}
        ),
    ]


ToolNames = TypeAliasType(
    "ToolNames",
    Annotated[list[str], Field(description='Names of tools.', max_length=1024)],
)
"""Names of tools."""


StopReason = TypeAliasType(
    "StopReason",
    Annotated[
        Literal['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'model_context_window_exceeded'],
        Field(description='Why a message ended.'),
    ],
)


class AnswerText(BaseModel):
    """Text."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['text'], Field(description='Text.')]
    text: Annotated[str, Field(description='The text.')]
    citations: Annotated[None, Field(description='The model does not cite.')]


class AnswerThinking(BaseModel):
    """A thought."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['thinking'], Field(description='A thought.')]
    thinking: Annotated[
        str,
        Field(
            description='The thought; empty where it is omitted, and at the start of a stream.'
        ),
    ]
    signature: Annotated[
        str,
        Field(description='What proves it to be unchanged, or carries an omitted one.'),
    ]


class ModelCaller(BaseModel):
    """The model itself."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['direct'], Field(description='The model itself.')]


class MessageOutputDetails(BaseModel):
    """Parts of the output count."""

    model_config = ConfigDict(
        extra='forbid',
    )
    thinking_tokens: Annotated[
        int, Field(description='Tokens of thoughts, omitted ones included.', ge=0)
    ]


class ClearedThinking(BaseModel):
    """Thoughts that were left out."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['clear_thinking_20251015'], Field(description='The edit.')]
    cleared_thinking_turns: Annotated[
        int, Field(description='Turns that lost their thoughts.', ge=0)
    ]
    cleared_input_tokens: Annotated[
        int, Field(description='By how much the prompt is shorter.', ge=0)
    ]


class ClearedToolUses(BaseModel):
    """Results that were cleared."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['clear_tool_uses_20250919'], Field(description='The edit.')]
    cleared_tool_uses: Annotated[
        int, Field(description='Calls whose results were cleared.', ge=0)
    ]
    cleared_input_tokens: Annotated[
        int, Field(description='By how much the prompt is shorter.', ge=0)
    ]


class CountedEdits(BaseModel):
    """What the prompt was before the edits."""

    model_config = ConfigDict(
        extra='forbid',
    )
    original_input_tokens: Annotated[
        int, Field(description='Tokens before the edits.', ge=0)
    ]


class TextDeltaPart(BaseModel):
    """More text."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['text_delta'], Field(description='More text.')]
    text: Annotated[str, Field(description='The text.')]


class InputDeltaPart(BaseModel):
    """More of the arguments of a call."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['input_json_delta'], Field(description='More of the arguments.')
    ]
    partial_json: Annotated[
        str,
        Field(
            description='Text that is JSON when all of it is there, unless the output limit cuts it.'
        ),
    ]


class ThinkingDeltaPart(BaseModel):
    """More of a thought."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['thinking_delta'], Field(description='More of a thought.')]
    thinking: Annotated[str, Field(description='The thought.')]
    estimated_tokens: Annotated[
        int | None | MISSING, Field(description='Never estimated.')
    ] = MISSING


class SignatureDeltaPart(BaseModel):
    """The signature of a thought, before its end."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['signature_delta'], Field(description='The signature.')]
    signature: Annotated[str, Field(description='All of it.')]


class ContentBlockStop(BaseModel):
    """The block is whole."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['content_block_stop'], Field(description='The block is whole.')
    ]
    index: Annotated[int, Field(description='Its number.', ge=0)]
    content_block: Annotated[None | MISSING, Field(description='Not repeated.')] = (
        MISSING
    )


class MessageEnd(BaseModel):
    """How a message ended."""

    model_config = ConfigDict(
        extra='forbid',
    )
    stop_reason: Annotated[StopReason, Field(description='Why it ended.')]
    stop_sequence: Annotated[
        str | None, Field(description='The stop sequence that ended it.')
    ]
    stop_details: Annotated[None, Field(description='Nothing more is known.')]
    container: Annotated[None, Field(description='There are none.')]


class MessageStop(BaseModel):
    """The end of the stream."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['message_stop'], Field(description='The end of the stream.')
    ]
    message: Annotated[None | MISSING, Field(description='Not repeated.')] = MISSING


class Ping(BaseModel):
    """A sign of life while nothing else is to be said."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['ping'], Field(description='A sign of life.')]


TextBlocks = TypeAliasType(
    "TextBlocks",
    Annotated[
        list[InputText], Field(description='Texts in their order.', max_length=16384)
    ],
)
"""Texts in their order."""


class ContentSource(BaseModel):
    """Text in blocks."""

    type: Annotated[
        Literal['content'],
        Field(
            description='Text in blocks.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    content: Annotated[
        str | SourceTexts,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]


class SearchResultBlock(BaseModel):
    """What a search found, shown to the model as text."""

    type: Annotated[
        Literal['search_result'],
        Field(
            description='A result of a search.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    source: Annotated[
        str,
        Field(
            description='Where it is from.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    title: Annotated[
        str,
        Field(description='Its title.', json_schema_extra={'disposition': 'honoured'}),
    ]
    content: Annotated[
        TextBlocks,
        Field(description='Its text.', json_schema_extra={'disposition': 'honoured'}),
    ]
    citations: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The model does not cite.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The prompt up to this message is worth keeping in the prefix cache; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class InputToolUse(BaseModel):
    """A call that the model made."""

    type: Annotated[
        Literal['tool_use'],
        Field(description='A call.', json_schema_extra={'disposition': 'honoured'}),
    ]
    id: Annotated[
        str, Field(description='Its id.', json_schema_extra={'disposition': 'honoured'})
    ]
    name: Annotated[
        str,
        Field(description='The tool.', json_schema_extra={'disposition': 'honoured'}),
    ]
    input: Annotated[
        dict[str, Any],
        Field(
            description='The arguments.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    caller: Annotated[
        DirectCaller | None | MISSING,
        Field(
            description='Who called; only the model itself calls tools here.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The prompt up to this message is worth keeping in the prefix cache; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    toolset_name: Annotated[
        str | None | MISSING,
        Field(
            description='There are no toolsets.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class ToolRemovalBlock(BaseModel):
    """From here on the model may no longer call a tool."""

    type: Annotated[
        Literal['tool_removal'],
        Field(
            description='A tool that is gone.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    tool: Annotated[
        ToolNameReference,
        Field(description='The tool.', json_schema_extra={'disposition': 'honoured'}),
    ]
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The prompt up to this message is worth keeping in the prefix cache; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class ToolDefinition(BaseModel):
    """A tool that the client runs."""

    type: Annotated[
        Literal['custom'] | None | MISSING,
        Field(
            description='The only kind; may be absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    name: Annotated[
        shared.DeclaredName,
        Field(
            description='Its name: letters, digits, underscores, dots and dashes.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    description: Annotated[
        str | None | MISSING,
        Field(
            description='What it does.', json_schema_extra={'disposition': 'honoured'}
        ),
    ] = MISSING
    input_schema: Annotated[
        dict[str, Any],
        Field(
            description='The JSON Schema of its arguments',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    strict: Annotated[
        bool | None | MISSING,
        Field(
            description='Calls match input_schema.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    defer_loading: Annotated[
        bool | None | MISSING,
        Field(
            description='The tool stays out of the prompt, and cannot be called, until a tool_reference or a tool_addition names it; then its definition is shown there, so that the prompt before it stays the same.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='Tools are cached with the system text.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    eager_input_streaming: Annotated[
        bool | None | MISSING,
        Field(
            description='Arguments are always streamed as they are made.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    input_examples: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='Examples are not shown to the model.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    allowed_callers: Annotated[
        Callers | None | MISSING,
        Field(
            description='Only the model itself calls tools here.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


ToolSelection = TypeAliasType(
    "ToolSelection",
    Annotated[
        SelectAuto | SelectAny | SelectTool | SelectNone,
        Field(description='Which tools may be called.', discriminator='type'),
    ],
)


ThinkingDisplayOrNull = TypeAliasType(
    "ThinkingDisplayOrNull",
    Annotated[
        ThinkingDisplay | None, Field(description='How thoughts are shown.')
    ],
)


class OutputConfig(BaseModel):
    """Effort, and the form of the answer."""

    effort: Annotated[
        EffortName | None | MISSING,
        Field(
            description='How much to think where thinking is on: low, medium, high, xhigh, max. The nearest level that the template knows applies. Any other word counts as the level that it is most like.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    format: Annotated[
        JSONOutputFormat | None | MISSING,
        Field(
            description='JSON that matches a schema.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    task_budget: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The model is not told of budgets.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class ClearThinking(BaseModel):
    """Leaves out the thoughts of older turns."""

    type: Annotated[
        Literal['clear_thinking_20251015'],
        Field(
            description='Leaves out older thoughts.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    keep: Annotated[
        KeepTurns | KeepAll | KeepAllWord | None | MISSING,
        Field(
            description='How many turns with thoughts keep them, counted from the last; one when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


EditTrigger = TypeAliasType(
    "EditTrigger",
    Annotated[
        InputTokensCount | ToolUsesCount,
        Field(description='A size of the conversation.', discriminator='type'),
    ],
)


class AnswerToolUse(BaseModel):
    """A call."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['tool_use'], Field(description='A call.')]
    id: Annotated[str, Field(description='Its id.')]
    name: Annotated[str, Field(description='The tool.')]
    input: Annotated[
        dict[str, Any],
        Field(
            description='The arguments; of a call that the output limit cut, what can be read of them.'
        ),
    ]
    caller: Annotated[ModelCaller, Field(description='Who calls.')]
    toolset_name: Annotated[
        None | MISSING, Field(description='There are no toolsets.')
    ] = MISSING


class MessageUsage(BaseModel):
    """Token counts, in the model's own tokens."""

    model_config = ConfigDict(
        extra='forbid',
    )
    input_tokens: Annotated[
        int, Field(description='Tokens of the prompt, cached ones excluded.', ge=0)
    ]
    output_tokens: Annotated[
        int, Field(description='Tokens generated, thoughts included.', ge=0)
    ]
    cache_creation_input_tokens: Annotated[
        int, Field(description='Always 0; writes are not counted apart.', ge=0)
    ]
    cache_read_input_tokens: Annotated[
        int,
        Field(description='Tokens of the prompt taken from the prefix cache.', ge=0),
    ]
    cache_creation: Annotated[None, Field(description='Writes are not counted apart.')]
    output_tokens_details: Annotated[
        MessageOutputDetails, Field(description='Parts of the output count.')
    ]
    server_tool_use: Annotated[None, Field(description='There are no such tools.')]
    service_tier: Annotated[str | None, Field(description='Always standard.')]
    speed: Annotated[None | MISSING, Field(description='There is one speed.')] = MISSING
    inference_geo: Annotated[None, Field(description='There is one place.')]
    iterations: Annotated[None | MISSING, Field(description='There is one.')] = MISSING
    fallback_credit: Annotated[
        None | MISSING, Field(description='Nothing is billed.')
    ] = MISSING


AppliedEdit = TypeAliasType(
    "AppliedEdit",
    Annotated[
        ClearedThinking | ClearedToolUses,
        Field(description='What one edit cleared.', discriminator='type'),
    ],
)


class TokenCount(BaseModel):
    """The size of a prompt."""

    model_config = ConfigDict(
        extra='forbid',
    )
    input_tokens: Annotated[
        int, Field(description='Tokens of the prompt, after all edits.', ge=0)
    ]
    context_management: Annotated[
        CountedEdits | None | MISSING,
        Field(description='Absent where the request names no edit.'),
    ] = MISSING


BlockDelta = TypeAliasType(
    "BlockDelta",
    Annotated[
        TextDeltaPart | InputDeltaPart | ThinkingDeltaPart | SignatureDeltaPart,
        Field(description='What is new in a block.', discriminator='type'),
    ],
)


DocumentSource = TypeAliasType(
    "DocumentSource",
    Annotated[
        PlainTextSource | ContentSource,
        Field(description='The text of a document.', discriminator='type'),
    ],
)


class ToolInline(BaseModel):
    """A tool that is defined in the conversation."""

    type: Annotated[
        Literal['tool_definition'],
        Field(description='A new tool.', json_schema_extra={'disposition': 'honoured'}),
    ]
    definition: Annotated[
        ToolDefinition,
        Field(
            description='Its definition.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


ToolDefinitions = TypeAliasType(
    "ToolDefinitions",
    Annotated[
        list[ToolDefinition], Field(description='Tools of the client.', max_length=1024)
    ],
)
"""Tools of the client."""


class ThinkingEnabled(BaseModel):
    """The model thinks, at most so many tokens."""

    type: Annotated[
        Literal['enabled'],
        Field(
            description='The model thinks.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    budget_tokens: Annotated[
        int,
        Field(
            description="The most tokens to think, less than max_tokens. A thought that reaches it is closed where the model's thoughts can be cut. Without an effort, up to 5000 mean low, up to 20000 high and more mean max.",
            ge=1024,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    display: Annotated[
        ThinkingDisplayOrNull | MISSING,
        Field(
            description='See ThinkingDisplay.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    block_binding: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='Thoughts are replayed wherever they come.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class ThinkingAdaptive(BaseModel):
    """The model thinks as much as the effort says."""

    type: Annotated[
        Literal['adaptive'],
        Field(
            description='The model thinks.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    budget_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='As under enabled, though it may be absent.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    display: Annotated[
        ThinkingDisplayOrNull | MISSING,
        Field(
            description='See ThinkingDisplay.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    block_binding: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='Thoughts are replayed wherever they come.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class ClearToolUses(BaseModel):
    """Replaces the results of older calls by a short note."""

    type: Annotated[
        Literal['clear_tool_uses_20250919'],
        Field(
            description='Clears older results.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    trigger: Annotated[
        EditTrigger | None | MISSING,
        Field(
            description='From what size on; 100000 tokens of the prompt when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    keep: Annotated[
        ToolUsesCount | None | MISSING,
        Field(
            description='How many of the last calls are left alone; three when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    clear_at_least: Annotated[
        InputTokensCount | None | MISSING,
        Field(
            description='Clear nothing where less than this would be saved.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    clear_tool_inputs: Annotated[
        bool | ToolNames | None | MISSING,
        Field(
            description='Clear the arguments of these calls too, of all tools or of those named; false when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    exclude_tools: Annotated[
        ToolNames | None | MISSING,
        Field(
            description='Tools whose calls are left alone.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


AnswerBlock = TypeAliasType(
    "AnswerBlock",
    Annotated[
        AnswerText | AnswerThinking | AnswerToolUse,
        Field(description='A part of an answer.', discriminator='type'),
    ],
)


class AppliedEdits(BaseModel):
    """What was cleared from the conversation."""

    model_config = ConfigDict(
        extra='forbid',
    )
    applied_edits: Annotated[
        list[AppliedEdit], Field(description='The edits that changed anything.')
    ]


class ContentBlockStart(BaseModel):
    """A block begins; blocks follow one another, numbered from 0."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['content_block_start'], Field(description='A block begins.')
    ]
    index: Annotated[int, Field(description='Its number.', ge=0)]
    content_block: Annotated[
        AnswerBlock, Field(description='The block without content.')
    ]


class ContentBlockDelta(BaseModel):
    """More of the block."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['content_block_delta'], Field(description='More of the block.')
    ]
    index: Annotated[int, Field(description='Its number.', ge=0)]
    delta: Annotated[BlockDelta, Field(description='What is new.')]


class MessageDelta(BaseModel):
    """How the message ended."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['message_delta'], Field(description='How the message ended.')
    ]
    delta: Annotated[MessageEnd, Field(description='The end.')]
    usage: Annotated[
        MessageUsage, Field(description='All token counts of the message.')
    ]
    context_management: Annotated[
        AppliedEdits | None | MISSING,
        Field(description='What was cleared; absent where the request names no edit.'),
    ] = MISSING
    input_transformations: Annotated[
        None | MISSING, Field(description='There are none.')
    ] = MISSING


class DocumentBlock(BaseModel):
    """A text document, shown to the model with its title and context."""

    type: Annotated[
        Literal['document'],
        Field(description='A document.', json_schema_extra={'disposition': 'honoured'}),
    ]
    source: Annotated[
        DocumentSource,
        Field(description='Its text.', json_schema_extra={'disposition': 'honoured'}),
    ]
    title: Annotated[
        str | None | MISSING,
        Field(description='Its title.', json_schema_extra={'disposition': 'honoured'}),
    ] = MISSING
    context: Annotated[
        str | None | MISSING,
        Field(
            description='What the model should know about it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    citations: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The model does not cite.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The prompt up to this message is worth keeping in the prefix cache; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


ResultBlock = TypeAliasType(
    "ResultBlock",
    Annotated[
        InputText | DocumentBlock | SearchResultBlock | ToolReferenceBlock,
        Field(description='A part of a result.', discriminator='type'),
    ],
)


AddedTool = TypeAliasType(
    "AddedTool",
    Annotated[
        ToolNameReference | ToolInline,
        Field(description='A tool of tools, or a new one.', discriminator='type'),
    ],
)


ThinkingConfig = TypeAliasType(
    "ThinkingConfig",
    Annotated[
        ThinkingEnabled | ThinkingAdaptive | ThinkingBetweenTools | ThinkingDisabled,
        Field(
            description='Whether and how much the model thinks.', discriminator='type'
        ),
    ],
)


Edit = TypeAliasType(
    "Edit",
    Annotated[
        ClearThinking | ClearToolUses,
        Field(description='One edit.', discriminator='type'),
    ],
)


class MessageReply(BaseModel):
    """The answer."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id of the message.')]
    type: Annotated[Literal['message'], Field(description='The kind of object.')]
    role: Annotated[Literal['assistant'], Field(description='Who speaks.')]
    model: Annotated[str, Field(description='The model that answered.')]
    content: Annotated[
        list[AnswerBlock], Field(description='Thoughts, text and calls in their order.')
    ]
    stop_reason: Annotated[
        StopReason | None,
        Field(description='Why it ended; null at the start of a stream.'),
    ]
    stop_sequence: Annotated[
        str | None, Field(description='The stop sequence that ended it.')
    ]
    stop_details: Annotated[None, Field(description='Nothing more is known.')]
    container: Annotated[None, Field(description='There are none.')]
    diagnostics: Annotated[None | MISSING, Field(description='There are none.')] = (
        MISSING
    )
    input_transformations: Annotated[
        None | MISSING, Field(description='There are none.')
    ] = MISSING
    context_management: Annotated[
        AppliedEdits | None | MISSING,
        Field(description='What was cleared; absent where the request names no edit.'),
    ] = MISSING
    usage: Annotated[MessageUsage, Field(description='Token counts.')]


class MessageStart(BaseModel):
    """A message begins."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['message_start'], Field(description='A message begins.')]
    message: Annotated[
        MessageReply,
        Field(
            description='The message without content; its usage has the whole prompt, and no cached part of it yet.'
        ),
    ]


ResultBlocks = TypeAliasType(
    "ResultBlocks",
    Annotated[
        list[ResultBlock],
        Field(description='Blocks of a result in their order.', max_length=16384),
    ],
)
"""Blocks of a result in their order."""


class ToolAdditionBlock(BaseModel):
    """From here on the model knows a tool and may call it."""

    type: Annotated[
        Literal['tool_addition'],
        Field(description='A new tool.', json_schema_extra={'disposition': 'honoured'}),
    ]
    tool: Annotated[
        AddedTool,
        Field(description='The tool.', json_schema_extra={'disposition': 'honoured'}),
    ]
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The prompt up to this message is worth keeping in the prefix cache; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


Edits = TypeAliasType(
    "Edits",
    Annotated[
        list[Edit],
        Field(description='The edits, applied in their order.', max_length=16),
    ],
)
"""The edits, applied in their order."""


MessageEvent = TypeAliasType(
    "MessageEvent",
    Annotated[
        MessageStart | ContentBlockStart | ContentBlockDelta | ContentBlockStop | MessageDelta | MessageStop | Ping,
        Field(
            description='The data of an event; its name is its type.',
            discriminator='type',
        ),
    ],
)


SystemBlock = TypeAliasType(
    "SystemBlock",
    Annotated[
        InputText | ToolAdditionBlock | ToolRemovalBlock,
        Field(description='A part of a system message.', discriminator='type'),
    ],
)


class ToolResultBlock(BaseModel):
    """What a tool of the client answered to a call."""

    type: Annotated[
        Literal['tool_result'],
        Field(
            description='The result of a call.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    tool_use_id: Annotated[
        str,
        Field(
            description='The id of the call.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        str | ResultBlocks | None | MISSING,
        Field(
            description='Text or blocks; null and absent are the same as empty.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    is_error: Annotated[
        bool | None | MISSING,
        Field(
            description='The tool failed; the model is told so.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The prompt up to this message is worth keeping in the prefix cache; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    toolset_name: Annotated[
        str | None | MISSING,
        Field(
            description='There are no toolsets.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class ContextManagement(BaseModel):
    """What is cleared from a conversation."""

    edits: Annotated[
        Edits | None | MISSING,
        Field(
            description='The edits, applied in their order.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


InputBlock = TypeAliasType(
    "InputBlock",
    Annotated[
        InputText | DocumentBlock | SearchResultBlock | InputThinking | InputRedactedThinking | InputToolUse | ToolResultBlock | ToolAdditionBlock | ToolRemovalBlock | CompactionBlock | HostedBlock,
        Field(description='A part of a message.', discriminator='type'),
    ],
)


SystemBlocks = TypeAliasType(
    "SystemBlocks",
    Annotated[
        list[SystemBlock],
        Field(
            description='Texts and changes to the tools in their order.',
            max_length=16384,
        ),
    ],
)
"""Texts and changes to the tools in their order."""


class SystemTurn(BaseModel):
    """Instructions of the operator, anywhere in the conversation."""

    role: Annotated[
        Literal['system'],
        Field(
            description='Instructions of the operator.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        str | SystemBlocks | None | MISSING,
        Field(
            description='Text, or blocks of text and of changes to the tools.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    clear_at: Annotated[
        ClearAt | None | MISSING,
        Field(
            description='With next_user_message it is left out once a later message of the user is more than results of tools.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    output_config: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The effort of the request is that of the top level.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


InputBlocks = TypeAliasType(
    "InputBlocks",
    Annotated[
        list[InputBlock], Field(description='Blocks in their order.', max_length=16384)
    ],
)
"""Blocks in their order."""


TurnContent = TypeAliasType(
    "TurnContent", Annotated[str | InputBlocks, Field(description='Text, or blocks.')]
)


class UserTurn(BaseModel):
    """What the user said, and what tools answered."""

    role: Annotated[
        Literal['user'],
        Field(
            description='What the user said.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        TurnContent,
        Field(
            description='Text or blocks.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


class AssistantTurn(BaseModel):
    """What the model said, thought and called."""

    role: Annotated[
        Literal['assistant'],
        Field(
            description='What the model said.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        TurnContent,
        Field(
            description='Text or blocks.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


InputMessage = TypeAliasType(
    "InputMessage",
    Annotated[
        UserTurn | AssistantTurn | SystemTurn,
        Field(description='One message of a conversation.', discriminator='role'),
    ],
)


class PromptFields(ControlFields):
    """What a prompt is made from."""

    messages: Annotated[
        list[InputMessage],
        Field(
            description='The conversation so far, oldest first. Text at the end of a last message of the assistant is continued by the answer. Several messages of one role in a row are allowed.',
            json_schema_extra={'disposition': 'honoured'},
            max_length=16384,
            min_length=1,
        ),
    ]
    system: Annotated[
        str | TextBlocks | None | MISSING,
        Field(
            description="Instructions of the operator. A leading block with Claude Code's billing header, which differs with each request, is left out of the prompt, so that prefixes stay the same.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    tools: Annotated[
        ToolDefinitions | None | MISSING,
        Field(
            description="The tools that the model may call and the client runs; up to 1024, each with a name of its own. Tools that only Anthropic's servers run, or know the schema of, are refused by their type.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    tool_choice: Annotated[
        ToolSelection | None | MISSING,
        Field(
            description='auto leaves a call to the model, any and tool force one while the answer is generated, none allows none; auto when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    thinking: Annotated[
        ThinkingConfig | None | MISSING,
        Field(
            description='Whether and how much the model thinks before it answers; it does not when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    output_config: Annotated[
        OutputConfig | None | MISSING,
        Field(
            description='Effort, and the form of the answer.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    output_format: Annotated[
        JSONOutputFormat | None | MISSING,
        Field(
            description="The older place of output_config.format; a request has at most one output constraint (Anthropic's older betas).",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    context_management: Annotated[
        ContextManagement | None | MISSING,
        Field(
            description='What is cleared from the conversation before the prompt is made.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    cache_control: Annotated[
        CacheControl | None | MISSING,
        Field(
            description='The whole prompt is worth keeping in the prefix cache longer than others; a hint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    thinking_token_budget: Annotated[
        int | None | MISSING,
        Field(
            description="The most tokens to think. A thought that reaches it is closed, and the answer follows (vLLM, Helios). Refused where the model's thoughts cannot be cut; must equal thinking.budget_tokens where both are sent.",
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING
    reasoning_effort: Annotated[
        EffortName | None | MISSING,
        Field(
            description='Another name of output_config.effort, which wins over it (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    chat_template_kwargs: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description="Extra variables for the model's chat template; thinking wins over an enable_thinking in it (vLLM).",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    suppress_tool_call: Annotated[
        bool | None | MISSING,
        Field(
            description='Allow no call in this answer where the last three calls of the conversation are one and the same, whatever tool_choice says; false when absent (metrale).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    mcp_servers: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='the server calls no MCP servers; declare their tools in tools',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    billing_policy: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='Nothing is billed.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    speed: Annotated[
        str | None | MISSING,
        Field(
            description='There is one speed.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    betas: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='A header of the SDK; in the body it says nothing.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    user_profile_id: Annotated[
        str | None | MISSING,
        Field(
            description='A header of the SDK; an account label.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    workspace_id: Annotated[
        str | None | MISSING,
        Field(
            description='A header of the SDK; an account label.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    compaction: Annotated[
        None | MISSING,
        Field(
            description='the server does not compact conversations of Messages',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING


class CountTokensRequest(PromptFields):
    """A prompt to count the tokens of. What only concerns the answer is accepted and does not count."""

    max_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='Nothing is generated.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class MessagesRequest(PromptFields):
    """A conversation to answer."""

    max_tokens: Annotated[
        int,
        Field(
            description='The most tokens to generate, thoughts included. One that does not fit the context is shortened to what remains of it; an answer that reaches that end stops with model_context_window_exceeded.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    stop_sequences: Annotated[
        shared.StopStrings | None | MISSING,
        Field(
            description='Up to four texts that end the answer; 4096 bytes together. The one that did is in stop_sequence.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    metadata: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='An account label with no meaning here.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    service_tier: Annotated[
        str | None | MISSING,
        Field(
            description='There is one tier.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    inference_geo: Annotated[
        str | None | MISSING,
        Field(
            description='There is one place.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    diagnostics: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='No message is kept that another could be compared with.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    fallbacks: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='There is one model.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    fallback_credit_token: Annotated[
        str | dict[str, Any] | None | MISSING,
        Field(
            description='Nothing is billed.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    safeguards: Annotated[
        list[Any] | None | MISSING,
        Field(
            description="No classifier watches tool use; Claude Code's auto mode then asks.",
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    container: Annotated[
        None | MISSING,
        Field(
            description='the server has no containers that code could run in',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    thread: Annotated[
        None | MISSING,
        Field(
            description='the server keeps no conversations; send all messages',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    n: Annotated[
        int | None | MISSING,
        Field(
            description='one message is generated; only 1 is accepted',
            ge=1,
            json_schema_extra={'disposition': 'refused'},
            le=1,
        ),
    ] = MISSING
    best_of: Annotated[
        int | None | MISSING,
        Field(
            description='one message is generated; only 1 is accepted',
            ge=1,
            json_schema_extra={'disposition': 'refused'},
            le=1,
        ),
    ] = MISSING
    logprobs: Annotated[
        Off | None | MISSING,
        Field(
            description='Messages has no log probabilities',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    top_logprobs: Annotated[
        None | MISSING,
        Field(
            description='Messages has no log probabilities',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    logprob_token_ids: Annotated[
        None | MISSING,
        Field(
            description='Messages has no log probabilities',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    prompt_logprobs: Annotated[
        None | MISSING,
        Field(
            description='Messages has no log probabilities',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_tokens_as_token_ids: Annotated[
        Off | None | MISSING,
        Field(
            description='Messages has no log probabilities',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_token_ids: Annotated[
        Off | None | MISSING,
        Field(
            description='Messages has no token ids',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_token_timestamps: Annotated[
        Off | None | MISSING,
        Field(
            description='Messages has no token times',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
