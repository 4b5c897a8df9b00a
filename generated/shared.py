# Generated from specs/; do not edit. Run: nox -s generate

from __future__ import annotations

from typing import Annotated, Any, Literal

from generated.literals import Off, On
from pydantic import MISSING, BaseModel, ConfigDict, Field, StringConstraints
from typing_extensions import TypeAliasType


class AnthropicErrorInfo(BaseModel):
    """What a program can act on."""

    model_config = ConfigDict(
        extra='forbid',
    )
    error_code: Annotated[
        str, Field(description='A fixed word, such as thread_unsupported_request.')
    ]
    unsupported: Annotated[
        list[str] | MISSING, Field(description='The fields that are not supported.')
    ] = MISSING


class ErrorDetail(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(
        extra='forbid',
    )
    message: Annotated[str, Field(description='A sentence for people.')]
    type: Annotated[
        str,
        Field(description='The class of the failure, such as invalid_request_error.'),
    ]
    param: Annotated[str | None, Field(description='The field at fault.')]
    code: Annotated[
        str | None,
        Field(description='A fixed word for programs, such as model_not_found.'),
    ]


class PromptTokensDetails(BaseModel):
    """Parts of the prompt count."""

    model_config = ConfigDict(
        extra='forbid',
    )
    cached_tokens: Annotated[
        int, Field(description='Tokens taken from the prefix cache.', ge=0)
    ]
    cache_write_tokens: Annotated[
        int | None | MISSING, Field(description='Tokens written to the cache.')
    ] = MISSING
    audio_tokens: Annotated[
        int | None | MISSING, Field(description='Tokens of audio input.')
    ] = MISSING
    image_tokens: Annotated[
        int | None | MISSING, Field(description='Tokens of image input.')
    ] = MISSING
    text_tokens: Annotated[
        int | None | MISSING, Field(description='Tokens of text input.')
    ] = MISSING


class CompletionTokensDetails(BaseModel):
    """Parts of the completion count."""

    model_config = ConfigDict(
        extra='forbid',
    )
    reasoning_tokens: Annotated[
        int, Field(description='Tokens published as reasoning.', ge=0)
    ]
    accepted_prediction_tokens: Annotated[
        int | None | MISSING,
        Field(
            description="Output tokens that were guessed first and then confirmed, several at a time (speculative decoding). What is guessed is copied from the conversation, from the request's prediction, or comes of a draft model. Absent where nothing was guessed."
        ),
    ] = MISSING
    rejected_prediction_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='Guesses that did not become output; they are no part of completion_tokens. Absent where nothing was guessed.'
        ),
    ] = MISSING
    audio_tokens: Annotated[
        int | None | MISSING, Field(description='Tokens of audio output.')
    ] = MISSING
    text_tokens: Annotated[
        int | None | MISSING, Field(description='Tokens of text output.')
    ] = MISSING


TokenId = TypeAliasType(
    "TokenId",
    Annotated[
        int,
        Field(
            description='A token id; ids outside the vocabulary are answered with 400.',
            ge=0,
            le=2147483647,
        ),
    ],
)


TokenStops = TypeAliasType(
    "TokenStops",
    Annotated[
        list[TokenId],
        Field(description='Token ids that end the generation.', max_length=16),
    ],
)
"""Token ids that end the generation."""


TokenSequence = TypeAliasType(
    "TokenSequence",
    Annotated[
        list[TokenId],
        Field(
            description='Token ids that end the generation when they come in this order.',
            max_length=64,
            min_length=1,
        ),
    ],
)
"""Token ids that end the generation when they come in this order."""


TokenSequences = TypeAliasType(
    "TokenSequences",
    Annotated[
        list[TokenSequence],
        Field(
            description='Up to sixteen sequences that end the generation.',
            max_length=16,
        ),
    ],
)
"""Up to sixteen sequences that end the generation."""


AllowedTokenIds = TypeAliasType(
    "AllowedTokenIds",
    Annotated[
        list[TokenId],
        Field(description='The only tokens that may be generated.', min_length=1),
    ],
)
"""The only tokens that may be generated."""


