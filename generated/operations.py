# Generated from specs/; do not edit. Run: nox -s generate

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field


class Health(BaseModel):
    """The engine works."""

    model_config = ConfigDict(
        extra='forbid',
    )
    status: Annotated[Literal['ok'], Field(description='The only value.')]


class FirstResponse(BaseModel):
    """The time from admission to the first text over the last minute."""

    model_config = ConfigDict(
        extra='forbid',
    )
    median_seconds: Annotated[
        float | None, Field(description='The median; null without samples.')
    ]
    samples: Annotated[int, Field(description='How many were measured.', ge=0)]
    window_seconds: Annotated[float, Field(description='The length of the window.')]
    capacity: Annotated[int, Field(description='The most samples that are kept.', ge=0)]
    truncated: Annotated[bool, Field(description='Whether samples were dropped.')]


class MetricsSnapshot(BaseModel):
    """Totals since the start and gauges of this moment; an absent number is zero."""

    model_config = ConfigDict(
        extra='allow',
    )
    prefill_tokens: Annotated[int, Field(description='Prompt tokens computed.', ge=0)]
    generated_tokens: Annotated[int, Field(description='Tokens generated.', ge=0)]
    active: Annotated[int, Field(description='Requests running.', ge=0)]
    pending: Annotated[int, Field(description='Requests waiting.', ge=0)]
    completed: Annotated[int, Field(description='Requests that succeeded.', ge=0)]
    failed: Annotated[int, Field(description='Requests that failed.', ge=0)]
    reasoning_budget_cuts: Annotated[
        int | MISSING,
        Field(
            description='Thoughts that were closed because the reasoning budget was used up.',
            ge=0,
        ),
    ] = MISSING
    malformed_calls: Annotated[
        int | MISSING,
        Field(
            description='What began like a tool call and was returned as text.', ge=0
        ),
    ] = MISSING
    dropped_reasoning: Annotated[
        int | MISSING,
        Field(
            description='Sealed thoughts of clients that did not open and were left out.',
            ge=0,
        ),
    ] = MISSING
    reasoning_loop_cuts: Annotated[
        int | MISSING,
        Field(
            description='Thoughts that were closed because they repeated themselves.',
            ge=0,
        ),
    ] = MISSING
    decode_weight_bytes: Annotated[
        int | MISSING,
        Field(description='Weight bytes that one step reads for one request.', ge=0),
    ] = MISSING
    step_ns: Annotated[
        int | MISSING, Field(description='Time of the steps in nanoseconds.', ge=0)
    ] = MISSING
    kernel_ns: Annotated[
        int | MISSING,
        Field(
            description='Time of the steps in operations of the device in nanoseconds; zero where the backend cannot tell.',
            ge=0,
        ),
    ] = MISSING
    forced_tokens: Annotated[
        int | MISSING,
        Field(description='Tokens that an output constraint left no choice for.', ge=0),
    ] = MISSING
    repetition_cuts: Annotated[
        int | MISSING,
        Field(
            description='Choices that were ended because they repeated themselves.',
            ge=0,
        ),
    ] = MISSING
    deadline_cuts: Annotated[
        int | MISSING,
        Field(description='Choices that were ended by their deadline.', ge=0),
    ] = MISSING
    draft_steps: Annotated[
        int | MISSING,
        Field(
            description='Tokens that the draft model has made; zero without one.', ge=0
        ),
    ] = MISSING
    verify_steps: Annotated[
        int | MISSING, Field(description='Steps that checked drafts.', ge=0)
    ] = MISSING
    verification_drafts: Annotated[
        int | MISSING,
        Field(
            description='Drafts that were checked, those that were wrong included.',
            ge=0,
        ),
    ] = MISSING
    verification_rounds: Annotated[
        int | MISSING,
        Field(
            description='Tokens or runs of tokens that requests got from a step after their first one, whether or not drafts were checked for it.',
            ge=0,
        ),
    ] = MISSING
    accepted_drafts: Annotated[
        int | MISSING, Field(description='Drafts that became output.', ge=0)
    ] = MISSING
    draft_rounds: Annotated[
        int | MISSING,
        Field(description='Those rounds for which a draft was checked.', ge=0),
    ] = MISSING
    replay_gpu_ns: Annotated[
        int | MISSING,
        Field(description='Device time of the steps in nanoseconds.', ge=0),
    ] = MISSING
    replay_readiness_wait_ns: Annotated[
        int | MISSING, Field(description='Waits for embeddings in nanoseconds.', ge=0)
    ] = MISSING
    replay_readiness_samples: Annotated[
        int | MISSING, Field(description='Steps that measured the wait.', ge=0)
    ] = MISSING
    reused_tokens: Annotated[
        int | MISSING,
        Field(description='Prompt tokens taken from the prefix cache.', ge=0),
    ] = MISSING
    cached_pages: Annotated[
        int | MISSING, Field(description='Pages that the prefix cache owns.', ge=0)
    ] = MISSING
    free_pages: Annotated[
        int | MISSING, Field(description='Pages that can be used.', ge=0)
    ] = MISSING
    total_pages: Annotated[int | MISSING, Field(description='All pages.', ge=0)] = (
        MISSING
    )
    page_tokens: Annotated[
        int | MISSING, Field(description='Tokens of a page.', ge=0)
    ] = MISSING
    host_hits: Annotated[
        int | MISSING, Field(description='Lookups that the host store answered.', ge=0)
    ] = MISSING
    host_reused_tokens: Annotated[
        int | MISSING, Field(description='Tokens taken from the host store.', ge=0)
    ] = MISSING
    host_memory_records: Annotated[
        int | MISSING, Field(description='Records in host memory.', ge=0)
    ] = MISSING
    host_disk_records: Annotated[
        int | MISSING, Field(description='Records on disk.', ge=0)
    ] = MISSING
    host_bytes_out: Annotated[
        int | MISSING, Field(description='Bytes copied to the host store.', ge=0)
    ] = MISSING
    host_bytes_in: Annotated[
        int | MISSING, Field(description='Bytes copied from the host store.', ge=0)
    ] = MISSING
    learned_drafter: Annotated[
        bool | MISSING, Field(description='Whether a draft model is loaded.')
    ] = MISSING
    first_response: Annotated[
        FirstResponse | MISSING, Field(description='Time to the first text.')
    ] = MISSING
