"""How much a model thinks: what a request asks for, as the switches that its template has.

Clients send levels that nobody defined for the model. The nearest one that its template knows is
applied and logged, never refused (TinyTitan): a refusal breaks an agent for the rest of a session.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import get_args

from engine.conversation import Effort, Thinking, nearest_effort

log = logging.getLogger("heliograph.api")

LEVELS: tuple[Effort, ...] = get_args(Effort)
_SWITCHES = ("enable_thinking", "thinking")
_LEVEL_KEYS = ("reasoning_effort", "thinking_effort", "reasoning_strength")
_BUDGET = "thinking_budget"
_MANAGED = (*_SWITCHES, "reasoning_effort")
# Where a template takes a number: DeepSeek's scores, and what lies between them.
_SCORES: Mapping[Effort, int] = {
    "none": 0, "minimal": 25, "low": 50, "medium": 62, "high": 75, "xhigh": 87, "max": 100,
}  # fmt: skip
_STRANGE = "zqprobe"
_MOST_LOGGED = 256
_LONGEST_WORD = 64


@dataclass(frozen=True, slots=True)
class Defaults:
    """What applies where a request asks for nothing; None leaves it to the template."""

    thinking: bool | None = None
    effort: Effort | int | None = None


@dataclass(frozen=True, slots=True)
class Controls:
    """What a template does about thinking.

    `off` and `on` are the options that stop and start it, None and empty where it has none.
    `default_on`: it thinks without being told. `levels` are the options of each level that it
    knows, `number` the option that takes a score, `budget` the one that takes a count of tokens.
    """

    off: Mapping[str, object] | None = None
    on: Mapping[str, object] = field(default_factory=dict)
    default_on: bool = True
    levels: Mapping[Effort, Mapping[str, object]] = field(default_factory=dict)
    number: str | None = None
    budget: str | None = None

    @property
    def efforts(self) -> tuple[Effort, ...]:
        """The levels that can be asked for, lowest first."""
        off: tuple[Effort, ...] = ("none",) if self.off is not None else ()
        return (*off, *(level for level in self.levels if level != "none"))


@dataclass(frozen=True, slots=True)
class Applied:
    """What a prompt is rendered with.

    `effort` is the level that the template was told, None where it was told none. `thinks`: the
    model may think. `kwargs` are all options of the template.
    """

    effort: Effort | int | None
    thinks: bool
    kwargs: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Own:
    """A word that is no level, but one of the template's own."""

    word: str


class Efforts:
    """Chooses the options of one template. Threads may share it.

    `render` renders a short conversation with some options, None where the template fails.
    """

    def __init__(
        self,
        source: str,
        render: Callable[[Mapping[str, object]], str | None],
        defaults: Defaults,
    ) -> None:
        self._source = source
        self._render = render
        self._defaults = defaults
        self._logged: set[tuple[object, object]] = set()

    @cached_property
    def controls(self) -> Controls:
        return find_controls(self._source, self._render)

    def resolve(self, thinking: Thinking, kwargs: Mapping[str, object]) -> Applied:
        """The options for a request.

        The request's effort wins, then the `reasoning_effort` among its template options, then
        their switch, then the server's defaults (TinyTitan).
        """
        wanted = asked = self._wanted(thinking, kwargs)
        # A null or a word without meaning is not passed on: some templates refuse it.
        own = {key: value for key, value in kwargs.items() if key not in _MANAGED}
        own |= {key: kwargs[key] for key in _SWITCHES if _is_other(kwargs.get(key))}
        if wanted is None:
            thinks = self.controls.default_on
            return Applied(None, thinks, self._with_budget(own, thinking, thinks))
        if isinstance(wanted, int) and wanted is not True and self.controls.number is None:
            wanted = _level_of(wanted)
        if wanted == "none" and self.controls.off is not None:
            return Applied("none", False, {**own, **self.controls.off})
        effort: Effort | int | None = None
        options: Mapping[str, object] = {}
        if isinstance(wanted, _Own):
            options = {"reasoning_effort": wanted.word}
        elif wanted is not True:
            effort, options = self._nearest(wanted)
            self._note(asked, effort)
        own |= {**self.controls.on, **options}
        return Applied(effort, True, self._with_budget(own, thinking, True))

    def _with_budget(
        self, options: dict[str, object], thinking: Thinking, thinks: bool
    ) -> dict[str, object]:
        key = self.controls.budget
        if key is not None and thinks and thinking.budget is not None and key not in options:
            options[key] = thinking.budget
        return options

    def _wanted(
        self, thinking: Thinking, kwargs: Mapping[str, object]
    ) -> Effort | int | _Own | None:
        """A level ("none" for off), a score, True for on, a word of the template, or nothing."""
        if thinking.effort is not None:
            return thinking.effort
        named = kwargs.get("reasoning_effort")
        if isinstance(named, int) and not isinstance(named, bool):
            return named
        if isinstance(named, str):
            found = self._meant(named[:_LONGEST_WORD])
            if found is not None:
                return found
        switches = [kwargs[key] for key in _SWITCHES if isinstance(kwargs.get(key), bool)]
        if switches:
            return True if switches[0] else "none"
        return self._default(kwargs)

    def _default(self, kwargs: Mapping[str, object]) -> Effort | int | None:
        """What the server wants of a request that says nothing."""
        if any(key in kwargs for key in (*_LEVEL_KEYS[1:], _BUDGET)):
            return None  # the template's own names, which the template reads
        if self._defaults.thinking is False:
            return "none"
        return self._defaults.effort or self._defaults.thinking

    def _meant(self, word: str) -> Effort | _Own | None:
        if word in LEVELS:
            return word
        quoted = f"'{word}'" in self._source or f'"{word}"' in self._source
        options = {**self.controls.on, "reasoning_effort": word}
        if quoted and self._render(options) is not None:
            return _Own(word)
        level = nearest_effort(word)
        self._note(word, level)
        return level

    def _nearest(self, wanted: Effort | int) -> tuple[Effort | int | None, Mapping[str, object]]:
        controls = self.controls
        if isinstance(wanted, int):
            if controls.number is not None:
                score = min(max(wanted, 1), 100)
                self._note(wanted, score)
                return score, {controls.number: score}
            wanted = _level_of(wanted)
        if controls.levels:
            place = LEVELS.index(wanted)
            level = min(
                controls.levels,
                key=lambda level: (abs(LEVELS.index(level) - place), -LEVELS.index(level)),
            )
            return level, controls.levels[level]
        if controls.number is not None:
            score = max(_SCORES[wanted], 1)
            return score, {controls.number: score}
        return None, {}

    def _note(self, wanted: object, applied: object) -> None:
        """Log a substitution, each once where there are not too many."""
        if wanted == applied or (wanted, applied) in self._logged:
            return
        if len(self._logged) < _MOST_LOGGED:  # the words are the clients'
            self._logged.add((wanted, applied))
        level = "the template's default" if applied is None else applied
        log.info("reasoning effort %r is applied as %s", wanted, level)


