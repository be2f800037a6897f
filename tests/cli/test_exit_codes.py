"""Exit code 3 and its JSON object: the budget was charged and nothing was released."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.curator.plan_files import read_plan
from tacit.errors import InvalidParameter, LedgerError, ReadFailed, charge_made

PLAN = """
[data]
path = "t.parquet"

[protect]
unit = "rows"

[schema.x]
kind = "integer"
low = 0
high = 9

[budget]
epsilon = 1.0

[ledger]
path = "t.ledger"

[[release]]
kind = "sum"
column = "x"
epsilon = 0.25
"""
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    pq.write_table(
        pa.table({"x": [i * 7919 % 10 for i in range(50_000)]}),
        tmp_path / "t.parquet",
        use_dictionary=False,
        compression="zstd",
    )
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def damage(path: Path) -> None:
    """Damage pages, not the footer: the file opens and fails when it is read."""
    data = bytearray(path.read_bytes())
    for i in range(100, len(data) - 1000, 40):
        data[i] ^= 0x5A
    path.write_bytes(bytes(data))


def spent(plan: Path) -> float:
    with read_plan(plan).curator() as curator:
        return float(curator.spent.parameters["epsilon"])


def test_a_damaged_file_is_charged_and_exits_with_3(plan: Path, say: Say) -> None:
    damage(plan.parent / "t.parquet")
    code, out, err = say("release", plan, "--out", plan.parent / "out", "--json")
    assert spent(plan) == 0.25
    assert code == 3
    assert "stays spent" in err
    told = json.loads(out)
    assert told["charged"] is True
    assert told["released"] is False
    assert told["error"] == "ReadFailed"
    assert told["message"] in err
    code, out, _ = say("release", plan, "--out", plan.parent / "out", "--key", "again")
    assert (code, out) == (3, "")


def test_a_release_says_that_it_was_charged_and_a_replay_that_it_was_not(plan: Path, say: Say) -> None:
    for folder, charged in (("one", True), ("two", False)):
        code, out, _ = say("release", plan, "--out", plan.parent / folder, "--json")
        told = json.loads(out)
        assert (code, told["charged"], told["released"]) == (0, charged, True)


def test_files_that_cannot_be_written_after_the_charge(
    plan: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr("tacit.report.folder.release_files", full)
        code, _, err = say("release", plan, "--out", plan.parent / "out")
        assert spent(plan) == 0.25
        assert code == 3
        assert "run it again, free" in err
        # The answer is on record now: nothing is charged this time.
        assert say("release", plan, "--out", plan.parent / "out")[0] == 2
    assert say("release", plan, "--out", plan.parent / "out")[0] == 0
    assert spent(plan) == 0.25


def test_a_ledger_that_cannot_be_read_after_the_release(
    plan: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was spent is known with the charge: no code 2, which would say that nothing was charged."""

    def locked(_: object) -> None:
        raise LedgerError(ledger="t.ledger", reason="is locked")

    with monkeypatch.context() as patch:
        patch.setattr("tacit.curator.curator.Curator.standing", property(locked))
        code, out, _ = say("release", plan, "--out", plan.parent / "out", "--json")
    told = json.loads(out)
    assert (code, told["charged"], told["spent"]["epsilon"]) == (0, True, 0.25)
    assert (plan.parent / "out" / "manifest.json").exists()


def test_bad_input_charges_nothing_and_exits_with_2(plan: Path, say: Say) -> None:
    (plan.parent / "t.parquet").write_bytes(b"no table")
    code, out, _ = say("release", plan, "--out", plan.parent / "out", "--json")
    assert (code, out) == (2, "")
    assert spent(plan) == 0


def test_an_error_after_the_charge_says_so_in_python(plan: Path) -> None:
    damage(plan.parent / "t.parquet")
    found = read_plan(plan)
    with found.curator() as curator, pytest.raises(ReadFailed) as caught:
        curator.release(found.plan())
    assert caught.value.after_charge
    assert caught.value.exit_code == 3
    assert caught.value.__context__ is None
    assert ReadFailed(source="t").exit_code == 2, "nothing was charged for it"


def test_only_errors_of_the_block_are_marked() -> None:
    with pytest.raises(InvalidParameter) as caught, charge_made():
        tacit.Pure(epsilon=-1)
    assert caught.value.exit_code == 3
    with pytest.raises(InvalidParameter) as caught:
        tacit.Pure(epsilon=-1)
    assert (caught.value.exit_code, InvalidParameter.exit_code) == (2, 2)


def test_a_commit_in_doubt_is_taken_for_a_charge() -> None:
    import sqlite3

    from tacit.ledger.store import as_ledger_error

    lost = sqlite3.OperationalError("disk I/O error")
    lost.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert as_ledger_error(lost, "a.ledger", committing=True).exit_code == 3
    assert as_ledger_error(lost, "a.ledger").exit_code == LedgerError.exit_code == 2


def test_the_pages_name_all_exit_codes() -> None:
    docs = Path(__file__).parents[2] / "docs"
    (line,) = (t for t in (docs / "cli.md").read_text().splitlines() if t.startswith("- Exit codes:"))
    assert re.findall(r"\*\*(\d+)\*\*", line) == ["0", "1", "2", "3", "130"]
    assert "exit codes" in (docs / "stability.md").read_text()
