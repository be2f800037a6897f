"""Leases, fences and recovery: what was charged is never lost, and no answer comes without a charge."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import postgres_server, quick_folder
from support.servers import people_of, settings_for, table_of
from tacit.errors import NotAllowed
from tacit.ledger import Ledger
from tacit.server import jobs, work
from tacit.server.desk import Desk, opened
from tacit.server.store import JOBS, TABLES
from tacit.server.worker import Worker

COUNT = {"releases": [{"kind": "count"}], "spend": {"epsilon": 0.5}}


@pytest.fixture
def desk() -> Iterator[Desk]:
    with quick_folder() as folder, opened(settings_for(Path(folder) / "desk")) as found:
        people_of(found)
        table_of(found)
        yield found


def worker_of(desk: Desk) -> Worker:
    return Worker(desk.store, desk.settings.releases, desk.settings.database)


def submitted(desk: Desk, asked: Any = COUNT, person: str = "andy") -> str:
    table = desk.store.one(TABLES, name="people")
    assert table is not None
    quote = work.quote(desk.place(table), asked, person, desk.limits)
    return jobs.submit(desk.store, quote, table="people", version="2026", person=person)


def state_of(desk: Desk, job: str) -> str:
    found = desk.store.one(JOBS, id=job)
    assert found is not None
    return str(found["state"])


def charges(desk: Desk) -> list[str]:
    table = desk.store.one(TABLES, name="people")
    assert table is not None
    ledger = desk.ledger(table)
    return [ledger.state(c.sequence) for c in ledger.charges()]


class Killed(BaseException):
    """The process ended here."""


def run_and_die(desk: Desk, job: str, monkeypatch: pytest.MonkeyPatch, *, where: str) -> None:
    """Run a job in a process that ends at a place of the ledger, and leave its lease to run out."""
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    assert taken["id"] == job

    real: Callable[..., Any] = getattr(Ledger, where)

    def die(self: Ledger, *given: Any, **more: Any) -> Any:
        if where == "commit":
            real(self, *given, **more)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, where, die)
        if where != "fail":
            patch.setattr(Ledger, "fail", lambda *_: None)
        with pytest.raises(Killed):
            worker._run(taken, threading.Event())
    desk.store.change(JOBS, [JOBS.c.id == job], lease=0.0)


def test_a_death_before_the_charge_costs_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submitted(desk)
    run_and_die(desk, job, monkeypatch, where="reserve")
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    worker.run(taken)
    assert state_of(desk, job) == "done"
    assert charges(desk) == ["committed"]


def test_a_death_after_the_commit_loses_no_answer(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submitted(desk)
    run_and_die(desk, job, monkeypatch, where="commit")
    assert charges(desk) == ["committed"]
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    worker.run(taken)
    assert state_of(desk, job) == "done"
    assert charges(desk) == ["committed"]
    row = desk.store.one(JOBS, id=job)
    assert row is not None
    assert desk.answer(row)["releases"][0]["columns"]["value"]


def test_a_death_between_charge_and_answer_is_shown_and_not_asked_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted(desk)
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    with monkeypatch.context() as patch:
        patch.setattr("tacit.curator.curator.read_cells", lambda *_, **__: (_ for _ in ()).throw(Killed))
        patch.setattr(Ledger, "fail", lambda *_: None)
        with pytest.raises(Killed):
            worker._run(taken, threading.Event())
    desk.store.change(JOBS, [JOBS.c.id == job], lease=0.0)
    second = worker_of(desk)
    taken = jobs.claim(desk.store, second.name)
    assert taken is not None
    assert taken["fence"] == 2
    second.run(taken)
    assert state_of(desk, job) == "lost"
    assert charges(desk) == ["reserved"]
    # Asking again costs again.
    again = submitted(desk)
    taken = jobs.claim(desk.store, second.name)
    assert taken is not None
    second.run(taken)
    assert state_of(desk, again) == "done"
    assert charges(desk) == ["reserved", "committed"]


def test_a_worker_that_comes_back_late_says_nothing(desk: Desk) -> None:
    job = submitted(desk)
    first, second = worker_of(desk), worker_of(desk)
    old = jobs.claim(desk.store, first.name)
    assert old is not None
    assert jobs.claim(desk.store, second.name) is None
    desk.store.change(JOBS, [JOBS.c.id == job], lease=0.0)
    new = jobs.claim(desk.store, second.name)
    assert new is not None
    assert not jobs.finish(desk.store, old, "failed")
    assert jobs.renew(desk.store, old) == (False, False)
    # And it charges nothing: the fence is looked at before the charge.
    first.run(old)
    assert charges(desk) == []
    second.run(new)
    assert state_of(desk, job) == "done"
    assert charges(desk) == ["committed"]


def test_cancel_before_and_refusals_cost_nothing(desk: Desk) -> None:
    job = submitted(desk)
    jobs.cancel(desk.store, job)
    assert state_of(desk, job) == "cancelled"
    assert jobs.claim(desk.store, "w") is None
    many = [
        submitted(desk, {"releases": [{"kind": "count", "where": f"age > {i}"}], "spend": {"epsilon": 0.9}})
        for i in range(4)
    ]
    worker = worker_of(desk)
    while (taken := jobs.claim(desk.store, worker.name)) is not None:
        worker.run(taken)
    # andy's share is 2: two of 0.9, and two refusals with nothing charged.
    assert sorted(state_of(desk, j) for j in many) == ["done", "done", "refused", "refused"]
    assert charges(desk) == ["committed", "committed"]


def test_a_file_that_vanished_costs_nothing(desk: Desk) -> None:
    job = submitted(desk)
    (desk.settings.roots["tables"] / "people.csv").unlink()
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    worker.run(taken)
    assert state_of(desk, job) == "failed"
    assert charges(desk) == []


def test_a_record_of_each_analyst_tells_nothing_about_others(desk: Desk) -> None:
    worker = worker_of(desk)

    def done(person: str) -> None:
        submitted(desk, person=person)
        taken = jobs.claim(desk.store, worker.name)
        assert taken is not None
        worker.run(taken)

    done("andy")
    table = desk.store.one(TABLES, name="people")
    assert table is not None
    assert work.quote(desk.place(table), COUNT, "ben", desk.limits)["fit"]["recorded"]
    desk.store.change(TABLES, [TABLES.c.name == "people"], share_record=0)
    table = desk.store.one(TABLES, name="people")
    assert table is not None
    assert not work.quote(desk.place(table), COUNT, "ben", desk.limits)["fit"]["recorded"]
    done("ben")
    assert charges(desk) == ["committed", "committed"]
    assert work.quote(desk.place(table), COUNT, "ben", desk.limits)["fit"]["recorded"]


def test_the_end_shows_on_doubling_ticks() -> None:
    job = {"state": "done", "started": 100.0, "ended": 100.3}
    assert jobs.visible_at(job, 1.0) == 101.0
    assert [jobs.visible_at({**job, "ended": 100 + t}, 1.0) for t in (1.0, 1.01, 2, 2.5, 4.1)] == [
        101,
        102,
        102,
        104,
        108,
    ]


@pytest.mark.slow
def test_two_servers_on_one_postgresql_never_exceed_a_share_or_the_total() -> None:
    """Three analysts ask more than their shares, and together more than the budget, through two servers at once."""
    with postgres_server() as url, quick_folder() as folder:
        database = url
        settings = [settings_for(Path(folder) / name, database=database) for name in ("one", "two")]
        shared = settings[0].roots
        with (
            opened(settings[0]) as one,
            opened(__import__("dataclasses").replace(settings[1], roots=shared)) as two,
        ):
            people_of(one)
            table_of(one, budget={"epsilon": 2.5})
            clara = one.accounts.person("clara")
            assert clara is not None
            table = one.table("people", clara)
            assert str(table["ledger"]).startswith("schema:")
            for i in range(10):
                for person in ("andy", "ben"):
                    asked = {
                        "releases": [{"kind": "count", "where": f"age > {i}"}],
                        "spend": {"epsilon": 0.3 + 0.01 * i},
                    }
                    quote = work.quote(one.place(table), asked, person, one.limits)
                    jobs.submit(
                        one.store,
                        {**quote, "key": f"{person} {i}"},
                        table="people",
                        version="2026",
                        person=person,
                    )

            def work_off(desk: Desk) -> None:
                worker = worker_of(desk)
                while (taken := jobs.claim(desk.store, worker.name)) is not None:
                    worker.run(taken)

            threads = [threading.Thread(target=work_off, args=(d,)) for d in (one, two)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            ledger = one.ledger(table)
            assert ledger.verify().ok
            assert ledger.spent().parameters["epsilon"] <= 2.5
            assert ledger.spent("andy").parameters["epsilon"] <= 2
            assert ledger.spent("ben").parameters["epsilon"] <= 1
            # Nothing was refused that fitted: no further question of the smallest price fits.
            assert ledger.remaining("andy").parameters["epsilon"] < 0.4
            rows = one.store.all(JOBS)
            assert {r["state"] for r in rows} <= {"done", "refused"}
            done = [r for r in rows if r["state"] == "done"]
            assert len(done) == len(ledger.charges())
            assert {r["charge"] for r in done} == {c.sequence for c in ledger.charges()}


def test_a_full_disk_after_the_commit_loses_no_answer(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submitted(desk)
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device: secret words")

    with monkeypatch.context() as patch:
        patch.setattr("tacit.report.folder.write_release", full)
        worker.run(taken)
    assert state_of(desk, job) == "done"
    assert charges(desk) == ["committed"]
    row = desk.store.one(JOBS, id=job)
    assert row is not None
    assert desk.answer(row)["releases"][0]["columns"]["value"]
    assert charges(desk) == ["committed"]


def test_a_replay_never_charges(desk: Desk) -> None:
    table = desk.store.one(TABLES, name="people")
    assert table is not None
    with pytest.raises(NotAllowed, match="no answer"):
        work.replay(desk.place(table), COUNT, "andy", str(desk.settings.releases / "x"), "a key")
    assert charges(desk) == []


def test_a_link_that_leads_out_since_is_not_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_folders", [f.resolve() for f in desk.folders])
    job = submitted(desk)
    place = desk.settings.roots["tables"] / "people.csv"
    place.rename(desk.settings.folder / "elsewhere.csv")
    place.symlink_to(desk.settings.folder / "elsewhere.csv")
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    worker.run(taken)
    assert state_of(desk, job) == "failed"
    assert charges(desk) == []
