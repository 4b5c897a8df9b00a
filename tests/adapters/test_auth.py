"""Keys: who is let in, as which tenant."""

from __future__ import annotations

import hmac
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from adapters.auth import Keys
from adapters.envelope import HttpError
from engine.errors import StartupError

TENANTS = Keys({"alpha-key": "alpha", "beta-key": "beta"})


def headers(**values: bytes) -> Headers:
    raw = [(name.replace("_", "-").encode(), value) for name, value in values.items()]
    return Headers(raw=raw)


def load(tmp_path: Path, text: str) -> Keys:
    path = tmp_path / "keys"
    path.write_text(text)
    return Keys.load(path)


def bearer(key: str) -> Headers:
    return headers(authorization=f"Bearer {key}".encode())


@pytest.mark.parametrize(
    ("given", "tenant"),
    [
        (bearer("alpha-key"), "alpha"),
        (bearer("beta-key"), "beta"),
        (headers(authorization=b"bearer  beta-key "), "beta"),
        (headers(x_api_key=b"beta-key"), "beta"),
        (headers(x_api_key=b"wrong", authorization=b"Bearer alpha-key"), "alpha"),
        (headers(x_api_key=b"alpha-key", authorization=b"Bearer wrong"), "alpha"),
    ],
)
def test_one_matching_header_is_enough(given: Headers, tenant: str) -> None:
    assert TENANTS.identify(given) == tenant


@pytest.mark.parametrize(
    "given",
    [
        headers(),
        bearer("wrong"),
        bearer(""),
        bearer("alpha-key2"),
        bearer("alpha-ke"),
        bearer("alpha"),
        headers(authorization=b"Basic alpha-key"),
        headers(authorization=b"alpha-key"),
        headers(authorization=b"Bearer"),
        headers(authorization=b"Beareralpha-key"),
        headers(authorization=b"Bearer \xff\xfe\x80"),
        headers(x_api_key=b"\xe9"),
        headers(x_api_key=b""),
    ],
)
def test_anything_else_is_401(given: Headers) -> None:
    with pytest.raises(HttpError) as caught:
        TENANTS.identify(given)
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")
    assert caught.value.headers == {"WWW-Authenticate": "Bearer"}
    assert "Authorization: Bearer KEY" in caught.value.message
    assert "x-api-key: KEY" in caught.value.message


def test_without_keys_everyone_is_the_same_tenant() -> None:
    assert Keys.load(None).identify(headers()) == ""
    assert Keys.load(None).identify(bearer("whatever")) == ""


@pytest.mark.parametrize(
    ("text", "key", "tenant"),
    [
        ("secret\n", "secret", ""),
        ("# the key\n\n  secret  \n", "secret", ""),
        ("sk-abc==\n", "sk-abc==", ""),
        ("team = secret\n", "secret", "team"),
        ("# two\na = one\nb = two=2\n", "two=2", "b"),
        ("a=one\nb=two\n", "one", "a"),
        ("a = schlüssel\n", "schlüssel", "a"),
    ],
)
def test_a_key_file_holds_one_key_or_tenants(
    tmp_path: Path, text: str, key: str, tenant: str
) -> None:
    """A key reaches the server as the bytes of its UTF-8 form."""
    assert load(tmp_path, text).identify(bearer(key)) == tenant


@pytest.mark.parametrize(
    "text", ["", "\n# nothing\n", "one\ntwo\n", "a = x\nb = x\n", "a = \nb = y\n", " = x\nb = y\n"]
)
def test_a_wrong_key_file_is_named_without_its_keys(tmp_path: Path, text: str) -> None:
    with pytest.raises(StartupError, match=str(tmp_path / "keys")) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00key"])
def test_an_unreadable_key_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "keys"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StartupError, match=str(path)):
        Keys.load(path)


def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    real = hmac.compare_digest

    def watched(key: bytes, candidate: bytes) -> bool:
        compared.append(key)
        return real(key, candidate)

    monkeypatch.setattr("adapters.auth.hmac.compare_digest", watched)
    TENANTS.identify(bearer("alpha-key"))
    first = sorted(compared)
    compared.clear()
    with pytest.raises(HttpError):
        TENANTS.identify(bearer("wrong"))
    assert sorted(compared) == first
    assert set(first) == {b"alpha-key", b"beta-key"}
