# Generated from specs/; do not edit. Run: nox -s generate

from __future__ import annotations

from typing import Annotated, Any, Literal

from generated.literals import Off
from pydantic import MISSING, BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from . import shared
from .shared import ControlFields

EffortText = TypeAliasType(
    "EffortText", Annotated[str, Field(description='A level of effort.', max_length=64)]
)


Include = TypeAliasType(
    "Include",
    Annotated[
        Literal['file_search_call.results', 'web_search_call.results', 'web_search_call.action.sources', 'message.input_image.image_url', 'computer_call_output.output.image_url', 'code_interpreter_call.outputs', 'reasoning.encrypted_content', 'message.output_text.logprobs'],
        Field(description='Something that the output has besides.'),
    ],
)


class CompactionRule(BaseModel):
    """When to compact."""

    type: Annotated[
        Literal['compaction'],
        Field(
            description='The only kind.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    compact_threshold: Annotated[
        int | None | MISSING,
        Field(
            description='From how many prompt tokens on; three quarters of the context when absent.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class PlainFormat(BaseModel):
    """Any text."""

    type: Annotated[
        Literal['text'],
        Field(description='Any text.', json_schema_extra={'disposition': 'honoured'}),
    ]


class ObjectFormat(BaseModel):
    """Any JSON object."""

    type: Annotated[
        Literal['json_object'],
        Field(
            description='Any JSON object.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


class SchemaFormat(BaseModel):
    """JSON that matches a schema."""

    type: Annotated[
        Literal['json_schema'],
        Field(
            description='JSON that matches a schema.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    name: Annotated[
        str,
        Field(
            description='A name for the form.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ]
    schema_: Annotated[
        dict[str, Any],
        Field(
            alias='schema',
            description='The JSON Schema.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    description: Annotated[
        str | None | MISSING,
        Field(
            description='What it is for.', json_schema_extra={'disposition': 'echoed'}
        ),
    ] = MISSING
    strict: Annotated[
        bool | None | MISSING,
        Field(
            description='The schema is always enforced.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING


class ReasoningConfig(BaseModel):
    """How much to think."""

    effort: Annotated[
        EffortText | None | MISSING,
        Field(
            description="none, minimal, low, medium, high, xhigh or max. The nearest level that the template knows applies, the template's default when absent. Any other word counts as the level that it is most like.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    summary: Annotated[
        Literal['auto', 'concise', 'detailed'] | None | MISSING,
        Field(
            description='Reasoning is returned as it is; nothing summarizes it.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING
    generate_summary: Annotated[
        Literal['auto', 'concise', 'detailed'] | None | MISSING,
        Field(
            description='The older name of summary.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING
    context: Annotated[
        Literal['auto', 'current_turn', 'all_turns'] | None | MISSING,
        Field(
            description='The template decides which thoughts are replayed.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING
    mode: Annotated[
        str | None | MISSING,
        Field(
            description='There is one mode.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING


class InputTextPart(BaseModel):
    """A piece of text."""

    type: Annotated[
        Literal['input_text'],
        Field(
            description='A piece of text.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    text: Annotated[
        str,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]
    prompt_cache_breakpoint: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The prefix cache works without hints.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class OutputTextInput(BaseModel):
    """A piece of an earlier answer."""

    type: Annotated[
        Literal['output_text'],
        Field(
            description='A piece of an answer.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    text: Annotated[
        str,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]
    annotations: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='Citations are not shown to the model.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    logprobs: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='Not shown to the model.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class RefusalInput(BaseModel):
    """A refusal of the model, treated as text."""

    type: Annotated[
        Literal['refusal'],
        Field(description='A refusal.', json_schema_extra={'disposition': 'honoured'}),
    ]
    refusal: Annotated[
        str,
        Field(description='Its text.', json_schema_extra={'disposition': 'honoured'}),
    ]


class FunctionCallItem(BaseModel):
    """A call of a function that the model made."""

    type: Annotated[
        Literal['function_call'],
        Field(description='A call.', json_schema_extra={'disposition': 'honoured'}),
    ]
    call_id: Annotated[
        str,
        Field(
            description='What its result names.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    name: Annotated[
        str,
        Field(
            description='The function.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    namespace: Annotated[
        str | None | MISSING,
        Field(
            description='The namespace of the function.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    arguments: Annotated[
        str,
        Field(
            description='The arguments, as the model wrote them.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING
    status: Annotated[
        str | None | MISSING,
        Field(
            description='A part of a call is what it is.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    caller: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The model itself.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    async_: Annotated[
        bool | None | MISSING,
        Field(
            alias='async',
            description="Calls are the client's to run.",
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


OutputPart = TypeAliasType(
    "OutputPart",
    Annotated[
        InputTextPart | OutputTextInput,
        Field(description='A part of a result.', discriminator='type'),
    ],
)


class CustomCallItem(BaseModel):
    """A call of a custom tool that the model made."""

    type: Annotated[
        Literal['custom_tool_call'],
        Field(description='A call.', json_schema_extra={'disposition': 'honoured'}),
    ]
    call_id: Annotated[
        str,
        Field(
            description='What its result names.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    name: Annotated[
        str,
        Field(description='The tool.', json_schema_extra={'disposition': 'honoured'}),
    ]
    namespace: Annotated[
        str | None | MISSING,
        Field(
            description='The namespace of the tool.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    input: Annotated[
        str,
        Field(
            description='The text, as the model wrote it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING
    status: Annotated[
        str | None | MISSING,
        Field(
            description='A part of a call is what it is.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    caller: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The model itself.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    async_: Annotated[
        bool | None | MISSING,
        Field(
            alias='async',
            description="Calls are the client's to run.",
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class SummaryPart(BaseModel):
    """A part of a summary."""

    type: Annotated[
        Literal['summary_text'],
        Field(
            description='A part of a summary.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    text: Annotated[
        str,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]


class ReasoningPart(BaseModel):
    """A part of a thought."""

    type: Annotated[
        Literal['reasoning_text'],
        Field(
            description='A part of a thought.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    text: Annotated[
        str,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]


class ReferenceItem(BaseModel):
    """An item of a stored response."""

    type: Annotated[
        Literal['item_reference'],
        Field(
            description='A reference; may be absent or null.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    id: Annotated[
        str,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'honoured'}
        ),
    ]


class ToolSearchCallItem(BaseModel):
    """A search for tools that the model asked for."""

    type: Annotated[
        Literal['tool_search_call'],
        Field(description='A search.', json_schema_extra={'disposition': 'honoured'}),
    ]
    arguments: Annotated[
        Any,
        Field(
            description='What is searched for.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    call_id: Annotated[
        str | None | MISSING,
        Field(
            description='What its result names.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    execution: Annotated[
        str | None | MISSING,
        Field(
            description='A search that a server ran is left out.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING
    status: Annotated[
        str | None | MISSING,
        Field(
            description='A part of a call is what it is.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class CompactionItem(BaseModel):
    """What replaced a conversation; everything that it stands for is in it."""

    type: Annotated[
        Literal['compaction'],
        Field(description='A note.', json_schema_extra={'disposition': 'honoured'}),
    ]
    encrypted_content: Annotated[
        str,
        Field(
            description='The note; one that this server did not make is an error.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING


class CompactionTriggerItem(BaseModel):
    """As the last item it asks for a compaction in place of an answer."""

    type: Annotated[
        Literal['compaction_trigger'],
        Field(
            description='Compact now.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING


class HostedItem(BaseModel):
    """What a tool of OpenAI's servers did; left out of the prompt, which is logged."""

    model_config = ConfigDict(
        extra='allow',
    )
    type: Annotated[
        Literal['file_search_call', 'computer_call', 'computer_call_output', 'web_search_call', 'image_generation_call', 'code_interpreter_call', 'local_shell_call', 'local_shell_call_output', 'shell_call', 'shell_call_output', 'apply_patch_call', 'apply_patch_call_output', 'mcp_list_tools', 'mcp_approval_request', 'mcp_approval_response', 'mcp_call', 'program', 'program_output'],
        Field(
            description='The kind of item, which says that it is left out.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


class AnyTextFormat(BaseModel):
    """Any text."""

    type: Annotated[
        Literal['text'],
        Field(description='Any text.', json_schema_extra={'disposition': 'honoured'}),
    ]


class ResponseGrammarFormat(BaseModel):
    """Text of a grammar."""

    type: Annotated[
        Literal['grammar'],
        Field(
            description='Text of a grammar.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    syntax: Annotated[
        Literal['lark', 'regex'],
        Field(
            description='How the grammar is written.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    definition: Annotated[
        str,
        Field(
            description='The grammar.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


class ToolSearchTool(BaseModel):
    """A search for tools. The model calls it as the function tool_search, where the client runs it."""

    type: Annotated[
        Literal['tool_search'],
        Field(
            description='A search for tools.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    execution: Annotated[
        Literal['server', 'client'] | None | MISSING,
        Field(
            description='A search that a server would run is left out, like any hosted tool.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    description: Annotated[
        str | None | MISSING,
        Field(
            description='What it finds.', json_schema_extra={'disposition': 'honoured'}
        ),
    ] = MISSING
    parameters: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The JSON Schema of its arguments.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class HostedTool(BaseModel):
    """A tool that OpenAI's servers run; left out of the prompt and echoed."""

    model_config = ConfigDict(
        extra='allow',
    )
    type: Annotated[
        Literal['file_search', 'computer', 'computer_use_preview', 'web_search', 'web_search_2025_08_26', 'web_search_preview', 'web_search_preview_2025_03_11', 'mcp', 'code_interpreter', 'programmatic_tool_calling', 'image_generation', 'local_shell', 'shell', 'apply_patch'],
        Field(
            description='The kind of tool, which says that it is left out.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


ResponseChoiceMode = TypeAliasType(
    "ResponseChoiceMode",
    Annotated[
        Literal['none', 'auto', 'required'],
        Field(description='Whether a tool is called.'),
    ],
)


class ChooseFunction(BaseModel):
    """This function must be called."""

    type: Annotated[
        Literal['function'],
        Field(description='A function.', json_schema_extra={'disposition': 'honoured'}),
    ]
    name: Annotated[
        str,
        Field(description='Its name.', json_schema_extra={'disposition': 'honoured'}),
    ]
    namespace: Annotated[
        str | None | MISSING,
        Field(
            description='The namespace of the function.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class ChooseCustom(BaseModel):
    """This custom tool must be called."""

    type: Annotated[
        Literal['custom'],
        Field(
            description='A custom tool.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    name: Annotated[
        str,
        Field(description='Its name.', json_schema_extra={'disposition': 'honoured'}),
    ]
    namespace: Annotated[
        str | None | MISSING,
        Field(
            description='The namespace of the tool.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class AllowedChoice(BaseModel):
    """One tool; hosted ones are passed over."""

    model_config = ConfigDict(
        extra='allow',
    )
    type: Annotated[
        str,
        Field(description='Its kind.', json_schema_extra={'disposition': 'honoured'}),
    ]
    name: Annotated[
        str | None | MISSING,
        Field(description='Its name.', json_schema_extra={'disposition': 'honoured'}),
    ] = MISSING
    namespace: Annotated[
        str | None | MISSING,
        Field(
            description='The namespace of the tool; a namespace alone is all of it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class ChooseHosted(BaseModel):
    """A hosted tool, which is not there."""

    model_config = ConfigDict(
        extra='allow',
    )
    type: Annotated[
        Literal['file_search', 'computer', 'computer_use_preview', 'web_search', 'web_search_2025_08_26', 'web_search_preview', 'web_search_preview_2025_03_11', 'mcp', 'code_interpreter', 'programmatic_tool_calling', 'image_generation', 'local_shell', 'shell', 'apply_patch', 'computer_use'],
        Field(
            description='The kind of tool; the choice is like auto.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


class ResponseExtras(BaseModel):
    """What this server adds."""

    model_config = ConfigDict(
        extra='forbid',
    )
    dropped_tools: Annotated[
        list[str],
        Field(
            description='The kinds of hosted tools that were left out of the prompt.'
        ),
    ]
    time_to_first_token_ms: Annotated[
        float | MISSING, Field(description='From admission to the first token.')
    ] = MISSING
    decode_time_ms: Annotated[
        float | MISSING, Field(description='From the first token to the last.')
    ] = MISSING


class ResponseFailure(BaseModel):
    """Why a response failed."""

    model_config = ConfigDict(
        extra='forbid',
    )
    code: Annotated[
        str,
        Field(
            description='A fixed word, such as server_error or context_length_exceeded.'
        ),
    ]
    message: Annotated[str, Field(description='A sentence for people.')]
    param: Annotated[str | None | MISSING, Field(description='The field at fault.')] = (
        MISSING
    )
    type: Annotated[
        str | None | MISSING, Field(description='The class of the failure.')
    ] = MISSING
    misalignment: Annotated[None | MISSING, Field(description='Not judged.')] = MISSING


class IncompleteDetails(BaseModel):
    """Why a response is incomplete."""

    model_config = ConfigDict(
        extra='forbid',
    )
    reason: Annotated[
        Literal['max_output_tokens'],
        Field(description='The output limit or the context is used up.'),
    ]


class InputTokensDetails(BaseModel):
    """Parts of the prompt count."""

    model_config = ConfigDict(
        extra='forbid',
    )
    cached_tokens: Annotated[
        int, Field(description='Tokens taken from the prefix cache.', ge=0)
    ]
    cache_write_tokens: Annotated[
        int, Field(description='Always 0; writes are not counted apart.', ge=0)
    ]
    cache_write_tokens_details: Annotated[
        None | MISSING, Field(description='Writes are not counted apart.')
    ] = MISSING


class OutputTokensDetails(BaseModel):
    """Parts of the output count."""

    model_config = ConfigDict(
        extra='forbid',
    )
    reasoning_tokens: Annotated[int, Field(description='Tokens of thoughts.', ge=0)]


class ResponseTopLogprob(BaseModel):
    """An alternative at one place."""

    model_config = ConfigDict(
        extra='forbid',
    )
    token: Annotated[str, Field(description='The text of the token.')]
    bytes: Annotated[list[int], Field(description='Its exact bytes.')]
    logprob: Annotated[
        float, Field(description='The natural logarithm of its probability.')
    ]


class OutputFunctionCall(BaseModel):
    """A call of a function."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description="The item's id.")]
    type: Annotated[Literal['function_call'], Field(description='A call.')]
    call_id: Annotated[str, Field(description='What its result names.')]
    name: Annotated[str, Field(description='The function.')]
    namespace: Annotated[
        str | MISSING,
        Field(description='The namespace of the function, where it has one.'),
    ] = MISSING
    arguments: Annotated[
        str,
        Field(
            description='The arguments, as the model wrote them; of a call that the limit cut, the first part.'
        ),
    ]
    status: Annotated[
        Literal['in_progress', 'completed', 'incomplete'],
        Field(description='How far it is.'),
    ]
    caller: Annotated[None | MISSING, Field(description='The model itself.')] = MISSING
    async_: Annotated[None | MISSING, Field(alias='async', description='Not used.')] = (
        MISSING
    )


class OutputCustomCall(BaseModel):
    """A call of a custom tool."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description="The item's id.")]
    type: Annotated[Literal['custom_tool_call'], Field(description='A call.')]
    call_id: Annotated[str, Field(description='What its result names.')]
    name: Annotated[str, Field(description='The tool.')]
    namespace: Annotated[
        str | MISSING, Field(description='The namespace of the tool, where it has one.')
    ] = MISSING
    input: Annotated[
        str,
        Field(description='The text; of a call that the limit cut, the first part.'),
    ]
    status: Annotated[
        Literal['in_progress', 'completed', 'incomplete'],
        Field(description='How far it is.'),
    ]
    caller: Annotated[None | MISSING, Field(description='The model itself.')] = MISSING
    async_: Annotated[None | MISSING, Field(alias='async', description='Not used.')] = (
        MISSING
    )


class OutputReasoningText(BaseModel):
    """The text of a thought."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['reasoning_text'], Field(description='A part of a thought.')
    ]
    text: Annotated[str, Field(description='The text.')]


class OutputToolSearch(BaseModel):
    """A search for tools, for the client to run."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description="The item's id.")]
    type: Annotated[Literal['tool_search_call'], Field(description='A search.')]
    call_id: Annotated[str | None, Field(description='What its result names.')]
    execution: Annotated[Literal['client'], Field(description='The client runs it.')]
    arguments: Annotated[dict[str, Any], Field(description='What is searched for.')]
    status: Annotated[
        Literal['in_progress', 'completed', 'incomplete'],
        Field(description='How far it is.'),
    ]
    created_by: Annotated[None | MISSING, Field(description='Not used.')] = MISSING


class OutputCompaction(BaseModel):
    """A note in place of the conversation."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description="The item's id.")]
    type: Annotated[Literal['compaction'], Field(description='A note.')]
    encrypted_content: Annotated[
        str, Field(description='The note, for this server to read.')
    ]
    created_by: Annotated[None | MISSING, Field(description='Not used.')] = MISSING


class InputTokens(BaseModel):
    """The size of a prompt."""

    model_config = ConfigDict(
        extra='forbid',
    )
    object: Annotated[
        Literal['response.input_tokens'], Field(description='The kind of object.')
    ]
    input_tokens: Annotated[int, Field(description='Tokens of the prompt.', ge=0)]


class DeletedResponse(BaseModel):
    """A response that is gone."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='Its id.')]
    object: Annotated[Literal['response'], Field(description='The kind of object.')]
    deleted: Annotated[Literal[True], Field(description='It is.')]


class ResponseItemList(BaseModel):
    """Items that a response was made from."""

    model_config = ConfigDict(
        extra='forbid',
    )
    object: Annotated[Literal['list'], Field(description='The kind of object.')]
    data: Annotated[list[dict[str, Any]], Field(description='The items.')]
    first_id: Annotated[str | None, Field(description='The id of the first.')]
    last_id: Annotated[str | None, Field(description='The id of the last.')]
    has_more: Annotated[
        bool, Field(description='Whether there are more behind the last.')
    ]


class EventReasoningDelta(BaseModel):
    """More of a thought."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.reasoning_text.delta'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    content_index: Annotated[
        int, Field(description='The place of the part in the item.', ge=0)
    ]
    delta: Annotated[str, Field(description='The text.')]


class EventReasoningDone(BaseModel):
    """The thought is whole."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.reasoning_text.done'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    content_index: Annotated[
        int, Field(description='The place of the part in the item.', ge=0)
    ]
    text: Annotated[str, Field(description='All of it.')]


class EventArgumentsDelta(BaseModel):
    """More of the arguments."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.function_call_arguments.delta'],
        Field(description='The event.'),
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    delta: Annotated[str, Field(description='The text.')]


class EventArgumentsDone(BaseModel):
    """The arguments are whole."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.function_call_arguments.done'],
        Field(description='The event.'),
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    name: Annotated[str, Field(description='The function.')]
    arguments: Annotated[str, Field(description='All of them.')]


class EventInputDelta(BaseModel):
    """More of the text of a custom call."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.custom_tool_call_input.delta'],
        Field(description='The event.'),
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    delta: Annotated[str, Field(description='The text.')]


class EventInputDone(BaseModel):
    """The text of a custom call is whole."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.custom_tool_call_input.done'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    input: Annotated[str, Field(description='All of it.')]


class EventCompacting(BaseModel):
    """The conversation is being compacted."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.compaction.compacting'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]


Includes = TypeAliasType(
    "Includes",
    Annotated[
        list[Include], Field(description='What the output has besides.', max_length=16)
    ],
)
"""What the output has besides."""


CompactionRules = TypeAliasType(
    "CompactionRules",
    Annotated[
        list[CompactionRule], Field(description='When to compact.', max_length=1)
    ],
)
"""When to compact."""


TextFormat = TypeAliasType(
    "TextFormat",
    Annotated[
        PlainFormat | ObjectFormat | SchemaFormat,
        Field(
            description='Text, a JSON object, or JSON that matches a schema.',
            discriminator='type',
        ),
    ],
)


MessagePart = TypeAliasType(
    "MessagePart",
    Annotated[
        InputTextPart | OutputTextInput | RefusalInput,
        Field(description='A part of a message.', discriminator='type'),
    ],
)


OutputParts = TypeAliasType(
    "OutputParts",
    Annotated[
        list[OutputPart],
        Field(description='Parts of a result in their order.', max_length=16384),
    ],
)
"""Parts of a result in their order."""


class CustomOutputItem(BaseModel):
    """What a custom tool answered."""

    type: Annotated[
        Literal['custom_tool_call_output'],
        Field(description='A result.', json_schema_extra={'disposition': 'honoured'}),
    ]
    call_id: Annotated[
        str,
        Field(
            description='The call that it answers.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    output: Annotated[
        str | OutputParts,
        Field(
            description='The result, or parts of it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING
    status: Annotated[
        str | None | MISSING,
        Field(
            description='A result is what it is.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    caller: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The model itself.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    name: Annotated[
        str | None | MISSING,
        Field(
            description='Named by the call.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


SummaryParts = TypeAliasType(
    "SummaryParts",
    Annotated[
        list[SummaryPart], Field(description='Parts of a summary.', max_length=16384)
    ],
)
"""Parts of a summary."""


ReasoningParts = TypeAliasType(
    "ReasoningParts",
    Annotated[
        list[ReasoningPart], Field(description='Parts of a thought.', max_length=16384)
    ],
)
"""Parts of a thought."""


class ResponseFunction(BaseModel):
    """A function that the client runs."""

    type: Annotated[
        Literal['function'],
        Field(description='A function.', json_schema_extra={'disposition': 'honoured'}),
    ]
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
    parameters: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The JSON Schema of its arguments.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    strict: Annotated[
        bool | None | MISSING,
        Field(
            description='Calls match parameters.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    defer_loading: Annotated[
        bool | None | MISSING,
        Field(
            description='The tool stays out of the prompt until a tool_search_output has it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    allowed_callers: Annotated[
        list[str] | None | MISSING,
        Field(
            description='Only the model itself calls tools here.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    output_schema: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='Results are not shown to the model by their schema.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    async_: Annotated[
        bool | None | MISSING,
        Field(
            alias='async',
            description="Calls are the client's to run.",
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


ResponseCustomFormat = TypeAliasType(
    "ResponseCustomFormat",
    Annotated[
        AnyTextFormat | ResponseGrammarFormat,
        Field(
            description='What the text of a custom tool must match.',
            discriminator='type',
        ),
    ],
)


class ChooseAllowed(BaseModel):
    """Only these tools may be called."""

    type: Annotated[
        Literal['allowed_tools'],
        Field(
            description='A part of the tools.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    mode: Annotated[
        Literal['auto', 'required'],
        Field(
            description='Whether one of them must be called.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    tools: Annotated[
        list[AllowedChoice],
        Field(
            description='The tools.',
            json_schema_extra={'disposition': 'honoured'},
            max_length=1024,
        ),
    ]


class ResponseUsage(BaseModel):
    """Token counts, in the model's own tokens."""

    model_config = ConfigDict(
        extra='forbid',
    )
    input_tokens: Annotated[
        int, Field(description='Tokens of the prompt, cached ones included.', ge=0)
    ]
    input_tokens_details: Annotated[
        InputTokensDetails, Field(description='Parts of the prompt count.')
    ]
    output_tokens: Annotated[
        int, Field(description='Tokens generated, reasoning included.', ge=0)
    ]
    output_tokens_details: Annotated[
        OutputTokensDetails, Field(description='Parts of the output count.')
    ]
    total_tokens: Annotated[int, Field(description='Prompt and output together.', ge=0)]


class ResponseLogprob(BaseModel):
    """A token of the answer with its log probability."""

    model_config = ConfigDict(
        extra='forbid',
    )
    token: Annotated[str, Field(description='The text of the token.')]
    bytes: Annotated[list[int], Field(description='Its exact bytes.')]
    logprob: Annotated[
        float, Field(description='The natural logarithm of its probability.')
    ]
    top_logprobs: Annotated[
        list[ResponseTopLogprob], Field(description='The alternatives.')
    ]


class OutputReasoning(BaseModel):
    """A thought."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description="The item's id.")]
    type: Annotated[Literal['reasoning'], Field(description='A thought.')]
    summary: Annotated[
        list[Any], Field(description='Nothing summarizes thoughts.', max_length=0)
    ]
    content: Annotated[
        list[OutputReasoningText],
        Field(description='One part, and none before it begins.'),
    ]
    encrypted_content: Annotated[
        str | MISSING, Field(description='The thought in secret, where included.')
    ] = MISSING
    status: Annotated[
        Literal['in_progress', 'completed', 'incomplete'],
        Field(description='How far it is.'),
    ]


class CompactedResponse(BaseModel):
    """What a conversation is replaced with."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id.')]
    object: Annotated[
        Literal['response.compaction'], Field(description='The kind of object.')
    ]
    created_at: Annotated[int, Field(description='Unix seconds.')]
    output: Annotated[
        list[dict[str, Any]],
        Field(
            description='The messages of the user as they were, then one compaction item.'
        ),
    ]
    usage: Annotated[ResponseUsage, Field(description='What all passes cost.')]
    image: Annotated[None | MISSING, Field(description='Not read.')] = MISSING


class EventTextDelta(BaseModel):
    """More text."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.output_text.delta'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    content_index: Annotated[
        int, Field(description='The place of the part in the item.', ge=0)
    ]
    delta: Annotated[str, Field(description='The text.')]
    logprobs: Annotated[
        list[ResponseLogprob], Field(description='One entry per token, where included.')
    ]


class EventTextDone(BaseModel):
    """The text is whole."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.output_text.done'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    content_index: Annotated[
        int, Field(description='The place of the part in the item.', ge=0)
    ]
    text: Annotated[str, Field(description='All of it.')]
    logprobs: Annotated[
        list[ResponseLogprob], Field(description='One entry per token, where included.')
    ]


class TextConfig(BaseModel):
    """The form of the answer."""

    format: Annotated[
        TextFormat | None | MISSING,
        Field(
            description='Text, a JSON object, or JSON that matches a schema.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    verbosity: Annotated[
        Literal['low', 'medium', 'high'] | None | MISSING,
        Field(
            description='The loaded template has no verbosity setting.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING


MessageParts = TypeAliasType(
    "MessageParts",
    Annotated[
        list[MessagePart],
        Field(description='Parts of a text in their order.', max_length=16384),
    ],
)
"""Parts of a text in their order."""


class FunctionOutputItem(BaseModel):
    """What a function answered."""

    type: Annotated[
        Literal['function_call_output'],
        Field(description='A result.', json_schema_extra={'disposition': 'honoured'}),
    ]
    call_id: Annotated[
        str | None | MISSING,
        Field(
            description='The call that it answers.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    output: Annotated[
        str | OutputParts,
        Field(
            description='The result, or parts of it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING
    status: Annotated[
        str | None | MISSING,
        Field(
            description='A result is what it is.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    caller: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The model itself.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    name: Annotated[
        str | None | MISSING,
        Field(
            description='The function.', json_schema_extra={'disposition': 'honoured'}
        ),
    ] = MISSING
    namespace: Annotated[
        str | None | MISSING,
        Field(
            description='The namespace of the function.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class ReasoningItem(BaseModel):
    """An earlier thought, replayed by the template's own rules."""

    type: Annotated[
        Literal['reasoning'],
        Field(description='A thought.', json_schema_extra={'disposition': 'honoured'}),
    ]
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING
    summary: Annotated[
        SummaryParts | None | MISSING,
        Field(
            description='What replaces the thought where nothing else is there.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    content: Annotated[
        ReasoningParts | None | MISSING,
        Field(
            description='The thought.', json_schema_extra={'disposition': 'honoured'}
        ),
    ] = MISSING
    encrypted_content: Annotated[
        str | None | MISSING,
        Field(
            description="The thought in secret, for where content is absent; what is not this server's is dropped.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    status: Annotated[
        str | None | MISSING,
        Field(
            description='A part of a thought is what it is.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class ConfigurationItem(BaseModel):
    """What the request says otherwise, as of here; the last one counts."""

    type: Annotated[
        Literal['configuration_update'],
        Field(description='A change.', json_schema_extra={'disposition': 'honoured'}),
    ]
    reasoning: Annotated[
        ReasoningConfig | None | MISSING,
        Field(
            description='How much to think from here on.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    text: Annotated[
        TextConfig | None | MISSING,
        Field(
            description='The form of answers from here on.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING


class ResponseCustomTool(BaseModel):
    """A tool that takes free text."""

    type: Annotated[
        Literal['custom'],
        Field(
            description='A tool that takes free text.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
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
    format: Annotated[
        ResponseCustomFormat | None | MISSING,
        Field(
            description='What the text must match while it is generated; any text when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    defer_loading: Annotated[
        bool | None | MISSING,
        Field(
            description='The tool stays out of the prompt until a tool_search_output has it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    allowed_callers: Annotated[
        list[str] | None | MISSING,
        Field(
            description='Only the model itself calls tools here.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    async_: Annotated[
        bool | None | MISSING,
        Field(
            alias='async',
            description="Calls are the client's to run.",
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


NamespaceMember = TypeAliasType(
    "NamespaceMember",
    Annotated[
        ResponseFunction | ResponseCustomTool,
        Field(description='A tool of a namespace.', discriminator='type'),
    ],
)


ResponseChoice = TypeAliasType(
    "ResponseChoice",
    Annotated[
        ChooseFunction | ChooseCustom | ChooseAllowed | ChooseHosted,
        Field(description='Which tool is called.', discriminator='type'),
    ],
)


class OutputText(BaseModel):
    """The text."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['output_text'], Field(description='Text.')]
    text: Annotated[str, Field(description='The text.')]
    annotations: Annotated[
        list[Any], Field(description='There are none.', max_length=0)
    ]
    logprobs: Annotated[
        list[ResponseLogprob], Field(description='One entry per token, where included.')
    ]


EventPart = TypeAliasType(
    "EventPart",
    Annotated[
        OutputText | OutputReasoningText,
        Field(description='A part of an item.', discriminator='type'),
    ],
)


class EventPartAdded(BaseModel):
    """A part of an item begins."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.content_part.added'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    content_index: Annotated[
        int, Field(description='The place of the part in the item.', ge=0)
    ]
    part: Annotated[EventPart, Field(description='The part.')]


class EventPartDone(BaseModel):
    """A part of an item is whole."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.content_part.done'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    item_id: Annotated[str, Field(description="The item's id.")]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    content_index: Annotated[
        int, Field(description='The place of the part in the item.', ge=0)
    ]
    part: Annotated[EventPart, Field(description='The part.')]


class MessageItem(BaseModel):
    """What somebody says."""

    type: Annotated[
        Literal['message'],
        Field(
            description='A message; may be absent or null.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    role: Annotated[
        Literal['user', 'assistant', 'system', 'developer'],
        Field(
            description='Who says it.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    content: Annotated[
        str | MessageParts,
        Field(
            description='The text, or parts of it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The client's or an earlier response's id.",
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING
    status: Annotated[
        str | None | MISSING,
        Field(
            description='A part of an answer is what it is.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    phase: Annotated[
        str | None | MISSING,
        Field(
            description='Templates tell no phases apart.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class NamespaceTool(BaseModel):
    """Tools under a common name."""

    type: Annotated[
        Literal['namespace'],
        Field(
            description='Tools under a common name.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    name: Annotated[
        shared.DeclaredName,
        Field(
            description='The common name.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    description: Annotated[
        str | None | MISSING,
        Field(
            description='What they are; in front of the description of each.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    tools: Annotated[
        list[NamespaceMember],
        Field(
            description='The tools. The model knows each as NAMESPACE__NAME; calls have both names apart.',
            json_schema_extra={'disposition': 'honoured'},
            max_length=1024,
        ),
    ]


OutputContent = TypeAliasType(
    "OutputContent",
    Annotated[
        OutputText, Field(description='A part of a message.', discriminator='type')
    ],
)


ResponseTool = TypeAliasType(
    "ResponseTool",
    Annotated[
        ResponseFunction | ResponseCustomTool | NamespaceTool | ToolSearchTool | HostedTool,
        Field(description='A tool.', discriminator='type'),
    ],
)


class OutputMessage(BaseModel):
    """Text of the answer."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description="The item's id.")]
    type: Annotated[Literal['message'], Field(description='A message.')]
    role: Annotated[Literal['assistant'], Field(description='The model.')]
    status: Annotated[
        Literal['in_progress', 'completed', 'incomplete'],
        Field(description='How far it is.'),
    ]
    content: Annotated[
        list[OutputContent], Field(description='One part, and none before it begins.')
    ]
    phase: Annotated[
        Literal['commentary', 'final_answer'] | MISSING,
        Field(description='Whether calls follow; absent until the message ends.'),
    ] = MISSING


ResponseTools = TypeAliasType(
    "ResponseTools",
    Annotated[
        list[ResponseTool], Field(description='Tools in their order.', max_length=1024)
    ],
)
"""Tools in their order."""


OutputItem = TypeAliasType(
    "OutputItem",
    Annotated[
        OutputMessage | OutputFunctionCall | OutputCustomCall | OutputReasoning | OutputToolSearch | OutputCompaction,
        Field(description='A part of an output.', discriminator='type'),
    ],
)


class EventItemAdded(BaseModel):
    """An item begins."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.output_item.added'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    item: Annotated[OutputItem, Field(description='The item without content.')]


class EventItemDone(BaseModel):
    """An item is whole."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        Literal['response.output_item.done'], Field(description='The event.')
    ]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    output_index: Annotated[
        int, Field(description='The place of the item in the output.', ge=0)
    ]
    item: Annotated[OutputItem, Field(description='The item.')]


class AdditionalToolsItem(BaseModel):
    """Tools that are declared in the conversation."""

    type: Annotated[
        Literal['additional_tools'],
        Field(description='More tools.', json_schema_extra={'disposition': 'honoured'}),
    ]
    role: Annotated[
        str | None | MISSING,
        Field(
            description='Always developer.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    tools: Annotated[
        ResponseTools,
        Field(
            description='The tools. In front of all messages they are like those of tools; later ones are shown to the model where they come.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING


class ToolSearchOutputItem(BaseModel):
    """The tools that a search found; the model may call them from here on."""

    type: Annotated[
        Literal['tool_search_output'],
        Field(
            description='What was found.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    tools: Annotated[
        ResponseTools,
        Field(description='The tools.', json_schema_extra={'disposition': 'honoured'}),
    ]
    call_id: Annotated[
        str | None | MISSING,
        Field(
            description='The search that it answers.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    execution: Annotated[
        str | None | MISSING,
        Field(
            description='Who searched.', json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    id: Annotated[
        str | None | MISSING,
        Field(
            description="The item's id.", json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    internal_chat_message_metadata_passthrough: Annotated[
        Any | MISSING,
        Field(description="Codex's own.", json_schema_extra={'disposition': 'ignored'}),
    ] = MISSING
    status: Annotated[
        str | None | MISSING,
        Field(
            description='A result is what it is.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class ResponseObject(BaseModel):
    """A response."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id.')]
    object: Annotated[Literal['response'], Field(description='The kind of object.')]
    created_at: Annotated[int, Field(description='Unix seconds.')]
    completed_at: Annotated[
        int | None, Field(description='Unix seconds; null unless it is completed.')
    ]
    status: Annotated[
        Literal['in_progress', 'completed', 'incomplete', 'failed'],
        Field(description='How far it is.'),
    ]
    error: Annotated[ResponseFailure | None, Field(description='Why it failed.')]
    incomplete_details: Annotated[
        IncompleteDetails | None, Field(description='Why it is incomplete.')
    ]
    model: Annotated[str, Field(description='The model that answered.')]
    previous_response_id: Annotated[
        str | None, Field(description='The response that it continues.')
    ]
    instructions: Annotated[str | None, Field(description='As sent.')]
    output: Annotated[
        list[OutputItem],
        Field(description='Thoughts, messages and calls in their order.'),
    ]
    tools: Annotated[list[dict[str, Any]], Field(description='As sent.')]
    tool_choice: Annotated[
        str | dict[str, Any], Field(description='As sent; auto when absent.')
    ]
    parallel_tool_calls: Annotated[
        bool, Field(description='As sent; true when absent.')
    ]
    max_tool_calls: Annotated[int | None, Field(description='As sent.')]
    max_output_tokens: Annotated[int | None, Field(description='As sent.')]
    text: Annotated[
        dict[str, Any], Field(description='As sent; the format is text when absent.')
    ]
    reasoning: Annotated[dict[str, Any] | None, Field(description='As sent.')]
    temperature: Annotated[float, Field(description='What applied.')]
    top_p: Annotated[float, Field(description='What applied.')]
    presence_penalty: Annotated[float, Field(description='What applied.')]
    frequency_penalty: Annotated[float, Field(description='What applied.')]
    top_logprobs: Annotated[int, Field(description='As sent; 0 when absent.')]
    truncation: Annotated[
        Literal['disabled'], Field(description='Nothing is left out of prompts.')
    ]
    usage: Annotated[
        ResponseUsage | None, Field(description='Token counts; null until it ends.')
    ]
    metadata: Annotated[dict[str, str], Field(description='As sent.')]
    store: Annotated[bool, Field(description='Whether it is kept.')]
    background: Annotated[Literal[False], Field(description='Never.')]
    service_tier: Annotated[Literal['default'], Field(description='There is one.')]
    safety_identifier: Annotated[str | None, Field(description='As sent.')]
    prompt_cache_key: Annotated[str | None, Field(description='As sent.')]
    prompt_cache_retention: Annotated[
        Literal['in_memory', '24h'] | None, Field(description='As sent.')
    ]
    user: Annotated[str | None, Field(description='As sent.')]
    flare: Annotated[ResponseExtras, Field(description='What this server adds.')]
    access_programs: Annotated[None | MISSING, Field(description='There are none.')] = (
        MISSING
    )
    conversation: Annotated[None | MISSING, Field(description='There are none.')] = (
        MISSING
    )
    image: Annotated[None | MISSING, Field(description='Not read.')] = MISSING
    input_transformations: Annotated[
        None | MISSING, Field(description='There are none.')
    ] = MISSING
    moderation: Annotated[None | MISSING, Field(description='There is none.')] = MISSING
    prompt: Annotated[None | MISSING, Field(description='There are none.')] = MISSING
    prompt_cache_diagnostics: Annotated[
        None | MISSING, Field(description='There are none.')
    ] = MISSING
    prompt_cache_options: Annotated[
        None | MISSING, Field(description='There are none.')
    ] = MISSING
    tool_usage: Annotated[
        None | MISSING, Field(description='There are no hosted tools.')
    ] = MISSING


class EventCreated(BaseModel):
    """The response exists."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['response.created'], Field(description='The event.')]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    response: Annotated[ResponseObject, Field(description='All of it so far.')]


class EventInProgress(BaseModel):
    """The response is being generated; again as a sign of life."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['response.in_progress'], Field(description='The event.')]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    response: Annotated[ResponseObject, Field(description='All of it so far.')]


class EventCompleted(BaseModel):
    """The response is whole."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['response.completed'], Field(description='The event.')]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    response: Annotated[ResponseObject, Field(description='All of it so far.')]


class EventIncomplete(BaseModel):
    """The response ended early."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['response.incomplete'], Field(description='The event.')]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    response: Annotated[ResponseObject, Field(description='All of it so far.')]


class EventFailed(BaseModel):
    """The response failed."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['response.failed'], Field(description='The event.')]
    sequence_number: Annotated[
        int, Field(description='The number of the event, from 0.', ge=0)
    ]
    response: Annotated[ResponseObject, Field(description='All of it so far.')]


InputItem = TypeAliasType(
    "InputItem",
    Annotated[
        MessageItem | FunctionCallItem | FunctionOutputItem | CustomCallItem | CustomOutputItem | ReasoningItem | ReferenceItem | AdditionalToolsItem | ToolSearchCallItem | ToolSearchOutputItem | CompactionItem | CompactionTriggerItem | ConfigurationItem | HostedItem,
        Field(
            description='One item. Without a type it is a message if it has a role, and a reference if it has an id. Members that are not listed are tolerated.',
            discriminator='type',
        ),
    ],
)


ResponseEvent = TypeAliasType(
    "ResponseEvent",
    Annotated[
        EventCreated | EventInProgress | EventCompleted | EventIncomplete | EventFailed | EventItemAdded | EventItemDone | EventPartAdded | EventPartDone | EventTextDelta | EventTextDone | EventReasoningDelta | EventReasoningDone | EventArgumentsDelta | EventArgumentsDone | EventInputDelta | EventInputDone | EventCompacting,
        Field(
            description='The data of an event; its name is its type.',
            discriminator='type',
        ),
    ],
)


InputItems = TypeAliasType(
    "InputItems",
    Annotated[
        list[InputItem],
        Field(description='Items of a conversation, oldest first.', max_length=16384),
    ],
)
"""Items of a conversation, oldest first."""


class InputFields(ControlFields):
    """What a prompt is made from."""

    input: Annotated[
        str | InputItems | None | MISSING,
        Field(
            description='What the user says, or items of a conversation, oldest first. Empty and absent are an empty message of the user.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    instructions: Annotated[
        str | None | MISSING,
        Field(
            description='Instructions of the application, in front of everything. They are not those of a later response that continues this one.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    previous_response_id: Annotated[
        str | None | MISSING,
        Field(
            description='A stored response whose input and output come before the input.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    conversation: Annotated[
        None | MISSING,
        Field(
            description='the server keeps responses, not conversations; use previous_response_id',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    tools: Annotated[
        ResponseTools | None | MISSING,
        Field(
            description="Functions and custom tools that the client runs, namespaces of them, and a tool search of the client. Tools that only OpenAI's servers run are left out of the prompt, echoed, and named in flare.dropped_tools.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    tool_choice: Annotated[
        ResponseChoiceMode | ResponseChoice | None | MISSING,
        Field(
            description='none, auto, required, a tool by its kind and name, or a part of the tools; auto when absent. A hosted tool is like auto.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    parallel_tool_calls: Annotated[
        bool | None | MISSING,
        Field(
            description='False ends the answer after its first call; true when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    text: Annotated[
        TextConfig | None | MISSING,
        Field(
            description='The form of the answer.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    reasoning: Annotated[
        ReasoningConfig | None | MISSING,
        Field(
            description='How much to think.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    truncation: Annotated[
        Literal['disabled'] | None | MISSING,
        Field(
            description='nothing is ever left out of a prompt; only disabled is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    personality: Annotated[
        str | None | MISSING,
        Field(
            description='The model has the one that it was trained to.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    thinking_token_budget: Annotated[
        int | None | MISSING,
        Field(
            description='The most tokens to think. A thought that reaches it is closed, and the answer follows (vLLM, Helios).',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING
    reasoning_effort: Annotated[
        EffortText | None | MISSING,
        Field(
            description='Another name of reasoning.effort, which wins over it (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    chat_template_kwargs: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description="Extra variables for the model's chat template (vLLM).",
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


class InputTokensRequest(InputFields):
    """A prompt to count the tokens of. What only concerns the answer is accepted and does not count."""

    max_output_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='Nothing is generated.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class ResponseRequest(InputFields):
    """A conversation to answer."""

    max_output_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='The most tokens to generate, reasoning included.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    store: Annotated[
        bool | None | MISSING,
        Field(
            description='Keep the response, so that it can be retrieved and continued; true when absent. True is an error where the server has no store.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    include: Annotated[
        Includes | None | MISSING,
        Field(
            description='reasoning.encrypted_content and message.output_text.logprobs add to the output; the other official values have nothing to add.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    top_logprobs: Annotated[
        int | None | MISSING,
        Field(
            description='How many of the most likely tokens to return at each place; needs message.output_text.logprobs in include where it is not 0.',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
            le=20,
        ),
    ] = MISSING
    logprob_token_ids: Annotated[
        shared.ScoredTokenIds | None | MISSING,
        Field(
            description='Report these tokens at each place instead of the most likely ones; needs message.output_text.logprobs in include (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    return_tokens_as_token_ids: Annotated[
        bool | None | MISSING,
        Field(
            description='Write the tokens of log probabilities as token_id:ID instead of their text (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    stop: Annotated[
        shared.StopString | shared.StopStrings | None | MISSING,
        Field(
            description='Text or up to four texts that end the answer; 4096 bytes together (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    context_management: Annotated[
        CompactionRules | None | MISSING,
        Field(
            description='Compact the conversation before it is answered, from a number of prompt tokens on.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    max_tool_calls: Annotated[
        int | None | MISSING,
        Field(
            description='Counts calls of hosted tools, of which there are none.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING
    metadata: Annotated[
        dict[str, str] | None | MISSING,
        Field(
            description='Labels of the client.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING
    user: Annotated[
        str | None | MISSING,
        Field(
            description='An account label with no meaning here.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING
    safety_identifier: Annotated[
        str | None | MISSING,
        Field(
            description='An account label with no meaning here.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING
    prompt_cache_key: Annotated[
        str | None | MISSING,
        Field(
            description='The prefix cache finds its matches itself.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING
    prompt_cache_retention: Annotated[
        Literal['in_memory', '24h'] | None | MISSING,
        Field(
            description='The server decides how long prefixes are kept.',
            json_schema_extra={'disposition': 'echoed'},
        ),
    ] = MISSING
    service_tier: Annotated[
        str | None | MISSING,
        Field(
            description='There is one tier; the response says default.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    prompt_cache_options: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The prefix cache works without hints.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    stream_options: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='No padding is ever sent.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    client_metadata: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='What Codex says of its session.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    access_programs: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='There are none.', json_schema_extra={'disposition': 'ignored'}
        ),
    ] = MISSING
    image: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='No images are read.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    background: Annotated[
        Off | None | MISSING,
        Field(
            description='nothing runs in the background; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    background_options: Annotated[
        None | MISSING,
        Field(
            description='nothing runs in the background',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    prompt: Annotated[
        None | MISSING,
        Field(
            description='the server keeps no prompt templates; send instructions and input',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    moderation: Annotated[
        None | MISSING,
        Field(
            description='the server has no moderation model',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    n: Annotated[
        int | None | MISSING,
        Field(
            description='one response is generated; only 1 is accepted',
            ge=1,
            json_schema_extra={'disposition': 'refused'},
            le=1,
        ),
    ] = MISSING
    prompt_logprobs: Annotated[
        None | MISSING,
        Field(
            description='prompts are scored on Chat Completions and Completions',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING


class CompactRequest(BaseModel):
    """A conversation to make shorter."""

    model: Annotated[
        str | None,
        Field(
            description='The model to use; without a name the loaded model answers, unless --model-names is known.',
            json_schema_extra={'disposition': 'honoured'},
            max_length=1024,
        ),
    ]
    input: Annotated[
        str | InputItems | None | MISSING,
        Field(
            description='The conversation. The note is made from what was said and done in it; thoughts, tools in front of it, and what only concerns an answer are left out.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    instructions: Annotated[
        str | None | MISSING,
        Field(
            description="Instructions of the application, which the note respects; they stay the client's to send.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    previous_response_id: Annotated[
        str | None | MISSING,
        Field(
            description='A stored response whose input and output come before the input.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    max_compaction_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='The most tokens of the note; an eighth of the context, and 4096 at most, when absent (TinyTitan).',
            ge=16,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    prompt_cache_key: Annotated[
        str | None | MISSING,
        Field(
            description='The prefix cache finds its matches itself.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    prompt_cache_options: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='The prefix cache works without hints.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    prompt_cache_retention: Annotated[
        str | None | MISSING,
        Field(
            description='The server decides how long prefixes are kept.',
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
    image: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='No images are read.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
