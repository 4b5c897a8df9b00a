"""Why a request that its schema allows may still be answered with 400: the whole list.

Each entry is something that JSON Schema cannot say, or that depends on the loaded model. The fuzzer
accepts a 400 for a schema-valid body only when one entry explains it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """An error that matches both patterns; None matches anything."""

    why: str
    param: tuple[str, ...]
    code: str | None = None
    message: str = ""

    def explains(self, error: dict[str, str | None]) -> bool:
        """Whether the error object is this one."""
        return (
            (error["param"] or "").startswith(self.param)
            and error["code"] == self.code
            and self.message in (error["message"] or "")
        )


REASONS = (
    Reason(
        "the window is the model's", ("messages", "prompt", "max_tokens", "max_completion_tokens"),
        code="context_length_exceeded",
    ),
    Reason("the vocabulary is the model's", ("prompt", "stop_token_ids", "logit_bias"),
           message="outside the vocabulary"),
    Reason("a sum over a list", ("stop",), message="longer than 4096 bytes"),
    Reason("two fields exclude each other", ("stop_token_ids",), message="cannot be combined"),
    Reason("two fields must agree", ("best_of",), message="must equal n"),
    Reason("two fields must agree", ("min_tokens",), message="more than the output limit"),
    Reason("prompts times n against the places of this server", ("n",), message="places"),
    Reason("two fields must agree", ("continue_final_message",), message="continue_final_message"),
    Reason("the template is the model's", ("messages",), message="template"),
)  # fmt: skip


def explanation(error: dict[str, str | None]) -> Reason | None:
    """The first reason that explains an error, if any."""
    return next((reason for reason in REASONS if reason.explains(error)), None)
