"""Requests of the benchmark. Equal seeds give equal requests, and no two seeds share a prefix."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from conformance.bench.measure import prompt_of

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
_LINES = 6
_WORDS = (
    "red old tall quiet heavy bright narrow frozen hollow golden rusty gentle",
    "lantern harbour bridge ladder engine window garden compass kettle tower",
    "stands rests waits lies hangs leans sleeps shines turns falls",
    "behind near under beside across above inside below around against",
    "mill river stairs road valley door barn cliff lake wall",
)
_PEOPLE = {
    "type": "object",
    "properties": {
        "people": {
            "type": "array",
            "minItems": 60,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 24},
                    "age": {"type": "integer", "minimum": 0, "maximum": 120},
                    "city": {"type": "string", "maxLength": 24},
                },
                "required": ["name", "age", "city"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["people"],
    "additionalProperties": False,
}
"""A schema whose values cannot end before the limit of any row, and which all servers know."""


@dataclass(frozen=True)
class Request:
    """A greedy streamed request for exactly `tokens` tokens.

    `source` is the text that a model which copies answers with.
    """

    path: str
    body: dict[str, Any]
    tokens: int
    source: str = ""

    def of(self, model: str) -> dict[str, Any]:
        """The whole body, for a server's name of the model."""
        return {
            "model": model,
            "max_tokens": self.tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.body,
        }


def continuation(length: int, tokens: int, seed: int) -> Request:
    """A prompt of `length` random tokens, continued past every end token."""
    body = {"prompt": prompt_of(length, seed), "ignore_eos": True}
    return Request(COMPLETIONS, body, tokens)


def constrained(tokens: int, seed: int) -> Request:
    """A JSON document under a schema; it needs no `ignore_eos`, since the schema forbids an end."""
    said = f"Case {seed}. Invent people and answer in JSON."
    form = {"name": "people", "strict": True, "schema": _PEOPLE}
    body = {
        "messages": [{"role": "user", "content": said}],
        "response_format": {"type": "json_schema", "json_schema": form},
    }
    return Request(CHAT, body, tokens)


def copying(tokens: int, seed: int) -> Request:
    """A conversation of some 400 tokens whose next answer is the answer before, word for word.

    Six lines come three times in each answer: repeats make even a small model copy under greedy
    decoding, where one occurrence would not. `tokens` should be less than the 160 of an answer.
    """
    text = copied_text(seed) * 3
    said = ["Write a poem.", text, "Write it again.", text, "Write it again."]
    roles = ["user", "assistant", "user", "assistant", "user"]
    messages = [{"role": r, "content": content} for r, content in zip(roles, said, strict=True)]
    return Request(CHAT, {"messages": messages, "ignore_eos": True}, tokens, source=text)


def copied_text(seed: int) -> str:
    """Six lines in which no word but the articles comes twice."""
    draw = random.Random(seed)
    lines = zip(*(draw.sample(words.split(), _LINES) for words in _WORDS), strict=True)
    return "".join("The {} {} {} {} the {}.\n".format(*words) for words in lines)
