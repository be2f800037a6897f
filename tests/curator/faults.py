"""A plan that is refused, and what must not have happened then."""

from __future__ import annotations

from pathlib import Path

from tacit.ledger import Ledger

from .plans import Runner

PEOPLE = 'unit = "people"\ncolumn = "person_id"\nat_most = 4'


def nothing_happened(folder: Path, before: set[str]) -> None:
    """No file is new but an empty ledger, and no ledger holds a charge."""
    after = {str(p.relative_to(folder)) for p in folder.rglob("*")}
    assert {p for p in after - before if not p.startswith("survey.ledger")} == set()
    if (folder / "survey.ledger").exists():
        assert Ledger.open(folder / "survey.ledger").charges() == ()


def shot(run: Runner, plan: Path, code: int, *words: str) -> None:
    """The plan is refused with this code, and says these words."""
    folder = plan.parent
    before = {str(p.relative_to(folder)) for p in folder.rglob("*")}
    assert run("release", plan, "--out", folder / "new" / "out") == code
    said = run.one_sentence()
    for word in words:
        assert word in said
    nothing_happened(folder, before)
