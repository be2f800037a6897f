"""SECURITY.md is about this version: what it names exists, what exists and carries a promise is named."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import tacit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
LIMITS = (ROOT / "docs" / "known-limits.md").read_text()


def exists(name: str) -> bool:
    """A module, or a name in one."""
    home, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return bool(home) and hasattr(importlib.import_module(home), last)
    return True


def test_what_the_page_names_exists() -> None:
    named = set(re.findall(r"`(tacit(?:\.\w+)+)`", PAGE))
    assert len(named) >= 10
    assert sorted(n for n in named if not exists(n)) == []


def test_rooms_that_see_rows_or_money_are_on_the_page() -> None:
    """And none of them is denied: an older page said that nothing is read or released."""
    for name in ("tacit.noise", "tacit.sources", "tacit.ledger", "tacit.Curator", "tacit.report"):
        assert f"`{name}" in PAGE, name
    assert hasattr(tacit, "Curator")
    for denied in ("reads no records", "releases nothing"):
        assert denied not in PAGE


def test_times_that_one_row_decides_are_listed() -> None:
    """Not removed, hence told: on the page, in its own section, and among the known limits."""
    section = PAGE.partition("### Timing")[2].partition("\n## ")[0]
    for words in ("one text of 20 MB", "one person with a million rows"):
        assert words in section
    for words in ("a string of 20 MB", "a person with a million rows"):
        assert words in LIMITS
