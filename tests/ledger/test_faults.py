"""Locked, full, read-only, not a ledger, newer: one sentence each, nothing spent, nothing half-written."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.ledgers import ask, child_environment, new_schema, promise, quick_folder, tamper
from tacit.errors import InvalidParameter, LedgerCorrupt, LedgerError, LedgerLocked, LedgerVersion
from tacit.guarantees import Pure
from tacit.ledger import Ledger, Request, verify_ledger
from tacit.ledger.store import IN_DOUBT, as_ledger_error


def test_locked(place: str) -> None:
    holder, waiter = Ledger.create(place, budget=promise(1.0)), Ledger.open(place, wait_seconds=0.1)
    with holder._store.writing(), pytest.raises(LedgerLocked, match="in use"):
        waiter.reserve(ask("a"))
    assert waiter.entries() == ()
    waiter.reserve(ask("a"))


def test_a_reader_may_be_locked_out_too(tmp_path: Path) -> None:
    path = tmp_path / "a"
    Ledger.create(path, budget=promise(1.0))
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerLocked):
        Ledger.open(path, wait_seconds=0.05)
    holder.close()
    Ledger.open(path)


def test_a_newer_version_is_left_alone(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    tamper(ledger, "UPDATE tacit_ledger SET format = 9")
    for call in (lambda: Ledger.open(place), lambda: verify_ledger(place)):
        with pytest.raises(LedgerVersion, match="format 9"):
            call()


def test_what_is_not_a_ledger(tmp_path: Path) -> None:
    text, empty, other = tmp_path / "text", tmp_path / "empty", tmp_path / "other.db"
    text.write_text("Dear diary, today I was a ledger. " * 100)
    empty.touch()
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE something (a)")
    connection.close()
    before = {p: p.read_bytes() for p in (text, empty, other)}
    for path in before:
        for call in (Ledger.open, verify_ledger, lambda p: Ledger.at(p, budget=promise(1.0))):
            with pytest.raises(LedgerError, match="is not a ledger"):
                call(path)
        with pytest.raises(LedgerError, match="exists already"):
            Ledger.create(path, budget=promise(1.0))
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger.open(tmp_path)
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger.open(tmp_path / "absent")
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_an_empty_database_is_not_a_ledger(postgres: str) -> None:
    with pytest.raises(LedgerError, match="is not a ledger"):
        Ledger.open(new_schema(postgres))


def test_places_that_cannot_be(tmp_path: Path) -> None:
    for nonsense in ("", ":memory:", "mysql://host/db", "sqlite://", "sqlite:///:memory:", "a\0b", "://"):
        with pytest.raises(InvalidParameter):
            Ledger.open(nonsense)
    with pytest.raises(LedgerError, match="cannot be created: no such file"):
        Ledger.create(tmp_path / "no" / "folder", budget=promise(1.0))
    with pytest.raises(InvalidParameter):
        Ledger.create(tmp_path / "a", budget=Pure(epsilon=1))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Ledger.open(tmp_path / "a", wait_seconds=-1)
    assert not list(tmp_path.iterdir())
    Ledger.create(f"sqlite:///{tmp_path}/by url", budget=promise(1.0))
    assert Ledger.open(tmp_path / "by url").entries() == ()


@pytest.mark.parametrize("name", ["with blank", "per%cent", "question?mark", "hash#tag", "ünïcode", "-dash"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    Ledger.create(tmp_path / name, budget=promise(1.0)).reserve(ask("a"))
    assert len(Ledger.open(tmp_path / name).entries()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == [name, f"{name}-queue"]


def test_disk_full_at_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's own limit on pages gives the error of a full disk."""
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    ticket = ledger.reserve(ask("a", 0.5))

    def tight(real: Any = ledger._store._open_file) -> Any:
        connection = real()
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    ledger.close()  # the next transaction opens a connection of its own, and finds the disk full
    monkeypatch.setattr(ledger._store, "_open_file", tight)
    with pytest.raises(LedgerError, match="disk is full"):
        ledger.commit(ticket, {"value": list(range(10_000))})  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="disk is full"):
        ledger.reserve(ask("b", 0.5, event={"long": "x" * 100_000}))
    monkeypatch.undo()
    ledger.close()
    assert ledger.spent() == Pure(epsilon=0.5)
    assert ledger.verify().ok
    ledger.commit(ticket, {"value": list(range(10_000))})  # type: ignore[arg-type]


CHILD = """
    import json, os, resource, signal, sys
    from support.ledgers import ask, promise
    from tacit.errors import TacitError
    from tacit.ledger import Ledger
    action, path = sys.argv[1:]
    if action == "create":
        work = lambda: Ledger.create(path, budget=promise(1.0))
    else:
        ledger = Ledger.open(path)
        work = lambda: ledger.reserve(ask("b", 0.25, event={"long": "x" * 200_000}))
    def tight():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
    def nobody():
        os.chmod(path, 0o444)
        os.chmod(os.path.dirname(path), int(action, 8))
        if os.geteuid() == 0:
            os.setgroups([]); os.setgid(65534); os.setuid(65534)
    (nobody if action.isdigit() else tight)()
    try:
        work()
        print(json.dumps(["done", ""]))
    except TacitError as problem:
        print(json.dumps([type(problem).__name__, str(problem)]))
"""