def _level_of(score: int) -> Effort:
    """The level nearest to a score, the higher one of two."""
    return min(LEVELS, key=lambda level: (abs(_SCORES[level] - score), -_SCORES[level]))


def _is_other(value: object) -> bool:
    """Whether an option with a switch's name means something else to the template."""
    return value is not None and not isinstance(value, bool)


# Finding the controls


def find_controls(source: str, render: Callable[[Mapping[str, object]], str | None]) -> Controls:
    """The controls of a template, found by comparing what it renders with and without them."""
    plain = render({})
    names = [name for name in _SWITCHES if _is_switch(name, source, render)]
    off: Mapping[str, object] | None = dict.fromkeys(names, False) or None
    on: Mapping[str, object] = dict.fromkeys(names, True)
    without = plain if off is None else render(off)
    budget = _BUDGET if _takes_budget(source, render) else None
    if off is None and budget is not None:
        without = render({budget: 0})
        off = {budget: 0} if without not in (None, plain) else None
    levels, number = _levels(source, render, on)
    stop = levels.pop("none", None)
    if off is None and stop is not None:
        off, without = stop, render(stop)
    default_on = off is None or without != plain
    return Controls(off, on, default_on, levels, number, budget)


def _names(source: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", source) is not None


def _is_switch(
    name: str, source: str, render: Callable[[Mapping[str, object]], str | None]
) -> bool:
    if not _names(source, name):
        return False
    off = render({name: False})
    return off is not None and off != render({name: True})


def _takes_budget(source: str, render: Callable[[Mapping[str, object]], str | None]) -> bool:
    if not _names(source, _BUDGET):
        return False
    shown = render({_BUDGET: 4321})
    return shown is not None and "4321" in shown


def _levels(
    source: str,
    render: Callable[[Mapping[str, object]], str | None],
    on: Mapping[str, object],
) -> tuple[dict[Effort, Mapping[str, object]], str | None]:
    """The options of each level, and the option that takes a number."""
    levels: dict[Effort, Mapping[str, object]] = {}
    number = None
    plain = render(on)
    for key in (key for key in _LEVEL_KEYS if _names(source, key)):
        for level in LEVELS:
            if _knows_level(level, key, source, render, on):
                levels.setdefault(level, {key: level})
        shown = render({**on, key: 43})
        if number is None and shown not in (None, plain) and "43" in (shown or ""):
            number = key
    for level in LEVELS:  # Nemotron's: `low_effort` is a switch
        if _names(source, f"{level}_effort") and render({**on, f"{level}_effort": True}) != plain:
            levels.setdefault(level, {f"{level}_effort": True})
            levels.setdefault("high", {})
    return {level: levels[level] for level in LEVELS if level in levels}, number


def _knows_level(
    level: Effort,
    key: str,
    source: str,
    render: Callable[[Mapping[str, object]], str | None],
    on: Mapping[str, object],
) -> bool:
    """Whether a level is one of the template's, which may take any word, some, or refuse others."""
    shown = render({**on, key: level})
    if shown is None:
        return False
    strange = render({**on, key: _STRANGE})
    if strange is None:
        return True
    is_quoted = f"'{level}'" in source or f'"{level}"' in source
    if _STRANGE in strange:  # it repeats whatever it is given
        return level in ("low", "medium", "high") or (is_quoted and level != "none")
    return shown != strange or (is_quoted and level != "none")
