"""The one ledger of a curator: found, or made once, whichever thread asks first."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.curator.ledgers import BESIDE, Beside, Home, home_of, home_of_files, refuse_protected
from tacit.curator.prices import exact_numbers
from tacit.errors import InvalidParameter
from tacit.guarantees import Bound, Guarantee
from tacit.ledger import Ledger, Ticket
from tacit.ledger.budget import share
from tacit.ledger.entries import text
from tacit.ledger.places import without_credentials
from tacit.sources import scratch
from tacit.sources.facts import Facts
from tacit.sources.twins import is_twin

__all__ = ["Keeper"]

Named = str | os.PathLike[str] | Ledger | Beside | None


class Keeper:
    """Finds the ledger of a table, and makes it at the first charge.

    A ledger that is named must be the table's only one, unless `another` is said. Without a name it is the one that
    the table has; if it has none, one for the life of this object, or one beside the data (`BESIDE`).
    """

    def __init__(
        self,
        data: Any,
        *,
        named: Named,
        budget: Guarantee,
        table: str,
        another: bool,
        wait_seconds: float,
        shares: Mapping[str, Bound] | None = None,
    ) -> None:
        if not isinstance(another, bool):
            raise InvalidParameter(parameter="another_ledger", value=another, must="be True or False")
        if not isinstance(named, str | os.PathLike | Ledger | Beside | None):
            raise InvalidParameter(
                parameter="ledger",
                value=type(named).__name__,
                must="be a path, a URL or a Ledger, or be left out",
            )
        self.table = text("table", table, empty=True)
        refuse_protected(data)
        self._data, self._named, self._budget, self._another = data, named, budget, another
        self._wait = wait_seconds
        self.shares = {text("analyst", name): share(bound, budget) for name, bound in (shares or {}).items()}
        self._lock = threading.RLock()
        self._drop: weakref.finalize[Any, Keeper] | None = None
        self._ledger: Ledger | None = None
        self._places: set[Path] = set()
        self._read: tuple[Path, ...] = ()
        if isinstance(named, Ledger):
            named.check(budget=budget, table=self.table)

    def glance(self) -> Ledger | None:
        """The ledger, if there is one already, for a look at what is left: makes nothing, and leaves no note."""
        with self._lock:
            return self._ledger if self._ledger is not None else self._found(make=False, note=False)

    def existing(self) -> Ledger | None:
        """The ledger, if there is one already; makes nothing."""
        with self._lock:
            if self._ledger is None:
                self._ledger = self._found(make=False)
            return self._ledger

    def made(self) -> Ledger:
        """The ledger, made if there is none."""
        with self._lock:
            if self._ledger is None:
                self._ledger = self._found(make=True)
            assert self._ledger is not None
            return self._ledger

    def for_charging(self, facts: Facts | None = None) -> Ledger:
        """The ledger, if these rows may be charged to it: a twin's to a rehearsal's, and real ones to a real one.

        facts: those of the table that was opened. Its very files must have this ledger and no other, and get a note of
        it: a pattern may match more of them by now than when the ledger was found.
        """
        ledger = self.made()
        # A table that was public when the curator was made may have a ledger by now.
        refuse_protected(self._data)
        # What was opened is what counts: the files may have been others when they were looked at before.
        twin = is_twin(self._data) and (facts is None or facts.made_up)
        if ledger.rehearsal is not twin:
            raise ledger.not_for(twin)
        with self._lock:
            if facts is not None and facts.protected != self._read:
                home = home_of_files(facts.protected)
                if home is not None and not self._places.issuperset(home.places):
                    with home.alone(self._wait):
                        # A session's ledger leaves no note: it is gone with its process.
                        self._settled(ledger, home, note=self._drop is None)
                self._read = facts.protected
        return ledger

    def for_looking(self, facts: Facts) -> Ledger:
        """The ledger, if it keeps a mark for as long as the table is there: a file's is not that of a session."""
        if home_of(self._data, self.table) is not None and self._named is None and self.existing() is None:
            raise InvalidParameter(
                parameter="ledger", value=None, must="be named before somebody looks at a file",
                hint="the mark must last as long as the file: ledger='survey.ledger'",
            )  # fmt: skip
        return self.for_charging(facts)

    def known_of(self, paid: Ticket) -> dict[str, Any]:
        """The table's name, and what the ledger knows against the plan: a look at the data that is older than it."""
        request = paid.request
        return {
            "table": self.table,
            "asked_by": request.analyst,
            **({"approved_by": list(paid.approved_by)} if paid.approved_by else {}),
            **({"seen": list(paid.seen)} if paid.seen else {}),
        }

    def folder(self, ledger: Ledger) -> Path | None:
        """The folder that files are named from: the ledger's own; None for a database, and for a session."""
        return None if ledger.path is None or self._drop is not None else ledger.path.parent

    def close(self) -> None:
        """Give the database back, and a session's ledger with it."""
        with self._lock:
            if self._ledger is not None:
                self._ledger.close()
            if self._drop is not None:
                self._drop()

    # --- finding ----------------------------------------------------------------------------------------
    def _found(self, *, make: bool, note: bool = True) -> Ledger | None:
        twin = is_twin(self._data)
        # A twin is not the table that a plan declares, and gets no place under its name.
        home = home_of(self._data, "" if twin else self.table)
        if home is None:
            return self._looked(None, twin, make=make, note=note)
        with home.alone(self._wait):
            return self._looked(home, twin, make=make, note=note)

    def _looked(self, home: Home | None, twin: bool, *, make: bool, note: bool) -> Ledger | None:
        if isinstance(self._named, Ledger):
            return self._settled(self._named, home, note=note)
        place: str | os.PathLike[str] | None
        if self._named is None or self._named is BESIDE or isinstance(self._named, Beside):
            place = None if home is None else home.only()
            if place is None and self._named is not None and home is not None:
                place = home.default
        else:
            place = self._named
        if place is None:
            return self._session(twin) if make else None
        if not Ledger.exists_at(place, wait_seconds=self._wait):
            if not make:
                return None
            if home is not None and not self._another:
                home.admits(os.fspath(place), None)
                home.admits_a_new_one()
        exact = exact_numbers(self._budget)
        given: dict[str, Any] = {"budget": self._budget, "table": self.table, "wait_seconds": self._wait}
        if make:
            found = Ledger.at(place, exact=exact, rehearsal=twin, shares=self.shares, **given)
        else:
            found = Ledger.open(place, wait_seconds=self._wait)
            found.check(budget=self._budget, table=self.table)
        return self._settled(found, home, note=note)

    def _settled(self, ledger: Ledger, home: Home | None, *, note: bool = True) -> Ledger:
        ledger.check_shares(self.shares)
        if home is not None:
            if not self._another:
                home.admits(ledger.place, ledger.id)
            if note:
                home.remember(ledger)
                self._places.update(home.places)
        return ledger

    def _session(self, twin: bool) -> Ledger:
        # A folder that goes with the process, however it ends: the ledger has a secret, and lasts for a session.
        folder = scratch.new_folder()
        self._drop = weakref.finalize(self, scratch.remove, folder)
        return Ledger.create(
            folder / "session.ledger",
            budget=self._budget,
            exact=exact_numbers(self._budget),
            table=self.table,
            rehearsal=twin,
            shares=self.shares,
            wait_seconds=self._wait,
        )

    def __str__(self) -> str:
        if self._named is None:
            return (
                "for this session only" if self._ledger is None or self._drop else f"in {self._ledger.name}"
            )
        if isinstance(self._named, Ledger):
            return f"in {self._named.name}"
        if isinstance(self._named, Beside):
            return "beside the data"
        return f"in {without_credentials(os.fspath(self._named))}"
