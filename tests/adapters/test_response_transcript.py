"""Records of conversations cut to size, and what tells a note from a failed attempt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.response_guards import is_copying, is_looping, without_copies
from adapters.response_transcript import Entry, bounded, entries_of, extract, fitted, newest
from engine.conversation import Message, Reasoning, Text, ToolCall, ToolResult
from tests.adapters.compacting import said

TEXTS = st.text(st.sampled_from("ab \n.é🙂"), max_size=300)
LIMITS = st.integers(1, 400)
ENTRIES = st.lists(
    st.builds(
        Entry,
        st.sampled_from(["user", "assistant", "f returned"]),
        TEXTS,
        st.sampled_from(["note", "speech", "work"]),
    )
)


def measure(text: str) -> int:
    return len(text.encode())


@given(TEXTS, LIMITS)
def test_a_bounded_text_has_the_limit_and_its_own_ends(text: str, limit: int) -> None:
    kept, size = bounded(text, limit, measure)
    assert size == measure(kept) <= limit
    assert kept == text if measure(text) <= limit else "left out here" in kept or not kept


@given(TEXTS, LIMITS)
def test_the_newest_text_is_an_end_as_long_as_fits(text: str, limit: int) -> None:
    kept = newest(text, limit, measure)
    assert measure(kept) <= limit and text.strip().endswith(kept)
    if measure(text.strip()) <= limit:
        assert kept == text.strip()


@given(ENTRIES, st.integers(-20, 900))
def test_a_fitted_record_fits(entries: list[Entry], room: int) -> None:
    record = fitted(entries, room, measure)
    assert measure(record) <= max(room, 3 * measure("[999 entries are left out here]\n\n"))
    assert "left out here" in record or all(entry.text.strip() in record for entry in entries)


@given(ENTRIES, LIMITS)
def test_an_extract_fits(entries: list[Entry], limit: int) -> None:
    assert measure(extract(entries, limit, measure)) <= limit


def test_an_end_begins_with_a_line_where_that_costs_little() -> None:
    assert newest("one\ntwo\nthree\nfour", 12, measure) == "three\nfour"
    assert newest("one\ntwo\nthree\nfour", 10, measure) == "three\nfour"
    assert newest("x" * 30 + "\nend", 20, measure) == "x" * 16 + "\nend"


def test_results_are_named_by_the_call_they_answer() -> None:
    messages = (
        Message("assistant", (Reasoning("hidden"), ToolCall("1", "f", "{}"), Text("and so"))),
        Message("tool", (ToolResult("1", ("a", "b")),)),
        Message("tool", (ToolResult("2", ("c",), name="g", is_error=True),)),
        Message("tool", (ToolResult("3", ("d",)),)),
        said("assistant", " \n"),
    )
    shown = [(entry.label, entry.text) for entry in entries_of(messages, None)]
    assert shown == [
        ("assistant", "and so"),
        ("assistant calls f", "{}"),
        ("f returned", "a\nb"),
        ("g failed", "c"),
        ("a tool returned", "d"),
    ]


TOLD = "Write down what was decided and why. Copy paths letter by letter.\nReply with the note."


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("- **Copy paths letter by letter.**", False),
        ("what was decided, and WHY", False),
        ("Copy paths letter", True),  # few words
        ("Copy paths letter by letters", True),
        ("The user said: copy paths letter by letter", True),
    ],
)
def test_lines_of_the_instruction_are_dropped(line: str, stays: bool) -> None:
    kept = without_copies(f"first\n{line}\nlast", TOLD)
    assert kept == (f"first\n{line}\nlast" if stays else "first\nlast")


NOTES = {
    "list": "\n".join(f"- file {place} was moved to folder {place % 4}" for place in range(40)),
    "prose": " ".join(f"step {place} took {place * 7 % 13} seconds and" for place in range(40)),
    "same": "- status: done\n- the parser: status done\n- status: done\n- the writer is open",
    "short": "go go go go go go go go go",
    "empty": "",
}


@pytest.mark.parametrize("note", NOTES.values(), ids=NOTES)
def test_a_note_is_no_loop(note: str) -> None:
    assert not is_looping(note)


def test_a_note_may_quote_but_not_copy() -> None:
    words = [f"w{place}" for place in range(200)]
    record = " ".join(words)
    assert is_copying(" ".join(words[40:120]), record)
    quoting = " ".join(words[40:80]) + " " + " ".join(f"own{place}" for place in range(20))
    assert not is_copying(quoting, record)
    assert not is_copying(" ".join(words[40:60]), record)
