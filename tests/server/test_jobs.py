"""Leases, fences and recovery: what was charged is never lost, and no answer comes without a charge."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
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
        # In this process: the processes of the pool are the business of other tests.
        found.pool = found.slow = Direct()  # type: ignore[assignment]
        people_of(found)
        table_of(found)
        yield found


class Direct:
    """Calls as a pool of processes takes them, made here."""

    def call(self, name: str, *given: Any, seconds: float) -> Any:
        return work.CALLS[name](*given)

    def close(self) -> None: ...


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


def test_a_lease_that_ran_out_just_before_the_charge_charges_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted(desk)
    first = worker_of(desk)
    taken = jobs.claim(desk.store, first.name)
    assert taken is not None
    real = jobs.mark

    def and_lose(*given: Any) -> bool:
        held = real(*given)
        desk.store.change(JOBS, [JOBS.c.id == job], fence=taken["fence"] + 1)
        return held

    monkeypatch.setattr(jobs, "mark", and_lose)
    first.run(taken)
    assert charges(desk) == []
    assert state_of(desk, job) == "running"


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


def test_an_end_shows_on_a_tick_whatever_the_clock_does(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    at = [1_000.0]
    monkeypatch.setattr(jobs, "now", lambda: at[0])
    job = {"state": "done", "started": 1_000.0, "ended": 1_000.2}
    assert jobs.shown_state(job, 1.0) == "running"
    at[0] = 1_000.99
    assert jobs.hidden(job, 1.0)
    at[0] = 1_001.0
    assert jobs.shown_state(job, 1.0) == "done"
    at[0] = 10.0  # the clock jumped back: nobody waits until it is there again
    assert jobs.shown_state(job, 1.0) == "done"


def test_the_next_job_begins_when_the_end_of_the_last_one_shows(desk: Desk) -> None:
    """Otherwise the start of a second job, free as a rehearsal, would tell the end of the first."""
    first = submitted(desk)
    second = submitted(desk, {"releases": [{"kind": "count"}], "spend": {"epsilon": 0.25}})
    worker = Worker(desk.store, desk.settings.releases, "", tick=4.0)
    thread = threading.Thread(target=worker.loop, daemon=True)
    thread.start()
    rows: list[Any] = []
    for _ in range(3_000):
        rows = [desk.store.one(JOBS, id=j) for j in (first, second)]
        if rows[1]["started"]:
            break
        worker.over.wait(0.02)
    worker.over.set()
    thread.join(120)
    assert rows[1]["started"] >= jobs.visible_at(rows[0], 4.0)
    assert rows[0]["ended"] < jobs.visible_at(rows[0], 4.0)


def test_what_is_on_record_shows_when_the_end_does(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A price that turns free tells the end of a job: it turns on the same tick."""
    from tacit.server import desk as desks

    job = submitted(desk)
    table = desk.store.one(TABLES, name="people")
    assert table is not None
    before = desk.quote(table, COUNT, "ben")
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    worker.run(taken)
    assert state_of(desk, job) == "done"
    with monkeypatch.context() as patch:
        patch.setattr(desks.jobs, "hidden", lambda *_: True)
        early = desk.quote(table, COUNT, "ben")
        assert not early["fit"]["recorded"]
        assert set(early) == set(before)
        assert early["key"] == before["key"]
    desk.store.change(JOBS, [JOBS.c.id == job], started=taken["started"] - 100, ended=taken["started"] - 99)
    assert desk.quote(table, COUNT, "ben")["fit"]["recorded"]


