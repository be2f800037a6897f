"""From the record: free, equal, labelled by what made it, without a look at the data. Closed; shared by threads."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.cli import main
from tacit.curator import curator as module
from tacit.errors import BudgetExceeded, Closed, InvalidParameter, UnknownColumn
from tacit.noise.source import SeededSource

from .conftest import visits

ASK = tacit.count(by="state")


# --- what made an answer -----------------------------------------------------------------------------------
def test_test_noise_stays_test_noise(make: Any) -> None:
    seeded = make(source=SeededSource(seed=1))
    first = seeded.release(ASK, epsilon=0.1)
    assert not first.publishable
    ordinary = make().release(ASK, epsilon=0.1)
    assert ordinary.replayed
    assert ordinary.table.equals(first.table)
    assert not ordinary.publishable
    assert ordinary.certificate["publishable"] is False
    assert "AES" not in str(ordinary.certificate["computational"])


def test_noise_of_the_cipher_stays_that_for_a_seeded_curator(make: Any) -> None:
    make().release(ASK, epsilon=0.1)
    again = make(source=SeededSource(seed=1)).release(ASK, epsilon=0.1)
    assert again.replayed
    assert again.publishable


# --- whether the data changed ------------------------------------------------------------------------------
def test_a_replay_does_not_open_the_table(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make(version="2026-11").release(ASK, epsilon=0.1)
    (tmp_path / "visits.parquet").unlink()

    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("the table was opened")

    monkeypatch.setattr(module, "open_table", opened)
    again = make(version="2026-11", data=tmp_path / "visits.parquet").release(ASK, epsilon=0.1)
    assert again.replayed
    assert again.table.equals(first.table)
    assert again.certificate == first.certificate


def test_a_replay_is_the_same_whatever_became_of_the_rows(make: Any, tmp_path: Path) -> None:
    """Also with an empty budget: being free, or not, tells nothing."""
    budget = tacit.Pure(epsilon=0.5)
    answers = [make(budget).release(ASK, epsilon=0.5)]
    path = tmp_path / "visits.parquet"
    for change in (visits(seed=9), visits(seed=3).slice(1), visits(seed=3).slice(0, 0)):
        pq.write_table(change, path)
        answers.append(make(budget).release(ASK, epsilon=0.5))
        with pytest.raises(BudgetExceeded):
            make(budget).release(tacit.count(), epsilon=0.5)
    assert [a.replayed for a in answers] == [False, True, True, True]
    assert all(a.table.equals(answers[0].table) for a in answers)
    assert all(a.certificate == answers[0].certificate for a in answers)


def test_only_the_custodian_sees_that_rows_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two tables, one row apart, in the second release: same output but for the noise, same code, same files."""
    plan = (
        '[data]\npath = "t.parquet"\nversion = "v1"\n[protect]\nunit = "rows"\n[schema.x]\nkind = "integer"\nlow = 0\n'
        'high = 9\n[budget]\nepsilon = 1.0\n[[release]]\nkind = "count"\nepsilon = 0.25\n'
    )
    told = {}
    for name, second in (("same", [1, 2, 3]), ("other", [1, 2, 4])):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "plan.toml").write_text(plan)
        for n, rows in enumerate(([1, 2, 3], second)):
            pq.write_table(pa.table({"x": rows}), folder / "t.parquet")
            given = [
                "release",
                str(folder / "plan.toml"),
                "--out",
                str(folder / f"out{n}"),
                "--key",
                f"k{n}",
                "--json",
            ]
            assert main(given) == 0
        said = capsys.readouterr()
        files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))
        lines = (folder / "t.ledger-data").read_text().splitlines()
        told[name] = (said.err, files, len(lines), [len(line) for line in lines])
        assert ("CHANGED" in lines[1]) == (name == "other")
        assert "CHANGED" not in lines[0]
        assert (folder / "t.ledger-data").stat().st_mode & 0o777 == 0o600
        shown = [p for p in folder.rglob("*") if p.is_file() and "out" in p.parts[-2:][0] + p.parts[-3]]
        assert not [p for p in shown if b"CHANGED" in p.read_bytes()]
    assert told["same"] == told["other"]


