"""What a case expects of a reply: one method for each word that a case may use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs

from conformance import sse
from conformance.bodies import shown_prompt
from conformance.replies import comparable
from conformance.reply import Reply


@dataclass
class Expectation:
    """The words that an `expect` object can use; each method is one."""

    where: str
    reply: Reply
    before: list[Reply]
    body: dict[str, Any]
    _words: dict[str, Callable[[Any], None]] = field(init=False)

    def __post_init__(self) -> None:
        self._words = {
            name.removeprefix("on_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("on_")
        }

    def check(self, expect: dict[str, Any]) -> None:
        self.on_status(expect.get("status", 200))
        for word, wanted in expect.items():
            assert word in self._words, f"{self.where}: unknown expectation {word}"
            self._words[word](wanted)

    def _equal(self, found: Any, wanted: Any) -> None:
        assert found == wanted, f"{self.where}: {found!r} is not {wanted!r}"

    def on_status(self, wanted: int) -> None:
        assert self.reply.status == wanted, f"{self.where}: {self.reply.status} {self.reply.body}"

    def on_error(self, wanted: dict[str, Any]) -> None:
        assert self.reply.error is not None, f"{self.where}: no error"
        subset(wanted, self.reply.error, self.where)

    def on_error_has(self, wanted: list[str]) -> None:
        assert self.reply.error is not None, f"{self.where}: no error"
        for part in wanted:
            assert part in self.reply.error["message"], f"{self.where}: {self.reply.error}"

    def on_param_starts(self, wanted: str) -> None:
        assert self.reply.error is not None, f"{self.where}: no error"
        assert (self.reply.error["param"] or "").startswith(wanted), f"{self.where}: {self.reply}"

    def on_shown(self, wanted: list[dict[str, Any]]) -> None:
        """The messages as the template of the byte model got them."""
        shown = shown_prompt(self.reply)
        assert shown is not None, f"{self.where}: no error"
        self._equal(json.loads(shown), wanted)

    def on_text(self, wanted: str) -> None:
        self._equal(self.reply.text, wanted)

    def on_text_in(self, wanted: list[str]) -> None:
        assert self.reply.text in wanted, f"{self.where}: {self.reply.text!r}"

    def on_texts(self, wanted: list[str]) -> None:
        self._equal(self.reply.texts, wanted)

    def on_text_has(self, wanted: str) -> None:
        assert wanted in self.reply.text, f"{self.where}: {self.reply.text!r}"

    def on_text_lacks(self, unwanted: str) -> None:
        assert unwanted not in self.reply.text, f"{self.where}: {self.reply.text!r}"

    def on_finish(self, wanted: str) -> None:
        self._equal(self.reply.finishes, [wanted] * len(self.reply.choices))

    def on_stop_reason(self, wanted: Any) -> None:
        self._equal(self.reply.choices[0].stop_reason, wanted)

    def on_model(self, wanted: str) -> None:
        body = self.reply.body or self.reply.chunks[0]
        self._equal(body.get("message", body.get("response", body))["model"], wanted)

    def on_usage(self, wanted: dict[str, Any]) -> None:
        if self.reply.usage is not None:
            subset(wanted, self.reply.usage, self.where)

    def on_chunks(self, at_least: int) -> None:
        """It was a stream, of at least so many chunks."""
        assert len(self.reply.chunks) >= at_least, f"{self.where}: {self.reply.chunks}"

    def on_usage_grows(self, wanted: bool) -> None:
        """Every chunk of a stream has the usage so far."""
        if self.reply.chunks:
            counts = [chunk["usage"]["completion_tokens"] for chunk in self.reply.chunks]
            self._equal(counts, sorted(counts))
            assert counts[0] >= 1 and len(set(counts)) > 1, f"{self.where}: {counts}"

    def on_cached(self, wanted: int) -> None:
        if self.reply.usage is not None:
            self._equal(self.reply.cached_tokens, wanted)

    def on_same_prompt_as(self, step: int) -> None:
        self._equal(self.reply.prompt_tokens, self.before[step].prompt_tokens)

    def on_same_as(self, step: int) -> None:
        self._equal(comparable(self.reply), comparable(self.before[step]))

    def on_other_text_than(self, step: int) -> None:
        assert self.reply.texts != self.before[step].texts, f"{self.where}: {self.reply.texts}"

    def on_same_text_as(self, step: int) -> None:
        self._equal(self.reply.texts, self.before[step].texts)

    def on_text_at(self, wanted: dict[str, int]) -> None:
        """Choice -> the step whose only text it has."""
        for index, step in wanted.items():
            self._equal(self.reply.choices[int(index)].text, self.before[step].text)

    def on_text_matches(self, wanted: str) -> None:
        found = re.fullmatch(wanted, self.reply.text, re.DOTALL)
        assert found, f"{self.where}: {self.reply.text!r}"

    def on_json(self, wanted: Any) -> None:
        """The text is JSON with this value; the order of keys counts."""
        found = sse.strict_json(self.reply.text)
        self._equal(json.dumps(found), json.dumps(wanted))

    def on_json_keys(self, wanted: list[str]) -> None:
        self._equal(list(sse.strict_json(self.reply.text)), wanted)

    def on_valid(self, schema: dict[str, Any]) -> None:
        """The text is JSON that the schema allows."""
        found = sse.strict_json(self.reply.text)
        validator = jsonschema_rs.validator_for(schema, validate_formats=True)
        problems = [error.message for error in validator.iter_errors(found)]
        assert not problems, f"{self.where}: {self.reply.text!r}: {problems}"

    def on_logprobs(self, wanted: list[dict[str, Any]] | None) -> None:
        """One entry for each token, with at least these members; null for no logprobs."""
        found = self.reply.choices[0].logprobs
        if wanted is None or found is None:
            self._equal(found, wanted)
            return
        assert len(found) == len(wanted), f"{self.where}: {found}"
        for place, (entry, part) in enumerate(zip(found, wanted, strict=True)):
            subset(part, entry, f"{self.where} logprob {place}")

    def on_first_logprob(self, wanted: dict[str, Any]) -> None:
        entries = self.reply.choices[0].logprobs
        assert entries, f"{self.where}: no logprobs"
        subset(wanted, entries[0], self.where)

    def on_same_logprobs_as(self, step: int) -> None:
        mine, other = self.reply.choices[0].logprobs, self.before[step].choices[0].logprobs
        assert mine and other, f"{self.where}: no logprobs"
        self._equal(mine, other)

    def on_tops(self, wanted: int) -> None:
        """So many alternatives at each place."""
        for entry in self.reply.choices[0].logprobs or [{"top_logprobs": []}]:
            self._equal(len(entry["top_logprobs"]), wanted)

    def on_token_ids(self, wanted: list[int] | None) -> None:
        self._equal(self.reply.choices[0].token_ids, wanted)

    def on_prompt_token_ids(self, wanted: list[int] | None) -> None:
        self._equal(self.reply.choices[0].prompt_token_ids, wanted)

    def on_prompt_ids_whole(self, wanted: bool) -> None:
        """As many ids of prompt tokens as usage counts."""
        found = self.reply.choices[0].prompt_token_ids
        assert found is not None and self.reply.usage, f"{self.where}: no ids"
        self._equal(len(found), self.reply.usage["prompt_tokens"])

    def on_timestamps(self, wanted: int | None) -> None:
        """A time for each token; none goes back."""
        times = self.reply.choices[0].timestamps
        if wanted is None or times is None:
            self._equal(times, wanted)
            return
        self._equal(len(times), wanted)
        assert times == sorted(times) and times[0] >= 0, f"{self.where}: {times}"

    def on_prompt_logprobs(self, wanted: list[dict[str, Any] | None] | None) -> None:
        """The whole list, exactly."""
        for choice in self.reply.choices.values():
            self._equal(choice.prompt_logprobs, wanted)

    def on_prompt_logprobs_whole(self, wanted: bool) -> None:
        """One position for each prompt token; only the first is null."""
        found = self.reply.choices[0].prompt_logprobs
        assert found is not None and self.reply.usage, f"{self.where}: no prompt_logprobs"
        places = [position is None for position in found]
        self._equal(places, [True] + [False] * (self.reply.usage["prompt_tokens"] - 1))

    def on_times_apart(self, wanted: float) -> None:
        """So many seconds at least between the first and the last token."""
        times = self.reply.choices[0].timestamps
        assert times and times[-1] - times[0] >= wanted * 0.9, f"{self.where}: {times}"

    def on_logprobs_start_as(self, step: int) -> None:
        """The entries are the first ones of an earlier step."""
        mine, other = self.reply.choices[0].logprobs, self.before[step].choices[0].logprobs
        assert mine and other, f"{self.where}: no logprobs"
        self._equal(mine, other[: len(mine)])

    def on_finite(self, wanted: bool) -> None:
        """Every log probability is a number that a model can give."""
        for entry in self.reply.choices[0].logprobs or [{"logprob": None}]:
            values = [entry["logprob"], *(top["logprob"] for top in entry["top_logprobs"])]
            assert all(-200 < value <= 0 for value in values), f"{self.where}: {values}"
            self._equal(values[1:], sorted(values[1:], reverse=True))

    def on_choices(self, wanted: int) -> None:
        self._equal(len(self.reply.choices), wanted)

    def on_distinct(self, wanted: bool) -> None:
        self._equal(len(set(self.reply.texts)) == len(self.reply.texts), wanted)

    def on_not_all_equal(self, wanted: bool) -> None:
        self._equal(len(set(self.reply.texts)) > 1, wanted)


def subset(wanted: Any, found: Any, where: str) -> None:
    """Every key of `wanted`, at any depth, is in `found` with its value."""
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            assert isinstance(found, dict) and name in found, f"{where}: no {name} in {found}"
            subset(value, found[name], f"{where} {name}")
        return
    assert found == wanted, f"{where}: {found!r} is not {wanted!r}"