def test_a_job_is_stopped_on_a_tick(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wish to stop tells no more about the time of a read than the end does: an answer of before the tick stands."""
    job = submitted(desk)
    worker = Worker(desk.store, desk.settings.releases, "", tick=30.0)
    monkeypatch.setattr(jobs, "LEASE", 0.3)
    real, renew = jobs.mark, jobs.renew
    noticed = threading.Event()

    def and_cancel(*given: Any) -> bool:
        # The wish to stop comes now, and the job waits until the worker's watch has seen it twice.
        jobs.cancel(desk.store, job)
        assert noticed.wait(30.0)
        return real(*given)

    wishes = []

    def watched(*given: Any) -> tuple[bool, bool]:
        held, stop = renew(*given)
        wishes.extend([stop] * stop)
        if len(wishes) > 2:
            noticed.set()
        return held, stop

    monkeypatch.setattr(jobs, "mark", and_cancel)
    monkeypatch.setattr(jobs, "renew", watched)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    worker.run(taken)
    assert noticed.is_set()
    assert state_of(desk, job) == "done"
    assert charges(desk) == ["committed"]


def test_jobs_can_be_stopped_where_the_server_runs_in_the_background(desk: Desk) -> None:
    """`tacit serve &` in a script: the shell lets the server, and so its workers, ignore interrupts."""
    settings = desk.settings
    said = {
        "folder": str(settings.folder), "database": settings.database, "releases": str(settings.releases),
        "folders": [], "named": [], "tick": 0.0,
    }  # fmt: skip
    start = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "os.execv(sys.executable, [sys.executable, '-m', 'tacit.server.worker'])"
    )
    with subprocess.Popen([sys.executable, "-c", start], stdin=subprocess.PIPE, bufsize=0) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(said).encode() + b"\n")
            job = submitted(desk)
            give_up = time.monotonic() + 60.0
            while state_of(desk, job) != "done" and time.monotonic() < give_up:
                time.sleep(0.05)
            assert state_of(desk, job) == "done"
            process.send_signal(signal.SIGINT)  # A wish to stop that came between two jobs: it goes on.
            again = submitted(desk)
            while state_of(desk, again) != "done" and time.monotonic() < give_up:
                time.sleep(0.05)
            assert state_of(desk, again) == "done"
            caught = Path(f"/proc/{process.pid}/status")
            if caught.exists():
                masks = dict(
                    line.split(":\t", 1) for line in caught.read_text().splitlines() if ":\t" in line
                )
                assert int(masks["SigCgt"], 16) >> (signal.SIGINT - 1) & 1
        finally:
            process.kill()


def test_a_form_that_comes_back_with_another_question_is_another_job(desk: Desk) -> None:
    table = desk.store.one(TABLES, name="people")
    assert table is not None
    other = {"releases": [{"kind": "count"}], "spend": {"epsilon": 0.25}}
    quotes = [work.quote(desk.place(table), asked, "andy", desk.limits) for asked in (COUNT, other)]
    said: dict[str, Any] = {"table": "people", "version": "2026", "person": "andy", "form": "form-number-1"}
    first = jobs.submit(desk.store, quotes[0], **said)
    assert jobs.submit(desk.store, quotes[0], **said) == first == "form-number-1"
    assert jobs.submit(desk.store, quotes[1], **said) != first
    assert jobs.submit(desk.store, quotes[0], **said, rehearsal=True) != first
    assert jobs.submit(desk.store, quotes[0], **{**said, "person": "ben"}) != first
    assert len(desk.store.all(JOBS)) == 4


def test_a_clock_that_jumped_back_does_not_hide_a_charge(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charges of a job are told by their numbers: a charge of "last year" is found, and not made twice."""
    job = submitted(desk)
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    with monkeypatch.context() as patch:
        patch.setattr("tacit.curator.curator.read_cells", lambda *_, **__: (_ for _ in ()).throw(Killed))
        patch.setattr(Ledger, "fail", lambda *_: None)
        with pytest.raises(Killed):
            worker._run(taken, threading.Event())
    # The job was made next year, by the clock of then.
    desk.store.change(JOBS, [JOBS.c.id == job], lease=0.0, created=taken["created"] + 3e7)
    again = jobs.claim(desk.store, "w")
    assert again is not None
    worker.run(again)
    assert state_of(desk, job) == "lost"
    assert charges(desk) == ["reserved"]


def test_nobody_says_nothing_was_charged_without_having_looked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.errors import LedgerError
    from tacit.server import worker as workers

    job = submitted(desk)
    worker = worker_of(desk)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None

    def gone(*_: Any, **__: Any) -> None:
        raise LedgerError(ledger="x", reason="cannot be reached")

    with monkeypatch.context() as patch:
        patch.setattr("tacit.curator.curator.read_cells", lambda *_, **__: (_ for _ in ()).throw(Killed))
        patch.setattr(Ledger, "fail", lambda *_: None)
        with pytest.raises(Killed):
            worker._run(taken, threading.Event())
        patch.setattr(workers, "PATIENCE", 2)
        patch.setattr(worker, "_charged", gone)
        desk.store.change(JOBS, [JOBS.c.id == job], lease=0.0)
        taken = jobs.claim(desk.store, worker.name)
        assert taken is not None
        worker.run(taken)
    # Left to its lease, and found once the ledger is back.
    assert state_of(desk, job) == "running"
    desk.store.change(JOBS, [JOBS.c.id == job], lease=0.0)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    worker.run(taken)
    assert state_of(desk, job) == "lost"


def test_free_rehearsals_do_not_fill_the_disk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_REHEARSALS", 1)
    table = desk.store.one(TABLES, name="people")
    assert table is not None
    quote = work.quote(desk.place(table), COUNT, "andy", desk.limits)
    kept = submitted(desk)
    worker = worker_of(desk)
    said: dict[str, Any] = {"table": "people", "version": "2026", "person": "andy"}
    made = []
    for _ in range(3):
        made.append(jobs.submit(desk.store, quote, **said, rehearsal=True))
        while (taken := jobs.claim(desk.store, worker.name)) is not None:
            worker.run(taken)
    assert [desk.store.one(JOBS, id=number) is not None for number in made] == [False, False, True]
    assert [(desk.settings.releases / number).exists() for number in made] == [False, False, True]
    assert [(desk.settings.releases / f"{number}.json").exists() for number in made] == [False, False, True]
    # A release is never forgotten.
    assert state_of(desk, kept) == "done"


def test_a_database_of_before_gets_its_new_column(tmp_path: Path) -> None:
    from tacit.server.store import ServerStore

    store = ServerStore(tmp_path)
    store.create()
    with store.transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE jobs DROP COLUMN mark")
    store.close()
    again = ServerStore(tmp_path)
    again.create()
    again.create()
    assert again.all(JOBS) == []
    again.close()


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
