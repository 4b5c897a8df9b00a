# Generated from specs/; do not edit. Run: nox -s generate

from __future__ import annotations

from typing import Annotated, Any, Literal

from generated.literals import Off
from pydantic import MISSING, BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from . import shared
from .shared import GenerationFields

PromptTexts = TypeAliasType(
    "PromptTexts",
    Annotated[
        list[str], Field(description='Several texts.', max_length=1024, min_length=1)
    ],
)
"""Several texts."""


CompletionFinishReason = TypeAliasType(
    "CompletionFinishReason",
    Annotated[
        Literal['stop', 'length', 'content_filter'],
        Field(description='Why a text ended.'),
    ],
)


class CompletionLogprobs(BaseModel):
    """Parallel lists with one entry for each token."""

    model_config = ConfigDict(
        extra='forbid',
    )
    tokens: Annotated[list[str] | None, Field(description='The texts of the tokens.')]
    token_logprobs: Annotated[
        list[float | None] | None,
        Field(
            description='Their log probabilities; null where nothing predicts the token.'
        ),
    ]
    top_logprobs: Annotated[
        list[dict[str, float] | None] | None,
        Field(
            description='The token and the most likely ones at each place by their text; null where nothing predicts it.'
        ),
    ]
    text_offset: Annotated[
        list[int] | None,
        Field(description='Where each token starts in the text, in characters.'),
    ]


class CompletionChunkChoice(BaseModel):
    """What one text gained."""

    model_config = ConfigDict(
        extra='forbid',
    )
    index: Annotated[int, Field(description='Its number.', ge=0)]
    text: Annotated[str, Field(description='More text.')]
    logprobs: Annotated[
        CompletionLogprobs | None | MISSING,
        Field(
            description='Log probabilities of the tokens that became certain with this piece; they may come without text.'
        ),
    ] = MISSING
    finish_reason: Annotated[
        CompletionFinishReason | None,
        Field(description='Why it ended; null until then.'),
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
    prompt_token_ids: Annotated[
        list[int] | None | MISSING,
        Field(
            description='Token ids of the prompt, on the first piece, with return_token_ids.'
        ),
    ] = MISSING


PromptIds = TypeAliasType(
    "PromptIds",
    Annotated[
        list[shared.TokenId],
        Field(description='One prompt as token ids.', max_length=4194304, min_length=1),
    ],
)
"""One prompt as token ids."""


PromptIdLists = TypeAliasType(
    "PromptIdLists",
    Annotated[
        list[PromptIds],
        Field(
            description='Several prompts as token ids.', max_length=1024, min_length=1
        ),
    ],
)
"""Several prompts as token ids."""


class CompletionChunk(BaseModel):
    """A piece of the streamed texts."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id of the answer.')]
    object: Annotated[
        Literal['text_completion'], Field(description='The kind of object.')
    ]
    created: Annotated[
        int, Field(description='When the answer was begun in Unix seconds.')
    ]
    model: Annotated[str, Field(description='The loaded model.')]
    choices: Annotated[
        list[CompletionChunkChoice],
        Field(description='The changed choices; empty on the usage chunk.'),
    ]
    usage: Annotated[
        shared.Usage | None | MISSING,
        Field(description='Token counts, where stream_options asks for them.'),
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


class CompletionChoice(BaseModel):
    """One finished text."""

    model_config = ConfigDict(
        extra='forbid',
    )
    index: Annotated[int, Field(description='Its number.', ge=0)]
    text: Annotated[str, Field(description='The text.')]
    logprobs: Annotated[
        CompletionLogprobs | None | MISSING,
        Field(
            description='Log probabilities of the tokens, where they were asked for.'
        ),
    ] = MISSING
    finish_reason: Annotated[CompletionFinishReason, Field(description='Why it ended.')]
    stop_reason: Annotated[
        str | int | None | MISSING,
        Field(description='The stop text or stop token that ended it.'),
    ] = MISSING
    token_ids: Annotated[
        list[int] | None | MISSING,
        Field(description='Token ids of the continuation, with return_token_ids.'),
    ] = MISSING
    token_timestamps: Annotated[
        list[float] | None | MISSING,
        Field(
            description='When each token came, in seconds since admission, with return_token_timestamps.'
        ),
    ] = MISSING
    prompt_token_ids: Annotated[
        list[int] | None | MISSING,
        Field(description='Token ids of the prompt, with return_token_ids.'),
    ] = MISSING
    prompt_logprobs: Annotated[
        shared.PromptLogprobs | None | MISSING,
        Field(
            description='Log probabilities of the prompt, where they were asked for.'
        ),
    ] = MISSING


class CompletionRequest(GenerationFields):
    """Prompts to continue."""

    prompt: Annotated[
        str | PromptTexts | PromptIds | PromptIdLists | None,
        Field(
            description='One text, texts, token ids, or lists of token ids; null is the empty text.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    max_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='The most tokens to generate for each choice; 16 when absent.',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    n_predict: Annotated[
        int | None | MISSING,
        Field(
            description='Another name of max_tokens, which wins over it; -1 is the rest of the context (llama.cpp).',
            ge=-1,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    logprobs: Annotated[
        int | None | MISSING,
        Field(
            description="Return the log probability of each token with this many of the most likely ones, from the model's own distribution; with echo the prompt's too.",
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
            le=20,
        ),
    ] = MISSING
    echo: Annotated[
        bool | None | MISSING,
        Field(
            description='Put the prompt before the text.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    add_special_tokens: Annotated[
        bool | None | MISSING,
        Field(
            description='Let the tokenizer add its special tokens to texts; true when absent (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    suffix: Annotated[
        Literal[''] | None | MISSING,
        Field(
            description='text is only added at the end of a prompt',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    prompt_embeds: Annotated[
        None | MISSING,
        Field(
            description='prompts are text or token ids',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    tools: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='raw completions have no tools',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    tool_choice: Annotated[
        Literal['none', 'auto'] | None | MISSING,
        Field(
            description='raw completions have no tools; only none and auto are accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    parallel_tool_calls: Annotated[
        bool | None | MISSING,
        Field(
            description='Raw completions have no tool calls.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    functions: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='raw completions have no tools',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    function_call: Annotated[
        Literal['none', 'auto'] | None | MISSING,
        Field(
            description='raw completions have no tools; only none and auto are accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    suppress_tool_call: Annotated[
        Off | None | MISSING,
        Field(
            description='raw completions have no tools; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    thinking_token_budget: Annotated[
        None | MISSING,
        Field(
            description='raw completions have no reasoning',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    thinking_budget: Annotated[
        None | MISSING,
        Field(
            description='raw completions have no reasoning',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    reasoning_budget_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='raw completions have no reasoning; only -1 is accepted',
            ge=-1,
            json_schema_extra={'disposition': 'refused'},
            le=-1,
        ),
    ] = MISSING


class Completion(BaseModel):
    """The finished texts."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id of the answer.')]
    object: Annotated[
        Literal['text_completion'], Field(description='The kind of object.')
    ]
    created: Annotated[int, Field(description='When it was made in Unix seconds.')]
    model: Annotated[str, Field(description='The loaded model.')]
    choices: Annotated[
        list[CompletionChoice],
        Field(
            description='The choices; the index is the number of the prompt times n plus the number of the choice.'
        ),
    ]
    usage: Annotated[
        shared.Usage, Field(description='Token counts of the whole request.')
    ]
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
