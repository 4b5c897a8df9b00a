from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken

from engine.text.control import Spellings, is_control


@pytest.mark.parametrize(
    ("content", "special", "control"),
    [
        ("<|im_end|>", True, True),
        ("<tool_call>", False, True),
        ("[INST]", False, True),
        ("[TOOL_CALLS] [", True, True),
        ("EOS", True, True),
        ("word", False, False),
        ("\n\n", False, False),
        ("    ", True, False),
        ("< >", False, False),
        ("<>", False, False),
        ("x", True, False),
    ],
)
def test_which_added_tokens_are_control(content: str, special: bool, control: bool) -> None:
    assert is_control(AddedToken(content, special=special)) is control


@given(
    contents=st.lists(st.text(alphabet="<ab>", min_size=2, max_size=5), max_size=6),
    text=st.text(alphabet="<ab>", max_size=20),
)
def test_finds_what_the_definition_finds(contents: list[str], text: str) -> None:
    spellings = Spellings(contents)
    longest = {
        at: max((len(word) for word in contents if text.startswith(word, at)), default=0)
        for at in range(len(text))
    }
    assert list(spellings.starts(text)) == [(at, at + size) for at, size in longest.items() if size]
    found, at = [], 0
    while at < len(text):
        if longest[at]:
            found.append((at, at + longest[at]))
        at += longest[at] or 1
    assert list(spellings.find(text)) == found


@given(
    contents=st.lists(st.text(alphabet="<ab>", min_size=2, max_size=4), min_size=1, max_size=4),
    before=st.text(alphabet="<ab>", max_size=4),
    text=st.text(alphabet="<ab>", min_size=1, max_size=4),
    after=st.text(alphabet="<ab>", max_size=4),
)
def test_edges_are_open_where_a_spelling_can_cross_them(
    contents: list[str], before: str, text: str, after: str
) -> None:
    spellings = Spellings(contents)
    left, right = len(before), len(before) + len(text)
    for start, end in spellings.starts(before + text + after):
        if start < left < right < end:
            assert spellings.within(text)
        elif start < left < end:
            assert spellings.open_left(text)
        elif start < right < end:
            assert spellings.open_right(text)


def test_no_spellings() -> None:
    empty = Spellings(())
    assert list(empty.find("<a>")) == []
    assert not (empty.open_left("a") or empty.open_right("a") or empty.within("a"))
