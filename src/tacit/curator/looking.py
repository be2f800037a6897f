"""For the custodian's eyes only: what the declarations of a plan lose of the data at hand.

    found = tacit.inspect(survey, survey.preview(tacit.count(by="state"), epsilon=0.5))
    print(found)                      # every line is marked as not for publication
    found.write("seen.txt")           # readable by its owner alone

Whoever has looked may have fitted bounds, keys and bins to the data. So the ledger has an entry before a row is read,
and certificates of plans that are younger than it say so (`tacit.ledger.looks`). What was found goes into no ledger,
certificate or report. `inspect_privately` pays for noisy shares instead, as any release does, and leaves no such mark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from tacit.curator.contributing import whole
from tacit.curator.curator import Curator
from tacit.curator.looked import cells_notes, column_notes, people_notes
from tacit.curator.notes import MARK, Note
from tacit.curator.plan import Plan
from tacit.errors import InvalidParameter
from tacit.guarantees.arguments import instance
from tacit.ledger import looked
from tacit.sources.looking import cells_seen, column_seen, people_seen
from tacit.sources.proposing import TextSeen, as_text, encoding_proposed, is_text, stored_names, texts_of
from tacit.sources.query import Aggregation
from tacit.sources.schema import Category
from tacit.sources.tables import Table
from tacit.sources.watching import tell

__all__ = ["Inspection", "inspect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was seen, as notes: true numbers about people, to be printed or written privately, and not pickled."""

    notes: tuple[Note, ...] = field(repr=False)
    entry: int

    @property
    def lines(self) -> tuple[str, ...]:
        """Every note as a line that says that it is not for publication."""
        last = f"the ledger has entry {self.entry}: from now on certificates of younger plans say that somebody looked"
        return (*(str(n) for n in self.notes), f"{MARK} | {last}")

    @property
    def attention(self) -> tuple[Note, ...]:
        """The notes about what is lost."""
        return tuple(n for n in self.notes if n.attention)

    @property
    def record(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"not_for_publication": True, "entry": self.entry, "notes": [n.record for n in self.notes]}

    def write(self, path: str | os.PathLike[str]) -> Path:
        """The lines in a new file that only its owner can read."""
        place = Path(path)
        body = "".join(f"{line}\n" for line in self.lines).encode("utf-8", "backslashreplace")
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise InvalidParameter(
                parameter="out", value=str(place), must="be a new file in a folder that can be written to",
                hint=(problem.strerror or "").lower(),
            ) from None  # fmt: skip
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(body)
        except OSError as problem:
            place.unlink(missing_ok=True)
            raise InvalidParameter(
                parameter="out", value=str(place), must="be writable", hint=(problem.strerror or "").lower()
            ) from None
        return place

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __reduce__(self) -> NoReturn:
        raise TypeError("what was seen of people is not pickled: write() makes a file that is yours alone")


def inspect(curator: Curator, plan: Plan | None = None) -> Inspection:
    """What the declarations lose of the data, and how small its cells are against the errors of the plan.

    For the custodian with the data at hand. The ledger says that somebody looked before a row is read, and must be one
    that lasts. It is refused for all who ask questions that are paid for (`tacit.ledger.looks`): for them plans run or
    are refused by declarations alone.
    """
    instance("curator", curator, Curator, must="be a Curator", hint="tacit.inspect(survey, plan)")
    if plan is not None:
        whole(plan)
        if plan.schema != curator.schema or plan.unit != curator.unit:
            raise InvalidParameter(
                parameter="plan", value=plan.digest[:12], must="be made for this schema and unit"
            )
    table = curator._open()
    ledger = curator._keeper.for_looking(table.facts)
    entry = looked(ledger, analyst=curator.analyst, table=curator._keeper.table, version=curator.version)
    return Inspection(notes=tuple(_notes(curator, table, plan)), entry=entry.sequence)


def _notes(curator: Curator, table: Table, plan: Plan | None) -> Iterator[Note]:
    names, steps = list(table.schema), len(table.schema) + 2
    texts: dict[str, TextSeen] = {}
    data, options = curator._data, curator._options
    if is_text(data):
        there = stored_names(data)
        typed = [n for n in names if n in there and not isinstance(table.schema[n], Category)]
        tell("looking at the file's text", 0, steps)
        for one in encoding_proposed(data):
            yield Note(
                about="the file", what="setting", attention=True, sentence=f"{one.reason}: try {one.words}"
            )
        if typed:
            with as_text(data, typed, unit=curator.unit, **options) as bare:
                texts = texts_of(bare, typed)
    rows = 0
    for at, name in enumerate(names, 1):
        tell(f"looking at {name}", at, steps)
        seen = column_seen(table, name)
        rows = seen.rows
        if at == 1:
            yield Note(
                about="the table", what="rows", sentence=f"{seen.rows:,} rows", numbers={"rows": seen.rows}
            )
        yield from column_notes(table.schema[name], seen, texts.get(name))
    tell("looking at people", steps - 1, steps)
    people = people_seen(table)
    if people is not None:
        yield from people_notes(table.unit, people)
    tell("looking at cells", steps, steps)
    for planned in plan.releases if plan is not None else ():
        requests = [r for r in planned.question.requests if isinstance(r, Aggregation)]
        cells = cells_seen(table, requests[0], rows=rows, shown=planned.question.axes) if requests else None
        if cells is not None:
            yield from cells_notes(planned, cells)
