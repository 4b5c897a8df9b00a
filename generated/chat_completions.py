# Generated from specs/; do not edit. Run: nox -s generate

from __future__ import annotations

from typing import Annotated, Any, Literal

from generated.literals import Off, On
from pydantic import MISSING, BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from . import shared
from .shared import GenerationFields


class RefusalPart(BaseModel):
    """A refusal of the model, treated as text."""

    type: Annotated[
        Literal['refusal'],
        Field(
            description='A refusal of the model.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    refusal: Annotated[
        str,
        Field(description='Its text.', json_schema_extra={'disposition': 'honoured'}),
    ]


class PromptCacheBreakpoint(BaseModel):
    """A hint where a cached prefix may end."""

    mode: Annotated[
        str | None | MISSING,
        Field(
            description='The prefix cache works without hints.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    ttl: Annotated[
        str | None | MISSING,
        Field(
            description='The prefix cache works without hints.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class PromptCacheOptions(BaseModel):
    """Hints for a prefix cache."""

    mode: Annotated[
        str | None | MISSING,
        Field(
            description='The prefix cache works without hints.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    ttl: Annotated[
        str | None | MISSING,
        Field(
            description='The prefix cache works without hints.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class CalledFunction(BaseModel):
    """A function with its arguments."""

    name: Annotated[
        str,
        Field(
            description='The function.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    arguments: Annotated[
        str | None | MISSING,
        Field(
            description='Its arguments as JSON text, valid or not; null and absent are no arguments.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class CalledCustom(BaseModel):
    """A custom tool with its input."""

    name: Annotated[
        str,
        Field(description='The tool.', json_schema_extra={'disposition': 'honoured'}),
    ]
    input: Annotated[
        str | None | MISSING,
        Field(
            description='Its input; null and absent are the same as empty.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class CustomTextFormat(BaseModel):
    """Free text."""

    type: Annotated[
        Literal['text'],
        Field(description='Free text.', json_schema_extra={'disposition': 'honoured'}),
    ]


class CustomGrammar(BaseModel):
    """A grammar for a custom tool."""

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


ToolChoiceMode = TypeAliasType(
    "ToolChoiceMode",
    Annotated[
        Literal['none', 'auto', 'required'],
        Field(description='Whether to call a tool.'),
    ],
)


class ToolName(BaseModel):
    """A tool by its name."""

    name: Annotated[
        str,
        Field(
            description='The name of the tool.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


FunctionCallMode = TypeAliasType(
    "FunctionCallMode",
    Annotated[
        Literal['none', 'auto'],
        Field(description='Whether to call a function, in the older form.'),
    ],
)


class FunctionCallChoice(BaseModel):
    """Call this function, in the older form."""

    name: Annotated[
        str,
        Field(
            description='The function.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


EffortWord = TypeAliasType(
    "EffortWord", Annotated[str, Field(description='A level of effort.', max_length=64)]
)


EffortScore = TypeAliasType(
    "EffortScore",
    Annotated[int, Field(description='An effort as a score.', ge=1, le=100)],
)


class ThinkingSwitch(BaseModel):
    """Whether to think."""

    type: Annotated[
        Literal['enabled', 'disabled', 'adaptive', 'auto'],
        Field(
            description='Whether to think; adaptive and auto leave it to the template.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    budget_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='Another name of thinking_token_budget.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING


ChatFinishReason = TypeAliasType(
    "ChatFinishReason",
    Annotated[
        Literal['stop', 'length', 'tool_calls', 'content_filter', 'function_call'],
        Field(description='Why an answer ended.'),
    ],
)


class FunctionCall(BaseModel):
    """A function with its arguments."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[str, Field(description='The function.')]
    arguments: Annotated[
        str,
        Field(
            description='Its arguments as JSON text; incomplete where the output limit cut them.'
        ),
    ]


class CustomCall(BaseModel):
    """A custom tool with its input."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[str, Field(description='The tool.')]
    input: Annotated[
        str, Field(description='Its input; incomplete where the output limit cut it.')
    ]


class TopLogprob(BaseModel):
    """A token that could have been chosen."""

    model_config = ConfigDict(
        extra='forbid',
    )
    token: Annotated[str, Field(description='The text of the token.')]
    logprob: Annotated[float, Field(description='Its log probability.')]
    bytes: Annotated[list[int] | None, Field(description='Its exact bytes.')]


class FunctionDelta(BaseModel):
    """What was added to a function call."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[str | MISSING, Field(description='The function.')] = MISSING
    arguments: Annotated[str | MISSING, Field(description='More of its arguments.')] = (
        MISSING
    )


class CustomDelta(BaseModel):
    """What was added to the call of a custom tool."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[str | MISSING, Field(description='The tool.')] = MISSING
    input: Annotated[str | MISSING, Field(description='More of its input.')] = MISSING


class TextPart(BaseModel):
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
    prompt_cache_breakpoint: Annotated[
        PromptCacheBreakpoint | None | MISSING,
        Field(
            description='The prefix cache works without hints.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class CalledTool(BaseModel):
    """A call that the model made. Nothing in it is checked, so that a conversation with a broken call can go on."""

    id: Annotated[
        str | None | MISSING,
        Field(
            description='The id of the call.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    type: Annotated[
        Literal['function', 'custom'] | None | MISSING,
        Field(
            description='The kind of tool; what is present decides when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    function: Annotated[
        CalledFunction | None | MISSING,
        Field(
            description='The call of a function tool.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    custom: Annotated[
        CalledCustom | None | MISSING,
        Field(
            description='The call of a custom tool.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class FunctionDefinition(BaseModel):
    """A function with its parameters."""

    name: Annotated[
        shared.DeclaredName,
        Field(
            description='The name to call it by, up to 256 letters, digits, underscores, dots and dashes.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    description: Annotated[
        str | None | MISSING,
        Field(
            description='When and how to use it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    parameters: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='A JSON Schema of its arguments, which are an object; any object when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    strict: Annotated[
        bool | None | MISSING,
        Field(
            description='Enforce the schema while the arguments are generated; a keyword that cannot be enforced is then refused by name.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class CustomGrammarFormat(BaseModel):
    """Text of a grammar."""

    type: Annotated[
        Literal['grammar'],
        Field(
            description='Text of a grammar.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    grammar: Annotated[
        CustomGrammar,
        Field(
            description='The grammar.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


class NamedFunctionChoice(BaseModel):
    """Call this function."""

    type: Annotated[
        Literal['function'],
        Field(
            description='A function tool.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    function: Annotated[
        ToolName,
        Field(
            description='The function.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


class NamedCustomChoice(BaseModel):
    """Call this custom tool."""

    type: Annotated[
        Literal['custom'],
        Field(
            description='A custom tool.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    custom: Annotated[
        ToolName,
        Field(description='The tool.', json_schema_extra={'disposition': 'honoured'}),
    ]


AllowedTool = TypeAliasType(
    "AllowedTool",
    Annotated[
        NamedFunctionChoice | NamedCustomChoice,
        Field(description='A tool of the subset.', discriminator='type'),
    ],
)


class ToolCallFunction(BaseModel):
    """A call of a function tool."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id of the call.')]
    type: Annotated[Literal['function'], Field(description='A function tool.')]
    function: Annotated[FunctionCall, Field(description='The call.')]


class ToolCallCustom(BaseModel):
    """A call of a custom tool."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id of the call.')]
    type: Annotated[Literal['custom'], Field(description='A custom tool.')]
    custom: Annotated[CustomCall, Field(description='The call.')]


class TokenLogprob(BaseModel):
    """A token with its log probability and its rivals."""

    model_config = ConfigDict(
        extra='forbid',
    )
    token: Annotated[str, Field(description='The text of the token.')]
    logprob: Annotated[float, Field(description='Its log probability.')]
    bytes: Annotated[list[int] | None, Field(description='Its exact bytes.')]
    top_logprobs: Annotated[
        list[TopLogprob], Field(description='The most likely tokens at this place.')
    ]


class ToolCallDelta(BaseModel):
    """What was added to a call; the first piece has the id, the type and the name."""

    model_config = ConfigDict(
        extra='forbid',
    )
    index: Annotated[int, Field(description='The number of the call.', ge=0)]
    id: Annotated[str | MISSING, Field(description='The id of the call.')] = MISSING
    type: Annotated[
        Literal['function', 'custom'] | MISSING, Field(description='The kind of tool.')
    ] = MISSING
    function: Annotated[
        FunctionDelta | MISSING,
        Field(description='More of the call of a function tool.'),
    ] = MISSING
    custom: Annotated[
        CustomDelta | MISSING, Field(description='More of the call of a custom tool.')
    ] = MISSING


TextParts = TypeAliasType(
    "TextParts",
    Annotated[
        list[TextPart],
        Field(description='Parts of a text in their order.', max_length=16384),
    ],
)
"""Parts of a text in their order."""


UserParts = TypeAliasType(
    "UserParts",
    Annotated[
        list[TextPart], Field(description='Parts of a message.', max_length=16384)
    ],
)
"""Parts of a message."""


AssistantPart = TypeAliasType(
    "AssistantPart",
    Annotated[
        TextPart | RefusalPart,
        Field(description='A part of an assistant message.', discriminator='type'),
    ],
)


CalledTools = TypeAliasType(
    "CalledTools",
    Annotated[
        list[CalledTool], Field(description='Calls in their order.', max_length=16384)
    ],
)
"""Calls in their order."""


class FunctionTool(BaseModel):
    """A function that the model may call."""

    type: Annotated[
        Literal['function'],
        Field(
            description='A function tool.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    function: Annotated[
        FunctionDefinition,
        Field(
            description='The function.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


Functions = TypeAliasType(
    "Functions",
    Annotated[
        list[FunctionDefinition],
        Field(description='Functions in the older form.', max_length=1024),
    ],
)
"""Functions in the older form."""


CustomFormat = TypeAliasType(
    "CustomFormat",
    Annotated[
        CustomTextFormat | CustomGrammarFormat,
        Field(description="The format of a custom tool's input.", discriminator='type'),
    ],
)


class AllowedTools(BaseModel):
    """A subset of the tools and whether to call one."""

    mode: Annotated[
        Literal['auto', 'required'],
        Field(
            description='Whether a call is required.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    tools: Annotated[
        list[AllowedTool],
        Field(
            description='The tools in short form.',
            json_schema_extra={'disposition': 'honoured'},
            max_length=1024,
        ),
    ]


ToolCall = TypeAliasType(
    "ToolCall",
    Annotated[
        ToolCallFunction | ToolCallCustom,
        Field(description='A call that the client is to make.', discriminator='type'),
    ],
)


class ChatLogprobs(BaseModel):
    """Log probabilities of an answer."""

    model_config = ConfigDict(
        extra='forbid',
    )
    content: Annotated[
        list[TokenLogprob] | None,
        Field(
            description='One entry for each generated token, those of reasoning, calls and markup included, except an end that is not part of the text and tokens that the server itself put in.'
        ),
    ]
    refusal: Annotated[
        list[TokenLogprob] | None | MISSING,
        Field(description='One entry for each token of a refusal.'),
    ] = MISSING


class ChatDelta(BaseModel):
    """What was added to a message."""

    model_config = ConfigDict(
        extra='forbid',
    )
    role: Annotated[
        Literal['assistant'] | MISSING, Field(description='On the first piece only.')
    ] = MISSING
    content: Annotated[str | None | MISSING, Field(description='More text.')] = MISSING
    refusal: Annotated[
        str | None | MISSING, Field(description='More of a refusal.')
    ] = MISSING
    reasoning_content: Annotated[
        str | MISSING, Field(description='More reasoning.')
    ] = MISSING
    tool_calls: Annotated[
        list[ToolCallDelta] | MISSING,
        Field(description='More of the calls.', min_length=1),
    ] = MISSING
    function_call: Annotated[
        FunctionDelta | MISSING,
        Field(description='Never sent; calls are in tool_calls.'),
    ] = MISSING
    audio: Annotated[None | MISSING, Field(description='Answers are text.')] = MISSING


TextContent = TypeAliasType(
    "TextContent",
    Annotated[
        str | TextParts, Field(description='Text, or parts of it.')
    ],
)


UserContent = TypeAliasType(
    "UserContent",
    Annotated[
        str | UserParts, Field(description='Text, or parts of a message.')
    ],
)


AssistantParts = TypeAliasType(
    "AssistantParts",
    Annotated[
        list[AssistantPart], Field(description='Parts of an answer.', max_length=16384)
    ],
)
"""Parts of an answer."""


class Prediction(BaseModel):
    """A guess at the answer."""

    type: Annotated[
        Literal['content'],
        Field(
            description='The only kind.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    content: Annotated[
        TextContent,
        Field(description='The guess.', json_schema_extra={'disposition': 'honoured'}),
    ]


class ToolMessage(BaseModel):
    """What a tool of the client answered to a call."""

    role: Annotated[
        Literal['tool'],
        Field(
            description='The result of a tool call.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        TextContent | None | MISSING,
        Field(
            description='The result; null and absent are the same as empty.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    tool_call_id: Annotated[
        str | None | MISSING,
        Field(
            description='The id of the call that it answers.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    name: Annotated[
        str | None | MISSING,
        Field(description='The tool.', json_schema_extra={'disposition': 'honoured'}),
    ] = MISSING


class FunctionMessage(BaseModel):
    """What a function of the client answered, in the older form."""

    role: Annotated[
        Literal['function'],
        Field(
            description='The result of a function call.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        TextContent | None | MISSING,
        Field(
            description='The result; null and absent are the same as empty.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    name: Annotated[
        str,
        Field(
            description='The function.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]


class CustomDefinition(BaseModel):
    """A custom tool with the format of its input."""

    name: Annotated[
        shared.DeclaredName,
        Field(
            description='The name to call it by, up to 256 letters, digits, underscores, dots and dashes.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    description: Annotated[
        str | None | MISSING,
        Field(
            description='When and how to use it.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    format: Annotated[
        CustomFormat | None | MISSING,
        Field(
            description='The format of the input, enforced while it is generated; free text when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class AllowedToolsChoice(BaseModel):
    """Call only some of the tools."""

    type: Annotated[
        Literal['allowed_tools'],
        Field(
            description='A subset of the tools.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    allowed_tools: Annotated[
        AllowedTools,
        Field(description='The subset.', json_schema_extra={'disposition': 'honoured'}),
    ]


class ChatMessage(BaseModel):
    """What the model said."""

    model_config = ConfigDict(
        extra='forbid',
    )
    role: Annotated[Literal['assistant'], Field(description='Always the assistant.')]
    content: Annotated[
        str | None,
        Field(description='The text; null where there are only calls or reasoning.'),
    ]
    refusal: Annotated[
        str | None | MISSING, Field(description='A refusal in place of an answer.')
    ] = MISSING
    reasoning_content: Annotated[
        str | None | MISSING,
        Field(description='The reasoning; absent when there is none.'),
    ] = MISSING
    tool_calls: Annotated[
        list[ToolCall] | None | MISSING,
        Field(
            description='The tools to call; absent when there are none.', min_length=1
        ),
    ] = MISSING
    function_call: Annotated[
        FunctionCall | None | MISSING,
        Field(description='Never sent; calls are in tool_calls.'),
    ] = MISSING
    annotations: Annotated[
        list[Any] | None | MISSING, Field(description='Nothing is cited.', max_length=0)
    ] = MISSING
    audio: Annotated[None | MISSING, Field(description='Answers are text.')] = MISSING


class ChatChunkChoice(BaseModel):
    """What one choice gained."""

    model_config = ConfigDict(
        extra='forbid',
    )
    index: Annotated[int, Field(description='Its number.', ge=0)]
    delta: Annotated[ChatDelta, Field(description='What was added.')]
    logprobs: Annotated[
        ChatLogprobs | None | MISSING,
        Field(
            description='Log probabilities of the tokens that became certain with this piece; they may come without text.'
        ),
    ] = MISSING
    finish_reason: Annotated[
        ChatFinishReason | None, Field(description='Why it ended; null until then.')
    ]
    stop_reason: Annotated[
        str | int | None | MISSING,
        Field(description='The stop text or stop token that ended it.'),
    ] = MISSING
    token_ids: Annotated[
        list[int] | None | MISSING,
        Field(description='Token ids of this piece, with return_token_ids.'),
    ] = MISSING
    token_timestamps: Annotated[
        list[float] | None | MISSING,
        Field(
            description='When each token came, in seconds since admission, with return_token_timestamps.'
        ),
    ] = MISSING


class DeveloperMessage(BaseModel):
    """Instructions of the application."""

    role: Annotated[
        Literal['developer'],
        Field(
            description='Instructions of the application.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        TextContent,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]
    name: Annotated[
        str | None | MISSING,
        Field(
            description='Passed to the chat template.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class SystemMessage(BaseModel):
    """Instructions of the operator."""

    role: Annotated[
        Literal['system'],
        Field(
            description='Instructions of the operator.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        TextContent,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]
    name: Annotated[
        str | None | MISSING,
        Field(
            description='Passed to the chat template.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class UserMessage(BaseModel):
    """What the user said."""

    role: Annotated[
        Literal['user'],
        Field(
            description='What the user said.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        UserContent,
        Field(description='The text.', json_schema_extra={'disposition': 'honoured'}),
    ]
    name: Annotated[
        str | None | MISSING,
        Field(
            description='Passed to the chat template.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class AssistantMessage(BaseModel):
    """What the model said."""

    role: Annotated[
        Literal['assistant'],
        Field(
            description='What the model said.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    content: Annotated[
        str | AssistantParts | None | MISSING,
        Field(
            description='The text; null and absent are the same as empty.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    refusal: Annotated[
        str | None | MISSING,
        Field(
            description='The text where there is no content.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    reasoning_content: Annotated[
        str | None | MISSING,
        Field(
            description='Earlier reasoning, given to the chat template.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    reasoning: Annotated[
        str | None | MISSING,
        Field(
            description='Another name of reasoning_content.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    name: Annotated[
        str | None | MISSING,
        Field(
            description='Passed to the chat template.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    annotations: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='Citations are not shown to the model.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    tool_calls: Annotated[
        CalledTools | None | MISSING,
        Field(
            description='The calls that the model made; an empty list is none.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    function_call: Annotated[
        CalledFunction | None | MISSING,
        Field(
            description='A call in the older form; it comes after those of tool_calls.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    audio: Annotated[
        None | MISSING,
        Field(
            description='audio answers are not kept',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING


class CustomTool(BaseModel):
    """A tool with free text as input."""

    type: Annotated[
        Literal['custom'],
        Field(
            description='A custom tool.', json_schema_extra={'disposition': 'honoured'}
        ),
    ]
    custom: Annotated[
        CustomDefinition,
        Field(description='The tool.', json_schema_extra={'disposition': 'honoured'}),
    ]


ToolChoiceObject = TypeAliasType(
    "ToolChoiceObject",
    Annotated[
        NamedFunctionChoice | NamedCustomChoice | AllowedToolsChoice,
        Field(description='Which tools to call.', discriminator='type'),
    ],
)


class ChatChoice(BaseModel):
    """One choice of an answer."""

    model_config = ConfigDict(
        extra='forbid',
    )
    index: Annotated[int, Field(description='Its number.', ge=0)]
    message: Annotated[ChatMessage, Field(description='The answer.')]
    logprobs: Annotated[
        ChatLogprobs | None | MISSING,
        Field(
            description='Log probabilities of the tokens, where they were asked for.'
        ),
    ] = MISSING
    finish_reason: Annotated[ChatFinishReason, Field(description='Why it ended.')]
    stop_reason: Annotated[
        str | int | None | MISSING,
        Field(description='The stop text or stop token that ended it.'),
    ] = MISSING
    token_ids: Annotated[
        list[int] | None | MISSING,
        Field(description='Token ids of the answer, with return_token_ids.'),
    ] = MISSING
    token_timestamps: Annotated[
        list[float] | None | MISSING,
        Field(
            description='When each token came, in seconds since admission, with return_token_timestamps.'
        ),
    ] = MISSING


class ChatCompletionChunk(BaseModel):
    """A piece of a streamed answer."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id of the answer.')]
    object: Annotated[
        Literal['chat.completion.chunk'], Field(description='The kind of object.')
    ]
    created: Annotated[
        int, Field(description='When the answer was begun in Unix seconds.')
    ]
    model: Annotated[str, Field(description='The loaded model.')]
    choices: Annotated[
        list[ChatChunkChoice],
        Field(description='The changed choices; empty on the usage chunk.'),
    ]
    usage: Annotated[
        shared.Usage | None | MISSING,
        Field(description='Token counts, where stream_options asks for them.'),
    ] = MISSING
    prompt_token_ids: Annotated[
        list[int] | None | MISSING,
        Field(
            description='Token ids of the rendered prompt, on the first piece, with return_token_ids.'
        ),
    ] = MISSING
    flare: Annotated[
        shared.FlareReply | MISSING,
        Field(description='What this server adds, on the last piece.'),
    ] = MISSING
    system_fingerprint: Annotated[
        str | None | MISSING,
        Field(description="Identifies the server's configuration."),
    ] = MISSING
    service_tier: Annotated[
        str | None | MISSING, Field(description='There is one tier.')
    ] = MISSING
    obfuscation: Annotated[str | MISSING, Field(description='Never sent.')] = MISSING
    moderation: Annotated[
        None | MISSING, Field(description='There is no moderation model.')
    ] = MISSING


Message = TypeAliasType(
    "Message",
    Annotated[
        DeveloperMessage | SystemMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage,
        Field(description='One message of a conversation.', discriminator='role'),
    ],
)


Tool = TypeAliasType(
    "Tool",
    Annotated[
        FunctionTool | CustomTool,
        Field(description='A tool that the model may call.', discriminator='type'),
    ],
)


class ChatCompletion(BaseModel):
    """A whole answer."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id of the answer.')]
    object: Annotated[
        Literal['chat.completion'], Field(description='The kind of object.')
    ]
    created: Annotated[int, Field(description='When it was made in Unix seconds.')]
    model: Annotated[str, Field(description='The loaded model.')]
    choices: Annotated[
        list[ChatChoice], Field(description='The choices in the order of their index.')
    ]
    usage: Annotated[
        shared.Usage, Field(description='Token counts of the whole request.')
    ]
    prompt_logprobs: Annotated[
        shared.PromptLogprobs | None | MISSING,
        Field(
            description='Log probabilities of the rendered prompt, where they were asked for.'
        ),
    ] = MISSING
    prompt_token_ids: Annotated[
        list[int] | None | MISSING,
        Field(description='Token ids of the rendered prompt, with return_token_ids.'),
    ] = MISSING
    flare: Annotated[
        shared.FlareReply | MISSING, Field(description='What this server adds.')
    ] = MISSING
    system_fingerprint: Annotated[
        str | None | MISSING,
        Field(description="Identifies the server's configuration."),
    ] = MISSING
    service_tier: Annotated[
        str | None | MISSING, Field(description='There is one tier.')
    ] = MISSING
    metadata: Annotated[
        None | MISSING, Field(description='Completions are not stored.')
    ] = MISSING
    moderation: Annotated[
        None | MISSING, Field(description='There is no moderation model.')
    ] = MISSING


Tools = TypeAliasType(
    "Tools",
    Annotated[
        list[Tool], Field(description='Tools that the model may call.', max_length=1024)
    ],
)
"""Tools that the model may call."""


class ChatCompletionRequest(GenerationFields):
    """A conversation to answer."""

    messages: Annotated[
        list[Message],
        Field(
            description='The conversation so far, oldest first.',
            json_schema_extra={'disposition': 'honoured'},
            max_length=16384,
            min_length=1,
        ),
    ]
    max_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='The most tokens to generate; max_completion_tokens wins over it.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    max_completion_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='The most tokens to generate, reasoning included.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    n_predict: Annotated[
        shared.OutputLimit | shared.NoLimit | None | MISSING,
        Field(
            description='Another name of max_tokens, which wins over it; -1 is no limit of its own (llama.cpp).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    logprobs: Annotated[
        bool | None | MISSING,
        Field(
            description="Return the log probability of each token of the answer, from the model's own distribution.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    top_logprobs: Annotated[
        int | None | MISSING,
        Field(
            description='How many of the most likely tokens to return at each place; needs logprobs where it is not 0.',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
            le=20,
        ),
    ] = MISSING
    chat_template_kwargs: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description="Extra variables for the model's chat template; enable_thinking and reasoning_effort switch thinking (vLLM).",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    add_generation_prompt: Annotated[
        bool | None | MISSING,
        Field(
            description='End the prompt with the opening of an assistant message; true when absent (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    continue_final_message: Annotated[
        bool | None | MISSING,
        Field(
            description='Leave the last message open, so that the answer continues it; needs add_generation_prompt false (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    add_special_tokens: Annotated[
        bool | None | MISSING,
        Field(
            description='Let the tokenizer add its special tokens to the rendered prompt; false when absent (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    tools: Annotated[
        Tools | None | MISSING,
        Field(
            description='The tools that the model may call and the client runs; up to 1024, each with a name of its own. An empty list is no tools.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    tool_choice: Annotated[
        ToolChoiceMode | ToolChoiceObject | None | MISSING,
        Field(
            description='none allows no call, auto leaves it to the model, required and a named tool force one while the answer is generated, and allowed_tools narrows the choice; auto when absent. What is named must be declared, and be of the kind that the choice says.',
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
    functions: Annotated[
        Functions | None | MISSING,
        Field(
            description='The older form of tools, not together with it. The answer is in the newer form all the same; its calls are in tool_calls.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    function_call: Annotated[
        FunctionCallMode | FunctionCallChoice | None | MISSING,
        Field(
            description='The older form of tool_choice, not together with it.',
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
    reasoning_effort: Annotated[
        EffortWord | EffortScore | None | MISSING,
        Field(
            description="How much to think before the answer: none, minimal, low, medium, high, xhigh, max, or a score where the template takes one. The nearest level that the template knows applies, the template's default when absent. Any other word counts as the level that it is most like, which is logged. It wins over chat_template_kwargs.reasoning_effort, and that over chat_template_kwargs.enable_thinking.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    thinking: Annotated[
        bool | ThinkingSwitch | None | MISSING,
        Field(
            description="Switches thinking on or off; the template's default when absent. Off wins over every effort, on only over chat_template_kwargs.enable_thinking (DeepSeek, SGLang).",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    thinking_token_budget: Annotated[
        int | None | MISSING,
        Field(
            description='The most tokens to think. A thought that reaches it is closed, and the answer follows (vLLM, Helios). Of the names of the budget any may be used; two with different values are an error.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING
    thinking_budget: Annotated[
        int | None | MISSING,
        Field(
            description='Another name of thinking_token_budget; 0 switches thinking off (metrale).',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING
    reasoning_budget_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='Another name of thinking_token_budget; 0 switches thinking off, -1 is no budget (llama.cpp).',
            ge=-1,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING
    include_reasoning: Annotated[
        bool | None | MISSING,
        Field(
            description='False leaves the reasoning out of the answer, though not out of the usage; true when absent (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    metadata: Annotated[
        dict[str, str] | None | MISSING,
        Field(
            description='Labels for stored completions, which do not exist here.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    store: Annotated[
        bool | None | MISSING,
        Field(
            description='Completions are never stored.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    safety_identifier: Annotated[
        str | None | MISSING,
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
    prompt_cache_key: Annotated[
        str | None | MISSING,
        Field(
            description='The prefix cache finds its matches itself.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    prompt_cache_options: Annotated[
        PromptCacheOptions | None | MISSING,
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
    prediction: Annotated[
        Prediction | None | MISSING,
        Field(
            description='A guess at the answer: what it has right is generated faster. It changes nothing else.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    verbosity: Annotated[
        str | None | MISSING,
        Field(
            description='The loaded template has no verbosity setting.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    modalities: Annotated[
        list[Literal['text']] | None | MISSING,
        Field(
            description='the model answers in text; only text is accepted',
            json_schema_extra={'disposition': 'refused'},
            max_length=16,
        ),
    ] = MISSING
    audio: Annotated[
        None | MISSING,
        Field(
            description='the model answers in text',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    web_search_options: Annotated[
        None | MISSING,
        Field(
            description='the server does not search the web',
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
    separate_reasoning: Annotated[
        On | None | MISSING,
        Field(
            description='reasoning always has a field of its own; only true is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    stream_reasoning: Annotated[
        On | None | MISSING,
        Field(
            description='a stream has the reasoning as it is made; only true is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    echo: Annotated[
        Off | None | MISSING,
        Field(
            description='the last message is not repeated in the answer; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    documents: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='documents are not passed to the template; only an empty list is accepted',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    chat_template: Annotated[
        None | MISSING,
        Field(
            description="the loaded model's own template is used",
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_prompt_text: Annotated[
        Off | None | MISSING,
        Field(
            description='the rendered prompt is not returned; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    input_ids: Annotated[
        None | MISSING,
        Field(
            description='token ids go to /v1/completions as the prompt',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
