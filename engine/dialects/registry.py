"""All dialects, and which one a checkpoint speaks."""

from __future__ import annotations

from collections.abc import Container

from engine.dialects.dialect import Dialect
from engine.dialects.hermes import HERMES
from engine.errors import StartupError

# The first that fits is taken: those with delimiters of their own come before those without.
DIALECTS: tuple[Dialect, ...] = (HERMES,)
DEFAULT = HERMES
NAMES = tuple(dialect.name for dialect in DIALECTS)


def choose(template: str | None, control_tokens: Container[str], wanted: str | None) -> Dialect:
    """The dialect of a checkpoint: `wanted` by name, else by its chat template.

    Raises StartupError for an unknown name.
    """
    if wanted is not None:
        named = next((dialect for dialect in DIALECTS if dialect.name == wanted), None)
        if named is None:
            raise StartupError(f"there is no dialect '{wanted}'; there are {', '.join(NAMES)}")
        return named
    fitting = (d for d in DIALECTS if template and d.fits(template, control_tokens))
    return next(fitting, DEFAULT)
