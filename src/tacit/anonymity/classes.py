"""Equivalence classes: rows that agree in the quasi-identifiers, counted inside the engine.

A missing value is a value of its own: two people whose postal code is missing agree in it. Text is compared by its
bytes, numbers as they are stored. Nothing here reads a row into this process: what comes back are sizes of classes
and numbers of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tacit.anonymity import statements
from tacit.errors import BadData, EmptyComposition, InvalidParameter, UnknownColumn, WrongType
from tacit.sources.microdata import Microdata

__all__ = ["COUNT", "VALUE", "Classes", "check_roles"]

COUNT, VALUE = statements.COUNT, statements.VALUE


def check_roles(
    columns: Sequence[str], quasi: Sequence[str], sensitive: str | None = None, *, source: str = "the table"
) -> tuple[str, ...]:
    """The quasi-identifiers, each a column, each once, and none of them the sensitive column."""
    names = (quasi,) if isinstance(quasi, str) else tuple(quasi)
    if not names:
        raise EmptyComposition(
            what="the list of quasi-identifiers",
            hint="name the columns that somebody else may know of a person, such as age, sex, postal code",
        )
    for name in (*names, *([sensitive] if sensitive is not None else [])):
        if not isinstance(name, str):
            raise InvalidParameter(parameter="quasi", value=type(name).__name__, must="be names of columns")
        if name not in columns:
            raise UnknownColumn(column=name, known=columns, where=source)
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InvalidParameter(parameter="quasi", value=twice[0], must="name each column once")
    if sensitive is not None and sensitive in names:
        raise InvalidParameter(
            parameter="sensitive", value=sensitive, must="not be a quasi-identifier too",
            hint="what an attacker knows already cannot be what she learns: leave it out of one of the two",
        )  # fmt: skip
    return names


class Classes:
    """The classes of a table by its quasi-identifiers, with one sensitive column or none.

    `keys` are q0, q1, ... in the order of `quasi`; `sizes` has a row a class, with its size n; `cells` a row for each
    class and sensitive value in it, computed once and kept by the engine.
    """

    def __init__(self, micro: Microdata, quasi: Sequence[str], sensitive: str | None = None) -> None:
        self.micro = micro
        self.quasi = check_roles(micro.columns, quasi, sensitive, source=micro.source)
        self.sensitive = sensitive
        for name in (*self.quasi, *([sensitive] if sensitive else [])):
            kind = micro.type_of(name)
            if kind.is_nested() or kind.is_json() or kind.is_geospatial():
                raise WrongType(column=name, found=f"stored as {kind}", wanted="a plain value",
                                hint="make columns of its parts first")  # fmt: skip
        self.keys = tuple(f"q{i}" for i in range(len(self.quasi)))

    def grouped(self, relation: Any, more: Mapping[str, Any] | None = None) -> Any:
        """A table with these columns, counted by them under the names q0, q1, ... and `more`."""
        named = {key: relation[name] for key, name in zip(self.keys, self.quasi, strict=True)}
        return relation.group_by(**named, **(more or {})).aggregate(**{COUNT: relation.count()})

    def need_sensitive(self) -> Classes:
        """These classes, if they have a sensitive column."""
        if self.sensitive is None:
            raise InvalidParameter(
                parameter="sensitive",
                value=None,
                must="name a column",
                hint="this measure is about what is learned",
            )
        return self

    @cached_property
    def cells_name(self) -> str | None:
        """The name of the table of cells in DuckDB, made without Ibis; None in other engines."""
        self.need_sensitive()
        return self.micro.keep_statement(
            lambda table: statements.cells(table, self.quasi, self.sensitive or "")
        )

    @cached_property
    def cells(self) -> Any:
        """One row for each class and value of the sensitive column in it."""
        name = self.cells_name
        if name is not None:
            return self.micro.held(name)
        relation = self.micro.relation
        return self.micro.keep(self.grouped(relation, {VALUE: relation[self.sensitive]}))

    @cached_property
    def sizes(self) -> Any:
        """One row for each class: its size n, and the number of different sensitive values in it."""
        return self.micro.keep(self._sizes())

    def _sizes(self) -> Any:
        """`sizes`, computed when it is asked: what is asked once need not be held."""
        if "sizes" in vars(self):
            return self.sizes
        if self.sensitive is None:
            return self.grouped(self.micro.relation)
        cells = self.cells
        total = cells[COUNT].sum().cast("int64")
        return cells.group_by(*self.keys).aggregate(**{COUNT: total, "values": cells.count()})

    @cached_property
    def histogram(self) -> dict[int, int]:
        """How many classes there are of each size; sizes that do not occur are left out."""
        sizes = self.sizes
        found = self.micro.ask(sizes.group_by(size=sizes[COUNT]).aggregate(classes=sizes.count()))
        pairs = zip(found.column("size").to_pylist(), found.column("classes").to_pylist(), strict=True)
        table = {int(size): int(classes) for size, classes in sorted(pairs)}
        if not table:
            raise BadData(source=self.micro.source, problem="has no rows", hint="there is nothing to measure")
        return table

    @cached_property
    def least(self) -> dict[str, int]:
        """The number of rows, the size of the smallest class and, with a sensitive column, the fewest values in one."""
        if self.sensitive is not None and (name := self.cells_name) is not None:
            row = self.micro.state(statements.least(name, self.keys))
            return self._checked(dict(zip(("size", "rows", "values"), row, strict=True)))
        sizes = self.sizes if self.sensitive is None else self._sizes()
        asked = {"size": sizes[COUNT].min(), "rows": sizes[COUNT].sum().cast("int64")}
        asked |= {"values": sizes["values"].min()} if self.sensitive else {}
        return self._checked(self.micro.one(sizes.aggregate(**asked)))

    def _checked(self, found: dict[str, Any]) -> dict[str, int]:
        if found["size"] is None:
            raise BadData(source=self.micro.source, problem="has no rows", hint="there is nothing to measure")
        return {name: int(number) for name, number in found.items()}

    @cached_property
    def rows(self) -> int:
        """The number of rows."""
        return self.least["rows"]

    @cached_property
    def values(self) -> Any:
        """The sensitive values of the whole table with their numbers of rows."""
        cells = self.cells
        return self.micro.keep(cells.group_by(VALUE).aggregate(total=cells[COUNT].sum().cast("int64")))

    @cached_property
    def shares(self) -> Any:
        """`cells` with the size of the class and the number of rows with the value in the whole table."""
        return self.sized(self.cells, self.sizes, self.values)

    def sized(self, cells: Any, sizes: Any, values: Any) -> Any:
        """Cells with `size` and `total`; a null is the same as a null."""
        small = sizes.select(size=sizes[COUNT], **{f"z{key}": sizes[key] for key in self.keys})
        return self._met(cells, small, values.select(v=values[VALUE], total=values["total"]))

    def shares_once(self) -> Any:
        """`shares` for a single question: sizes and totals are added up in it and not held."""
        cells = self.cells
        n = cells[COUNT].sum()
        small = cells.group_by(**{f"z{key}": cells[key] for key in self.keys}).aggregate(size=n)
        return self._met(cells, small, cells.group_by(v=cells[VALUE]).aggregate(total=n))

    def _met(self, cells: Any, small: Any, named: Any) -> Any:
        met = cells.join(small, [cells[key].identical_to(small[f"z{key}"]) for key in self.keys])
        met = met.join(named, met[VALUE].identical_to(named["v"]))
        return met.select(*self.keys, VALUE, COUNT, "size", "total")
