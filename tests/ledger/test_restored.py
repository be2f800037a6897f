"""Ctrl-C at every step, connections that die at every statement, older copies put back, clocks that jump."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

import tacit
from support.ledgers import ask, new_schema, promise
from tacit.errors import LedgerCorrupt, LedgerError
from tacit.guarantees import Pure
from tacit.ledger import Ledger, Recorded, Ticket, verify_ledger
from tacit.ledger import approvals as desk
from tacit.ledger import log as book
from tacit.ledger.store import TABLES

ROOM = os.path.join(os.path.dirname(tacit.__file__), "ledger")


class Interrupt:
    """Ctrl-C before the so-manieth line that is run in the ledger's room."""

    def __init__(self, at: int) -> None:
        self.at, self.lines = at, 0

    def __call__(self, frame: FrameType, what: str, _: Any) -> Interrupt | None:
        # An interrupt in a finaliser is printed and forgotten by Python: there it is not one of the steps.
        if not frame.f_code.co_filename.startswith(ROOM) or frame.f_code.co_name in (
            "__del__",
            "close",
            "drop",
        ):
            return None
        if what == "line":
            self.lines += 1
            if self.lines == self.at:
                raise KeyboardInterrupt
        return self


@contextmanager
def interrupted(at: int) -> Iterator[Interrupt]:
    stop, before = Interrupt(at), sys.gettrace()
    sys.settrace(stop)
    try:
        yield stop
    finally:
        sys.settrace(before)


