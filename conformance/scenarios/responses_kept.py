"""What is kept of Responses: conversations that go on, replays, notes, secrets; and bounds."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from conformance import sse
from conformance.bodies import SHOW, shown_prompt
from conformance.models import MODELS
from conformance.profiles import CONTEXT, KEYS, Pool
from conformance.replies import comparable, send
from conformance.reply import Reply, error_of
from conformance.response_translate import flat
from conformance.scenarios.responses import PATH, asked
from conformance.server import Server

_TOOLS = [flat({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}})]
_SUMMARY = "Summary: lexer finished, tests next."


def _shown(server: Server, body: dict[str, Any], **headers: str) -> str:
    """The prompt of a body."""
    reply = send(server.http, "responses", {**body, "chat_template_kwargs": SHOW}, headers)
    prompt = shown_prompt(reply)
    assert prompt is not None and prompt.startswith("<|im_start|>"), reply
    return prompt


def stored_conversation(pool: Pool, _: Callable[..., Server]) -> None:
    """D024: a continued response has the whole conversation before it, calls included."""
    server = pool.get("thinker")
    first = send(server.http, "responses", asked("D024", tools=_TOOLS, instructions="Be brief."))
    (call,) = first.items
    assert first.told and first.told["store"] is True and call.kind == "function_call", first
    result = {
        "type": "function_call_output", "call_id": call.value["call_id"], "output": "ok",
    }  # fmt: skip
    more = asked([result], previous_response_id=first.body["id"], tools=_TOOLS)
    whole = asked([{"role": "user", "content": "D024"}, call.value, result], tools=_TOOLS)
    prompt = _shown(server, more)
    assert prompt == _shown(server, whole), "another prompt than that of all items"
    assert prompt.index("D024") < prompt.index('"x": 1') < prompt.index("\nok\n"), prompt
    assert "Be brief." not in prompt, "instructions are carried over"
    second = send(server.http, "responses", more)
    told = send(server.http, "responses", whole)
    assert second.prompt_tokens == told.prompt_tokens == send(
        server.http, "input_tokens", more
    ).prompt_tokens, second.usage  # fmt: skip
    assert comparable(second) == comparable(told), second
    assert second.told and second.told["previous_response_id"] == first.body["id"], second.told
    third = asked("and then?", previous_response_id=second.body["id"], tools=_TOOLS)
    said = {"role": "user", "content": "and then?"}
    items = [*whole["input"], *(item.value for item in second.items), said]
    assert _shown(server, third) == _shown(server, asked(items, tools=_TOOLS))
    _references(server, call.value, whole)
    _kept_or_not(server, first, second)


def _references(server: Server, call: dict[str, Any], whole: dict[str, Any]) -> None:
    """A reference stands for the item of its id, with or without a type."""
    said, _, result = whole["input"]
    for reference in (
        {"type": "item_reference", "id": call["id"]},
        {"type": None, "id": call["id"]},
        {"id": call["id"]},
    ):
        referred = asked([said, reference, result], tools=_TOOLS)
        assert _shown(server, referred) == _shown(server, whole), reference


def _kept_or_not(server: Server, first: Reply, second: Reply) -> None:
    """What is kept can be read, listed and deleted; what continues it stays."""
    place = f"{PATH}/{first.body['id']}"
    assert server.http.get(place).json() == first.body
    listed = server.http.get(f"{place}/input_items").json()
    assert listed["object"] == "list" and listed["has_more"] is False, listed
    (item,) = listed["data"]
    assert item["content"] == [{"type": "input_text", "text": "D024"}], item
    assert listed["first_id"] == listed["last_id"] == item["id"], listed
    deleted = server.http.delete(place).json()
    assert deleted == {"id": first.body["id"], "object": "response", "deleted": True}
    for method in ("GET", "DELETE"):
        _missing(server.http.request(method, place))
    _missing(server.http.get(f"{place}/input_items"))
    assert server.http.get(f"{PATH}/{second.body['id']}").json() == second.body
    going = asked("on", previous_response_id=second.body["id"], tools=_TOOLS)
    assert '"x": 1' in _shown(server, going), "a deleted response takes its conversation along"
    unkept = send(server.http, "responses", asked("hello", store=False))
    assert unkept.told and unkept.told["store"] is False, unkept.told
    _missing(server.http.get(f"{PATH}/{unkept.body['id']}"))
    lost = send(server.http, "responses", asked("x", previous_response_id=unkept.body["id"]))
    assert lost.error and lost.error["code"] == "previous_response_not_found", lost


def _missing(response: httpx2.Response) -> None:
    assert response.status_code == 404, response.text
    assert error_of(response.json())["type"] == "invalid_request_error", response.text


def input_pages(pool: Pool, _: Callable[..., Server]) -> None:
    """The items of a request come in pages, newest first unless asked otherwise."""
    server = pool.get("scripted")
    said = [{"role": "user", "content": f"number {number}"} for number in range(25)]
    kept = send(server.http, "responses", asked(said))
    place = f"{PATH}/{kept.body['id']}/input_items"

    def page(**query: Any) -> tuple[list[str], dict[str, Any]]:
        listed = server.http.get(place, params=query).json()
        return [item["content"][0]["text"] for item in listed["data"]], listed

    texts = [item["content"] for item in said]
    newest, listed = page()
    assert newest == texts[::-1][:20] and listed["has_more"] is True
    rest, listed = page(after=listed["last_id"])
    assert rest == texts[::-1][20:] and listed["has_more"] is False
    oldest, listed = page(order="asc", limit=3)
    assert oldest == texts[:3] and listed["first_id"] == listed["data"][0]["id"], listed
    assert page(order="asc", limit=100)[0] == texts
    for query in ({"limit": 0}, {"limit": 101}, {"order": "up"}, {"after": "msg_none"}):
        refused = server.http.get(place, params=query)
        assert refused.status_code == 400, f"{query}: {refused.text}"
        assert error_of(refused.json())["param"] == next(iter(query)), refused.text


def replayed_stream(pool: Pool, _: Callable[..., Server]) -> None:
    """The events of a kept response come again, all of them or those behind a number."""
    server = pool.get("thinker")
    response = server.http.post(PATH, json=asked("D004", stream=True))
    events = sse.parse(response.content)
    final = events[-1].data["response"]
    place = f"{PATH}/{final['id']}"
    assert server.http.get(place).json() == final, "another object than that of the last event"
    again = server.http.get(place, params={"stream": "true"})
    assert again.headers["content-type"].partition(";")[0] == "text/event-stream"
    assert sse.parse(again.content) == events, "the replay differs"
    for after in (0, 4, len(events) - 2, len(events) + 5):
        query = {"stream": "true", "starting_after": str(after)}
        part = sse.parse(server.http.get(place, params=query).content)
        assert part == events[after + 1 :], f"behind {after}: {part}"
    for query in ({"starting_after": "3"}, {"stream": "true", "starting_after": "x"}):
        refused = server.http.get(place, params=query)
        assert refused.status_code == 400, refused.text
        assert error_of(refused.json())["param"] == "starting_after", refused.text
    whole = send(server.http, "responses", asked("D004"))
    replay = server.http.get(f"{PATH}/{whole.body['id']}", params={"stream": "true"})
    assert sse.parse(replay.content)[-1].data["response"] == whole.body


def store_bounds(_: Pool, start: Callable[..., Server]) -> None:
    """D026: the oldest that nobody has read make room, over whatever is kept at most."""
    server = start([{"text": "ok"}], "--store-max-responses", "4")
    made = [send(server.http, "responses", asked("x")).body["id"] for _ in range(4)]
    assert server.http.get(f"{PATH}/{made[0]}").status_code == 200  # used last from now on
    made += [send(server.http, "responses", asked("x")).body["id"] for _ in range(2)]
    found = [server.http.get(f"{PATH}/{one}").status_code for one in made]
    assert found == [200, 404, 404, 200, 200, 200], found
    assert server.http.delete(f"{PATH}/{made[3]}").json()["deleted"] is True
    _missing(server.http.get(f"{PATH}/{made[3]}"))


def no_store(_: Pool, start: Callable[..., Server]) -> None:
    """Without a store nothing is kept, which a request that asks for it is told."""
    server = start([{"text": "ok"}], "--store", "off")
    reply = send(server.http, "responses", asked("x"))
    assert reply.told and reply.told["store"] is False, reply.told
    _missing(server.http.get(f"{PATH}/{reply.body['id']}"))
    assert send(server.http, "responses", asked("x", store=False)).status == 200
    refused = send(server.http, "responses", asked("x", store=True))
    assert refused.status == 400 and refused.error and refused.error["param"] == "store", refused


# Notes and secrets


def compacted_conversation(pool: Pool, start: Callable[..., Server]) -> None:
    """D028, D029: the route makes a note of a conversation, which takes its place in a prompt."""
    folder = Path(tempfile.mkdtemp())
    nothing = {"match": r"^The record of the session:[\s\S]*(notes so far|at length)", "text": ""}
    reply = {"match": "record of the session", "text": _SUMMARY}
    server = start([nothing, reply], "--model", str(MODELS["thinker"].write(folder / "model")))
    spoken = [
        {"role": "user", "content": "build a parser"},
        {"role": "assistant", "content": "done: lexer"},
        {"role": "user", "content": "now tests"},
    ]
    before = server.metrics()
    made = send(server.http, "compact", asked(spoken))
    *users, note = (item.value for item in made.items)
    said = [item["content"][0]["text"] for item in users]
    assert said == ["build a parser", "now tests"], users
    assert "Summary" not in note["encrypted_content"], note
    assert before["completed"] < server.metrics()["completed"], "the model wrote nothing"
    _missing(server.http.get(f"{PATH}/{made.body['id']}"))
    rule = {"role": "developer", "content": "new rule"}
    going = asked([*users, note, rule, {"role": "user", "content": "go on"}])
    prompt = _shown(server, going)
    for part in (_SUMMARY, "new rule", "go on", "build a parser"):
        assert part in prompt, f"no {part}: {prompt}"
    assert "done: lexer" not in prompt, prompt
    assert send(server.http, "responses", going).status == 200
    for wrong in (_changed(note["encrypted_content"]), "gAAAA", ""):
        items = [*users, {**note, "encrypted_content": wrong}]
        for route in ("responses", "compact"):
            refused = send(server.http, route, asked(items))
            assert refused.status == 400 and refused.error, refused
            assert refused.error["param"] == "input[2].encrypted_content", refused.error
    _compacted_again(server, going)
    _compacted_from_store(server)
    for window, most in ((pool.get("thinker"), CONTEXT // 8), (server, 4096)):
        assert _longest_note(window) == most, window.options
        assert _longest_note(window, max_compaction_tokens=most + 1) == most + 1, window.options


def _compacted_again(server: Server, body: dict[str, Any]) -> None:
    """The note of an earlier compaction is in the next one, which here is the record itself."""
    made = send(server.http, "compact", body)
    texts = [item.value["content"][0]["text"] for item in made.items[:-1]]
    assert texts == ["build a parser", "now tests", "go on"], made.items
    prompt = _shown(server, asked([item.value for item in made.items]))
    newer = "[user]\nbuild a parser\n\n[user]\nnow tests\n\n[instructions]\nnew rule"
    assert f"{_SUMMARY}\n\n{newer}\n\n[user]\ngo on<|im_end|>" in prompt, prompt


def _compacted_from_store(server: Server) -> None:
    """What is kept on the server is compacted by the id of a response, or of an item."""
    kept = send(server.http, "responses", asked("build a parser"))
    listed = server.http.get(f"{PATH}/{kept.body['id']}/input_items").json()["data"]
    earlier = asked([{"role": "user", "content": "x"}], previous_response_id=kept.body["id"])
    whole = send(server.http, "compact", earlier)
    assert [item.kind for item in whole.items] == ["message", "message", "compaction"], whole
    assert whole.items[0].value == listed[0], whole.items
    told = asked([listed[0], *(item.value for item in kept.items), *earlier["input"]])
    assert send(server.http, "compact", told).prompt_tokens == whole.prompt_tokens
    referred = send(server.http, "compact", asked([{"id": listed[0]["id"]}]))
    assert [item.value for item in referred.items[:-1]] == listed, referred.items


def _longest_note(server: Server, **fields: Any) -> int:
    """The tokens of a note that is as long as it may be, since the record itself becomes it."""
    spoken = [
        {"role": "user", "content": "at length"}, {"role": "assistant", "content": "x" * 20_000},
    ]  # fmt: skip
    made = send(server.http, "compact", asked(spoken, **fields))
    (note,) = re.findall("x{9,}", _shown(server, asked([item.value for item in made.items])))
    return len(note)


def secret_thoughts(pool: Pool, start: Callable[..., Server]) -> None:
    """A thought in secret alone is replayed; another's secret, or a changed one, says nothing."""
    server = pool.get("coder")
    thought = _thought(server)
    spelt = "<think>\ndeep \u00e9 thought\n</think>\n\nAnswer"
    prompt = _shown(server, _replay(thought))
    assert spelt in prompt, prompt
    hidden = {**thought, "content": None}
    assert "deep" not in hidden["encrypted_content"]
    assert _shown(server, _replay(hidden)) == prompt
    del hidden["content"]
    assert _shown(server, _replay(hidden)) == prompt
    before = server.metrics()["dropped_reasoning"]
    for secret in (_changed(hidden["encrypted_content"]), "gAAAA"):
        found = _shown(server, _replay({**hidden, "encrypted_content": secret}))
        assert "deep" not in found, found
    assert server.metrics()["dropped_reasoning"] >= before + 2
    _bound_to_tenant(start)


