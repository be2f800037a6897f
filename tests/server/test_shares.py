"""Analysts with shares, and servers beside each other: no sum exceeds a share or the table's total."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.ledgers import postgres_server, quick_folder
from support.servers import DECLARED, ROWS, people_of, settings_for
from tacit.server import jobs, work
from tacit.server.desk import Desk, opened
from tacit.server.store import JOBS, PEOPLE, now
from tacit.server.worker import Worker

ANALYSTS = ("andy", "ben", "dora", "emil")
NUMBERS = itertools.count()
CENTS = st.integers(1, 60)


class Direct:
    """Calls as a pool of processes takes them, made here."""

    def call(self, name: str, *given: Any, seconds: float) -> Any:
        return work.CALLS[name](*given)

    def close(self) -> None: ...


@pytest.fixture(
    scope="module", params=["one server", pytest.param("two on PostgreSQL", marks=pytest.mark.slow)]
)
def desks(request: pytest.FixtureRequest) -> Iterator[list[Desk]]:
    """The servers: one with files of its own, or two on one database."""
    if request.param == "one server":
        with quick_folder() as folder, opened(settings_for(Path(folder) / "desk")) as one:
            yield prepared([one, one])
        return
    with postgres_server() as url, quick_folder() as folder:
        first, second = (settings_for(Path(folder) / name, database=url) for name in ("one", "two"))
        with opened(first) as one, opened(replace(second, roots=first.roots)) as two:
            yield prepared([one, two])


def prepared(found: list[Desk]) -> list[Desk]:
    people_of(found[0])
    for desk in found:
        desk.pool = desk.slow = Direct()  # type: ignore[assignment]
    for name in ANALYSTS[2:]:
        found[0].store.add(PEOPLE, name=name, roles='["analyst"]', created=now())
    return found


@given(
    total=st.integers(20, 150),
    shares=st.lists(CENTS, min_size=1, max_size=4),
    asks=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), CENTS), min_size=3, max_size=8),
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_k_analysts_never_exceed_their_shares_nor_the_total(
    desks: list[Desk], total: int, shares: list[int], asks: list[tuple[int, int, int]]
) -> None:
    """Jobs come in by either server and are worked off by both at once; sums are exact, in hundredths."""
    one = desks[0]
    clara = one.accounts.person("clara")
    assert clara is not None
    name = f"t{next(NUMBERS)}"
    folder = one.settings.roots["tables"]
    (folder / f"{name}.csv").write_text(ROWS)
    said = {**DECLARED, "data": {"path": f"{name}.csv", "version": "1"}, "budget": {"epsilon": total / 100}}
    one.add_table(name, name, said, folder, clara)
    table = one.table(name, clara)
    for person, share in zip(ANALYSTS, shares, strict=False):
        one.grant(table, person, ["analyst"], str(share / 100), "", clara)
    numbers = {}
    for i, (who, where, cents) in enumerate(asks):
        person, desk = ANALYSTS[who % len(shares)], desks[where]
        asked = {"releases": [{"kind": "count", "where": f"age > {i}"}], "spend": {"epsilon": cents / 100}}
        quote = desk.quote(desk.table(name, clara), asked, person)
        number = jobs.submit(desk.store, quote, table=name, version="1", person=person)
        numbers[number] = person, Fraction(cents, 100)

    def work_off(desk: Desk) -> None:
        worker = Worker(desk.store, desk.settings.releases, desk.settings.database)
        while (taken := jobs.claim(desk.store, worker.name)) is not None:
            worker.run(taken)

    threads = [threading.Thread(target=work_off, args=(desk,)) for desk in desks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = {str(r["id"]): r for r in one.store.all(JOBS, table=name)}
    assert set(rows) == set(numbers)
    assert {r["state"] for r in rows.values()} <= {"done", "refused"}
    paid = dict.fromkeys(ANALYSTS, Fraction(0))
    for number, (person, price) in numbers.items():
        paid[person] += price if rows[number]["state"] == "done" else 0
    whole = Fraction(total, 100)
    assert sum(paid.values()) <= whole
    for person, share in zip(ANALYSTS, shares, strict=False):
        assert paid[person] <= Fraction(share, 100)
    # And nothing that fits is refused: what was refused does not fit into what is left in the end.
    for number, (person, price) in numbers.items():
        if rows[number]["state"] == "refused":
            own = Fraction(shares[ANALYSTS.index(person)], 100) - paid[person]
            assert price > min(own, whole - sum(paid.values()))
    ledger = one.ledger(table)
    assert ledger.verify().ok
    done = sorted(int(r["charge"]) for r in rows.values() if r["state"] == "done")
    assert done == sorted(c.sequence for c in ledger.charges())
    assert float(sum(paid.values())) == pytest.approx(ledger.spent().parameters["epsilon"], rel=1e-9)
