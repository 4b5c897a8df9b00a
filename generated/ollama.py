# Generated from specs/; do not edit. Run: nox -s generate

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field


class OllamaVersion(BaseModel):
    """A version of Ollama."""

    model_config = ConfigDict(
        extra='forbid',
    )
    version: Annotated[
        str,
        Field(
            description='The version whose discovery routes these are; Codex needs 0.13.4 or later.'
        ),
    ]


class OllamaDetails(BaseModel):
    """What is known of a model."""

    model_config = ConfigDict(
        extra='forbid',
    )
    parent_model: Annotated[str, Field(description='Not used.')]
    format: Annotated[str, Field(description='The form of the weights.')]
    family: Annotated[
        str,
        Field(
            description='How the model writes calls and thoughts, by the name of that dialect.'
        ),
    ]
    families: Annotated[list[str], Field(description='The same in a list.')]
    parameter_size: Annotated[str, Field(description='Not known.')]
    quantization_level: Annotated[
        str, Field(description='The number format that is computed in.')
    ]


class OllamaModel(BaseModel):
    """A model under one of its names."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[str, Field(description='The name.')]
    model: Annotated[str, Field(description='The same.')]
    modified_at: Annotated[
        AwareDatetime, Field(description='When the server first described it.')
    ]
    size: Annotated[
        int, Field(description='Bytes of the weights, 0 where unknown.', ge=0)
    ]
    digest: Annotated[str, Field(description='Changes when the weights change.')]
    details: Annotated[OllamaDetails, Field(description='What is known of it.')]


class OllamaTags(BaseModel):
    """The models."""

    model_config = ConfigDict(
        extra='forbid',
    )
    models: Annotated[list[OllamaModel], Field(description='One entry per name.')]
