# Generated from specs/; do not edit. Run: nox -s generate

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, AwareDatetime, BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType


class AnthropicModel(BaseModel):
    """A model as Anthropic describes one."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[
        str,
        Field(
            description='The first configured name, else the identifier of the checkpoint.'
        ),
    ]
    type: Annotated[Literal['model'], Field(description='The kind of object.')]
    display_name: Annotated[str, Field(description='The same as id.')]
    created_at: Annotated[
        AwareDatetime, Field(description='When the server first described it.')
    ]
    lifecycle: Annotated[Literal['active'], Field(description='Always active.')]
    max_input_tokens: Annotated[
        int,
        Field(
            description='The context limit in tokens, prompt and output together.', ge=1
        ),
    ]
    max_tokens: Annotated[int, Field(description='The most tokens of an answer.', ge=1)]
    capabilities: Annotated[None | MISSING, Field(description='Not described.')] = (
        MISSING
    )
    line: Annotated[None | MISSING, Field(description="None of Anthropic's.")] = MISSING
    deprecated_at: Annotated[None | MISSING, Field(description='Never.')] = MISSING
    retires_at: Annotated[None | MISSING, Field(description='Never.')] = MISSING


class ModelSummary(BaseModel):
    """A model in short form."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[str, Field(description='The id of the model.')]
    description: Annotated[str, Field(description='What it is.')]
    release_date: Annotated[
        str, Field(description='The date that it is known since, as YYYY-MM-DD.')
    ]