ScoredTokenIds = TypeAliasType(
    "ScoredTokenIds",
    Annotated[
        list[TokenId],
        Field(
            description='Up to 128 token ids whose log probabilities are returned; empty means none, repeats count.',
            max_length=128,
        ),
    ],
)
"""Up to 128 token ids whose log probabilities are returned; empty means none, repeats count."""


BadWord = TypeAliasType(
    "BadWord",
    Annotated[str, Field(description='Text that may not be generated.', min_length=1)],
)


BadWords = TypeAliasType(
    "BadWords",
    Annotated[
        list[BadWord],
        Field(description='Up to 128 texts that may not be generated.', max_length=128),
    ],
)
"""Up to 128 texts that may not be generated."""


SequenceBreaker = TypeAliasType(
    "SequenceBreaker",
    Annotated[
        str,
        Field(
            description='Text that no repeat goes across.', max_length=64, min_length=1
        ),
    ],
)


SequenceBreakers = TypeAliasType(
    "SequenceBreakers",
    Annotated[
        list[SequenceBreaker],
        Field(
            description='Up to sixteen texts that no repeat goes across.', max_length=16
        ),
    ],
)
"""Up to sixteen texts that no repeat goes across."""


OutputLimit = TypeAliasType(
    "OutputLimit",
    Annotated[int, Field(description='The most tokens to generate.', ge=1)],
)


NoLimit = TypeAliasType(
    "NoLimit",
    Annotated[Literal[-1], Field(description="No limit of the request's own.")],
)


DeclaredName = TypeAliasType(
    "DeclaredName",
    Annotated[
        str,
        Field(
            description='The name of a tool, of which every call syntax can hold every letter.',
            max_length=256,
            min_length=1,
            pattern='^[A-Za-z0-9_.-]+$',
        ),
    ],
)


StopString = TypeAliasType(
    "StopString",
    Annotated[
        str,
        Field(
            description='Text that ends the generation.', max_length=4096, min_length=1
        ),
    ],
)


StopStrings = TypeAliasType(
    "StopStrings",
    Annotated[
        list[StopString],
        Field(description='Up to four texts that end the generation.', max_length=4),
    ],
)
"""Up to four texts that end the generation."""


Bias = TypeAliasType(
    "Bias",
    Annotated[
        float, Field(description='An amount added to a logit.', ge=-100.0, le=100.0)
    ],
)


LogitBias = TypeAliasType(
    "LogitBias",
    Annotated[
        dict[Annotated[str, StringConstraints(pattern=r'^[0-9]+$', max_length=10)], Bias],
        Field(
            description='Token ids, written as decimal strings, with the amount added to each logit.',
            max_length=4096,
        ),
    ],
)