def steps(act: Callable[[], object], points: int) -> Iterator[int]:
    """Some of the lines of what this runs, from the first to the last, and each of the last ones."""
    with interrupted(0) as counted:
        act()
    assert counted.lines > points
    yield from range(1, counted.lines + 1, max(1, counted.lines // points))
    # Later calls may run a few lines more: some of these stop nothing.
    yield from range(counted.lines - 10, counted.lines + 20)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("verb", ["reserve", "commit"])
def test_ctrl_c_at_every_step(new_place: Callable[[], str], verb: str) -> None:
    """A charge stands or does not, an answer is on record or is not; both are so for everybody, and work goes on."""
    place = new_place()
    ledger = Ledger.create(place, budget=promise(1.0))
    epsilon, charged, seen = 2**-10, 0, set()
    gc.collect()
    gc.freeze()  # what other tests left in this process is not looked through again at every step

    def act(number: int) -> Callable[[], object]:
        if verb == "reserve":
            return lambda: ledger.reserve(ask(f"q{number}", epsilon))
        ticket = ledger.reserve(ask(f"q{number}", epsilon))
        assert isinstance(ticket, Ticket)
        return lambda: ledger.commit(ticket, number)

    for number, at in enumerate(steps(act(0), 40 if place[0] == "/" else 10), 1):
        call = act(number)
        with interrupted(at), suppress(KeyboardInterrupt):
            call()
        gc.collect()  # what was interrupted while it closed a file: nobody has the file any more
        with Ledger.open(place, wait_seconds=2) as other:
            charges = other.charges()
            states = [other.state(c.sequence) for c in charges]
            seen.add((len(charges) - charged, states[-1]))
            # Nobody waits for what was interrupted, and both know the same.
            assert isinstance(other.reserve(ask(f"other {number}", epsilon)), Ticket)
            assert ledger.spent() == other.spent() == Pure(epsilon=(len(charges) + 1) * epsilon)
        answered = states[-1] == "committed"
        outcome = ledger.reserve(ask(f"q{number}", epsilon))
        assert isinstance(outcome, Recorded) is answered
        assert not answered or outcome.answer == number
        charged = len(ledger.charges())
        assert ledger.spent() == Pure(epsilon=charged * epsilon)
    assert ledger.verify().ok
    # Other threads do not wait for it either.
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(ledger.reserve(ask("thread", epsilon))), daemon=True)
    thread.start()
    thread.join(20)
    assert [type(one) for one in done] == [Ticket]
    # Both outcomes were met: before the end of the transaction, and after it.
    assert {s for _, s in seen} >= ({"committed", "reserved"} if verb == "commit" else {"reserved"})
    assert {n for n, _ in seen} >= {0, 1} or verb == "commit"


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("verb", ["reserve", "commit"])
def test_a_server_process_that_is_killed_at_every_statement(postgres: str, verb: str) -> None:
    place = new_schema(postgres)
    ledger, count, kill_at = Ledger.create(place, budget=promise(1.0)), [0], [0]

    def statement(connection: Any, *_: Any) -> None:
        count[0] += 1
        if count[0] == kill_at[0]:
            pid = connection.connection.dbapi_connection.info.backend_pid
            with psycopg.connect(postgres, autocommit=True) as admin:
                admin.execute("SELECT pg_terminate_backend(%s, 2000)", [pid])

    event.listen(ledger._store._engine, "before_cursor_execute", statement)
    met = 0
    for number in range(1, 11):
        asked = ask(f"q{number}", 2**-10)
        ticket = ledger.reserve(asked) if verb == "commit" else None
        before = len(ledger.charges())
        count[0], kill_at[0] = 0, number
        try:
            done = ledger.commit(ticket, number) if isinstance(ticket, Ticket) else ledger.reserve(asked)
        except LedgerError:
            done = None
        kill_at[0] = 0
        met += done is None
        with Ledger.open(place, wait_seconds=2) as other:
            charges = other.charges()
            assert other.verify().ok
            assert ledger.spent() == other.spent() == Pure(epsilon=len(charges) * 2**-10)
            assert len(charges) == before + (verb == "reserve" and done is not None)
            if verb == "commit":
                assert (other.state(charges[-1].sequence) == "committed") is (done is not None)
    ledger.close()
    gc.collect()
    assert met >= 4


# --- older copies ---------------------------------------------------------------------------------------------
def copied(ledger: Ledger, folder: Path) -> Callable[[], None]:
    """A copy as it is now; what is returned puts it back, as a backup or a dump is."""
    if ledger.path is not None:
        kept = folder / f"copy {time.monotonic_ns()}"
        shutil.copy(ledger.path, kept)
        return lambda: _into(kept, ledger.path)
    with ledger._store.reading() as connection:
        rows = {table.name: table.all(connection) for table in TABLES}

    def restore() -> None:
        with ledger._store.writing() as connection:
            for table in TABLES:
                connection.change(f"DELETE FROM {table.name}")
                for row in rows[table.name]:
                    connection.change(table.insertion, row)

    return restore


def _into(copy: Path, place: Path | None) -> None:
    assert place is not None
    beside = place.with_name(place.name + ".restored")
    shutil.copy(copy, beside)
    beside.replace(place)


@pytest.mark.parametrize("when", ["before the charge", "before the answer", "after the answer"])
@pytest.mark.parametrize("since", ["nothing", "as many", "more"])
def test_an_older_copy_under_a_process_that_runs_is_found(
    place: str, tmp_path: Path, when: str, since: str
) -> None:
    """And what others charged to the copy since does not hide it; no answer goes out that is not on record."""
    ledger = Ledger.create(place, budget=promise(1.0))
    ledger.run(ask("first", 2**-5), lambda: 1)
    restore = copied(ledger, tmp_path)
    ledger.run(ask("second", 2**-5), lambda: 2)
    ticket = ledger.reserve(ask("third", 2**-5)) if when != "before the charge" else None
    if when == "after the answer":
        assert isinstance(ticket, Ticket)
        ledger.commit(ticket, 3)
    restore()
    with Ledger.open(place) as other:
        for number in range({"nothing": 0, "as many": len(ledger._own) // 2, "more": 9}[since]):
            other.run(ask(f"other {number}", 2**-6), lambda: 1)

    def goes_on() -> None:
        if when == "before the answer":
            assert isinstance(ticket, Ticket)
            ledger.commit(ticket, 3)
        else:
            ledger.run(ask("fourth", 2**-5), lambda: pytest.fail("rows would be read"))

    with pytest.raises(LedgerCorrupt):
        goes_on()
    with pytest.raises(LedgerCorrupt):
        ledger.spent()


def test_an_older_copy_before_a_process_starts_is_found_by_an_anchor_alone(
    place: str, tmp_path: Path
) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    restore = copied(ledger, tmp_path)
    ledger.run(ask("first", 2**-5), lambda: 1)
    anchor, where = ledger.anchor, place
    ledger.close()
    restore()
    again = Ledger.open(place)
    assert again.spent() == Pure(epsilon=0.0)
    assert again.verify().ok
    again.run(ask("other", 2**-5), lambda: 1)
    again.close()
    assert not verify_ledger(where, anchors=[anchor]).ok


# --- clocks ---------------------------------------------------------------------------------------------------
def test_a_clock_that_jumps_changes_no_sum_and_no_order(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(["2026", "1970", "9999", "0001", "2026", "1999", "2026"] * 4)
    for room in (book, desk):
        monkeypatch.setattr(room, "now", lambda: f"{next(times)}-01-01T00:00:00.000000+00:00")
    ledger = Ledger.create(place, budget=promise(1.0))
    for number in range(4):
        ledger.run(ask(f"q{number}", 2**-5), lambda n=number: n)
    assert [c.sequence for c in ledger.charges()] == [1, 3, 5, 7]
    assert len({c.time for c in ledger.charges()}) > 2
    with Ledger.open(place) as other:
        assert other.verify().ok
        assert other.spent() == Pure(epsilon=2**-3)
        found = other.reserve(ask("q1", 2**-5))
        assert isinstance(found, Recorded)
        assert found.answer == 1
