"""Ways to open a table: files of two kinds, frames of this process, tables that have an engine already.

Each way gives an `Opened`: a table of an engine with its types, and no row read. `load` brings rows into the engine at
the first question, after its charge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import field
from typing import Any

from tacit.exact.data_classes import dataclass
from tacit.sources.compiling import check_columns
from tacit.sources.facts import Facts, Now
from tacit.sources.schema import Schema

__all__ = ["Opened", "Wish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Rules for every way to open a table."""

    columns: tuple[str, ...]
    memory: str
    spark: bool
    schema: Schema

    def check(self, names: Iterable[str], source: str, *, but: Collection[str] = ()) -> None:
        """The wanted columns are there, each once."""
        check_columns([name for name in self.columns if name not in but], names, source=source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A table in an engine, with its known facts and its remaining steps.

    facts: the facts established about the data, with their state. now: that state at this moment; None if
    nobody can change the data. in_place: the data are read in place, at every question, so that their state
    matters for as long as the table is open; otherwise it matters until they are loaded. load: brings the rows,
    once. rescue: brings them in a slower way that no row can stop, if the engine's own reader failed. owned:
    nobody else can change the data without a change of their state. conditions: assumptions about the data.
    """

    relation: Any
    source: str
    close: Callable[[], None] | None = None
    facts: Facts = field(default_factory=Facts)
    now: Now | None = None
    in_place: bool = False
    load: Callable[[], None] | None = None
    rescue: Callable[[], None] | None = None
    owned: bool = True
    conditions: tuple[str, ...] = ()
