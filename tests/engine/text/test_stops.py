from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.stops import StopMatcher

SHORT = st.text(alphabet="ab<", max_size=12)
STOPS = st.lists(st.text(alphabet="ab<", min_size=1, max_size=5), max_size=4).map(tuple)


def run(stops: tuple[str, ...], pieces: list[str]) -> tuple[list[str], str | None]:
    matcher = StopMatcher(stops)
    shown = []
    for piece in pieces:
        text, stop = matcher.feed(piece)
        shown.append(text)
        if stop is not None:
            assert matcher.flush() == ""
            return shown, stop
    return [*shown, matcher.flush()], None


def expected(stops: tuple[str, ...], text: str) -> tuple[str, str | None]:
    """The definition: the first to complete, then the first to start."""
    ends = [
        (start + len(stop), start, stop)
        for stop in stops
        for start in range(len(text))
        if stop and text.startswith(stop, start)
    ]
    if not ends:
        return text, None
    _, start, stop = min(ends)
    return text[:start], stop


@pytest.mark.parametrize(
    ("stops", "pieces", "shown", "stop"),
    [
        (("DEFGHIJ",), ["ABC ", "DEF", "G", "HI", "J", "K"], "ABC ", "DEFGHIJ"),  # D144
        (
            ("Observation:",),
            ["Thought x\n", "Obs", "erv", "e that"],
            "Thought x\nObserve that",
            None,
        ),
        (("Observation:",), ["so Obs", "erv"], "so Observ", None),  # D145
        (("\n", "Alice:"), [" Alice", "!", " Hi"], " Alice! Hi", None),  # D147
        (("<<END>>",), ["go ", "<<", "EN", "D>>", "x"], "go ", "<<END>>"),  # D148
        (("<<END>>",), ["<<<END>>"], "<", "<<END>>"),
        (("abcd", "bc"), ["abcd"], "a", "bc"),
        (("bc", "abc"), ["xabc"], "x", "abc"),
        (("aab",), ["a", "a", "a", "b"], "a", "aab"),
        (("", "x"), ["y"], "y", None),
        ((), ["anything"], "anything", None),
        (("]",), ["a^]"], "a^", "]"),
    ],
)
def test_cases(stops: tuple[str, ...], pieces: list[str], shown: str, stop: str | None) -> None:
    texts, found = run(stops, pieces)
    assert ("".join(texts), found) == (shown, stop)


def test_text_is_released_as_soon_as_a_stop_is_ruled_out() -> None:
    texts, _ = run(("Observation:",), ["Thought x\n", "Obs", "erv", "e that"])
    assert texts == ["Thought x\n", "", "", "Observe that", ""]


def test_nothing_follows_a_stop() -> None:
    matcher = StopMatcher(("x",))
    assert matcher.feed("axb") == ("a", "x")
    assert matcher.feed("more") == ("", "x")
    assert matcher.flush() == ""


@given(stops=STOPS, pieces=st.lists(SHORT, max_size=6))
def test_any_split_equals_the_definition(stops: tuple[str, ...], pieces: list[str]) -> None:
    texts, stop = run(stops, pieces)
    assert ("".join(texts), stop) == expected(stops, "".join(pieces))


@given(stops=STOPS, pieces=st.lists(SHORT, max_size=6))
def test_never_shows_what_may_become_a_stop_and_holds_nothing_else(
    stops: tuple[str, ...], pieces: list[str]
) -> None:
    matcher = StopMatcher(stops)
    seen = shown = ""
    for piece in pieces:
        text, stop = matcher.feed(piece)
        seen, shown = seen + piece, shown + text
        if stop is not None:
            return
        held = seen[len(shown) :]
        starts = [
            size
            for size in range(len(seen) + 1)
            if any(len(s) > size and s.startswith(seen[len(seen) - size :]) for s in stops)
        ]
        assert len(held) == max(starts, default=0)


def test_time_is_linear() -> None:
    matcher = StopMatcher(("a" * 20_000 + "b",))
    started = time.perf_counter()
    for _ in range(50_000):
        matcher.feed("a")
    assert time.perf_counter() - started < 2
