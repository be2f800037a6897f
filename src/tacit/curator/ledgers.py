"""Which ledger a table has: the one beside its data, or one that was named and is remembered there.

Beside `visits.parquet` lie

    visits.ledger       the ledger, unless another place was named (of a table that is declared as `survey`:
                        survey.ledger)
    visits.ledger-at    a line for each ledger of the table that lies elsewhere: its id and its place, no password

so that a copied or renamed plan, a second plan, another spelling of the path or a link to the file all find the same
budget. A second ledger for a table that has one is refused unless it is asked for. What the data contain plays no
part in this. A copy of the data in another folder is not known as such (docs/known-limits.md).
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.errors import LedgerError
from tacit.ledger import Ledger

__all__ = ["BESIDE", "Beside", "Home", "home_of"]

ENDINGS = (".gz", ".parquet", ".parq", ".pq", ".csv", ".tsv")
ENDING = ".ledger"


class Beside:
    """The ledger that lies beside the data, made if there is none."""

    def __repr__(self) -> str:
        return "the ledger beside the data"


BESIDE: Final = Beside()


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where the ledgers of a table on disk are looked for."""

    folder: Path
    names: tuple[str, ...]

    @property
    def default(self) -> Path:
        """The ledger's place where none is named and there is none."""
        return self.folder / f"{self.names[0]}{ENDING}"

    def here(self) -> list[Path]:
        """The ledgers that lie beside the data."""
        found = (self.folder / f"{name}{ENDING}" for name in self.names)
        return [path for path in found if os.path.lexists(path)]

    def elsewhere(self) -> dict[str, str]:
        """The ledgers that are remembered here, by their ids."""
        found: dict[str, str] = {}
        for path in (self.folder / f"{name}{ENDING}-at" for name in self.names):
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError):
                raise LedgerError(
                    ledger=str(path), reason="cannot be read, and says where the table's ledger is",
                    hint="ask who keeps the table",
                ) from None  # fmt: skip
            for line in lines:
                number, _, place = line.partition("  ")
                found[number] = place
        return found

    def only(self) -> str | None:
        """The one ledger that the table has; None if it has none, and a refusal if it is not clear which."""
        here, noted = self.here(), self.elsewhere()
        places = {p if "://" in p else str(Path(p).resolve()): p for p in (*map(str, here), *noted.values())}
        if len(places) > 1:
            raise LedgerError(
                ledger=", ".join(sorted(places.values())),
                reason="are all of this table",
                hint="name the one that is meant",
            )
        if not places:
            return None
        place = next(iter(places.values()))
        if "://" in place:
            raise LedgerError(
                ledger=place, reason="is that of this table, and is not named here",
                hint="name it, with what it takes to be let in",
            )  # fmt: skip
        return place

    def admits(self, place: str | None, number: str | None) -> None:
        """Refuse a ledger (its place, and its id if there is one already) if the table has another."""
        here, noted = self.here(), self.elsewhere()
        if number is not None and number in noted:
            return
        if place is not None and "://" not in place:
            real = Path(place).expanduser().resolve()
            if any(path.resolve() == real or _same(path, real) for path in here):
                return
        known = [*map(str, here), *noted.values()]
        if known:
            raise LedgerError(
                ledger=", ".join(known),
                reason="is that of this table already, and a second one would be a second budget",
                hint="name that one, or ask for another one: another_ledger=True, in a plan `another = true`",
            )

    def remember(self, ledger: Ledger) -> None:
        """Leave a note beside the data, under every name for which the ledger does not lie there."""
        line = f"{ledger.id}  {ledger.place}\n"
        for name in self.names:
            if ledger.path is not None and _same(self.folder / f"{name}{ENDING}", ledger.path):
                continue
            note = self.folder / f"{name}{ENDING}-at"
            # A folder that cannot be written has no notes: then the ledger must be named each time.
            with suppress(OSError):
                if note.exists() and ledger.id in note.read_text(encoding="utf-8", errors="replace"):
                    continue
                handle = os.open(note, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
                try:
                    os.write(handle, line.encode("utf-8", "surrogateescape"))
                finally:
                    os.close(handle)


def home_of(data: Any, table: str) -> Home | None:
    """Where a table's ledgers are looked for; None for what does not lie in a file."""
    if not isinstance(data, str | os.PathLike):
        return None
    path = Path(os.fspath(data)).expanduser()
    with suppress(OSError, RuntimeError):
        path = path.resolve()
    stem = path.name
    while Path(stem).suffix.lower() in ENDINGS:
        stem = Path(stem).stem
    stem = "".join("_" if c in '*?[]:<>|"\\' else c for c in stem) or "table"
    plain = table.replace("/", "_").replace("\0", "_").strip(". ")
    return Home(folder=path.parent, names=tuple(dict.fromkeys(n for n in (plain, stem) if n)))


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
