"""Releases as jobs: a queue in the server's database, worked off by processes apart from requests.

A worker leases a job under a number that grows with every lease (the fence), and renews the lease while it
works. Only the holder of the newest number may say how a job ended. Another worker takes a job with an expired
lease, and first looks into the ledger:

    the answer is on record           the job is done, free
    a charge, and no answer           the job is lost: charged without an answer; asking again costs again
    neither                           nothing was charged, and the job runs

The ledger decides about budgets in any case: two workers on one job could charge twice at most, and never answer
without a charge. The numbers of charges in the ledger (`mark`), not a clock, determine the charges of a job.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from tacit.errors import NotAllowed
from tacit.server.accounts import CROWDED
from tacit.server.store import JOBS, Row, ServerStore, new_secret, now

LEASE = 15.0
"""Seconds that a worker may be silent."""
ATTEMPTS = 3
OPEN = ("asked", "queued", "running")
WORDS = {
    "asked": "waits for an approval",
    "queued": "waiting",
    "running": "running",
    "done": "answered",
    "refused": "refused; nothing was charged",
    "failed": "failed; nothing was charged",
    "lost": "charged, and no answer came",
    "cancelled": "cancelled; nothing was charged",
    "stopped": "stopped after the charge, which stays",
}
LOST = "the budget was charged and no answer came: the work was interrupted, or the rows could not be read"
UNKNOWN = (
    "the ledger could not be reached; whether the budget was charged stands in the ledger, once it is back"
)
CLOSED = (
    "the request is no longer open in the ledger: it was refused or taken back there, or used by another job; "
    "this job charged nothing"
)
OLD_VERSION = (
    "the table has a new version since this was asked, and its rows are no longer those that were asked about; "
    "nothing was charged; ask again, about the new version"
)
RELEASED = ("function", "random_data", "synthetic")
"""The parts of certificates that hold released values."""
MOST_WAITING = 50
MOST_REHEARSALS = 50


def number_of(person: str, key: str) -> str:
    """The number of the job of a form, or of a program's own key; both belong to one person alone.

    If the key itself were the number, anybody who guesses another person's key would learn that it was used.
    """
    return hashlib.sha256(f"{person}\n{key}".encode()).hexdigest()[:24] if key else ""


def submit(
    store: ServerStore, quote: Mapping[str, Any], *, table: str, version: str, person: str, form: str = "",
    rehearsal: bool = False, request: int = 0,
) -> str:  # fmt: skip
    """A new job for a priced question; the same form sent twice makes one job. With a request it waits for approval.

    A form that comes again with another question (the back button) is a new job: the old answer is not shown.
    """
    number = form or new_secret(12)
    if (known := store.one(JOBS, id=number)) is not None:
        if is_same(known, quote, person, version, rehearsal):
            return number
        number = new_secret(12)
    room(store, person)
    try:
        store.add(
            JOBS, id=number, table=table, person=person, title=quote["title"], plan=json.dumps(quote["asked"]),
            digest=quote["digest"], key=quote["key"], price=quote["price"], created=now(), version=version,
            state="asked" if request else "queued", rehearsal=int(rehearsal), request=request,
        )  # fmt: skip
    except sa.exc.IntegrityError:
        # The same form at the same moment.
        known = store.one(JOBS, id=number)
        if known is None or not is_same(known, quote, person, version, rehearsal):
            raise NotAllowed(who=person, what="send this form", reason="its number is taken") from None
    return number


def room(store: ServerStore, person: str) -> None:
    """Refuses a person with many waiting jobs, also before a request is written into a ledger, where it would
    stay.
    """
    waiting = store.all(JOBS, person=person, state="queued")
    if len(waiting) >= MOST_WAITING:
        raise NotAllowed(
            who=person,
            what="ask for more now",
            reason=CROWDED,
            hint=f"{len(waiting)} of your jobs wait",
        )


def is_same(job: Row, quote: Mapping[str, Any], person: str, version: str, rehearsal: bool) -> bool:
    """Whether a job answers this form: the same question of the same person."""
    asked = person, quote["digest"], quote["key"], version, rehearsal
    return asked == (job["person"], job["digest"], job["key"], job["version"], bool(job["rehearsal"]))


def start(store: ServerStore, number: str) -> bool:
    """Run a job that waited for an approval."""
    return store.change(JOBS, [JOBS.c.id == number, JOBS.c.state == "asked"], state="queued") == 1


def claim(store: ServerStore, worker: str, tick: float = 0.0) -> Row | None:
    """A job for this worker: one that waits, or one with an expired lease.

    Jobs with the same query run one at a time. The next one starts when the page shows the end of the first.
    The record then answers it without a second charge, and without revealing the end earlier.
    """
    with store.transaction() as connection:
        time, passed = now(), set[str]()
        old = sa.and_(JOBS.c.state == "running", JOBS.c.lease < time)
        # A clock that jumped back must not hold a job for hours.
        far = sa.and_(JOBS.c.state == "running", JOBS.c.lease > time + 10 * LEASE)
        other = JOBS.alias("other")
        before = sa.or_(
            other.c.state == "running",
            sa.and_(
                other.c.state == "queued",
                sa.or_(
                    other.c.created < JOBS.c.created,
                    sa.and_(other.c.created == JOBS.c.created, other.c.id < JOBS.c.id),
                ),
            ),
        )
        same = _same_question(other, JOBS.c.key, JOBS.c.table, JOBS.c.version)
        taken = sa.exists().where(*same, other.c.id != JOBS.c.id, before, JOBS.c.rehearsal == 0)
        wanted = (
            sa.select(JOBS)
            .where(sa.or_(sa.and_(JOBS.c.state == "queued", ~taken), old, far))
            .order_by(JOBS.c.created, JOBS.c.id)
            .limit(1)
        )
        if store.database:
            wanted = wanted.with_for_update(skip_locked=True)
        while True:
            row = connection.execute(wanted.where(JOBS.c.key.not_in(passed))).first()
            if row is None:
                return None
            if row.state == "running" or row.rehearsal or not _hidden_before(connection, row, tick):
                break
            passed.add(str(row.key))
        found = dict(row._mapping)
        found["recovering"] = found["state"] == "running"
        found |= {
            "fence": found["fence"] + 1,
            "attempts": found["attempts"] + 1,
            "worker": worker,
            "state": "running",
        }
        found["started"] = found["started"] or time
        connection.execute(
            sa.update(JOBS).where(JOBS.c.id == found["id"]).values(
                state="running", worker=worker, fence=found["fence"], lease=time + LEASE, started=found["started"],
                attempts=found["attempts"],
            )
        )  # fmt: skip
        return found


def _same_question(other: Any, key: Any, table: Any, version: Any) -> list[Any]:
    return [
        other.c.key == key, other.c.table == table, other.c.version == version, other.c.rehearsal == 0,
    ]  # fmt: skip


def _hidden_before(connection: Any, row: Any, tick: float) -> bool:
    """Whether a job with the same query has ended, and its end is not shown yet."""
    if not tick:
        return False
    found = connection.execute(
        sa.select(JOBS).where(
            *_same_question(JOBS, row.key, row.table, row.version),
            JOBS.c.started > 0,
            2 * JOBS.c.ended - JOBS.c.started + tick > now(),
        )
    )
    return any(hidden(dict(r._mapping), tick) for r in found)


def renew(store: ServerStore, job: Row) -> tuple[bool, bool]:
    """Whether the job is still this worker's, and whether it must stop. Renews the lease."""
    mine = [JOBS.c.id == job["id"], JOBS.c.fence == job["fence"], JOBS.c.state == "running"]
    held = store.change(JOBS, mine, lease=now() + LEASE) == 1
    found = store.one(JOBS, id=job["id"])
    return held, found is not None and bool(found["stop"])