def in_a_child(action: str, path: Path) -> tuple[str, str]:
    """Limits of the system cannot be taken back, so that they are set in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), action, str(path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        env=child_environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kind, said = json.loads(done.stdout)
    return kind, said


def test_writing_fails_halfway(tmp_path: Path) -> None:
    path = tmp_path / "a"
    ledger = Ledger.create(path, budget=promise(1.0))
    ledger.reserve(ask("a", 0.25))
    kind, said = in_a_child("reserve", path)
    assert kind == "LedgerError"
    assert "could not be read or written" in said or "disk is full" in said
    assert ledger.spent() == Pure(epsilon=0.25)
    assert verify_ledger(path).ok
    assert in_a_child("create", tmp_path / "b")[0] == "LedgerError"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a-queue"]


@pytest.mark.parametrize(("mode", "said"), [(0o555, "is read-only"), (0o000, "cannot be opened")])
def test_a_folder_that_is_not_ours(mode: int, said: str) -> None:
    with quick_folder() as name:
        Path(name).chmod(0o755)  # root becomes somebody else in the child, who must come this far
        folder = Path(name) / "folder"
        folder.mkdir()
        path = folder / "a"
        Ledger.create(path, budget=promise(1.0)).reserve(ask("a", 0.25))
        try:
            kind, told = in_a_child(f"{mode:o}", path)
        finally:
            folder.chmod(0o755)
            path.chmod(0o600)
        assert (kind, said in told) == ("LedgerError", True)
        assert Ledger.open(path).spent() == Pure(epsilon=0.25)


def test_a_read_only_server(postgres: str) -> None:
    place = new_schema(postgres)
    ledger = Ledger.create(place, budget=promise(1.0))
    with pytest.raises(LedgerError, match="read-only"):
        Ledger.open(f"{place}%20-cdefault_transaction_read_only%3Don").reserve(ask("a"))
    assert ledger.entries() == ()


def test_a_connection_that_breaks(postgres: str) -> None:
    ledger = Ledger.create(new_schema(postgres), budget=promise(1.0))

    def cut(*_: Any) -> None:
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    with pytest.raises(LedgerError, match="cannot be reached"):
        ledger.reserve(ask("a"), cut)
    assert ledger.entries() == ()
    ledger.reserve(ask("a"))


def test_doubt_is_said_only_where_there_is_doubt() -> None:
    lost = psycopg.OperationalError("the connection is lost, and here is a password: hunter2")
    busy, failed = sqlite3.OperationalError(), sqlite3.OperationalError()
    busy.sqlite_errorcode, failed.sqlite_errorcode = sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR
    for problem, doubt in ((lost, True), (failed, True), (busy, False)):
        told = as_ledger_error(problem, "here", committing=True)
        assert (IN_DOUBT in str(told)) == doubt
        assert IN_DOUBT not in str(as_ledger_error(problem, "here"))
        assert "hunter2" not in str(told)


def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    ledger = Ledger.create(path, budget=promise(1.0))
    for number in range(30):
        ledger.reserve(ask(f"q{number}", 0.0))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path)
    assert not verify_ledger(path).ok


@pytest.mark.parametrize(
    "changes",
    [
        {"key": ""},
        {"key": "a\nb"},
        {"key": "x" * 501},
        {"key": 7},
        {"analyst": "*"},
        {"analyst": "\x1b[31m"},
        {"event": {"value": float("nan")}},
        {"event": {1: "a"}},
        {"event": {"object": object()}},
        {"event": [1]},
        {"charge": Pure(epsilon=1)},
    ],
)
def test_requests_are_valid_from_birth(changes: dict[str, Any]) -> None:
    parts = {
        "key": "a", "plan_digest": "p", "version": "d", "analyst": "ann", "event": {}, "charge": promise(0.1)
    }  # fmt: skip
    Request(**parts)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Request(**(parts | changes))


def test_an_answer_that_is_not_plain_is_refused_and_the_ticket_stays_open(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    ticket = ledger.reserve(ask("a"))
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for odd in (float("inf"), {"a": object()}, {2: 1}, {1, 2}, deep):
        with pytest.raises(InvalidParameter):
            ledger.commit(ticket, odd)  # type: ignore[arg-type]
    ledger.commit(ticket, None)  # type: ignore[arg-type]
    assert ledger.reserve(ask("a")).answer is None  # type: ignore[union-attr]


# --- crashes at named points ---------------------------------------------------------------------------
CRASH = """
    import os, signal, sys
    from support.ledgers import ask
    from tacit.ledger import Ledger
    die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    def crash(point, place):
        ledger = Ledger.open(place)
        if point == "before the charge is durable":
            ledger._append = lambda *given, real=ledger._append: (real(*given), die())
        ticket = ledger.reserve(ask("a", 0.5))
        if point == "before the answer is durable":
            ledger._append = lambda *given, real=ledger._append: (real(*given), die())
        if point != "after the charge":
            ledger.commit(ticket, 42)
        die()
    for point, place in zip(sys.argv[1::2], sys.argv[2::2]):
        child = os.fork()
        if not child:
            crash(point, place)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""
POINTS = {
    "before the charge is durable": (0.0, None),
    "after the charge": (0.5, "reserved"),
    "before the answer is durable": (0.5, "reserved"),
    "after the answer": (0.5, "committed"),
}


def test_a_crash_leaves_what_was_durable(new_place: Callable[[], str]) -> None:
    places = {point: new_place() for point in POINTS}
    ledgers = {point: Ledger.create(place, budget=promise(1.0)) for point, place in places.items()}
    arguments = [word for pair in places.items() for word in pair]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CRASH), *arguments],
        env=child_environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    for point, (spent, state) in POINTS.items():
        ledger = ledgers[point]
        assert ledger.spent() == Pure(epsilon=spent)
        assert ledger.verify().ok
        assert (ledger.state(1) if state else None) == state
        again = ledger.reserve(ask("a", 0.5))
        assert ledger.spent() == Pure(epsilon=spent if state == "committed" else spent + 0.5)
        assert getattr(again, "answer", None) == (42 if state == "committed" else None)
