"""A small year (`benchmarks/year.py`), killed twice: nothing is lost or unpaid, and the numbers are those made by hand.

And what goes wrong in a year: a version that comes twice, a plan that needs more than memory, a disk that fills.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.errors import TooManyCells
from tacit.ledger import Ledger

ROOT = Path(__file__).parents[2]
YEAR = ROOT / "benchmarks" / "year.py"


def small(folder: Path, *words: str) -> dict[str, Any]:
    """A year of a few plans, as a program of its own."""
    asked = ["--months", "2", "--plans", "3", "--folder", str(folder), *words]
    ran = subprocess.run(
        [sys.executable, str(YEAR), *asked], check=True, capture_output=True, text=True, timeout=240
    )
    return dict(json.loads(ran.stdout))


def test_a_year_that_is_killed_twice_loses_nothing(tmp_path: Path) -> None:
    """Every number is that of the hand-written SQL within its interval, where a person has no more rows than count."""
    found = small(
        tmp_path, "--rows", "20000", "--releases", "96", "--spread", "1", "--at-most", "1000", "--kills", "2"
    )  # fmt: skip
    assert [run["killed"] for run in found["ours"]] == [1.0, 1.0, 0.0]
    assert found["verified"]
    assert found["answers"] == found["plans"] == 6
    assert found["charges"] == 6 + found["charges_without_answer"] <= 8
    assert found["published"] == found["published_of"] == found["releases"] == 96
    assert (
        found["published_without_charge"]
        == found["values_that_differ"]
        == found["acknowledged_and_lost"]
        == 0
    )
    assert found["answered_once"]
    assert found["spent_rho"] == pytest.approx(found["charged_rho"])
    assert found["cells_whose_interval_holds_the_number_by_hand"] > 0.94
    assert not (tmp_path / "visits.ledger-rows").exists() or not list(
        (tmp_path / "visits.ledger-rows").glob("*.json")
    )
    shares = {line["analyst"] for line in charged(tmp_path / "visits.ledger")}
    assert shares == {"ann", "bob", "cyd"}
    assert all(line["approved_by"] == ["ada"] for line in charged(tmp_path / "visits.ledger"))


def charged(path: Path) -> list[dict[str, Any]]:
    with Ledger.open(path) as ledger:
        found = [e.body for e in ledger.entries() if e.kind == "reserve"]
    return [{"analyst": b["analyst"], "approved_by": b["consent"]["approved_by"]} for b in found]


# --- bad input -------------------------------------------------------------------------------------------
BUDGET = tacit.Concentrated(rho=10)
SCHEMA: dict[str, Any] = {"kind": tacit.category(["a", "b"]), "pay": tacit.number(0, 100)}


def month(folder: Path, name: str, *, rows: int = 3_000, people: int = 400) -> Path:
    path = folder / f"{name}.parquet"
    held = range(rows)
    table = {
        "who": [i * 7 % people for i in held],
        "kind": ["ab"[i % 2] for i in held],
        "pay": [i % 90 / 1 for i in held],
    }
    pq.write_table(pa.table(table), path)
    return path


def office(path: Path, version: str, **more: Any) -> tacit.Curator:
    unit = tacit.people("who", at_most=5)
    ledger = path.parent / "office.ledger"
    more = {"schema": SCHEMA, "memory": "1GB", **more}
    return tacit.Curator(
        path, protect=unit, budget=BUDGET, ledger=ledger, table="office", version=version, **more
    )


def test_a_version_that_comes_twice_is_answered_from_the_record(tmp_path: Path) -> None:
    """With the same question it is free, whatever became of the rows; the custodian is told that they changed."""
    ask = [tacit.count(by="kind"), tacit.mean("pay", by="kind")]
    path = month(tmp_path, "january")
    with office(path, "2026-01") as curator:
        first = curator.release(ask, rho=0.1)
        spent = curator.spent
    month(tmp_path, "january", rows=2_000)
    with office(path, "2026-01") as curator:
        again = curator.release(ask, rho=0.1)
        assert [r.to_csv() for r in again] == [r.to_csv() for r in first]
        assert all(r.replayed for r in again)
        assert curator.spent == spent
        curator.release(tacit.count(), rho=0.1)
    assert "CHANGED" in (tmp_path / "office.ledger-data").read_text()
    other = month(tmp_path, "february")
    with office(other, "2026-02") as curator:
        assert not curator.release(ask, rho=0.1)[0].replayed
        assert curator.spent.rho == pytest.approx(3 * 0.1)  # type: ignore[attr-defined]


def test_a_plan_that_needs_more_than_memory_is_refused_before_the_charge(tmp_path: Path) -> None:
    """Declarations tell how many cells there are; the rest of the year goes on."""
    path = month(tmp_path, "january")
    wide = {**SCHEMA, "year": tacit.integer(0, 9_999), "place": tacit.integer(0, 9_999)}
    with office(path, "2026-01", schema=wide) as curator, pytest.raises(TooManyCells) as told:
        curator.release([tacit.count(), tacit.count(by=["year", "place"])], rho=0.1)
    assert told.value.after_charge is False
    with office(path, "2026-01") as curator:
        curator.release(tacit.count(), rho=0.1)
        assert curator.spent.rho == pytest.approx(0.1)  # type: ignore[attr-defined]


FULL = """
import resource, sys, tacit
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pathlib import Path
schema = {"kind": tacit.category(["a", "b"]), "pay": tacit.number(0, 100)}
with tacit.Curator(sys.argv[1], protect=tacit.people("who", at_most=5), schema=schema, memory=sys.argv[4],
                   budget=tacit.Concentrated(rho=10), ledger=str(Path(sys.argv[1]).parent / "office.ledger"),
                   table="office", version=sys.argv[2]) as curator:
    try:
        curator.release([tacit.count(by="kind"), tacit.sum("pay", by="kind")], rho=0.1)
        print("answered")
    except tacit.errors.ReadFailed as told:
        print("ReadFailed", told.after_charge)
    except tacit.errors.LedgerError as told:
        print("LedgerError", getattr(told, "after_charge", False))
