"""Rows that classes and pages declare of themselves, in the tables where readers look for them.

A mechanism's `row` stands on the page of mechanisms, what an event is `called` in the glossary, and a theorem's
statement in the index of the theory. `python docs/_site/commands.py` adds the rows that are missing and renews those
that are there; rows that nobody declares are written by hand. A contract test compares the pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def with_row(text: str, *, first: str, row: str, after: str, at_once: bool = False) -> str:
    """The page with this row: in the place of the one with the same first cell, or after a row (or its table)."""
    old = re.search(rf"^\| {re.escape(first)} \|.*$", text, re.M)
    if old:
        return text[: old.start()] + row + text[old.end() :]
    start = text.index(after)
    rows = re.compile(r"\|.*\n").match
    end = text.index("\n", start) + 1
    while not at_once and rows(text, end) and not text.startswith("| **", end):
        end = text.index("\n", end) + 1
    return f"{text[:end]}{row}\n{text[end:]}"


def mechanisms(text: str) -> str:
    """The page of mechanisms."""
    import tacit.mechanisms as room

    for name in room.__all__:
        declared = getattr(getattr(room, name), "row", ())
        if declared:
            row = f"| `{name}` | {' | '.join(declared)} |"
            text = with_row(text, first=f"`{name}`", row=row, after="|---|---|---|---|---|")
    return text


def glossary(text: str) -> str:
    """The glossary."""
    from tacit.accounting import events

    for name in events.__all__:
        called = getattr(getattr(events, name), "called", "")
        if called:
            first = f"`events.{name}`"
            row = f"| {first} | {called} |"
            text = with_row(text, first=first, row=row, after="| `events.StaircaseEvent` |", at_once=True)
    return text


def theory(text: str) -> str:
    """The index of the theory: a page that nobody has sorted in stands at the end of the mechanisms."""
    sys.path.insert(0, str(Path(__file__).parent))
    from theorems import THEORY, front

    for path in sorted(THEORY.glob("*.md")):
        if path.name != "README.md" and f"| [{path.stem}](" not in text:
            said = front(path)
            row = f"| [{said['id']}]({said['id']}.md) | {said['statement']} | {said['standing']} |"
            text = with_row(text, first=said["id"], row=row, after="| **Mechanisms** |")
    return text


PAGES = {
    DOCS / "mechanisms.md": mechanisms,
    DOCS / "glossary.md": glossary,
    DOCS / "theory" / "README.md": theory,
}


def write() -> None:
    """Every page with its rows."""
    for path, made in PAGES.items():
        path.write_text(made(path.read_text("utf-8")), "utf-8")