class StreamOptions(BaseModel):
    """What a stream carries besides text."""

    include_usage: Annotated[
        bool | None | MISSING,
        Field(
            description='Send one more chunk with the usage and no choices at the end.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    continuous_usage_stats: Annotated[
        bool | None | MISSING,
        Field(
            description='Put the usage so far on every chunk; needs include_usage (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    include_obfuscation: Annotated[
        bool | None | MISSING,
        Field(
            description='No padding is ever sent.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


class ResponseFormatText(BaseModel):
    """Plain text, the default."""

    type: Annotated[
        Literal['text'],
        Field(description='Plain text.', json_schema_extra={'disposition': 'honoured'}),
    ]


class ResponseFormatJSONObject(BaseModel):
    """Any JSON object."""

    type: Annotated[
        Literal['json_object'],
        Field(
            description='Any JSON object.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    schema_: Annotated[
        None | MISSING,
        Field(
            alias='schema',
            description='a schema goes with the type json_schema',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING


class OutputSchema(BaseModel):
    """The schema of an answer."""

    name: Annotated[
        str,
        Field(
            description='A name for the schema.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ]
    description: Annotated[
        str | None | MISSING,
        Field(
            description='What the answer is for.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    schema_: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            alias='schema',
            description='The JSON Schema; properties come in its order. A keyword that cannot be enforced is refused by name. Any JSON object when absent.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    strict: Annotated[
        bool | None | MISSING,
        Field(
            description='Every schema is enforced exactly.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING


Choices = TypeAliasType(
    "Choices",
    Annotated[
        list[str],
        Field(description='The possible answers.', max_length=1024, min_length=1),
    ],
)
"""The possible answers."""


class RepetitionDetection(BaseModel):
    """When output counts as a loop."""

    max_pattern_size: Annotated[
        int | None | MISSING,
        Field(
            description='The longest repeated pattern in tokens; 0 or absent is no detection.',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
            le=4096,
        ),
    ] = MISSING
    min_pattern_size: Annotated[
        int | None | MISSING,
        Field(
            description='The shortest repeated pattern in tokens, at most max_pattern_size; 0 or absent is 1.',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
            le=4096,
        ),
    ] = MISSING
    min_count: Annotated[
        int | None | MISSING,
        Field(
            description='How many copies in a row make a loop; at least 2 where there is a pattern.',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING


class GenerationOptions(BaseModel):
    """The options of Ollama's clients."""

    num_predict: Annotated[
        OutputLimit | NoLimit | None | MISSING,
        Field(
            description="The most tokens to generate, for want of the route's own field; -1 is no limit of its own.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING


class PromptLogprob(BaseModel):
    """A token with its log probability at one place of the prompt."""

    model_config = ConfigDict(
        extra='forbid',
    )
    logprob: Annotated[
        float,
        Field(description='Its log probability; -9999 stands for minus infinity.'),
    ]
    rank: Annotated[
        int, Field(description='One more than the number of likelier tokens.', ge=1)
    ]
    decoded_token: Annotated[str, Field(description='Its text.')]


class FlareReply(BaseModel):
    """How long the answer took."""

    model_config = ConfigDict(
        extra='forbid',
    )
    time_to_first_token_ms: Annotated[
        float,
        Field(description='Milliseconds from admission to the first token.', ge=0.0),
    ]
    decode_time_ms: Annotated[
        float,
        Field(description='Milliseconds from the first token to the last.', ge=0.0),
    ]


class AnthropicErrorDetail(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[
        str,
        Field(description='The class of the failure, such as invalid_request_error.'),
    ]
    message: Annotated[
        str, Field(description='A sentence for people that names the field.')
    ]
    details: Annotated[
        AnthropicErrorInfo | MISSING,
        Field(description='More for programs; mostly absent.'),
    ] = MISSING


class ErrorEnvelope(BaseModel):
    """Every failure on an OpenAI route, and the last data of a stream that fails."""

    model_config = ConfigDict(
        extra='forbid',
    )
    error: ErrorDetail


class Usage(BaseModel):
    """Token counts of one request, in the model's own tokens."""

    model_config = ConfigDict(
        extra='forbid',
    )
    prompt_tokens: Annotated[
        int, Field(description='Tokens of the prompt, cached ones included.', ge=0)
    ]
    completion_tokens: Annotated[
        int, Field(description='Tokens generated over all choices.', ge=0)
    ]
    total_tokens: Annotated[
        int, Field(description='Prompt and completion together.', ge=0)
    ]
    prompt_tokens_details: Annotated[
        PromptTokensDetails, Field(description='Parts of the prompt count.')
    ]
    completion_tokens_details: Annotated[
        CompletionTokensDetails | MISSING,
        Field(description='Parts of the completion count; chat only.'),
    ] = MISSING


class ResponseFormatJSONSchema(BaseModel):
    """JSON that matches a schema."""

    type: Annotated[
        Literal['json_schema'],
        Field(
            description='JSON that matches a schema.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]
    json_schema: Annotated[
        OutputSchema,
        Field(
            description='The schema of the answer.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ]


class StructuredOutputs(BaseModel):
    """One constraint on the answer."""

    json_: Annotated[
        dict[str, Any] | str | None | MISSING,
        Field(
            alias='json',
            description='A JSON Schema, as an object or as JSON text.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    regex: Annotated[
        str | None | MISSING,
        Field(
            description='A regular expression that the whole answer must match.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    choice: Annotated[
        Choices | None | MISSING,
        Field(
            description='The possible answers.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    grammar: Annotated[
        str | None | MISSING,
        Field(
            description='A grammar in Lark.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    json_object: Annotated[
        bool | None | MISSING,
        Field(
            description='Any JSON object; false is no constraint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    structural_tag: Annotated[
        None | MISSING,
        Field(
            description='tags with a schema each are not available',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    whitespace_pattern: Annotated[
        None | MISSING,
        Field(
            description='the server bounds the white space of JSON itself',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    disable_any_whitespace: Annotated[
        Off | None | MISSING,
        Field(
            description='the server bounds the white space of JSON itself; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    disable_additional_properties: Annotated[
        Off | None | MISSING,
        Field(
            description='write additionalProperties into the schema; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING


PromptPosition = TypeAliasType(
    "PromptPosition",
    Annotated[
        dict[Annotated[str, StringConstraints(pattern=r'^[0-9]+$')], PromptLogprob],
        Field(
            description='The token at one place and its most likely rivals, by token id.'
        ),
    ],
)


class AnthropicError(BaseModel):
    """Every failure on an Anthropic route, and the data of the error event that ends a stream."""

    model_config = ConfigDict(
        extra='forbid',
    )
    type: Annotated[Literal['error'], Field(description='The kind of object.')]
    error: Annotated[AnthropicErrorDetail, Field(description='What went wrong.')]
    request_id: Annotated[
        str, Field(description='The id of the request, as in the header request-id.')
    ]


ResponseFormat = TypeAliasType(
    "ResponseFormat",
    Annotated[
        ResponseFormatText | ResponseFormatJSONObject | ResponseFormatJSONSchema,
        Field(description='The form of an answer.', discriminator='type'),
    ],
)


PromptLogprobs = TypeAliasType(
    "PromptLogprobs",
    Annotated[
        list[PromptPosition | None],
        Field(
            description='One entry for each prompt token; null where there is nothing to report, as for the first.'
        ),
    ],
)
"""One entry for each prompt token; null where there is nothing to report, as for the first."""


EitherError = TypeAliasType(
    "EitherError",
    Annotated[
        ErrorEnvelope | AnthropicError,
        Field(
            description='A failure in the envelope of the protocol that the client speaks.'
        ),
    ],
)


class ControlFields(BaseModel):
    """What every route that generates takes besides what it generates from."""

    model: Annotated[
        str | None | MISSING,
        Field(
            description='The model to use; without a name the loaded model answers, unless --model-names is known.',
            json_schema_extra={'disposition': 'honoured'},
            max_length=1024,
        ),
    ] = MISSING
    stream: Annotated[
        bool | None | MISSING,
        Field(
            description='Send the answer as server-sent events while it is generated.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    stop_token_ids: Annotated[
        TokenStops | None | MISSING,
        Field(
            description='Token ids that end the answer; not together with stop (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    seed: Annotated[
        int | None | MISSING,
        Field(
            description='The same seed and request give the same text.',
            ge=-9223372036854775808,
            json_schema_extra={'disposition': 'honoured'},
            le=9223372036854775807,
        ),
    ] = MISSING
    temperature: Annotated[
        float | None | MISSING,
        Field(
            description='Sharpens or flattens the distribution; 0 takes the most likely token.',
            ge=0.0,
            json_schema_extra={'disposition': 'honoured'},
            le=2.0,
        ),
    ] = MISSING
    top_p: Annotated[
        float | None | MISSING,
        Field(
            description='Sample from the most likely tokens that together reach this probability.',
            ge=0.0,
            json_schema_extra={'disposition': 'honoured'},
            le=1.0,
        ),
    ] = MISSING
    top_k: Annotated[
        int | None | MISSING,
        Field(
            description='Sample from this many of the most likely tokens; 0 and -1 mean all (vLLM).',
            ge=-1,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING
    min_p: Annotated[
        float | None | MISSING,
        Field(
            description="Drop tokens below this share of the most likely token's probability; 0 is off (vLLM).",
            ge=0.0,
            json_schema_extra={'disposition': 'honoured'},
            le=1.0,
        ),
    ] = MISSING
    presence_penalty: Annotated[
        float | None | MISSING,
        Field(
            description='Subtracted once from the logit of each token already generated.',
            ge=-2.0,
            json_schema_extra={'disposition': 'honoured'},
            le=2.0,
        ),
    ] = MISSING
    frequency_penalty: Annotated[
        float | None | MISSING,
        Field(
            description="Subtracted from a token's logit for each time it was generated.",
            ge=-2.0,
            json_schema_extra={'disposition': 'honoured'},
            le=2.0,
        ),
    ] = MISSING
    repetition_penalty: Annotated[
        float | None | MISSING,
        Field(
            description='Divides the positive and multiplies the negative logits of tokens seen so far; 1 is off (vLLM).',
            ge=0.01,
            json_schema_extra={'disposition': 'honoured'},
            le=2.0,
        ),
    ] = MISSING
    logit_bias: Annotated[
        LogitBias | None | MISSING,
        Field(
            description='Token ids with an amount, -100 to 100, that is added to their logits.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    min_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='No end-of-sequence or stop token before this many tokens (vLLM).',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    ignore_eos: Annotated[
        bool | None | MISSING,
        Field(
            description='Generate on past the end-of-sequence token; not together with an output constraint or a required call (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    repeat_penalty: Annotated[
        float | None | MISSING,
        Field(
            description='Another name of repetition_penalty, which wins over it (llama.cpp).',
            gt=0.0,
            json_schema_extra={'disposition': 'honoured'},
            le=2.0,
        ),
    ] = MISSING
    top_n_sigma: Annotated[
        float | None | MISSING,
        Field(
            description='Drop tokens whose logit is more than this many standard deviations below the highest; 0 and below are off (llama.cpp).',
            ge=-1.0,
            json_schema_extra={'disposition': 'honoured'},
            le=1000.0,
        ),
    ] = MISSING
    dry_multiplier: Annotated[
        float | None | MISSING,
        Field(
            description='Strength of the DRY penalty on tokens that would make a text longer that occurred before; 0 is off (llama.cpp).',
            ge=0.0,
            json_schema_extra={'disposition': 'honoured'},
            le=1000.0,
        ),
    ] = MISSING
    dry_base: Annotated[
        float | None | MISSING,
        Field(
            description='How fast the DRY penalty grows with the length of the repeat; 1.75 when absent (llama.cpp).',
            ge=1.0,
            json_schema_extra={'disposition': 'honoured'},
            le=1000.0,
        ),
    ] = MISSING
    dry_allowed_length: Annotated[
        int | None | MISSING,
        Field(
            description='The shortest repeat, in tokens, that DRY penalizes; 2 when absent (llama.cpp).',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING
    dry_sequence_breakers: Annotated[
        SequenceBreakers | None | MISSING,
        Field(
            description='Texts that no DRY repeat goes across; line feed, colon, double quote and star when absent (llama.cpp).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    lz_penalty: Annotated[
        float | None | MISSING,
        Field(
            description='Strength of a penalty on tokens that would repeat some of the last 256 tokens; it grows with the logarithm of the length; 0 is off (metrale).',
            ge=0.0,
            json_schema_extra={'disposition': 'honoured'},
            le=1000.0,
        ),
    ] = MISSING
    allowed_token_ids: Annotated[
        AllowedTokenIds | None | MISSING,
        Field(
            description='The only tokens that may be generated (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    bad_words: Annotated[
        BadWords | None | MISSING,
        Field(
            description='Texts that may not be generated (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    stop_token_sequences: Annotated[
        TokenSequences | None | MISSING,
        Field(
            description='Sequences of token ids that end the answer; sixteen together with stop_token_ids, and not together with stop (Helios).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    include_stop_str_in_output: Annotated[
        bool | None | MISSING,
        Field(
            description='Return the text of the stop that ended the answer (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    repetition_detection: Annotated[
        RepetitionDetection | None | MISSING,
        Field(
            description="End an answer that repeats itself, with the finish reason length; the server's rule when absent (metrale, vLLM).",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    max_time_ms: Annotated[
        int | None | MISSING,
        Field(
            description='Milliseconds after which the answer ends where it is, with the finish reason length (metrale).',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING
    t_max_predict_ms: Annotated[
        int | None | MISSING,
        Field(
            description='Another name of max_time_ms, which wins over it; 0 and -1 are no limit (llama.cpp).',
            ge=-1,
            json_schema_extra={'disposition': 'honoured'},
            le=2147483647,
        ),
    ] = MISSING
    priority: Annotated[
        int | None | MISSING,
        Field(
            description='Requests with a lower value run first, equal ones in order of arrival; 0 when absent (vLLM).',
            ge=-9223372036854775808,
            json_schema_extra={'disposition': 'honoured'},
            le=9223372036854775807,
        ),
    ] = MISSING
    use_beam_search: Annotated[
        bool | None | MISSING,
        Field(
            description='Search for the likeliest answers instead of sampling; not in a stream (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    num_beams: Annotated[
        int | None | MISSING,
        Field(
            description='The width of the beam search, which more than 1 turns on (metrale).',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
            le=8,
        ),
    ] = MISSING
    length_penalty: Annotated[
        float | None | MISSING,
        Field(
            description='Beam search ranks by log probability divided by length to this power; 1 when absent (vLLM).',
            ge=-10.0,
            json_schema_extra={'disposition': 'honoured'},
            le=10.0,
        ),
    ] = MISSING
    early_stopping: Annotated[
        bool | None | MISSING,
        Field(
            description='End the beam search as soon as there are enough finished answers (metrale).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    response_format: Annotated[
        ResponseFormat | None | MISSING,
        Field(
            description='Text, a JSON object, or JSON that matches a schema. A request has at most one output constraint.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    structured_outputs: Annotated[
        StructuredOutputs | None | MISSING,
        Field(
            description='One constraint on the answer (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    guided_json: Annotated[
        dict[str, Any] | str | None | MISSING,
        Field(
            description='Another name of structured_outputs.json (older vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    guided_regex: Annotated[
        str | None | MISSING,
        Field(
            description='Another name of structured_outputs.regex (older vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    guided_choice: Annotated[
        Choices | None | MISSING,
        Field(
            description='Another name of structured_outputs.choice (older vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    guided_grammar: Annotated[
        str | None | MISSING,
        Field(
            description='Another name of structured_outputs.grammar (older vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    json_schema: Annotated[
        dict[str, Any] | str | None | MISSING,
        Field(
            description='A JSON Schema that the answer must match, as an object (llama.cpp) or as JSON text (SGLang).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    regex: Annotated[
        str | None | MISSING,
        Field(
            description='A regular expression that the whole answer must match (SGLang).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    grammar: Annotated[
        str | None | MISSING,
        Field(
            description="A grammar in Lark that the whole answer must match (Helios); llama.cpp's GBNF is not read.",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    user: Annotated[
        str | None | MISSING,
        Field(
            description='An account label with no meaning here.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    request_id: Annotated[
        str | None | MISSING,
        Field(
            description='The server names requests itself; see x-request-id.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    rid: Annotated[
        str | list[Any] | None | MISSING,
        Field(
            description='The server names requests itself; see x-request-id.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    disable_mtp: Annotated[
        bool | None | MISSING,
        Field(
            description='True: no tokens are drafted for this request, which changes its speed and nothing else (metrale).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    session_id: Annotated[
        str | None | MISSING,
        Field(
            description='There are no sessions to route by.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    cache_salt: Annotated[
        str | None | MISSING,
        Field(
            description='The prompt shares cached prefixes only with prompts of the same salt (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
            max_length=1024,
            min_length=1,
        ),
    ] = MISSING
    extra_key: Annotated[
        None | MISSING,
        Field(
            description='use cache_salt', json_schema_extra={'disposition': 'refused'}
        ),
    ] = MISSING
    cache_prompt: Annotated[
        bool | None | MISSING,
        Field(
            description='The server decides what its prefix cache keeps.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    id_slot: Annotated[
        int | None | MISSING,
        Field(
            description='The scheduler chooses the slot.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    guided_decoding_backend: Annotated[
        str | None | MISSING,
        Field(
            description='One engine makes all output constraints.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    data_parallel_rank: Annotated[
        int | None | MISSING,
        Field(
            description='There is one engine.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    sse_ping_interval: Annotated[
        int | None | MISSING,
        Field(
            description='Silent streams get a comment every 15 seconds.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    stream_interval: Annotated[
        int | None | MISSING,
        Field(
            description='Text is sent as soon as it is final.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    spaces_between_special_tokens: Annotated[
        bool | None | MISSING,
        Field(
            description='Special tokens are not part of the text.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    truncation_side: Annotated[
        str | None | MISSING,
        Field(
            description='Prompts are never truncated.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    mm_payload: Annotated[
        str | None | MISSING,
        Field(
            description='No media are read.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    media_io_kwargs: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='No media are read.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    mm_processor_kwargs: Annotated[
        dict[str, Any] | None | MISSING,
        Field(
            description='No media are read.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    stop_regex: Annotated[
        None | MISSING,
        Field(
            description='only fixed stop texts and stop tokens are available',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    skip_special_tokens: Annotated[
        On | None | MISSING,
        Field(
            description='special tokens are never part of the returned text; only true is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    dry_penalty_last_n: Annotated[
        int | None | MISSING,
        Field(
            description='DRY always looks at the whole sequence; only -1 is accepted',
            ge=-1,
            json_schema_extra={'disposition': 'refused'},
            le=-1,
        ),
    ] = MISSING
    ebnf: Annotated[
        None | MISSING,
        Field(
            description='grammars are written in Lark; use grammar',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    structural_tag: Annotated[
        None | MISSING,
        Field(
            description='tags with a schema each are not available',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    guided_json_object: Annotated[
        Off | None | MISSING,
        Field(
            description='the field is structured_outputs.json_object here; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    guided_whitespace_pattern: Annotated[
        None | MISSING,
        Field(
            description='the server bounds the white space of JSON itself',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    no_stop_trim: Annotated[
        Off | None | MISSING,
        Field(
            description='the field is named include_stop_str_in_output here; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    n_probs: Annotated[
        int | None | MISSING,
        Field(
            description='log probabilities are asked for with logprobs; only 0 is accepted',
            ge=0,
            json_schema_extra={'disposition': 'refused'},
            le=0,
        ),
    ] = MISSING
    return_prompt_token_ids: Annotated[
        Off | None | MISSING,
        Field(
            description='prompt token ids come with return_token_ids; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    typical_p: Annotated[
        float | None | MISSING,
        Field(
            description='this filter is not available; only 1 is accepted',
            ge=1.0,
            json_schema_extra={'disposition': 'refused'},
            le=1.0,
        ),
    ] = MISSING
    xtc_probability: Annotated[
        float | None | MISSING,
        Field(
            description='this filter is not available; only 0 is accepted',
            ge=0.0,
            json_schema_extra={'disposition': 'refused'},
            le=0.0,
        ),
    ] = MISSING
    dynatemp_range: Annotated[
        float | None | MISSING,
        Field(
            description='a dynamic temperature is not available; only 0 is accepted',
            ge=0.0,
            json_schema_extra={'disposition': 'refused'},
            le=0.0,
        ),
    ] = MISSING
    mirostat: Annotated[
        int | None | MISSING,
        Field(
            description='this sampler is not available; only 0 is accepted',
            ge=0,
            json_schema_extra={'disposition': 'refused'},
            le=0,
        ),
    ] = MISSING
    samplers: Annotated[
        None | MISSING,
        Field(
            description='the order of the samplers is fixed',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    custom_logit_processor: Annotated[
        None | MISSING,
        Field(
            description='code of the client is never run',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    custom_params: Annotated[
        None | MISSING,
        Field(
            description='code of the client is never run',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    vllm_xargs: Annotated[
        None | MISSING,
        Field(
            description='there are no plug-ins that could read it',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    watermarking: Annotated[
        Off | None | MISSING,
        Field(
            description='output is not watermarked; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    watermark: Annotated[
        None | MISSING,
        Field(
            description='output is not watermarked',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_token_offsets: Annotated[
        Off | None | MISSING,
        Field(
            description='token offsets are not returned; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_hidden_states: Annotated[
        Off | None | MISSING,
        Field(
            description='hidden states are not returned; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_weight_versions: Annotated[
        Off | None | MISSING,
        Field(
            description='weights have no versions; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_mm_kwargs: Annotated[
        Off | None | MISSING,
        Field(
            description='no media are read; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    routed_experts_prompt_start: Annotated[
        int | None | MISSING,
        Field(
            description='routed experts are not returned; only 0 is accepted',
            ge=0,
            json_schema_extra={'disposition': 'refused'},
            le=0,
        ),
    ] = MISSING
    return_progress: Annotated[
        Off | None | MISSING,
        Field(
            description='prompt progress is not streamed yet; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    timings_per_token: Annotated[
        Off | None | MISSING,
        Field(
            description='timings are not part of the stream; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    truncate_prompt_tokens: Annotated[
        None | MISSING,
        Field(
            description='prompts are never truncated',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    session_params: Annotated[
        None | MISSING,
        Field(
            description='there are no sessions',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    lora_path: Annotated[
        None | MISSING,
        Field(
            description='adapters are not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    lora: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='adapters are not available yet',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    adapter_slot: Annotated[
        int | None | MISSING,
        Field(
            description='adapters are not available yet; only -1 is accepted',
            ge=-1,
            json_schema_extra={'disposition': 'refused'},
            le=-1,
        ),
    ] = MISSING
    src_lang_id: Annotated[
        int | None | MISSING,
        Field(
            description='translation models cannot be loaded; only 0 is accepted',
            ge=0,
            json_schema_extra={'disposition': 'refused'},
            le=0,
        ),
    ] = MISSING
    tgt_lang_id: Annotated[
        int | None | MISSING,
        Field(
            description='translation models cannot be loaded; only 0 is accepted',
            ge=0,
            json_schema_extra={'disposition': 'refused'},
            le=0,
        ),
    ] = MISSING
    image_pixels: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='images are not read until a vision model can be loaded',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    kv_transfer_params: Annotated[
        None | MISSING,
        Field(
            description='the cache is not moved between servers',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    ec_transfer_params: Annotated[
        None | MISSING,
        Field(
            description='the cache is not moved between servers',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING


class GenerationFields(ControlFields):
    """What Chat Completions and Completions have in common."""

    stream_options: Annotated[
        StreamOptions | None | MISSING,
        Field(
            description='What a stream carries besides text.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    n: Annotated[
        int | None | MISSING,
        Field(
            description='How many choices to generate; 1 when absent. A seed advances by the index of the choice.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
            le=128,
        ),
    ] = MISSING
    stop: Annotated[
        StopString | StopStrings | None | MISSING,
        Field(
            description='Text or up to four texts that end the answer; 4096 bytes together. The match is not returned, see include_stop_str_in_output.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    options: Annotated[
        GenerationOptions | None | MISSING,
        Field(
            description="The output limit where Ollama's clients put it; other options are not read (Ollama).",
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    best_of: Annotated[
        int | None | MISSING,
        Field(
            description='Choices are not ranked, so it must equal n, except under beam search.',
            ge=1,
            json_schema_extra={'disposition': 'honoured'},
            le=128,
        ),
    ] = MISSING
    prompt_logprobs: Annotated[
        int | None | MISSING,
        Field(
            description='Return the log probability of each prompt token with this many rivals; not in a stream (vLLM).',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
            le=20,
        ),
    ] = MISSING
    logprob_token_ids: Annotated[
        ScoredTokenIds | None | MISSING,
        Field(
            description='Report these tokens at each place instead of the most likely ones; needs logprobs (vLLM).',
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
    return_token_ids: Annotated[
        bool | None | MISSING,
        Field(
            description='Return the token ids of the prompt and of the answer (vLLM).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    return_token_timestamps: Annotated[
        bool | None | MISSING,
        Field(
            description='Return the time of each token of the answer, in seconds since the request was admitted (Helios).',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