class ModelPermission(BaseModel):
    """What may be done with a model."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[str, Field(description='The id of the permission.')]
    object: Annotated[
        Literal['model_permission'], Field(description='The kind of object.')
    ]
    created: Annotated[int, Field(description='When it was made in Unix seconds.')]
    allow_create_engine: Annotated[bool, Field(description='Never.')]
    allow_sampling: Annotated[bool, Field(description='Always.')]
    allow_logprobs: Annotated[
        bool, Field(description='Whether log probabilities can be asked for.')
    ]
    allow_search_indices: Annotated[bool, Field(description='Never.')]
    allow_view: Annotated[bool, Field(description='Always.')]
    allow_fine_tuning: Annotated[bool, Field(description='Never.')]
    organization: Annotated[
        str, Field(description='Who may use it; a star means everyone.')
    ]
    group: Annotated[str | None, Field(description='Not used.')]
    is_blocking: Annotated[bool, Field(description='Never.')]


class SamplingDefaults(BaseModel):
    """What absent sampling fields mean."""

    model_config = ConfigDict(
        extra='forbid',
    )
    seed: Annotated[
        int | None, Field(description='Null draws a new seed for each request.')
    ]
    temperature: Annotated[float, Field(description='The temperature.')]
    top_p: Annotated[float, Field(description='1 is off.')]
    top_k: Annotated[int, Field(description='-1 and 0 are off.')]
    min_p: Annotated[float, Field(description='0 is off.')]
    repetition_penalty: Annotated[float, Field(description='1 is off.')]
    presence_penalty: Annotated[float, Field(description='0 is off.')]
    frequency_penalty: Annotated[float, Field(description='0 is off.')]


class Range(BaseModel):
    """The least and the greatest value, both included."""

    model_config = ConfigDict(
        extra='forbid',
    )
    min: Annotated[float, Field(description='The least value.')]
    max: Annotated[float, Field(description='The greatest value.')]


class AnthropicModelList(BaseModel):
    """The models as Anthropic lists them."""

    model_config = ConfigDict(
        extra='forbid',
    )
    data: Annotated[list[AnthropicModel], Field(description='The models.')]
    first_id: Annotated[str | None, Field(description='The id of the first.')]
    last_id: Annotated[str | None, Field(description='The id of the last.')]
    has_more: Annotated[
        bool, Field(description='Whether there are more behind the last.')
    ]


OptionalRange = TypeAliasType(
    "OptionalRange",
    Annotated[
        Range | None,
        Field(description='A range, or null where values are used as given.'),
    ],
)


class SamplingRanges(BaseModel):
    """The declared range of each parameter; a value is used as given where there is none."""

    model_config = ConfigDict(
        extra='forbid',
    )
    temperature: Annotated[
        OptionalRange | MISSING, Field(description='For the temperature.')
    ] = MISSING
    top_p: Annotated[OptionalRange | MISSING, Field(description='For top_p.')] = MISSING
    top_k: Annotated[OptionalRange | MISSING, Field(description='For top_k.')] = MISSING
    min_p: Annotated[OptionalRange | MISSING, Field(description='For min_p.')] = MISSING
    repetition_penalty: Annotated[
        OptionalRange | MISSING, Field(description='For the repetition penalty.')
    ] = MISSING
    presence_penalty: Annotated[
        OptionalRange | MISSING, Field(description='For the presence penalty.')
    ] = MISSING
    frequency_penalty: Annotated[
        OptionalRange | MISSING, Field(description='For the frequency penalty.')
    ] = MISSING


class FlareCard(BaseModel):
    """Limits and defaults of the loaded model."""

    model_config = ConfigDict(
        extra='forbid',
    )
    vocab_size: Annotated[
        int, Field(description='Size of the output vocabulary.', ge=1)
    ]
    max_top_logprobs: Annotated[
        int,
        Field(
            description='The most alternatives per token; 0 without log probabilities.',
            ge=0,
            le=20,
        ),
    ]
    max_concurrency: Annotated[
        int, Field(description='The most requests that run at once.', ge=1)
    ]
    prefill_chunk_size: Annotated[
        int, Field(description='The most prompt tokens computed in one step.', ge=1)
    ]
    default_max_tokens: Annotated[
        int | None,
        Field(
            description='The output limit of requests without one; null means the rest of the context.'
        ),
    ]
    sampling_defaults: Annotated[
        SamplingDefaults, Field(description='What absent sampling fields mean.')
    ]
    thinking_token_budget: Annotated[
        int | None, Field(description="The operator's limit on reasoning tokens.")
    ]
    dialect: Annotated[
        str, Field(description='How the model writes calls and thoughts.')
    ]
    reasoning_efforts: Annotated[
        list[str],
        Field(
            description='The levels that its chat template tells apart, lowest first; none where thinking can be switched off.'
        ),
    ]
    sampling_ranges: Annotated[
        SamplingRanges,
        Field(description='Where values are clamped to a declared range.'),
    ]
    max_images_per_prompt: Annotated[
        int, Field(description='The most images; 0 for text models, as below.', ge=0)
    ]
    max_image_tokens_per_prompt: Annotated[
        int, Field(description='The most image tokens of a conversation.', ge=0)
    ]
    image_feature_window_tokens: Annotated[
        int, Field(description='Image features kept for one request.', ge=0)
    ]
    max_image_tokens_per_image: Annotated[
        int, Field(description='The most tokens of one image.', ge=0)
    ]
    max_image_pixels: Annotated[
        int, Field(description='The largest image in pixels.', ge=0)
    ]
    max_image_bytes: Annotated[
        int, Field(description='The largest encoded image.', ge=0)
    ]
    input_modalities: Annotated[list[str], Field(description='What it reads.')]
    output_modalities: Annotated[list[str], Field(description='What it writes.')]


class ModelCard(BaseModel):
    """A model with its limits and defaults."""

    model_config = ConfigDict(
        extra='forbid',
    )
    id: Annotated[
        str,
        Field(
            description='The first configured name, else the identifier of the checkpoint.'
        ),
    ]
    object: Annotated[Literal['model'], Field(description='The kind of object.')]
    created: Annotated[
        int, Field(description='When the server first described it in Unix seconds.')
    ]
    owned_by: Annotated[str, Field(description='Always local.')]
    shutdown_date: Annotated[
        str | None | MISSING, Field(description='When it goes away.')
    ] = MISSING
    root: Annotated[str, Field(description='The identifier of the loaded model.')]
    parent: Annotated[
        str | None, Field(description='The model that it was derived from.')
    ]
    max_model_len: Annotated[
        int,
        Field(
            description='The context limit in tokens, prompt and output together.', ge=1
        ),
    ]
    context_length: Annotated[
        int, Field(description='The same as max_model_len.', ge=1)
    ]
    context_window: Annotated[
        int, Field(description='The same as max_model_len.', ge=1)
    ]
    permission: Annotated[
        list[ModelPermission], Field(description='What may be done with it.')
    ]
    flare: Annotated[FlareCard, Field(description='What this server adds.')]


ModelReply = TypeAliasType(
    "ModelReply",
    Annotated[
        ModelCard | AnthropicModel,
        Field(description='The model in the shape that the client looks for.'),
    ],
)


class ModelList(BaseModel):
    """The models, in the shapes that different clients look for."""

    model_config = ConfigDict(
        extra='forbid',
    )
    object: Annotated[Literal['list'], Field(description='The kind of object.')]
    data: Annotated[list[ModelCard], Field(description='The cards.')]
    models: Annotated[
        list[ModelSummary], Field(description='The same models in short form.')
    ]


ModelListReply = TypeAliasType(
    "ModelListReply",
    Annotated[
        ModelList | AnthropicModelList,
        Field(description='The list in the shape that the client looks for.'),
    ],
)