"""


def limited(path: Path, version: str, size: int, memory: str) -> str:
    """A release by a process whose files may grow to this size alone: a write beyond it fails as on a full disk."""
    words = [sys.executable, "-c", FULL, str(path), version, str(size), memory]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr[-500:]
    return ran.stdout.strip()


def test_a_disk_that_fills_ends_one_release_and_not_the_year(tmp_path: Path) -> None:
    """Where rows do not fit memory and the disk has no room: the fixed sentence after the charge, and nothing else."""
    path = month(tmp_path, "january", rows=1_500_000, people=300_000)
    with office(path, "2025-12") as curator:
        keep = tacit.ledger.keep_rows(curator.ledger)
        curator.release(tacit.count(), rho=0.1)
    told = limited(path, "2026-01", 1 << 20, "12MB")
    assert told == "ReadFailed True"
    left = [p.name for p in keep.iterdir() if p.suffix in (".part", ".wal")]
    assert left == []
    with Ledger.open(tmp_path / "office.ledger") as ledger:
        assert ledger.verify().ok
        assert ledger.spent().rho == pytest.approx(0.2)  # type: ignore[attr-defined]
    with office(path, "2026-01") as curator:
        curator.release([tacit.count(by="kind"), tacit.sum("pay", by="kind")], rho=0.1)
        assert curator.spent.rho == pytest.approx(0.3)  # type: ignore[attr-defined]
    # Where memory is enough, rows that cannot be kept are used without being kept.
    other = month(tmp_path, "february", rows=200_000, people=30_000)
    assert limited(other, "2026-02", 1 << 20, "1GB") == "answered"


def test_a_disk_that_is_full_for_the_ledger_reads_no_row(tmp_path: Path) -> None:
    """What cannot be charged is not read; when there is room again, the year goes on."""
    path = month(tmp_path, "january")
    with office(path, "2026-01") as curator:
        curator.release(tacit.count(), rho=0.1)
    size = (tmp_path / "office.ledger").stat().st_size
    told = limited(path, "2026-01", size, "1GB")
    assert told.startswith("LedgerError"), told
    with office(path, "2026-01") as curator:
        curator.release([tacit.count(by="kind"), tacit.sum("pay", by="kind")], rho=0.1)
        assert curator.spent.rho == pytest.approx(0.2)  # type: ignore[attr-defined]
    with Ledger.open(tmp_path / "office.ledger") as ledger:
        assert ledger.verify().ok
