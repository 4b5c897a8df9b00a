"""Cases as data: reading them, and running their steps.

A file of cases/ is a list of

    {"id": "D144", "title": what is proven, "server": a profile (scripted when absent),
     "replies": what the script says: {"text", "parts" or "token_ids", ...} when the last message or
     prompt starts with the id, with "say" when it is exactly that text, with "match" when an
     expression is found in it; of "parts", a text's control tokens are tokens, and those of a
     {"plain": text} are spelt with ordinary ones,
     "proves": request fields whose effect the case shows, "steps": [...],
     "routes": run the steps, which name no route, on each of these,
     "body": what the bodies of all steps have,
     "tools": the tools of all steps, each name with its properties, a type or a schema each}

and a step is

    {"route": a route of replies.PATHS (or "get" with "path"),
     "headers": {...}, "body": {...},
     "say": text of the only message or prompt (the id when absent),
     "say_repeat": [text, times] to put behind it,
     "bare": true leaves a message without the max_tokens, a response without the model it needs,
     "show": true has the template show the prompt, in place of an answer; where tokens are bytes;
     after a compaction, the prompt of a conversation that goes on from its output,
     "modes": ["buffered", "streamed"], "expect": {...}}

The prompt of each message and response that is answered or shown is counted too: the route that
counts must say what the usage says.

`run` knows every expectation and fails on a word that it does not know, so that no line of a case
is without effect. A case with a "scenario" in place of steps is a function in scenarios/; it
proves its fields on its "routes".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from conformance import spec
from conformance.bodies import SHOW, body_of, declared, shown_prompt, streamed
from conformance.expectations import subset
from conformance.models import model_of
from conformance.profiles import ALIASES
from conformance.replies import BUFFERED, COUNTS, comparable, send
from conformance.reply import Reply, anthropic_error_of, error_of
from conformance.response_expectations import ResponseExpectation

FOLDER = Path(__file__).parent / "cases"
_MODES = ("buffered", "streamed")
_COUNTED = {field.path for field in spec.fields("input_tokens")}
"""What a response and the count of its prompt both take."""


@dataclass(frozen=True)
class Case:
    """One case of the files."""

    id: str
    title: str
    server: str = "scripted"
    replies: tuple[dict[str, Any], ...] = ()
    proves: tuple[str, ...] = ()
    steps: tuple[dict[str, Any], ...] = ()
    routes: tuple[str, ...] = ()
    body: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    scenario: str | None = None

    def sequences(self) -> list[list[dict[str, Any]]]:
        """The steps to run, once for each route."""
        if not self.routes:
            return [[self._whole(step) for step in self.steps]]
        return [[self._whole({"route": r} | step) for step in self.steps] for r in self.routes]

    def _whole(self, step: dict[str, Any]) -> dict[str, Any]:
        if step["route"] == "get":
            return step
        tools = {"tools": declared(self.tools, step["route"])} if self.tools else {}
        return {**step, "body": tools | self.body | step.get("body", {})}

    def proven(self) -> set[tuple[str, str]]:
        """(route, field) pairs: what it proves on each route that it uses the field on."""
        if self.scenario is not None:
            return {(route, path) for route in self.routes for path in self.proves}
        pairs = set()
        for step in (step for steps in self.sequences() for step in steps):
            for path in self.proves:
                if _has(step.get("body", {}), path.split(".")):
                    pairs.add((step["route"], path))
        return pairs


def load() -> list[Case]:
    """All cases, in the order of the files. Fails on an id that occurs twice."""
    cases = []
    for file in sorted(FOLDER.glob("*.json")):
        for entry in json.loads(file.read_text(encoding="utf-8")):
            lists = {
                name: tuple(entry[name])
                for name in ("proves", "steps", "replies", "routes")
                if name in entry
            }
            cases.append(Case(**{**entry, **lists}))
    ids = [case.id for case in cases]
    assert len(ids) == len(set(ids)), "a case id occurs twice"
    return cases


def scripts(cases: list[Case]) -> dict[str, list[dict[str, Any]]]:
    """The scripted replies of each profile."""
    replies: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        for reply in case.replies:
            said = reply.get("say")
            match = rf"^{re.escape(case.id)}(?![\w-])" if said is None else f"^{re.escape(said)}$"
            entry = {name: value for name, value in reply.items() if name not in ("say", "parts")}
            if "parts" in reply:
                entry["token_ids"] = _token_ids(case.server, reply["parts"])
            elif "text" in reply and model_of(case.server) is not None:
                entry["token_ids"] = _token_ids(case.server, [entry.pop("text")])
            replies.setdefault(case.server, []).append({"match": match} | entry)
    return replies


def _token_ids(server: str, parts: list[str | dict[str, str]]) -> list[int]:
    model = model_of(server)
    assert model is not None, f"the tokens of {server} are no bytes"
    return [
        token
        for part in parts
        for token in (model.ids(part) if isinstance(part, str) else model.plain_ids(part["plain"]))
    ]


def run(case: Case, client: httpx2.Client) -> None:
    """Run all steps, each in all its modes."""
    for steps in case.sequences():
        _run(case, steps, client)


def _run(case: Case, steps: list[dict[str, Any]], client: httpx2.Client) -> None:
    before: list[Reply] = []
    for number, step in enumerate(steps):
        where = f"{case.id} {step['route']} step {number}"
        if step["route"] == "get":
            _get(client, step, where)
            continue
        once = step["route"] in BUFFERED or "show" in step
        modes = step.get("modes", ("buffered",) if once else _MODES)
        replies = []
        for mode in modes:
            body = body_of(case.id, step)
            if mode == "streamed":
                body = streamed(step["route"], body)
            reply = send(client, step["route"], body, step.get("headers"))
            expect = dict(step.get("expect", {}))
            if "show" in step and step["route"] == "compact":
                reply.prompt = _prompt_behind(reply, client)
            elif "show" in step:
                expect |= {"status": 400, "error": {"type": "invalid_request_error"}}
                reply.prompt = shown_prompt(reply)
            model = model_of(case.server)
            ResponseExpectation(f"{where} {mode}", reply, before, body, model).check(expect)
            replies.append(reply)
        if len(modes) == 2 and step.get("equal", True):
            whole, stream = (comparable(reply) for reply in replies)
            assert whole == stream, f"{where}: buffered {whole} is not streamed {stream}"
            assert replies[0].told == replies[1].told, f"{where}: {replies[1].told}"
        if step["route"] in COUNTS and not any(i.kind == "compaction" for i in replies[0].items):
            _count(case, step, replies[0], client, where)
        before.append(replies[0])


def _prompt_behind(compaction: Reply, client: httpx2.Client) -> str | None:
    """The prompt of a conversation that goes on from what a compaction made of it."""
    output = [item.value for item in compaction.items]
    body = {"model": ALIASES[-1], "input": output, "chat_template_kwargs": SHOW}
    return shown_prompt(send(client, "responses", body))


def _count(
    case: Case, step: dict[str, Any], reply: Reply, client: httpx2.Client, where: str
) -> None:
    """The route that counts knows the prompt of what was answered or shown."""
    body = body_of(case.id, step)
    if step["route"] == "responses":
        body = {name: value for name, value in body.items() if name in _COUNTED}
    if reply.prompt is not None:
        model = model_of(case.server)
        assert model is not None, f"{where}: the tokens are no bytes"
        wanted = len(model.ids(reply.prompt))
        for name in SHOW:
            del body["chat_template_kwargs"][name]
    elif reply.usage is not None:
        wanted = reply.prompt_tokens
    else:
        return
    counted = send(client, COUNTS[step["route"]], body, step.get("headers"))
    assert counted.error is None, f"{where}: not counted: {counted.error}"
    assert counted.prompt_tokens == wanted, f"{where}: {counted.prompt_tokens}, not {wanted}"


def _get(client: httpx2.Client, step: dict[str, Any], where: str) -> None:
    response = client.get(step["path"], headers=step.get("headers"))
    expect = dict(step["expect"])
    assert response.status_code == expect.pop("status", 200), f"{where}: {response.text}"
    body = response.json()
    if response.status_code >= 400:
        anthropic = "anthropic-version" in (step.get("headers") or {})
        error = anthropic_error_of(body, response.headers) if anthropic else error_of(body)
        subset(expect.pop("error", {}), error, where)
    subset(expect.pop("body", {}), body, where)
    assert not expect, f"{where}: unknown expectations {expect}"


def _has(body: Any, path: list[str]) -> bool:
    """Whether a body holds a field; `messages[].name` looks into every message."""
    if not path:
        return True
    name, inside = path[0].removesuffix("[]"), path[0].endswith("[]")
    if not isinstance(body, dict) or name not in body:
        return False
    if inside:
        value = body[name]
        return isinstance(value, list) and any(_has(item, path[1:]) for item in value)
    return _has(body[name], path[1:])