def _bound_to_tenant(start: Callable[..., Server]) -> None:
    """Neither secrets, nor notes, nor what is kept are another tenant's."""
    folder = Path(tempfile.mkdtemp())
    (folder / "keys").write_text("".join(f"{name} = {key}\n" for name, key in KEYS.items()))
    options = ("--model", str(MODELS["coder"].write(folder / "model")), "--api-key-file")
    reply = {"match": "SECRETS", "text": "deep \u00e9 thought</think>Answer"}
    server = start([reply], *options, str(folder / "keys"))
    ops, lab = ({"authorization": f"Bearer {KEYS[name]}"} for name in ("ops", "lab"))
    thought = _thought(server, **ops)
    del thought["content"]
    assert "deep" in _shown(server, _replay(thought), **ops)
    assert "deep" not in _shown(server, _replay(thought), **lab)
    made = server.http.post(f"{PATH}/compact", json=asked("SECRETS"), headers=ops).json()
    assert send(server.http, "responses", asked(made["output"]), ops).status == 200
    assert send(server.http, "responses", asked(made["output"]), lab).status == 400
    kept = send(server.http, "responses", asked("hello"), ops).body["id"]
    assert server.http.get(f"{PATH}/{kept}", headers=ops).status_code == 200
    _missing(server.http.get(f"{PATH}/{kept}", headers=lab))
    _missing(server.http.delete(f"{PATH}/{kept}", headers=lab))
    going = send(server.http, "responses", asked("x", previous_response_id=kept), lab)
    assert going.error and going.error["code"] == "previous_response_not_found", going


def _thought(server: Server, **headers: str) -> dict[str, Any]:
    body = asked("SECRETS", include=["reasoning.encrypted_content"])
    reply = send(server.http, "responses", body, headers)
    assert [item.kind for item in reply.items] == ["reasoning", "message"], reply.items
    return dict(reply.items[0].value)


def _replay(thought: dict[str, Any]) -> dict[str, Any]:
    answer = {"role": "assistant", "content": "Answer"}
    return asked(
        [{"role": "user", "content": "q"}, thought, answer, {"role": "user", "content": "r"}]
    )


def _changed(text: str) -> str:
    """With another last character but one."""
    return text[:-2] + ("A" if text[-2] != "A" else "B") + text[-1]


SCENARIOS = (
    stored_conversation, input_pages, replayed_stream, store_bounds, no_store,
    compacted_conversation, secret_thoughts,
)  # fmt: skip
