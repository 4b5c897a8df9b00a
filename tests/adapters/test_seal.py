"""Signed and sealed thoughts: what comes back, and what does not."""

from __future__ import annotations

import hmac
import os
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.seal import MOST_BYTES, Seal

SEAL = Seal(bytes(range(32)))
OTHER = Seal(bytes(range(1, 33)))
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
PREFIX = f"flare-thinking-v1:{SEAL.key_id}:"

TEXTS = {
    "empty": "",
    "plain": "I think the user wants a poem.",
    "unicode": "日本語 😀 e\u0301 \u202e",
    "nul": "a\0b\0",
    "lone surrogates": "\ud800 x \udfff\ud83d",
    "surrogates that look like a pair": "\ud83d\ude00",
    "a pair": "😀",
    "our own mark": f"{PREFIX}sealed:AAAA",
    "line breaks": "\r\n\u2028\n",
    "large": "thinking about it; " * 200_000,
}

any_text = st.text(st.characters(exclude_categories=()), max_size=200)


def sealed(text: str = "thoughts", tenant: str = "t", model: str = "m") -> str:
    return SEAL.seal(text, tenant, model)


def unseal(content: str, tenant: str = "t", model: str = "m") -> str | None:
    return SEAL.unseal(content, tenant, model)


def check(signature: str, text: str, tenant: str = "t", model: str = "m") -> str:
    return SEAL.check(signature, text, tenant, model)


# what comes back


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_sealed_text_comes_back_as_it_was(text: str) -> None:
    assert unseal(sealed(text)) == text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_signed_text_is_ours_and_no_other_is(text: str) -> None:
    signature = SEAL.sign(text)
    assert [check(signature, other) for other in TEXTS.values()] == [
        "ours" if other == text else "broken" for other in TEXTS.values()
    ]


@given(any_text, any_text, any_text)
def test_any_text_of_any_tenant_and_model_comes_back(text: str, tenant: str, model: str) -> None:
    content = SEAL.seal(text, tenant, model)
    assert SEAL.unseal(content, tenant, model) == text
    assert SEAL.check(content, text, tenant, model) == "ours"
    assert SEAL.check(SEAL.sign(text), text, tenant, model) == "ours"


def test_equal_arguments_give_equal_results() -> None:
    again = Seal(bytes(range(32)))
    for text in TEXTS.values():
        assert again.sign(text) == SEAL.sign(text)
        assert again.seal(text, "t", "m") == sealed(text)
    assert again.key_id == SEAL.key_id


def test_the_forms_name_their_key_and_travel_in_any_field() -> None:
    """Letters that JSON, headers and URLs leave alone; the key is named, not shown."""
    mark, key_id, tag = SEAL.sign("x").split(":")
    assert (mark, key_id) == ("flare-thinking-v1", SEAL.key_id)
    assert len(tag) >= 22 and set(tag) <= set(LETTERS)  # 22 letters: 128 bits
    mark, key_id, word, content = sealed("x").split(":")
    assert (mark, key_id, word) == ("flare-thinking-v1", SEAL.key_id, "sealed")
    assert set(content) <= set(LETTERS)
    assert len(SEAL.key_id) == 8 and set(SEAL.key_id) <= set("0123456789abcdef")
    assert SEAL.key_id not in bytes(range(32)).hex()


def test_what_a_key_makes_stays_what_it_is() -> None:
    """A change here makes the thoughts of every running conversation foreign."""
    assert SEAL.sign("thoughts") == SIGNED
    assert unseal(KEPT) == "thoughts"


SIGNED = "flare-thinking-v1:77a34ea2:w0WzXCzLI1Kq5IHWPLXKMw"
KEPT = (
    "flare-thinking-v1:77a34ea2:sealed:WL-7tEdjAD0IvqDn1TCrslFQhwHZQxbo-9QnuGw7AfhUymgLrqeK9qqTsHI"
)


def test_a_sealed_text_is_neither_readable_nor_much_longer_than_it_packs() -> None:
    text = "a secret thought. " * 1000
    content = sealed(text)
    assert len(content) < len(text) / 20
    assert len(sealed("")) < 120
    assert sealed("x")[-40:] != sealed("y")[-40:]
    assert sealed("one two three").count("one") == 0


