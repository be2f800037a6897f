"""The page about the ledger is run, and shows what is true."""

from __future__ import annotations

from pathlib import Path

from support.documents import page, run

ROOT = Path(__file__).parents[2]


def test_the_page_is_true() -> None:
    outcome = run(page(ROOT / "docs" / "ledger.md"), "docs/ledger.md", shown=True)
    assert outcome.checked >= 5
