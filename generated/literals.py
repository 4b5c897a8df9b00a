# Generated from specs/; do not edit. Run: nox -s generate
"""Booleans of which only one value is admitted."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Off = Annotated[bool, Field(le=0)]
On = Annotated[bool, Field(ge=1)]
