# Generated from specs/; do not edit. Run: nox -s generate

from __future__ import annotations

from typing import Annotated, Any, Literal

from generated.literals import Off, On
from pydantic import MISSING, BaseModel, ConfigDict, Field, StringConstraints
from typing_extensions import TypeAliasType


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
        Field(description='Predicted tokens that appeared in the output.'),
    ] = MISSING
    rejected_prediction_tokens: Annotated[
        int | None | MISSING, Field(description='Predicted tokens that did not appear.')
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
            description='Put the usage so far on every chunk; needs include_usage.',
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


class GenerationFields(BaseModel):
    """What Chat Completions and Completions have in common."""

    model: Annotated[
        str | None | MISSING,
        Field(
            description='The model to use; without a name the loaded model answers.',
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
            description='Text or up to four texts that end the answer; the match is not returned.',
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    stop_token_ids: Annotated[
        TokenStops | None | MISSING,
        Field(
            description='Token ids that end the answer.',
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
            description='Sample from this many of the most likely tokens; 0 and -1 mean all.',
            ge=-1,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    min_p: Annotated[
        float | None | MISSING,
        Field(
            description="Drop tokens below this share of the most likely token's probability.",
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
            description='Divides the positive and multiplies the negative logits of tokens seen so far; 1 is off.',
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
            description='No end-of-sequence or stop token before this many tokens.',
            ge=0,
            json_schema_extra={'disposition': 'honoured'},
        ),
    ] = MISSING
    ignore_eos: Annotated[
        bool | None | MISSING,
        Field(
            description='Generate on past the end-of-sequence token.',
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
    priority: Annotated[
        int | None | MISSING,
        Field(
            description='Requests are scheduled in order of arrival.',
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
            description='The prompt shares cached prefixes only with prompts of the same salt.',
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
    length_penalty: Annotated[
        float | None | MISSING,
        Field(
            description='Belongs to beam search, which is off.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    early_stopping: Annotated[
        bool | str | None | MISSING,
        Field(
            description='Belongs to beam search, which is off.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    dry_base: Annotated[
        float | None | MISSING,
        Field(
            description='Shapes the DRY penalty, which is off.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    dry_allowed_length: Annotated[
        int | None | MISSING,
        Field(
            description='Shapes the DRY penalty, which is off.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    dry_penalty_last_n: Annotated[
        int | None | MISSING,
        Field(
            description='Shapes the DRY penalty, which is off.',
            json_schema_extra={'disposition': 'ignored'},
        ),
    ] = MISSING
    dry_sequence_breakers: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='Shapes the DRY penalty, which is off.',
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
    response_format: Annotated[
        ResponseFormatText | None | MISSING,
        Field(
            description='structured output is not available yet; only the type text is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    structured_outputs: Annotated[
        None | MISSING,
        Field(
            description='structured output is not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    guided_json: Annotated[
        None | MISSING,
        Field(
            description='structured output is not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    guided_regex: Annotated[
        None | MISSING,
        Field(
            description='structured output is not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    guided_choice: Annotated[
        None | MISSING,
        Field(
            description='structured output is not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    guided_grammar: Annotated[
        None | MISSING,
        Field(
            description='structured output is not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    json_schema: Annotated[
        None | MISSING,
        Field(
            description='structured output is not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    grammar: Annotated[
        None | MISSING,
        Field(
            description='output grammars are not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    regex: Annotated[
        None | MISSING,
        Field(
            description='output grammars are not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    ebnf: Annotated[
        None | MISSING,
        Field(
            description='output grammars are not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    structural_tag: Annotated[
        None | MISSING,
        Field(
            description='output grammars are not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    stop_regex: Annotated[
        None | MISSING,
        Field(
            description='only fixed stop texts and stop tokens are available',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    stop_token_sequences: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='sequences of stop tokens are not available yet; use stop or stop_token_ids',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    include_stop_str_in_output: Annotated[
        Off | None | MISSING,
        Field(
            description='the matched stop text is never returned',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    no_stop_trim: Annotated[
        Off | None | MISSING,
        Field(
            description='the matched stop text is never returned',
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
    thinking_token_budget: Annotated[
        None | MISSING,
        Field(
            description='reasoning budgets are not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    thinking_budget: Annotated[
        None | MISSING,
        Field(
            description='reasoning budgets are not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    reasoning_budget_tokens: Annotated[
        int | None | MISSING,
        Field(
            description='reasoning budgets are not available yet; only -1 is accepted',
            ge=-1,
            json_schema_extra={'disposition': 'refused'},
            le=-1,
        ),
    ] = MISSING
    max_time_ms: Annotated[
        int | None | MISSING,
        Field(
            description='deadlines are not available yet; only 0 is accepted',
            ge=0,
            json_schema_extra={'disposition': 'refused'},
            le=0,
        ),
    ] = MISSING
    t_max_predict_ms: Annotated[
        int | None | MISSING,
        Field(
            description='deadlines are not available yet; only 0 and -1 are accepted',
            ge=-1,
            json_schema_extra={'disposition': 'refused'},
            le=0,
        ),
    ] = MISSING
    n_predict: Annotated[
        int | None | MISSING,
        Field(
            description='the limit is named max_tokens here; only -1 is accepted',
            ge=-1,
            json_schema_extra={'disposition': 'refused'},
            le=-1,
        ),
    ] = MISSING
    bad_words: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='word bans are not available yet',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    allowed_token_ids: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='limiting the vocabulary is not available yet',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    top_n_sigma: Annotated[
        float | None | MISSING,
        Field(
            description='this filter is not available yet; only 0 and below are accepted',
            ge=-1.0,
            json_schema_extra={'disposition': 'refused'},
            le=0.0,
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
    repeat_penalty: Annotated[
        float | None | MISSING,
        Field(
            description='the penalty is named repetition_penalty here; only 1 is accepted',
            ge=1.0,
            json_schema_extra={'disposition': 'refused'},
            le=1.0,
        ),
    ] = MISSING
    dry_multiplier: Annotated[
        float | None | MISSING,
        Field(
            description='the DRY penalty is not available yet; only 0 is accepted',
            ge=0.0,
            json_schema_extra={'disposition': 'refused'},
            le=0.0,
        ),
    ] = MISSING
    lz_penalty: Annotated[
        float | None | MISSING,
        Field(
            description='the LZ penalty is not available yet; only 0 is accepted',
            ge=0.0,
            json_schema_extra={'disposition': 'refused'},
            le=0.0,
        ),
    ] = MISSING
    repetition_detection: Annotated[
        None | MISSING,
        Field(
            description='loop detection is not available yet',
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
    use_beam_search: Annotated[
        Off | None | MISSING,
        Field(
            description='beam search is not available; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    num_beams: Annotated[
        int | None | MISSING,
        Field(
            description='beam search is not available; only 1 is accepted',
            ge=1,
            json_schema_extra={'disposition': 'refused'},
            le=1,
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
    prompt_logprobs: Annotated[
        None | MISSING,
        Field(
            description='log probabilities are not available yet',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    logprob_token_ids: Annotated[
        list[Any] | None | MISSING,
        Field(
            description='log probabilities are not available yet',
            json_schema_extra={'disposition': 'refused'},
            max_length=0,
        ),
    ] = MISSING
    n_probs: Annotated[
        int | None | MISSING,
        Field(
            description='log probabilities are not available yet; only 0 is accepted',
            ge=0,
            json_schema_extra={'disposition': 'refused'},
            le=0,
        ),
    ] = MISSING
    return_tokens_as_token_ids: Annotated[
        Off | None | MISSING,
        Field(
            description='log probabilities are not available yet; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_token_ids: Annotated[
        Off | None | MISSING,
        Field(
            description='token ids are not returned yet; only false is accepted',
            json_schema_extra={'disposition': 'refused'},
        ),
    ] = MISSING
    return_prompt_token_ids: Annotated[
        Off | None | MISSING,
        Field(
            description='token ids are not returned yet; only false is accepted',
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
    return_token_timestamps: Annotated[
        Off | None | MISSING,
        Field(
            description='token times are not returned yet; only false is accepted',
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
