"""A ledger's file keeps its connection: only while it is the very file, and without holding anybody up."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import ask, child_environment, promise
from tacit.errors import LedgerCorrupt, LedgerError
from tacit.guarantees import Pure
from tacit.ledger import Ledger, Ticket, looked, record_plan, seen
from tacit.ledger import store as module

OLD, YOUNG = "a" * 64, "b" * 64


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were opened, in order."""
    from tacit.ledger import store

    found: list[str] = []
    real = store.open_file
    monkeypatch.setattr(store, "open_file", lambda path, wait: (found.append(path), real(path, wait))[1])
    return found


def test_charges_in_a_row_open_the_file_once(tmp_path: Path, opened: list[str]) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    opened.clear()
    for number in range(5):
        ticket = ledger.reserve(ask(f"{number}", 0.125))
        assert isinstance(ticket, Ticket)
        ledger.commit(ticket, number)
        assert ledger.spent() == Pure(epsilon=0.125 * (number + 1))
    assert opened == []
    Ledger.open(tmp_path / "a").reserve(ask("another's", 0.125))
    assert len(opened) == 1
    assert ledger.spent() == Pure(epsilon=0.75)
    assert len(opened) == 2, "what somebody else wrote is read by a new connection"


def test_a_file_replaced_while_the_connection_is_put_away_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the end of a transaction and the look at the file another one may be put in its place."""
    place = tmp_path / "a"
    ledger = Ledger.create(place, budget=promise(1.0))
    copy = place.read_bytes()
    real = module.kept.put

    def late(*given: Any, **named: Any) -> None:
        (tmp_path / "b").write_bytes(copy)
        os.replace(tmp_path / "b", place)
        real(*given, **named)

    monkeypatch.setattr(module.kept, "put", late)
    ledger.reserve(ask("a", 0.25))
    monkeypatch.setattr(module.kept, "put", real)
    try:
        ledger.reserve(ask("b", 0.5))
    except LedgerError:
        return  # that the end of the chain went back is noticed
    with sqlite3.connect(place) as other:
        assert other.execute("SELECT count(*) FROM tacit_entries").fetchone() == (1,), (
            "nobody sees this charge"
        )
    other.close()


@pytest.mark.parametrize("work", ["reading", "writing"])
def test_what_is_read_is_of_the_file_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    """A file that is put there while a transaction goes on is the one that the next reading sees."""
    place = tmp_path / "a"
    ledger = Ledger.create(place, budget=promise(1.0))
    ledger.reserve(ask("a", 0.25))
    other = Ledger.create(tmp_path / "b", budget=promise(1.0))
    other.close()
    with getattr(ledger._store, work)():
        os.replace(tmp_path / "b", place)
    with pytest.raises(LedgerCorrupt, match="another"):
        ledger.spent()


@pytest.mark.parametrize("forked", [False, True])
def test_the_last_charge_is_missed_too(tmp_path: Path, forked: bool) -> None:
    """A copy from before the last charge, or one in which another charge has its place, is put over the file."""
    place = tmp_path / "a"
    ledger = Ledger.create(place, budget=promise(1.0))
    ledger.reserve(ask("a", 0.25))
    (tmp_path / "b").write_bytes(place.read_bytes())
    if forked:
        with Ledger.open(tmp_path / "b") as other:
            other.reserve(ask("another's", 0.0))
    ledger.reserve(ask("b", 0.5))
    place.write_bytes((tmp_path / "b").read_bytes())
    with pytest.raises(LedgerCorrupt):
        ledger.reserve(ask("c", 0.125))


def test_what_came_to_nothing_is_not_missed(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))

    def work(connection: Any) -> None:
        ledger._reserve(connection, ask("a", 0.5), None)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger._write(work)
    assert ledger.spent() == Pure(epsilon=0.0)
    ledger.reserve(ask("b", 0.25))
    assert ledger.verify().ok


@pytest.mark.parametrize("wait", [1e308, 3e6])
def test_a_long_wait_is_a_wait(tmp_path: Path, wait: float) -> None:
    """Where 32 bits hold no such number of milliseconds, the longest that they hold; never none."""
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0), wait_seconds=wait)
    with ledger._store.reading() as connection:
        assert connection.driver.execute("PRAGMA busy_timeout").fetchone() == (2**31 - 1,)


def test_what_is_durable_is_so_for_everybody(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    ledger.reserve(ask("a", 0.5))
    with sqlite3.connect(tmp_path / "a") as other:
        assert other.execute("SELECT count(*) FROM tacit_entries").fetchone() == (1,)
    other.close()


def test_a_kept_connection_holds_no_lock(tmp_path: Path) -> None:
    """After a reading and after a writing anybody may write at once."""
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    other = sqlite3.connect(tmp_path / "a", isolation_level=None, timeout=0)
    for call in (ledger.spent, lambda: ledger.reserve(ask("a", 0.5)), ledger.entries, ledger.verify):
        call()
        other.execute("BEGIN EXCLUSIVE")
        other.execute("ROLLBACK")
    other.close()


def test_every_connection_waits_for_the_disk() -> None:
    from tacit.ledger.store import SETTINGS

    assert "synchronous = EXTRA" in SETTINGS
    assert {"journal_mode = WAL", "journal_mode = OFF", "journal_mode = MEMORY"}.isdisjoint(SETTINGS)


def test_the_settings_hold_on_what_is_kept(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    ledger.reserve(ask("a", 0.5))
    with ledger._store.reading() as connection:
        assert connection.driver.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.driver.execute("PRAGMA journal_mode").fetchone() == ("persist",)


def test_a_file_in_its_place_is_opened(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    ledger.spent()
    Ledger.create(tmp_path / "b", budget=promise(1.0)).close()
    (tmp_path / "b").replace(tmp_path / "a")
    with pytest.raises(LedgerCorrupt, match="another"):
        ledger.reserve(ask("c"))


def test_bytes_that_are_changed_in_place_are_seen(tmp_path: Path) -> None:
    """Nothing that was read before stands for what lies on the disk now."""
    path = tmp_path / "a"
    ledger = Ledger.create(path, budget=promise(1.0))
    ledger.reserve(ask("a", 0.5, analyst="somebody"))
    assert ledger.verify().ok
    changed = path.read_bytes().replace(b'"analyst":"somebody"', b'"analyst":"somebodi"')
    stamp = os.stat(path)
    path.write_bytes(changed)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    assert not ledger.verify().ok


def test_a_ledger_at_rest_is_one_file(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "a", budget=promise(1.0)) as ledger:
        ledger.reserve(ask("a", 0.5))
        assert (tmp_path / "a-journal").read_bytes()[:8] == bytes(8), (
            "its head is blank: nothing is to be undone"
        )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a-queue"]


def test_a_process_that_ends_leaves_one_file(tmp_path: Path) -> None:
    script = f"""
    from support.ledgers import ask, promise
    from tacit.ledger import Ledger
    ledger = Ledger.create({str(tmp_path / "a")!r}, budget=promise(1.0))
    ledger.reserve(ask("a", 0.5))
    held = [ledger]
    held.append(held)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    subprocess.run(command, env=child_environment(), timeout=60, check=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a-queue"]


def test_the_journal_of_another_file_is_left_alone(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    ledger.reserve(ask("a", 0.5))
    Ledger.create(tmp_path / "b", budget=promise(1.0)).close()
    (tmp_path / "b").replace(tmp_path / "a")
    (tmp_path / "a-journal").write_bytes(b"that of the other one")
    ledger.close()
    assert (tmp_path / "a-journal").read_bytes() == b"that of the other one"


def test_few_are_kept(tmp_path: Path) -> None:
    ledgers = [Ledger.create(tmp_path / f"{n}", budget=promise(1.0)) for n in range(module.MOST + 5)]
    for ledger in ledgers:
        ledger.reserve(ask("a", 0.5))
    assert len(module.kept._of) <= module.MOST
    assert all(ledger.spent() == Pure(epsilon=0.5) for ledger in ledgers)
    for ledger in ledgers:
        ledger.close()


def test_after_an_error_nothing_is_kept(tmp_path: Path, opened: list[str]) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    with pytest.raises(LedgerError):
        ledger._store.write(lambda connection: connection.driver.execute("INSERT INTO nowhere VALUES (1)"))
    opened.clear()
    assert ledger.spent() == Pure(epsilon=0.0)
    assert len(opened) == 1


def test_a_child_has_connections_of_its_own(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    ledger.reserve(ask("a", 0.25))
    child = os.fork()
    if not child:
        good = not module.kept._of
        ledger.reserve(ask("b", 0.25))
        os._exit(0 if good and ledger.spent() == Pure(epsilon=0.5) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.spent() == Pure(epsilon=0.5)
    assert ledger.verify().ok


def test_connections_within_another_are_their_own(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    with ledger._store.reading() as outer, ledger._store.reading() as inner:
        assert outer.driver is not inner.driver


def test_a_file_needs_no_sqlalchemy(tmp_path: Path) -> None:
    """It takes longer to load than a charge takes."""
    code = """
        import sys
        from support.ledgers import ask, promise
        from tacit.ledger import Ledger
        ledger = Ledger.create(sys.argv[1], budget=promise(1.0))
        ledger.run(ask("a", 0.5), lambda: 1)
        assert Ledger.open(sys.argv[1]).verify().ok
        assert "sqlalchemy" not in sys.modules
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "a")]
    subprocess.run(command, check=True, env=child_environment())


# --- what a ticket says of looks ----------------------------------------------------------------------
def test_a_ticket_says_of_looks_what_the_ledger_says(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))

    def paid(key: str, plan: str, version: str = "") -> Any:
        ticket = ledger.reserve(ask(key, 0.0, plan_digest=plan, version=version))
        assert isinstance(ticket, Ticket)
        assert ticket.seen == seen(ledger, plan, version=version)
        return ticket.seen

    assert paid("before", OLD) == ()
    looked(ledger, analyst="somebody")
    assert paid("after", OLD) == (), "it was there before the look"
    assert len(paid("young", YOUNG)) == 1
    record_plan(ledger, "c" * 64, analyst="somebody")
    looked(ledger, analyst="somebody", version="2")
    assert len(paid("between", "c" * 64, "2")) == 1
    assert len(paid("last", "d" * 64, "2")) == 2


def test_a_store_may_be_collected_while_another_is_put_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector may run within `put`, and drops what it finds in the same thread: that must not wait for itself."""
    ledgers = [Ledger.create(tmp_path / f"{i}.ledger", budget=promise(1.0)) for i in range(3)]
    stores = [ledger._store for ledger in ledgers]
    for ledger in ledgers:
        ledger.spent()
    real, gone = module.stamp_of, []

    def collected(path: Path) -> object:
        if not gone:
            gone.append(id(stores[1]))
            module.kept.drop(gone[0])
        return real(path)

    monkeypatch.setattr(module, "stamp_of", collected)
    assert id(stores[1]) in module.kept._of
    ledgers[0].reserve(ask("a"))
    assert id(stores[1]) not in module.kept._of
    assert {id(stores[0]), id(stores[2])} <= set(module.kept._of)


def test_the_oldest_connections_are_closed_while_others_are_taken(tmp_path: Path) -> None:
    """Threads that put and take at once: at most so many are kept, and everybody's charges are recorded."""
    ledgers = [Ledger.create(tmp_path / f"{i}.ledger", budget=promise(1.0)) for i in range(module.MOST + 4)]

    def charge(part: int) -> None:
        for round_ in range(3):
            for ledger in ledgers[part::4]:
                assert isinstance(ledger.reserve(ask(f"{part} {round_}", 2**-6)), Ticket)

    threads = [threading.Thread(target=charge, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(module.kept._of) <= module.MOST
    assert all(len(ledger.charges()) == 3 for ledger in ledgers)