def test_no_two_contents_share_a_nonce() -> None:
    """GCM does not survive one (NIST SP 800-38D, appendix A)."""
    contents = [
        sealed(text, tenant, model) for text in ("a", "b") for tenant in "tu" for model in "mn"
    ]
    nonces = {content.split(":")[3][:16] for content in contents}  # 16 letters: 12 bytes
    assert len(nonces) == len(contents) == 8


def test_a_nonce_tells_nothing_to_who_guesses_the_text() -> None:
    """It depends on the key: nobody else can compute it for a guess, and compare."""
    nonces = {seal.seal("thoughts", "t", "m").split(":")[3][:16] for seal in (SEAL, OTHER)}
    assert len(nonces) == 2


def test_the_nonce_depends_on_how_the_text_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another zlib may pack a text otherwise, which is another content for GCM."""
    text = "thoughts " * 50
    before = sealed(text)
    pack = zlib.compress
    monkeypatch.setattr("adapters.seal.zlib.compress", lambda data: pack(data, 1))
    after = sealed(text)
    assert before != after
    assert before.split(":")[3][:16] != after.split(":")[3][:16]
    assert unseal(before) == unseal(after) == text


# what does not come back


@pytest.mark.parametrize(
    ("tenant", "model"), [("u", "m"), ("t", "n"), ("", "m"), ("t", ""), ("m", "t"), ("tm", ""),
                          ("", "tm"), ("t\0", "m"), ("T", "m")],
)  # fmt: skip
def test_a_content_opens_for_its_tenant_and_model_only(tenant: str, model: str) -> None:
    content = sealed()
    assert unseal(content) == "thoughts"
    assert unseal(content, tenant, model) is None
    assert check(content, "thoughts", tenant, model) == "broken"


def test_tenant_and_model_do_not_run_into_each_other() -> None:
    assert unseal(sealed(tenant="a", model="bc"), "ab", "c") is None


def test_another_key_opens_nothing_and_judges_nothing() -> None:
    assert OTHER.key_id != SEAL.key_id
    assert OTHER.unseal(sealed(), "t", "m") is None
    for signature in (SEAL.sign("thoughts"), sealed()):
        assert OTHER.check(signature, "thoughts", "t", "m") == "foreign"
    assert OTHER.sign("thoughts").split(":")[2] != SEAL.sign("thoughts").split(":")[2]


def test_the_name_of_a_key_is_not_the_key() -> None:
    """Another key's work under this key's name."""
    for made in (OTHER.sign("thoughts"), OTHER.seal("thoughts", "t", "m")):
        renamed = made.replace(OTHER.key_id, SEAL.key_id)
        assert unseal(renamed) is None
        assert check(renamed, "thoughts") == "broken"


def changed(text: str) -> list[str]:
    """The text with each letter replaced, in turn, by a few others; with one left out; doubled."""
    letters = (*LETTERS, ":", "=", "\0", "é", "\ud800")
    found = [
        text[:place] + letter + text[place + 1 :]
        for place in range(len(text))
        for letter in letters
        if letter != text[place]
    ]
    found += [text[:place] + text[place + 1 :] for place in range(len(text))]
    found += [text[:place] + text[place] + text[place:] for place in range(len(text))]
    return [other for other in found if other != text]


def test_a_change_of_any_letter_keeps_a_content_shut() -> None:
    """The last letter too, whose spare bits base64 readers tend to ignore."""
    for length in (0, 1, 2):
        content = sealed("x" * length)
        assert [other for other in changed(content) if unseal(other) is not None] == []


def test_a_change_of_any_letter_breaks_a_signature() -> None:
    signature = SEAL.sign("thoughts")
    for other in changed(signature[len(PREFIX) :]):
        assert check(PREFIX + other, "thoughts") == "broken"
    for other in changed(signature[: len(PREFIX)]):
        verdict = check(other + signature[len(PREFIX) :], "thoughts")
        assert verdict == ("broken" if other.startswith(PREFIX) else "foreign")


@pytest.mark.parametrize("made", [sealed(), SEAL.sign("thoughts")], ids=["sealed", "signed"])
def test_what_was_cut_or_lengthened_is_not_ours(made: str) -> None:
    for length in range(len(made)):
        assert unseal(made[:length]) is None
        known = length >= len(PREFIX) - 1  # the key is named, the colon behind it may be missing
        assert check(made[:length], "thoughts") == ("broken" if known else "foreign")
    for more in ("A", "AAAA", "=", "==", "\n", " ", ":", "\0"):
        assert unseal(made + more) is None
        assert check(made + more, "thoughts") == "broken"


@pytest.mark.parametrize(
    "signature",
    [
        "",
        " ",
        "ErUBCkYIBRgCIkDGxhZ==",  # what other servers send
        "gAAAAABo",
        "flare-thinking-v1",
        "flare-thinking-v1:",
        "flare-thinking-v1::tag",
        "flare-thinking-v1:00000000:AAAAAAAAAAAAAAAAAAAAAA",
        "flare-thinking-v2" + SEAL.sign("thoughts")[17:],
        SEAL.sign("thoughts").upper(),
        " " + SEAL.sign("thoughts"),
        "x:" + SEAL.sign("thoughts"),
        f"flare-thinking-v1:{SEAL.key_id}0:tag",
        "\0",
        "\ud800",
        "é" * 100,
        "😀:" * 1_000_000,
        "A" * 5_000_000,
    ],
    ids=lambda signature: repr(signature[:40]),
)
def test_what_names_no_key_of_ours_is_foreign(signature: str) -> None:
    assert unseal(signature) is None
    assert check(signature, "thoughts") == check(signature, "") == "foreign"


@pytest.mark.parametrize(
    "body",
    [
        "", ":", "sealed", "sealed:", "sealed::", "sealed:A", "sealed:AAAA", "sealed:" + "A" * 37,
        "sealed:" + "A" * 38, "sealed:" + "A" * 39, "sealed:" + "A" * 64, "sealed:é", "sealed:\0",
        "sealed:\ud800", "sealed:====", "sealed:" + "A" * 5_000_000, "sealed:" + "é" * 2_000_000,
        "Sealed:" + "A" * 64, "\udfff", "tag", "A" * 22, "A" * 5_000_000,
    ],
    ids=lambda body: repr(body[:40]),
)  # fmt: skip
def test_nonsense_under_our_key_is_broken_and_never_raises(body: str) -> None:
    assert unseal(PREFIX + body) is None
    assert check(PREFIX + body, "thoughts") == check(PREFIX + body, "\ud800") == "broken"


@given(any_text, any_text)
def test_any_strings_are_judged(content: str, text: str) -> None:
    for given_content in (content, PREFIX + content, f"{PREFIX}sealed:{content}"):
        assert unseal(given_content) is None
        assert check(given_content, text) in ("foreign", "broken")


# sealed beside text


def test_a_sealed_content_vouches_for_its_own_text() -> None:
    content = sealed("thoughts")
    assert check(content, "thoughts") == "ours"
    assert check(content, "thoughts!") == "broken"
    assert check(content, "thought") == "broken"
    assert check(content, "\ud800") == "broken"


def test_a_sealed_content_without_text_stands_for_its_own() -> None:
    """A thinking block whose display is omitted: thinking "", and the seal as its signature."""
    assert check(sealed("thoughts"), "") == "ours"
    assert check(sealed("thoughts"), "", model="n") == "broken"
    assert check(SEAL.sign("thoughts"), "") == "broken"
    assert check(SEAL.sign(""), "") == "ours"


def test_a_signature_opens_nothing() -> None:
    assert unseal(SEAL.sign("thoughts")) is None


def test_tags_and_texts_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr("adapters.seal.hmac.compare_digest", watched)
    check(SEAL.sign("thoughts"), "thoughts")
    check(SEAL.sign("thoughts"), "otherwise")
    check(sealed("thoughts"), "Thoughts")
    assert compared == [(22, 22), (22, 22), (8, 8)]


# sizes


def test_a_text_of_exactly_the_limit_comes_back_and_a_longer_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert MOST_BYTES == 16 * 1024 * 1024
    monkeypatch.setattr("adapters.seal.MOST_BYTES", 1000)
    for text in ("x" * 1000, "é" * 500, os.urandom(500).hex()):
        assert unseal(sealed(text)) == text
        assert unseal(sealed(text + "x")) is None
        assert check(sealed(text + "x"), text + "x") == "broken"


def test_a_bomb_is_stopped_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = sealed("x" * 64 * 1024 * 1024)
    monkeypatch.setattr("adapters.seal.MOST_BYTES", 256 * 1024)
    tracemalloc.start()
    try:
        assert unseal(bomb) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024 * 1024
