"""Many who write at once: each in the order of arrival, none starved, and no answer that was paid for is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support.ledgers import ask, child_environment, promise, quick_folder
from tacit.errors import LedgerLocked
from tacit.ledger import Ledger, Recorded, Ticket, verify_ledger
from tacit.ledger.store import Late, queued

WORKER = """
import sys, time
from support.ledgers import ask
from tacit.ledger import Ledger
place, name, charges = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = Ledger.open(place, wait_seconds=5)
print("ready", flush=True)
sys.stdin.readline()
for number in range(charges):
    begun = time.monotonic()
    ledger.run(ask(f"{name} {number}", 0.0), lambda: {"value": number})
    print(time.monotonic() - begun, flush=True)
"""


def crowd(place: str, charges: int) -> list[list[float]]:
    """Eight processes that charge at once, as fast as they can: how long each charge took."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, place, f"w{n}", str(charges)],
            env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for n in range(8)
    ]  # fmt: skip
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    out = [process.communicate(timeout=300)[0] for process in started]
    assert [p.returncode for p in started] == [0] * 8
    return [[float(line) for line in text.splitlines()] for text in out]


def test_writers_come_in_the_order_of_arrival(tmp_path: Path) -> None:
    path, order = tmp_path / "a", []
    path.touch()
    number = lambda: int.from_bytes((tmp_path / "a-queue").read_bytes()[1:9], "big")  # noqa: E731

    def wait(name: int) -> None:
        with queued(path, until=time.monotonic() + 30):
            order.append(name)
            time.sleep(0.002)

    threads = [threading.Thread(target=wait, args=(n,)) for n in range(12)]
    with queued(path, until=time.monotonic() + 30):
        for n, thread in enumerate(threads):
            thread.start()
            while number() < n + 2:
                time.sleep(0.001)
        time.sleep(0.05)
        assert order == [], "nobody comes in while somebody is there"
    for thread in threads:
        thread.join()
    assert order == list(range(12))


def test_nobody_waits_for_the_dead(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    with queued(path, until=time.monotonic() + 1), pytest.raises(Late), queued(path, until=time.monotonic()):
        pass
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with queued(path, until=time.monotonic() + 30):
            os.write(write, b"x")
            time.sleep(60)
        os._exit(0)
    os.read(read, 1)
    with pytest.raises(Late), queued(path, until=time.monotonic() + 0.05):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with queued(path, until=time.monotonic() + 5):
        pass


def test_a_child_does_not_keep_its_parents_number(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    with queued(path, until=time.monotonic() + 1):
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
    try:
        with queued(path, until=time.monotonic() + 5):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_an_answer_waits_for_readers_longer_than_a_charge_would(tmp_path: Path) -> None:
    """A reader holds the end of every transaction up; what was paid for is recorded when it has gone."""
    path = tmp_path / "a"
    ledger = Ledger.create(path, budget=promise(1.0), wait_seconds=0.05)
    ticket = ledger.reserve(ask("a"))
    assert isinstance(ticket, Ticket)
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM tacit_ledger").fetchall()
    with pytest.raises(LedgerLocked):
        ledger.reserve(ask("b"))
    gone = threading.Timer(0.5, lambda: (reader.execute("COMMIT"), reader.close()))
    gone.start()
    ledger.commit(ticket, 42)
    gone.join()
    again = Ledger.open(path).reserve(ask("a"))
    assert isinstance(again, Recorded)
    assert again.answer == 42
    assert len(ledger.charges()) == 1


def test_an_answer_waits_for_writers_longer_than_a_charge_would(place: str) -> None:
    ledger, holder = Ledger.create(place, budget=promise(1.0), wait_seconds=0.05), Ledger.open(place)
    ticket = ledger.reserve(ask("a"))
    assert isinstance(ticket, Ticket)
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with holder._store.writing():
            held.set()
            free.wait(20)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(20)
    with pytest.raises(LedgerLocked):
        ledger.reserve(ask("b"))
    threading.Timer(0.4, free.set).start()
    ledger.commit(ticket, 42)
    other.join()
    assert ledger.state(ticket.sequence) == "committed"


@pytest.mark.slow
def test_eight_processes_lose_no_answer_and_wait_about_as_long() -> None:
    """In memory, so that the disk's own time does not hide who waited for whom."""
    with quick_folder() as folder:
        place = f"{folder}/a.ledger"
        Ledger.create(place, budget=promise(1.0)).close()
        workers = crowd(place, 60)
        assert [len(took) for took in workers] == [60] * 8
        ledger = Ledger.open(place)
        committed = [entry.body["reserve"] for entry in ledger.entries() if entry.kind == "commit"]
        assert sorted(committed) == sorted(charge.sequence for charge in ledger.charges())
        assert len(committed) == 480
        assert verify_ledger(place).ok
        took = sorted(t for worker in workers for t in worker)
        assert took[475] <= 8 * took[240]