def test_no_digest_is_made_before_the_charge(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.sources.tables import Table

    seen: list[int] = []
    survey = make()

    def digest(*_: Any) -> str:
        seen.append(len(survey.ledger.charges()))
        raise ValueError("a row")

    monkeypatch.setattr(Table, "digest", digest)
    survey.release(ASK, epsilon=0.1)
    assert seen == [1], "once, after the charge, and no release fails for it"
    survey.release(ASK, epsilon=0.1)
    assert seen == [1]


def test_a_bad_declaration_fails_before_the_record_is_asked(make: Any) -> None:
    make().release(ASK, epsilon=0.1)
    other = {"state": tacit.category(["CA", "NY"])}
    plan = make().preview(ASK, epsilon=0.1)
    with pytest.raises(InvalidParameter, match="this schema"):
        make(schema=other).release(plan)
    with pytest.raises(UnknownColumn):
        make().release(tacit.count(by="sate"), epsilon=0.1)
    for bad in ({"version": 3}, {"version": "a\nb"}, {"table": b"x"}, {"table": "x" * 501}):
        with pytest.raises(InvalidParameter):
            make(**bad)


def test_a_new_version_never_resets_a_budget(make: Any) -> None:
    budget = tacit.Pure(epsilon=1.0)
    for number in range(4):
        make(budget, version=f"v{number}").release(ASK, epsilon=0.25)
    with pytest.raises(BudgetExceeded):
        make(budget, version="v5").release(ASK, epsilon=0.25)
    assert make(budget, version="v2").release(ASK, epsilon=0.25).replayed


# --- closed ------------------------------------------------------------------------------------------------
def test_a_closed_curator_refuses_everything(make: Any) -> None:
    """A session's budget of one, five times full price, each after a close: it was five budgets."""
    survey = make(tacit.Pure(epsilon=1.0), ledger=None, data=visits())
    plan = survey.preview(ASK, epsilon=1.0)
    with survey:
        survey.release(plan)
    calls: list[Any] = [
        lambda: survey.release(ASK, epsilon=1.0, key="again"),
        lambda: survey.release(plan),
        lambda: survey.preview(ASK, epsilon=1.0),
        lambda: survey.ledger,
        lambda: survey.spent,
        lambda: survey.remaining,
        survey.__enter__,
    ]
    for call in calls:
        with pytest.raises(Closed):
            call()
    survey.close()
    for spread in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="twice"):
            spread(survey)


def test_a_curator_that_was_closed_before_its_first_use_refuses_too(make: Any) -> None:
    survey = make(ledger=None, data=visits())
    survey.close()
    with pytest.raises(Closed):
        survey.release(ASK, epsilon=0.1)


# --- threads -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["a session", "a file"])
def test_fifty_threads_share_one_budget(make: Any, kind: str) -> None:
    more: dict[str, Any] = {"ledger": None, "data": visits(rows=200)} if kind == "a session" else {}
    survey = make(tacit.Pure(epsilon=1.0), protect=tacit.rows(), **more)
    start, outcomes = threading.Barrier(50), []

    def work(number: int) -> None:
        start.wait()
        try:
            answer = survey.release(ASK, epsilon=0.05, key=f"k{number}")
            outcomes.append("paid" if np.all(np.isfinite(answer.columns["value"])) else "odd")
        except BudgetExceeded:
            outcomes.append("refused")
        except BaseException as problem:
            outcomes.append(repr(problem))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["paid"] * 20 + ["refused"] * 30
    assert float(survey.spent.epsilon) == 1.0
    ledger = survey.ledger
    assert ledger.verify().ok
    assert {ledger.state(c.sequence) for c in ledger.charges()} == {"committed"}
