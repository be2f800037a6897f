"""What a ledger is given by name: printable texts, somebody's name, numbers by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.errors import InvalidParameter, shows_nothing, visible

__all__ = ["named", "shown", "somebody", "text"]


def text(parameter: str, value: object, *, longest: int = 500, empty: bool = False) -> str:
    """A short, printable text; not empty, unless that is said. What is on record may have been written by old rules."""
    if not isinstance(value, str) or not (value or empty) or len(value) > longest or not value.isprintable():
        raise InvalidParameter(
            parameter=parameter,
            value=value if isinstance(value, str) and len(value) <= 80 else type(value).__name__,
            must=f"be a printable text of 1 to {longest} characters",
        )
    return value


def shown(parameter: str, value: object, *, empty: bool = False) -> str:
    """A text that is written now: something of it shows, unless it may be empty, and is."""
    found = text(parameter, value, empty=empty)
    if found and all(shows_nothing(c) or c.isspace() for c in found):
        raise InvalidParameter(
            parameter=parameter, value=visible(found[:80]), must="have a character that shows something"
        )
    return found


def named(parameter: str, value: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A mapping by names, or none."""
    if value is not None and not isinstance(value, Mapping):
        raise InvalidParameter(
            parameter=parameter, value=type(value).__name__, must="be a dictionary, or be left out"
        )
    return value or {}


def somebody(analyst: str | None) -> str | None:
    """One analyst's name, or None for everybody."""
    return None if analyst is None else text("analyst", analyst)
