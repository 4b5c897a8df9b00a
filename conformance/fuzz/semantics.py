"""Why a request that its schema allows may still be answered with 400: the whole list.

Each entry is something that JSON Schema cannot say, or that depends on the loaded model. The fuzzer
accepts a 400 for a schema-valid body only when one entry explains it.
"""

from __future__ import annotations

import re
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


CONSTRAINTS = (
    "text.format", "response_format", "structured_outputs", "guided_", "json_schema", "regex",
    "grammar",
)  # fmt: skip
TOOLS = ("tools", "functions", "input[")
CHOICES = ("tool_choice", "function_call")
BUDGETS = (
    "thinking_token_budget", "thinking_budget", "reasoning_budget_tokens", "thinking.budget_tokens"
)  # fmt: skip
REASONS = (
    Reason(
        "the window is the model's", ("messages", "prompt", "max_tokens", "max_completion_tokens"),
        code="context_length_exceeded",
    ),
    Reason(
        "the vocabulary is the model's",
        ("prompt", "stop_token_ids", "stop_token_sequences", "logit_bias", "allowed_token_ids",
         "logprob_token_ids"),
        message="outside the vocabulary",
    ),
    Reason("a sum over a list", ("stop",), message="longer than 4096 bytes"),
    Reason("a sum over two lists", ("stop_token_sequences",), message="more than 16 together"),
    Reason("two fields exclude each other", ("stop_token_ids", "stop_token_sequences"),
           message="cannot be combined"),
    Reason("two fields exclude each other", ("ignore_eos",), message="cannot be combined"),
    Reason("two fields exclude each other", ("prompt_logprobs",), message="cannot be streamed"),
    Reason("two fields exclude each other", ("stream",), message="beam search cannot be streamed"),
    Reason("two fields exclude each other", ("use_beam_search", "num_beams"),
           message="beam search takes no"),
    Reason("one form at a time", CONSTRAINTS, message="cannot be combined"),
    Reason("the width is that of other fields", ("num_beams",), message="beams are searched"),
    Reason("two fields must agree", ("n",), message="beams"),
    Reason("one field needs another", ("top_logprobs", "logprob_token_ids"),
           message="needs logprobs"),
    Reason("two members must agree", ("repetition_detection.",),
           message="more than max_pattern_size"),
    Reason("two members must agree", ("repetition_detection.",), message="at least 2"),
    Reason("a schema is more than JSON Schema can say", (*CONSTRAINTS, *TOOLS),
           code="invalid_schema"),
    Reason("a grammar has a syntax", (*CONSTRAINTS, *TOOLS), code="invalid_grammar"),
    Reason("items of a list must differ in a member", TOOLS, message="name of an earlier tool"),
    Reason("a schema is data here", TOOLS, message="must be the schema of an object"),
    Reason("two fields exclude each other", ("functions", "function_call"),
           message="the older form"),
    Reason("one field needs another", CHOICES, message="there is no tool to call"),
    Reason("one field names what is in another", CHOICES, message="not among the tools"),
    Reason("one field names what is in another", CHOICES, message="not among the namespaces"),
    Reason("a sum over two members", TOOLS, message="characters together"),
    Reason("one field names what is in another", CHOICES, message="is the name of a"),
    Reason("one of two members is needed", ("messages",), code="missing_required_parameter"),
    Reason("a word is no number", ("reasoning_effort", "reasoning.effort", "input["),
           message="a number without quotes"),
    Reason("several names of one thing", BUDGETS, message="one budget with two values"),
    Reason("the delimiters are the model's", BUDGETS, message="cannot be cut"),
    Reason("fields can leave no token", ("",), code="no_token_allowed"),
    Reason("two fields must agree", ("best_of",), message="must equal n"),
    Reason("two fields must agree", ("min_tokens",), message="more than the output limit"),
    Reason("prompts times n against the places of this server", ("n",), message="places"),
    Reason("two fields must agree", ("continue_final_message",), message="continue_final_message"),
    Reason("the template is the model's", ("messages", "input"), message="template"),
    Reason("the window is the model's", ("input", "max_output_tokens"),
           code="context_length_exceeded"),
    Reason("the responses are the server's", ("previous_response_id",),
           code="previous_response_not_found"),
    Reason("the responses are the server's", ("input[",), message="there is no stored item"),
    Reason("the notes are the server's", ("input[",), code="compaction_payload_invalid"),
    Reason("the items are the response's", ("after",), message="no item of this response"),
    Reason("one field needs another", ("starting_after",), message="needs stream"),
    Reason("one field needs another", ("top_logprobs", "logprob_token_ids"),
           message="in include"),
    Reason("nothing runs in the background", ("",), message="only a response in the background"),
)  # fmt: skip


def explanation(error: dict[str, str | None]) -> Reason | None:
    """The first reason that explains an error, if any."""
    return next((reason for reason in REASONS if reason.explains(error)), None)


_FORM = (
    r"output_config\.format\.schema|output_format\.schema|response_format[.\w]*|guided_\w+|regex"
    r"|structured_outputs\.\w+|json_schema|grammar|tools\[\d+\]\.input_schema|tools"
    r"|messages[\[\]\w.]+\.definition\.input_schema"
)
SENTENCES = (
    ("a schema or a grammar is more than JSON Schema can say", f"^({_FORM}): "),
    ("fields can leave no token", "the fields contradict each other"),
    ("the window is the model's", "prompt is too long"),
    ("the vocabulary is the model's", "outside the vocabulary"),
    ("a sum over a list", "longer than 4096 bytes"),
    ("a sum over two lists", "more than 16 together"),
    ("two fields exclude each other", "cannot be combined"),
    ("two fields exclude each other", "beam search cannot be streamed"),
    ("two fields exclude each other", "beam search takes no"),
    ("two members must agree", "more than max_pattern_size"),
    ("two members must agree", "min_count must be at least 2"),
    ("items of a list must differ in a member", "is the name of an earlier tool"),
    ("a tool is defined once", "is the name of another tool"),
    ("a schema is data here", "must be the schema of an object"),
    ("one field needs another", "there is no tool to call"),
    ("one field names what is in another", "is not among the tools"),
    ("a word is no number", "a number without quotes"),
    ("several names of one thing", "one budget with two values"),
    ("two fields must agree", "must be greater than `thinking.budget_tokens`"),
    ("the delimiters are the model's", "cannot be cut"),
    ("two fields must agree", "more than the output limit"),
    ("blocks belong to roles", "belongs into"),
    ("what is left out of the prompt cannot be all of it", "has nothing to answer"),
    ("the template is the model's", "template"),
    ("the models are the server's", "is not the id of a model"),
)
"""The same for Anthropic's errors, which have a sentence and no code: why, and a pattern of it."""


def is_explained(error: dict[str, str | None]) -> bool:
    """Whether the sentence of an Anthropic error is among those."""
    return any(re.search(words, error["message"] or "") for _, words in SENTENCES)
