"""What a case can expect of calls, thoughts and prompts, besides the words for every reply."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from conformance.byte_model import ByteModel
from conformance.choice import Call, Choice
from conformance.expectations import Expectation
from conformance.reply import Reply


@dataclass
class ChatExpectation(Expectation):
    """More words; `model` reads token ids, where the server's tokens are bytes."""

    model: ByteModel | None = None

    @property
    def _choices(self) -> list[Choice]:
        return [self.reply.choices[index] for index in sorted(self.reply.choices)]

    # Calls

    def on_calls(self, wanted: list[dict[str, Any]]) -> None:
        """Of every choice: name, and arguments (the order of keys counts), input or raw text."""
        for choice in self._choices:
            found = [_shown(call, part) for call, part in zip(choice.calls, wanted, strict=False)]
            assert len(choice.calls) == len(wanted), f"{self.where}: {choice.calls}"
            self._equal(json.dumps(found), json.dumps(wanted))

    def on_first_call(self, wanted: dict[str, Any]) -> None:
        """The first of any number of calls."""
        assert self.reply.choices[0].calls, f"{self.where}: no call"
        found = _shown(self.reply.choices[0].calls[0], wanted)
        self._equal(json.dumps(found), json.dumps(wanted))

    def on_calls_named(self, wanted: str) -> None:
        """There are calls, and every one is of this tool."""
        for choice in self._choices:
            self._equal({call.name for call in choice.calls}, {wanted})

    def on_num_calls(self, wanted: int) -> None:
        self._equal([len(choice.calls) for choice in self._choices], [wanted] * len(self._choices))

    def on_calls_valid(self, wanted: bool) -> None:
        """Every call is of a declared function, and its arguments match the schema."""
        schemas = {}
        for tool in self.body["tools"]:
            function = tool.get("function", tool)
            schemas[function["name"]] = function.get("parameters", function.get("input_schema"))
        for call in (call for choice in self._choices for call in choice.calls):
            assert call.name in schemas, f"{self.where}: {call}"
            validator = jsonschema_rs.validator_for(schemas[call.name], validate_formats=True)
            problems = [error.message for error in validator.iter_errors(call.arguments)]
            assert not problems, f"{self.where}: {call}: {problems}"

    def on_call_ids(self, wanted: str) -> None:
        """Every id matches, and none comes twice in the reply."""
        ids = [call.id for choice in self._choices for call in choice.calls]
        assert ids and len(set(ids)) == len(ids), f"{self.where}: {ids}"
        assert all(re.fullmatch(wanted, found) for found in ids), f"{self.where}: {ids}"

    def on_input_matches(self, wanted: str) -> None:
        """The only call is of a custom tool, with a whole input of this form."""
        (call,) = self.reply.choices[0].calls
        self._equal(call.type, "custom")
        assert re.fullmatch(wanted, call.text, re.DOTALL), f"{self.where}: {call}"

    def on_call_deltas(self, at_least: int) -> None:
        """A stream brings the first call's text in so many pieces at least."""
        if self.reply.chunks:
            deltas = self.reply.choices[0].calls[0].deltas
            assert len(deltas) >= at_least, f"{self.where}: {deltas}"

    # Thoughts

    def on_reasoning(self, wanted: str | None) -> None:
        for choice in self._choices:
            self._equal(choice.reasoning, wanted or "")

    def on_reasoning_has(self, wanted: str) -> None:
        for choice in self._choices:
            assert wanted in choice.reasoning, f"{self.where}: {choice.reasoning!r}"

    def on_reasoning_deltas(self, at_least: int) -> None:
        if self.reply.chunks:
            deltas = self.reply.choices[0].reasoning_deltas
            assert len(deltas) >= at_least, f"{self.where}: {deltas}"

    def on_reasoning_tokens(self, wanted: int) -> None:
        if self.reply.usage is not None:
            self._equal(self.reply.thinking_tokens, wanted)

    def on_content(self, wanted: str | None) -> None:
        """The text of every choice; null is the null of a buffered reply."""
        for choice in self._choices:
            self._equal(choice.text, wanted or "")
            if not self.reply.chunks:
                self._equal(choice.content_is_null, wanted is None)

    # Tokens

    def on_logprobs_spell(self, wanted: str) -> None:
        """The bytes of all entries, joined: what was generated, hidden parts included."""
        data = b"".join(bytes(e["bytes"]) for e in self.reply.choices[0].logprobs or [])
        self._equal(data.decode(), wanted)

    def on_output_spells(self, wanted: str) -> None:
        """What the ids of the output's tokens spell."""
        assert self.model is not None and self.reply.choices[0].token_ids is not None
        self._equal(self.model.text(self.reply.choices[0].token_ids), wanted)

    # Prompts: the ids of a rendered prompt, which a body asks for with return_token_ids, or the
    # text that the template showed

    def _ids(self, reply: Reply) -> list[int]:
        ids = reply.choices[0].prompt_token_ids
        assert ids is not None, f"{self.where}: no ids of the prompt"
        return ids

    def _text(self, reply: Reply) -> str:
        if reply.prompt is not None:
            return reply.prompt
        assert self.model is not None, f"{self.where}: the tokens are no bytes"
        return self.model.text(self._ids(reply))

    def _prompt(self) -> str:
        return self._text(self.reply)

    def on_prompt(self, wanted: str) -> None:
        self._equal(self._prompt(), wanted)

    def on_prompt_has(self, wanted: list[str]) -> None:
        """These texts, in this order."""
        at = 0
        for part in wanted:
            found = self._prompt().find(part, at)
            assert found >= 0, f"{self.where}: no {part!r} from {at} on in {self._prompt()!r}"
            at = found + len(part)

    def on_prompt_lacks(self, unwanted: list[str]) -> None:
        for part in unwanted:
            assert part not in self._prompt(), f"{self.where}: {part!r} in {self._prompt()!r}"

    def on_prompt_ends(self, wanted: str) -> None:
        assert self._prompt().endswith(wanted), f"{self.where}: {self._prompt()!r}"

    def on_prompt_counts(self, wanted: dict[str, int]) -> None:
        """How often control tokens are there, as tokens."""
        assert self.model is not None, f"{self.where}: the tokens are no bytes"
        found = self.model.count(self._ids(self.reply))
        self._equal({control: found[control] for control in wanted}, wanted)

    def on_prompt_as(self, step: int) -> None:
        """The prompt of an earlier step, to the last token."""
        if self.reply.prompt is None:
            self._equal(self._ids(self.reply), self._ids(self.before[step]))
        self._equal(self._prompt(), self._text(self.before[step]))

    def on_prompt_not_as(self, step: int) -> None:
        assert self._prompt() != self._text(self.before[step]), f"{self.where}: the same"

    def on_cached_least(self, wanted: int) -> None:
        """So many tokens of the prompt at least were not computed again."""
        found = self.reply.cached_tokens
        assert found >= wanted, f"{self.where}: {found} of {self.reply.prompt_tokens}"

    def on_prompt_extends(self, step: int) -> None:
        """It begins with the prompt and the output of an earlier step, which the cache can keep."""
        output = self.before[step].choices[0].token_ids
        assert output, f"{self.where}: no ids of the output"
        earlier = self._ids(self.before[step]) + output
        self._equal(self._ids(self.reply)[: len(earlier)], earlier)


def _shown(call: Call, wanted: dict[str, Any]) -> dict[str, Any]:
    """A call in the words of the expectation."""
    shown: dict[str, Any] = {}
    for word in wanted:
        match word:
            case "name" | "type" | "id":
                shown[word] = getattr(call, word)
            case "arguments":
                assert call.type == "function", f"not a function: {call}"
                shown[word] = call.arguments
            case "input":
                assert call.type == "custom", f"not a custom tool: {call}"
                shown[word] = call.text
            case "raw":
                shown[word] = call.text
            case _:
                raise AssertionError(f"unknown word {word}")
    return shown
