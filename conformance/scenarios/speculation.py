"""Drafts: who gets them, and that they show in nothing but counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.profiles import Pool
from conformance.replies import send
from conformance.reply import Reply
from conformance.server import Server

SAID = "one red house and two blue birds near the old green tree. "
ANY = 20
"""Tokens of an answer: room for some that were said before."""


def no_drafts(pool: Pool, _: Callable[..., Server]) -> None:
    """disable_mtp: the same answer, without a single draft."""
    server = pool.get("embedded")
    bodies: dict[str, dict[str, Any]] = {
        "chat": {"messages": [{"role": "user", "content": SAID * 3}], "max_tokens": ANY},
        "completions": {"prompt": SAID * 3, "max_tokens": ANY},
        "messages": {"messages": [{"role": "user", "content": SAID * 3}], "max_tokens": ANY},
        "responses": {"model": "any", "input": SAID * 3, "max_output_tokens": ANY},
    }
    for route, body in bodies.items():
        asked = {**body, "temperature": 0}
        drafted, drafts = _drafts(server, route, asked)
        plain, none = _drafts(server, route, {**asked, "disable_mtp": True})
        assert drafts > 0 == none, f"{route}: {drafts} drafts with, {none} without"
        assert drafted.text == plain.text, f"{route}: drafts change the text"


def predictions(pool: Pool, _: Callable[..., Server]) -> None:
    """A prediction is drafted from; what it has right, or wrong, changes no text."""
    server = pool.get("embedded")
    ask = {
        "messages": [{"role": "user", "content": "Which animals live in a forest?"}],
        "max_tokens": ANY,
        "temperature": 0,
    }
    plain = send(server.http, "chat", {**ask, "disable_mtp": True})
    assert plain.status == 200, plain.error
    halves = plain.text[: len(plain.text) // 2], plain.text[len(plain.text) // 2 :]
    parts = [{"type": "text", "text": half} for half in halves]
    for content in (plain.text, parts):
        reply = send(
            server.http, "chat", {**ask, "prediction": {"type": "content", "content": content}}
        )
        accepted, rejected = _predicted(reply)
        assert reply.text == plain.text
        assert accepted >= ANY // 2 and accepted > rejected, (accepted, rejected)
    wrong = {"type": "content", "content": "Nothing at all lives there, as far as I can tell."}
    reply = send(server.http, "chat", {**ask, "prediction": wrong})
    assert reply.text == plain.text
    assert _predicted(plain) == (0, 0)


def _predicted(reply: Reply) -> tuple[int, int]:
    assert reply.usage is not None, reply.error
    details = reply.usage["completion_tokens_details"]
    assert ("accepted_prediction_tokens" in details) == ("rejected_prediction_tokens" in details)
    found = (details.get(f"{name}_prediction_tokens", 0) for name in ("accepted", "rejected"))
    accepted, rejected = found
    assert accepted <= reply.usage["completion_tokens"]
    return accepted, rejected


def _drafts(server: Server, route: str, body: dict[str, Any]) -> tuple[Reply, int]:
    """A reply, and how many drafts were checked for it."""
    before = server.until_idle()["verification_drafts"]
    reply = send(server.http, route, body)
    assert reply.status == 200, reply.error
    return reply, server.until_idle()["verification_drafts"] - before


SCENARIOS = (no_drafts, predictions)
