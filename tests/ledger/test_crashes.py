"""Eight processes on one ledger, killed at random moments: nothing is overspent, lost or damaged.

A killed process loses what it had in memory and nothing that the system had accepted; what a power cut does
to a disk is not tested here.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from support.ledgers import ask, child_environment, new_schema, promise, quick_folder
from tacit.errors import BudgetExceeded
from tacit.ledger import Ledger, export, verify_ledger

BUDGET = 2.0  # 16 charges: reached in some of the rounds on one ledger, and hammered at in the rest
ROUNDS = int(os.environ.get("TACIT_CRASH_ROUNDS", "24"))
TESTS = Path(__file__).parents[1]


def crash(places: list[str], *, rounds: int, log: Path, window: tuple[float, float]) -> Counter[str]:
    """Run the rounds and check every invariant; returns how often each thing was noted."""
    for place in places:
        Ledger.create(place, budget=promise(BUDGET), shares={"w0": promise(0.5).bound}).close()
    script = [sys.executable, str(TESTS / "ledger" / "crash_rounds.py")]
    done = subprocess.run(
        [*script, str(rounds), "20240817", str(log), *map(str, window), *places],
        env=child_environment(),
        timeout=550,
        check=False,
    )
    assert done.returncode == 0
    notes = [line.split(" ") for line in log.read_text().splitlines()]
    assert not [n for n in notes if n[0] == "error"]
    for number, place in enumerate(places):
        check(place, [n for n in notes if n[1] == str(number)])
    return Counter(n[0] for n in notes)


def check(place: str, notes: list[list[str]]) -> None:
    assert verify_ledger(place).ok
    ledger = Ledger.open(place)
    charges = {c.sequence: c for c in ledger.charges()}
    digests = {e.sequence: e.digest for e in ledger.entries()}
    committed = {e.body["reserve"]: e for e in ledger.entries() if e.kind == "commit"}

    assert sum(Fraction(c.guarantee.bound.epsilon) for c in charges.values()) <= BUDGET  # type: ignore[attr-defined]
    assert sum(c.analyst == "w0" for c in charges.values()) <= 4, "a share of 0.5 is four charges"
    for kind, _, sequence, *rest in (n for n in notes if n[0] != "refused"):
        if kind == "ran":
            assert int(sequence) in charges, "something was run without a durable charge"
            assert digests[int(sequence)] == rest[0]
        elif kind == "answered":
            assert int(sequence) in committed, "an answer that was given is not in the record"
        elif kind == "replayed":
            assert int(sequence) in {e.sequence for e in committed.values()}
    assert set(committed) <= set(charges)
    assert len(list(export(ledger))) == len(digests) + 1
    if "://" not in place:
        assert [p.name for p in Path(place).parent.glob(f"{Path(place).name}*.new")] == []
        with sqlite3.connect(place) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
    paid = sum(c.guarantee.bound.epsilon > 0 for c in charges.values())  # type: ignore[attr-defined]
    for number in range(16 - paid):
        ledger.reserve(ask(f"after {number}", 0.125))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("one more", 0.125))
    ledger.close()


def test_rounds_on_a_disk(tmp_path: Path) -> None:
    places = [str(tmp_path / f"{n}.ledger") for n in range(5)]
    noted = crash(places, rounds=10, log=tmp_path / "log", window=(0.0, 0.05))
    assert sum(noted.values()) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_many_rounds(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with quick_folder() as folder:
        if kind == "sqlite":
            places = [str(Path(folder) / f"{n}.ledger") for n in range(ROUNDS // 4)]
        else:
            places = [new_schema(request.getfixturevalue("postgres")) for _ in range(ROUNDS // 4)]
        noted = crash(places, rounds=ROUNDS, log=tmp_path / "log", window=(0.0, 0.02))
    assert sum(noted.values()) >= 2 * ROUNDS
    assert noted["ran"] >= ROUNDS
    assert noted["answered"] >= ROUNDS // 4
