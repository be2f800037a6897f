"""PostgreSQL with other defaults than ours, and refusals that mean: once more. Nothing of a driver clings."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from support.ledgers import ask, new_schema, promise
from tacit.errors import LedgerError, TacitError
from tacit.guarantees import Pure
from tacit.ledger import Ledger, Ticket

STRICT = "%20-cdefault_transaction_isolation%3Dserializable"


def test_writers_do_not_inherit_an_isolation_level(postgres: str) -> None:
    ledger = Ledger.create(new_schema(postgres) + STRICT, budget=promise(1.0))
    with ledger._store.writing() as connection:
        assert connection.first("SHOW transaction_isolation")[0] == "read committed"


def test_a_strict_server_serves_everybody(postgres: str) -> None:
    place = new_schema(postgres) + STRICT
    Ledger.create(place, budget=promise(1.0)).close()
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            with Ledger.open(place) as ledger:
                for number in range(8):
                    ledger.run(ask(f"{name} {number}", 2**-6), lambda: 1)
        except BaseException as problem:
            failed.append(problem)

    threads = [threading.Thread(target=work, args=(n,)) for n in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    ledger = Ledger.open(place)
    assert ledger.spent() == Pure(epsilon=1)
    assert {ledger.state(c.sequence) for c in ledger.charges()} == {"committed"}


REFUSALS = {"40001": psycopg.errors.SerializationFailure, "40P01": psycopg.errors.DeadlockDetected}


@pytest.mark.parametrize("state", ["40001", "40P01"])
@pytest.mark.parametrize("step", ["statement", "commit"])
def test_what_came_to_nothing_is_done_again(
    postgres: str, state: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, left = Ledger.create(new_schema(postgres), budget=promise(1.0)), [2]

    def refuse() -> None:
        if left[0]:
            left[0] -= 1
            raise REFUSALS[state]("Key (diagnosis)=(hunter2) conflicts")

    def statement(_: Any, __: Any, said: str, *___: Any) -> None:
        if said.startswith("INSERT INTO tacit_entries"):
            try:
                refuse()
            except psycopg.Error as problem:
                raise OperationalError("", {}, problem) from None

    def commit(connection: Any, real: Any = psycopg.Connection.commit) -> None:
        if left[0]:
            connection.rollback()  # as a server does that cannot
        refuse()
        real(connection)

    if step == "statement":
        event.listen(ledger._store._engine, "before_cursor_execute", statement)
    else:
        monkeypatch.setattr(psycopg.Connection, "commit", commit)
    ticket = ledger.reserve(ask("a", 0.5))
    assert isinstance(ticket, Ticket)
    assert left == [0]
    left[0] = 2
    ledger.commit(ticket, 42)
    assert left == [0]
    assert ledger.spent() == Pure(epsilon=0.5)
    assert len(ledger.entries()) == 2
    assert ledger.verify().ok


def nothing_clings(problem: BaseException) -> None:
    assert isinstance(problem, TacitError)
    assert problem.__context__ is None
    assert problem.__cause__ is None
    assert "hunter2" not in repr(problem)


def test_no_error_of_a_driver_clings_to_ours(postgres: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.open("postgresql://someone:hunter2@127.0.0.1:1/nowhere?password=hunter2")
    nothing_clings(caught.value)
    with pytest.raises(LedgerError) as caught:
        Ledger.open(new_schema(postgres))
    nothing_clings(caught.value)
    place = new_schema(postgres)
    ledger = Ledger.create(place, budget=promise(1.0))
    readonly = Ledger.open(f"{place}%20-cdefault_transaction_read_only%3Don")
    with pytest.raises(LedgerError, match="read-only") as caught:
        readonly.reserve(ask("a"))
    nothing_clings(caught.value)
    path = tmp_path / "a"
    ledger = Ledger.create(path, budget=promise(1.0), wait_seconds=0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    for call in (
        ledger.spent,
        lambda: ledger.reserve(ask("a")),
        lambda: Ledger.open(path, wait_seconds=0.05),
    ):
        with pytest.raises(LedgerError) as caught:
            call()
        nothing_clings(caught.value)
    holder.close()
    path.write_bytes(b"SQLite format 3\0" + b"\0" * 4000)
    with pytest.raises(LedgerError) as caught:
        Ledger.open(path)
    nothing_clings(caught.value)


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://someone:hunter2@127.0.0.1:1/nowhere",
        "postgresql://127.0.0.1:1/nowhere?user=someone&password=hunter2",
        "mysql://someone:hunter2@host/db",
        "postgresql://someone:hunter2@host/db\0",
        "postgresql://someone:hunter2@host:port/db",
        "sqlite://someone:hunter2@/:memory:",
    ],
)
def test_no_password_is_in_any_text(place: str) -> None:
    for call in (Ledger.open, lambda p: Ledger.create(p, budget=promise(1.0)), Ledger.exists_at):
        with pytest.raises(TacitError) as caught:
            call(place)
        for text in (str(caught.value), repr(caught.value), repr(vars(caught.value))):
            assert "hunter2" not in text


def test_a_ledger_shows_its_place_without_a_password(postgres: str) -> None:
    ledger = Ledger.create(
        new_schema(postgres.replace("postgres:@", "postgres:hunter2@")), budget=promise(1.0)
    )
    for text in (repr(ledger), str(ledger), ledger.name, ledger.place):
        assert "hunter2" not in text
        assert "search_path" not in text
