"""A process that works through jobs: charge, read, add noise, write; one at a time.

It reads its settings from its first line of input, and ends with the current job when that input ends. It prints
nothing, since messages of engines may quote a row.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import math
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError, NotAllowed, TacitError
from tacit.server import jobs
from tacit.server.store import JOBS, TABLES, Row, ServerStore, in_schema, new_secret, now

IDLE = (0.05, 0.4)
"""Seconds between two looks for a job: at first, and after a while."""
PATIENCE = 60
"""The number of tries to reach a ledger, a second apart, before a worker leaves the job to its lease."""


class NotMine(Exception):
    """Another worker has taken the job."""


def place_of(table: Row, database: str, version: str | None = None) -> dict[str, Any]:
    """A table as `tacit.server.work` takes it, at its present version or at the one of a job."""
    return {
        "name": table["name"], "declaration": table["declaration"], "beside": table["beside"],
        "ledger": ledger_of(table, database), "share_record": bool(table["share_record"]),
        "version": table["version"] if version is None else version,
    }  # fmt: skip


class Worker:
    """One worker on a store."""

    def __init__(self, store: ServerStore, releases: Path, database: str, tick: float = 0.0) -> None:
        self.store, self.releases, self.database, self.tick = store, releases, database, tick
        self.name = f"{os.getpid()}-{new_secret(6)}"
        self.over = threading.Event()

    def loop(self) -> None:
        """Work until the input ends."""
        wait = IDLE[0]
        while not self.over.is_set():
            try:
                wait = self._next(wait)
            except KeyboardInterrupt:
                # A wish to stop that came between two jobs: the lease decides.
                continue

    def _next(self, wait: float) -> float:
        """Looks for a job once; returns the job, if any, and the waiting time after the next unsuccessful look."""
        try:
            job = jobs.claim(self.store, self.name, self.tick)
        except LedgerError:
            # The database went away: the jobs are there when it comes back.
            self.over.wait(1.0)
            return wait
        if job is None:
            self.over.wait(wait)
            return min(wait * 1.2, IDLE[1])
        self.run(job)
        self._rest(job)
        return IDLE[0]

    def _rest(self, job: Row) -> None:
        """Waits until the end of a job is shown, since the start of the next one must not reveal more."""
        try:
            found = self.store.one(JOBS, id=job["id"])
        except LedgerError:
            return
        if self.tick and found is not None and jobs.hidden(found, self.tick):
            self.over.wait(jobs.visible_at(found, self.tick) - now())

    def run(self, job: Row) -> None:
        """One job, to its end or to the end of its lease."""
        done = threading.Event()
        lost = threading.Event()
        stopped = threading.Event()

        def watch() -> None:
            stop_at = math.inf
            while not done.wait(min(jobs.LEASE / 30, max(0.01, stop_at - now()))):
                try:
                    held, stop = jobs.renew(self.store, job)
                except LedgerError:
                    continue
                if not held:
                    lost.set()
                    return
                if stop and stop_at == math.inf:
                    # On a tick: whether an answer was there at another moment is not to be told.
                    stop_at = jobs.tick_after(job["started"], now(), self.tick) if self.tick else 0.0
                if now() >= stop_at and not stopped.is_set():
                    stopped.set()
                    if not done.is_set():
                        _thread.interrupt_main()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        state, values = "failed", dict[str, Any]()
        try:
            state, values = self._ended(job, lost)
        except NotMine:
            return
        finally:
            done.set()
            watcher.join()
        self._finish(job, state, values)
        if job["rehearsal"]:
            with contextlib.suppress(TacitError):
                for number in jobs.old_rehearsals(self.store, str(job["person"])):
                    shutil.rmtree(self.releases / number, ignore_errors=True)
                    (self.releases / f"{number}.json").unlink(missing_ok=True)

    def _ended(self, job: Row, lost: threading.Event) -> tuple[str, dict[str, Any]]:
        """Run a job; how it ended."""
        try:
            return self._run(job, lost)
        except KeyboardInterrupt:
            return self._after(job, "cancelled", "stopped", "stopped by who asked")
        except NotMine:
            raise
        except TacitError as problem:
            refused = "refused" if problem.exit_code == 1 else "failed"
            return self._after(job, refused, "lost", _sentence(problem))
        except Exception:
            # Words of others may quote a row: one fixed sentence.
            return self._after(job, "failed", "lost", "the server could not do this")

    def _finish(self, job: Row, state: str, values: dict[str, Any]) -> None:
        for _ in range(600):
            try:
                jobs.finish(self.store, job, state, **values)
                return
            except LedgerError:
                # The answer is in the ledger. Who takes the job later finds it there.
                time.sleep(1.0)

    def _run(self, job: Row, lost: threading.Event) -> tuple[str, dict[str, Any]]:
        from tacit.ledger import Ledger
        from tacit.server import work

        table = self.store.one(TABLES, name=job["table"])
        if table is None:
            return "failed", {"message": "the table is no longer on this server; nothing was charged"}
        place, asked = place_of(table, self.database, str(job["version"])), json.loads(job["plan"])
        out = self.releases / str(job["id"])
        if job["rehearsal"] and job["attempts"] > jobs.ATTEMPTS:
            return "failed", {"message": "it was interrupted several times; nothing was charged"}
        if job["recovering"] and not job["rehearsal"]:
            file = work.file_of(place, asked, job["person"])
            plan = file.plan()
            with work.curator_of(place, file) as curator:
                recorded = curator.fit(plan, key=job["key"]).recorded
            number, state = self._charged(job)
            if recorded:
                told = work.replay(place, asked, job["person"], str(out), job["key"])
                paid = state == "committed" and number == told["charge"]
                return "done", {"charge": told["charge"], "replayed": int(not paid)}
            if number:
                return "lost", {"message": jobs.LOST, "charge": number}
            if job["attempts"] > jobs.ATTEMPTS:
                return "failed", {"message": "it was interrupted several times; nothing was charged"}

        if not job["rehearsal"] and job["version"] != table["version"]:
            # The rows are those of another version by now: only what is on record is of the version that was asked.
            try:
                told = work.replay(place, asked, job["person"], str(out), job["key"])
            except NotAllowed:
                return "refused", {"message": jobs.OLD_VERSION}
            return "done", {"charge": told["charge"], "replayed": 1}

        if not job["rehearsal"]:
            with Ledger.open(ledger_of(table, self.database)) as ledger:
                newest = int(ledger.anchor.partition(":")[0])
            if not jobs.mark(self.store, job, newest):
                raise NotMine

        def before() -> None:
            if lost.is_set() or not jobs.renew(self.store, job)[0]:
                raise NotMine

        told = work.release(
            place, asked, job["person"], out, key=job["key"], rehearsal=bool(job["rehearsal"]), before=before
        )
        return "done", {"charge": told["charge"], "replayed": int(told["replayed"])}

    def _charged(self, job: Row) -> tuple[int, str]:
        """The newest charge for this question of this person behind the job's mark, and its result."""
        from tacit.ledger import Ledger

        table, row = self.store.one(TABLES, name=job["table"]), self.store.one(JOBS, id=job["id"])
        if table is None or row is None or job["rehearsal"] or not row["mark"]:
            return 0, ""
        with Ledger.open(ledger_of(table, self.database)) as ledger:
            known = {j["charge"] for j in self.store.all(JOBS, key=job["key"]) if j["charge"]}
            found = [
                c.sequence
                for c in ledger.charges(job["person"])
                if c.key == job["key"] and c.sequence > row["mark"] and c.sequence not in known
            ]
            return (max(found), ledger.state(max(found))) if found else (0, "")

    def _after(self, job: Row, free: str, charged: str, message: str) -> tuple[str, dict[str, Any]]:
        """The end of an interrupted job: it follows from the charge and the answer in the ledger, if any.

        An answer on record is never lost: after a full disk or a late request to stop, the files are made again.
        """
        for _ in range(PATIENCE):
            try:
                number, state = self._charged(job)
            except TacitError:
                # Nobody says "nothing was charged" without having looked.
                self.over.wait(1.0)
                continue
            if state == "committed":
                return "done", {"charge": number}
            return (
                (charged, {"message": message, "charge": number}) if number else (free, {"message": message})
            )
        if job["attempts"] > jobs.ATTEMPTS:
            return "lost", {"message": jobs.UNKNOWN}
        # The lease runs out, and somebody looks again.
        raise NotMine


def _sentence(problem: TacitError) -> str:
    from tacit.server.work import unplaced

    return unplaced(f"{problem.message}; {problem.hint}" if problem.hint else problem.message)


def ledger_of(table: Row, database: str) -> str:
    """The place of a table's ledger."""
    place = str(table["ledger"])
    if place.startswith("schema:"):
        return in_schema(database, place.removeprefix("schema:"))
    return place


def main() -> None:
    """Settings from the first line, then jobs until the input ends."""
    from tacit.server import work

    # A server that a script started in the background ignores SIGINT, and its processes with it; a wish to stop is one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    said = json.loads(sys.stdin.buffer.readline())
    work.confine_to([Path(f) for f in said["folders"]], [Path(f) for f in said["named"]], said["database"])
    store = ServerStore(Path(said["folder"]), said["database"])
    worker = Worker(store, Path(said["releases"]), said["database"], float(said["tick"]))

    def end() -> None:
        while sys.stdin.buffer.read(1):
            pass
        worker.over.set()

    threading.Thread(target=end, daemon=True).start()
    worker.loop()


if __name__ == "__main__":
    main()
