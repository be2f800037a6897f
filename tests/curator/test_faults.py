"""Bad input: one sentence that says what and what to do, nothing spent, nothing half-written, no private value in it.

Every table here holds markers (`plans.MARKS`) that no text may contain.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.curator import plan_files as files
from tacit.errors import BudgetExceeded, LedgerCorrupt, LedgerError, LedgerLocked
from tacit.ledger import Ledger

from .faults import PEOPLE, shot
from .plans import COUNT, MARKS, MEAN, Runner, table, write


# --- what can be seen without the data -------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"releases": COUNT.replace('"state"', '"town"')}, 2, ["town", "state"]),
        ({"releases": MEAN.replace('"income"', '"state"')}, 2, ["state", "number"]),
        ({"releases": COUNT.replace('"state"', '"income"')}, 2, ["income"]),
        ({"bounds": ""}, 2, ["income", "bounds"]),
        ({"bounds": "low = 250000\nhigh = 0"}, 2, ["income"]),
        ({"bounds": "low = 0\nhigh = nan"}, 2, ["income"]),
        ({"bounds": "low = 0\nhigh = inf"}, 2, ["income"]),
        ({"budget": "epsilon = 0.3"}, 1, ["spent", "0.3"]),
        ({"budget": "epsilon = -1.0"}, 2, ["epsilon"]),
        ({"budget": ""}, 2, ["price"]),
        ({"releases": COUNT.replace('"state"', '["state", "age", { column = "income", bins = 400 }]')}, 2, ["groups"]),
        ({"releases": COUNT.replace('by = "state"', 'by = "state"\nwhere = "age ><"')}, 2, ["age"]),
        ({"releases": ""}, 2, ["release"]),
        ({"protect": PEOPLE.replace("4", "0")}, 2, ["at_most"]),
        ({"protect": 'unit = "people"\nat_most = 4'}, 2, ["column"]),
        ({"releases": COUNT.replace("0.25", '"much"')}, 2, ["epsilon"]),
        ({"releases": COUNT + 'name = "../../etc/passwd"'}, 2, ["name"]),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_meant(
    tmp_path: Path, run: Runner, changes: Any, code: int, words: list[str]
) -> None:
    shot(run, write(tmp_path, **changes), code, *words)


def test_a_plan_that_declares_no_column(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    before, _, rest = plan.read_text().partition("[schema.state]")
    plan.write_text(before + "[schema]\n[budget]" + rest.partition("[budget]")[2])
    shot(run, plan, 2, "the schema is empty", "[schema.age]")
    for command in (["plan", plan], ["twin", plan, "--out", tmp_path / "twin.parquet"]):
        assert run(*command) == 2
        assert "the schema is empty" in run.one_sentence()


@pytest.mark.parametrize(
    "content", [b"", b"[data", b"\xff\xfe", b"x = 1", b"release = 3", b"[data]\npath = 3"]
)
def test_a_plan_that_is_none(tmp_path: Path, run: Runner, content: bytes) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_bytes(content)
    assert run("plan", plan) == 2
    run.one_sentence()
    shot(run, plan, 2)
    assert run("plan", tmp_path / "absent.toml") == 2
    assert run("plan", tmp_path) == 2


# --- the ledger ----------------------------------------------------------------------------------------------
@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process that is writing."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("begin exclusive")
    try:
        yield
    finally:
        connection.execute("rollback")
        connection.close()


def test_a_locked_ledger(tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = write(tmp_path)
    with files.read_plan(plan).curator() as curator:
        assert float(curator.spent.epsilon) == 0
    monkeypatch.setattr(files, "Curator", partial(tacit.Curator, wait_seconds=0.2))
    with held(tmp_path / "survey.ledger"):
        assert run("release", plan, "--out", tmp_path / "out") == 2
        assert "ledger" in run.one_sentence()
        with files.read_plan(plan).curator() as curator, pytest.raises(LedgerLocked):
            curator.release(tacit.count(), epsilon=0.1)
    assert not (tmp_path / "out").exists()
    assert Ledger.open(tmp_path / "survey.ledger").charges() == ()


def test_a_corrupt_ledger(tmp_path: Path, run: Runner) -> None:
    plan, ledger = write(tmp_path), tmp_path / "survey.ledger"
    ledger.write_bytes(b"SQLite format 3\x00" + b"\x00" * 4000)
    assert run("release", plan, "--out", tmp_path / "out") == 2
    run.one_sentence()
    ledger.write_bytes(b"no database at all, " * 300)
    assert run("release", plan, "--out", tmp_path / "out") == 2
    run.one_sentence()
    assert not (tmp_path / "out").exists()
    ledger.unlink()
    assert run("release", plan, "--out", tmp_path / "first") == 0
    connection = sqlite3.connect(ledger)
    tables = [r[0] for r in connection.execute("select name from sqlite_master where type = 'table'")]
    entries = next(t for t in tables if "entr" in t)
    connection.execute(f"delete from {entries} where rowid = (select max(rowid) from {entries})")
    connection.commit()
    connection.close()
    assert run("release", plan, "--out", tmp_path / "second", "--key", "anew") == 2
    run.one_sentence()
    assert not (tmp_path / "second").exists()
    with files.read_plan(plan).curator() as curator, pytest.raises(LedgerCorrupt):
        curator.release(tacit.count(), epsilon=0.1)


def test_another_budget_than_the_ledgers(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    assert run("release", plan, "--out", tmp_path / "out") == 0
    write(tmp_path, budget="epsilon = 50.0")
    assert run("release", plan, "--out", tmp_path / "more") == 2
    assert "budget" in run.one_sentence()
    assert not (tmp_path / "more").exists()


def test_a_ledger_that_cannot_be_made(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    (tmp_path / "file").write_text("")
    plan.write_text(plan.read_text().replace("survey.ledger", "file/survey.ledger"))
    shot(run, plan, 2, "ledger")


def test_over_budget_says_what_is_left(tmp_path: Path) -> None:
    plan = write(tmp_path)
    with files.read_plan(plan).curator() as curator:
        curator.release(tacit.count(), epsilon=0.9)
        with pytest.raises(BudgetExceeded, match=r"spent epsilon = 0\.9") as caught:
            curator.release(tacit.count(by="state"), epsilon=0.2)
        assert not [m for m in MARKS if m in str(caught.value)]
        assert float(curator.spent.epsilon) == 0.9


# --- certificates --------------------------------------------------------------------------------------------------
def test_a_certificate_that_is_none(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    assert run("release", plan, "--out", tmp_path / "out") == 0
    good = json.loads((tmp_path / "out/certificates/mean-income.json").read_text())
    path = tmp_path / "certificate.json"
    bad = [
        "", "{", "[]", "3", '{"format": "tacit certificate 1"}',
        json.dumps(good | {"format": "tacit certificate 99"}),
        json.dumps(good | {"guarantee": {"bound": "none"}}),
        json.dumps(good | {"guarantee": 7}),
        json.dumps(good | {"theorems": ["no such theorem"]}),
        json.dumps(good | {"theorems": 7}),
        json.dumps(good | {"mechanism": 7}),
        json.dumps(good | {"intervals": []}),
    ]  # fmt: skip
    for text in bad:
        path.write_text(text)
        for more in ([], ["--json"]):
            assert run("explain", path, *more) == 2, text[:80]
            run.one_sentence()
    assert run("explain", tmp_path / "absent.json") == 2
    run.one_sentence()
    path.write_bytes(b"\xff\xfe\x00")
    assert run("explain", path) == 2
    run.one_sentence()


def test_a_folder_for_a_ledger(tmp_path: Path) -> None:
    curator = tacit.Curator(
        table(), protect=tacit.rows(), schema={"age": tacit.integer(0, 99)}, budget=tacit.Pure(epsilon=1.0),
        ledger=tmp_path,
    )  # fmt: skip
    with pytest.raises(LedgerError):
        curator.release(tacit.count(), epsilon=0.1)
