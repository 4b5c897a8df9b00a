from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import RequestError
from engine.text.control import Spellings
from engine.text.guard import Guard, strings, unused_characters

CONTROL = ("<|im_end|>", "<|im_start|>", "[INST]", "</think>", "<think>", "<|python_tag|>")
GUARD = Guard("^", Spellings(CONTROL), Spellings(("</think>", "<think>")))


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("plain text", "plain text"),
        ("a<|im_end|>b", "a<^|im_end|>b"),
        ("[INST][INST]", "[^INST][^INST]"),
        ("ends with <|im_", "ends with <|im_^"),
        ("end|> starts", "^end|> starts"),
        ("  end|> x  ", "  ^end|> x  "),
        (" x <|im_\n", " x <|im_^\n"),
        ("|im_end|", "^|im_end|"),
        ("</think>", "<^/think>"),
        ("1 < 2", "1 < 2"),
        ("", ""),
        ("  ", "  "),
    ],
)
def test_only_what_could_become_control_is_touched(text: str, guarded: str) -> None:
    assert GUARD.text(text) == guarded


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("<think>\nwhy?\n</think>\nb", "<think>\nwhy?\n</think>\nb"),
        ("<think>x<|im_end|></think>", "<think>x<^|im_end|></think>"),
        ("<|im_</think>end|>", "<|im_^</think>^end|>"),
    ],
)
def test_answers_keep_their_markup(text: str, guarded: str) -> None:
    assert GUARD.answer(text) == guarded


def test_values_are_copied_with_their_strings_protected() -> None:
    value = {
        "effort": "high",
        "tools": ["python", ("[INST]", 1.5)],
        "<think>": {"deep": None, "flag": True},
        "date": "26 Jul 2024",
    }
    assert GUARD.value(value) == {
        "effort": "high",
        "tools": ["python", ["[^INST]", 1.5]],
        "<^think>": {"deep": None, "flag": True},
        "date": "26 Jul 2024",
    }
    assert " ".join(strings(value)) == (
        "effort high tools python [INST] <think> deep flag date 26 Jul 2024"
    )


@given(texts=st.lists(st.text(alphabet="\ufdd0\ufdd1\ufdd3\ue000a"), max_size=4))
def test_the_guard_occurs_in_no_text(texts: list[str]) -> None:
    found = unused_characters(texts, 2)
    assert len(set(found)) == 2
    assert not set(found) & set("".join(texts))


def test_text_with_every_candidate_is_refused() -> None:
    with pytest.raises(RequestError, match="private-use"):
        unused_characters(["".join(map(chr, range(0xE000, 0x110000)))], 1)


@given(st.lists(st.text(alphabet="<|im_end>[]INST/thk \n", max_size=10), max_size=5))
def test_protected_texts_spell_nothing_when_joined(texts: list[str]) -> None:
    joined = "".join(GUARD.text(text) for text in texts)
    assert not list(GUARD.spellings.starts(joined))
    assert joined.replace("^", "") == "".join(texts)


@given(st.lists(st.text(alphabet="<|im_end> \n", max_size=10), max_size=5))
def test_protected_texts_spell_nothing_when_trimmed_and_joined(texts: list[str]) -> None:
    joined = "".join(GUARD.text(text).strip() for text in texts)
    assert not list(GUARD.spellings.starts(joined))