def mark(store: ServerStore, job: Row, sequence: int) -> bool:
    """Note the ledger's newest entry before the first charge of a job, if the job is still this worker's."""
    mine = [JOBS.c.id == job["id"], JOBS.c.fence == job["fence"], JOBS.c.state == "running"]
    store.change(JOBS, [*mine, JOBS.c.mark == 0], mark=sequence)
    return renew(store, job)[0]


def finish(store: ServerStore, job: Row, state: str, **values: Any) -> bool:
    """Records how a job ended, if this worker still has it."""
    mine = [JOBS.c.id == job["id"], JOBS.c.fence == job["fence"], JOBS.c.state == "running"]
    return store.change(JOBS, mine, state=state, ended=now(), **values) == 1


def old_rehearsals(store: ServerStore, person: str) -> list[str]:
    """Deletes all rehearsals of a person except the newest ones; returns their numbers. Free ones would fill a disk."""
    rows = store.all(JOBS, order=JOBS.c.created.desc(), person=person, rehearsal=1)
    old = [str(r["id"]) for r in rows[MOST_REHEARSALS:] if r["state"] not in OPEN]
    if old:
        store.drop(JOBS, JOBS.c.id.in_(old), JOBS.c.rehearsal == 1)
    return old


def cancel(store: ServerStore, number: str) -> None:
    """Cancel a waiting job; ask a running one to stop."""
    waits = [JOBS.c.id == number, JOBS.c.state.in_(("asked", "queued"))]
    message = "cancelled before it began; nothing was charged"
    if not store.change(JOBS, waits, state="cancelled", message=message, ended=now()):
        store.change(JOBS, [JOBS.c.id == number, JOBS.c.state == "running"], stop=1)


def without_values(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """A certificate for readers who may not see released values: some certificates contain a released function."""
    held = [word for word in RELEASED if word in certificate]
    kept = {word: part for word, part in certificate.items() if word not in held}
    return kept | ({"withheld": held} if held else {})


def visible_at(job: Row, tick: float) -> float:
    """The moments at which the end of a job may show: 1, 2, 4, 8 ... ticks after its start.

    The time of a read depends on the rows. The page shows the duration to a factor of two only. A worker also
    begins its next job, and stops a job, at such a moment, because a second job would otherwise reveal the end
    of the first.
    """
    if job["state"] in OPEN or not job["started"]:
        return float(job["ended"])
    return tick_after(float(job["started"]), float(job["ended"]), tick)


def tick_after(started: float, moment: float, tick: float) -> float:
    """The first of the moments 1, 2, 4, 8 ... ticks after the start that is not before this one."""
    took = moment - started
    steps = max(0, math.ceil(math.log2(took / tick))) if took > tick else 0
    return started + tick * float(2**steps)


def shown_state(job: Row, tick: float) -> str:
    """The state that a person is shown now."""
    return "running" if hidden(job, tick) else str(job["state"])


def hidden(job: Row, tick: float) -> bool:
    """Whether a job has ended, and its end may not show yet. A clock that jumped back hides nothing."""
    return job["state"] not in OPEN and float(job["started"]) <= now() < visible_at(job, tick)
