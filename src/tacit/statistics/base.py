"""What is asked (a statistic), and what that means for a declared table and unit (a question).

A statistic is a frozen object that knows no data. `statistic.on(schema, unit)` checks it against the schema and
gives the question: which integers the engine adds up, which vectors of integers get noise, how far one unit can
move them, and how the statistic is made of them. Nothing here reads a row, and nothing imports the engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.errors import InvalidParameter, UnitMismatch
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import flag, members, settle, text
from tacit.guarantees import GroupOf, People, Unit
from tacit.sources.aggregates import MOST_ROWS_BITS, NARROW_BITS, Aggregate, CountPeople, CountRows
from tacit.sources.axes import Axis, Binned, Open, axes_of, cell_count
from tacit.sources.expressions import Expression
from tacit.sources.parsing import parse
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.forms import Form, Parts
from tacit.statistics.sensitivity import GlobalSensitivity, base_unit, subsets
from tacit.statistics.tables import CountTables

__all__ = [
    "Part",
    "Question",
    "Statistic",
    "by_columns",
    "column_of",
    "filter_of",
    "integer_map",
    "is_people",
]

By = str | Binned | Sequence[str | Binned] | None


def by_columns(by: By) -> tuple[str | Binned, ...]:
    """`by=` as a tuple of different columns."""
    if not isinstance(by, str | Binned | Sequence | None):
        raise InvalidParameter(parameter="by", value=by, must="name columns", hint='by="state" or by=[...]')
    entries = () if by is None else (by,) if isinstance(by, str | Binned) else tuple(by)
    for entry in entries:
        if not isinstance(entry, str | Binned):
            raise InvalidParameter(parameter="by", value=type(entry).__name__, must="name columns")
    names = list(map(column_of, entries))
    if len(set(map(str, names))) != len(names):
        raise InvalidParameter(parameter="by", value=names, must="name different columns")
    return entries


def column_of(entry: str | Binned) -> str:
    """The column that an entry of `by=` names."""
    return entry.column if isinstance(entry, Binned) else entry


def filter_of(where: str | Expression | None) -> Expression | None:
    """`where=` as a tree."""
    return None if where is None else parse(where)


def is_people(unit: Unit) -> bool:
    """Is the unit a person (or several)?"""
    return isinstance(unit.of if isinstance(unit, GroupOf) else unit, People)


def integer_map(values: Any, factor: int = 1, plus: Any = None) -> AnyArray:
    """factor * values + plus without overflow: Python's integers where a table within the public limit may need them.

    The width follows from the factor and from the widths given, which follow from declared bounds: never from rows.
    """
    arrays = [np.asarray(values)] + ([np.asarray(plus)] if plus is not None else [])
    wide = abs(factor).bit_length() + MOST_ROWS_BITS > NARROW_BITS
    if wide or any(a.dtype == object for a in arrays):
        arrays = [a.astype(object) for a in arrays]
    out = arrays[0] * factor
    return np.asarray(out + arrays[1] if len(arrays) > 1 else out, dtype=arrays[0].dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One vector of integers that is released with noise: its name, its cells, and what a step of it is worth.

    `exact` marks a part that no unit can move under the declared relation: it is public and gets no noise.
    """

    name: str
    spacing: Fraction = Fraction(1)
    axes: tuple[Axis, ...] = ()
    exact: bool = False

    @property
    def cells(self) -> int | None:
        """How many numbers it has; None where the keys are unknown."""
        return cell_count(self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A statistic on a declared table: what to add up, how far a unit can move it, what to make of it."""

    statistic: Statistic
    schema: Schema
    unit: Unit
    axes: tuple[Axis, ...]
    requests: tuple[Aggregation, ...]
    parts: tuple[Part, ...]
    sensitivity: GlobalSensitivity
    sensitivities: Mapping[str, GlobalSensitivity]
    form: Form | None
    support: Aggregate | None = None
    support_sensitivity: GlobalSensitivity | None = None
    tables: CountTables | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cells(self) -> int | None:
        """How many cells; None where the keys are unknown."""
        return cell_count(self.axes)

    @property
    def numbers(self) -> int | None:
        """How many numbers the answer has: what a reader counts as its cells; None where the keys are unknown."""
        match self.statistic.layout:
            case "ends":
                return 2
            case "shares":
                return None if self.cells is None else self.cells * len(getattr(self.statistic, "at", (0,)))
            case "tables" | "levels":
                return sum(p.cells or 0 for p in self.parts)
        return self.cells

    @property
    def coordinates(self) -> int | None:
        """How many numbers get noise: the cells of all parts that are not exact; None where keys are unknown.

        A promise for all of them at once counts these, not the product of the axes: margins and hierarchies have
        several tables.
        """
        counts = [p.cells for p in self.parts if not p.exact]
        return None if any(c is None for c in counts) else sum(c for c in counts if c is not None)

    @property
    def known_keys(self) -> bool:
        """Are all keys known in advance?"""
        return self.support is None

    @property
    def limited(self) -> tuple[str, ...]:
        """The columns by whose keys people(..., groups=g) limits what is read of a person; none without a limit."""
        base, _ = base_unit(self.unit)
        if not isinstance(base, People) or base.groups is None or base.groups >= base.at_most:
            return ()
        return tuple(dict.fromkeys(a.column for r in self.requests for a in r.limited))

    def integers(self, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        """The true parts, exactly, from the engine's aggregates. PRIVATE: to be given to a mechanism only."""
        return self.statistic.integers(self, cells)

    def histogram(self, cells: Sequence[Cells]) -> AnyArray:
        """The true finest cells of which the parts are sums. PRIVATE: to be given to a mechanism only."""
        return self.statistic.histogram(self, cells)

    def assemble(self, noisy: Parts) -> Floats:
        """The statistic from noisy parts (post-processing)."""
        return self.statistic.assemble(self, noisy)

    def enclose(self, low: Parts, high: Parts) -> tuple[Floats, Floats]:
        """The range of the statistic while every part lies between low and high."""
        if self.form is None:
            raise InvalidParameter(
                parameter="statistic", value=self.statistic.kind, must="be a function of its parts with a known range",
                hint="the error of a selected quantile is one of rank: ask the mechanism",
            )  # fmt: skip
        return self.form.enclose(low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(ABC):
    """Something that can be asked, grouped by columns and restricted by a filter."""

    kind: ClassVar[str] = "statistic"
    """Its name in files and texts; what it is like is said below, and nobody asks for the name to know it."""
    filters: ClassVar[tuple[str, ...]] = ("where",)
    """Its fields that are filters."""
    rows_are_drawn_from: ClassVar[bool] = False
    """Are its tables counts, from which synthetic rows can be drawn?"""
    whole: ClassVar[bool] = False
    """Are its values whole numbers, of rows or of people?"""
    agrees: ClassVar[bool] = False
    """Can its tables be made whole, not negative, and to agree with each other?"""
    noise_alone: ClassVar[bool] = False
    """Is its error that of its noise, whatever the data are? Then an accuracy can be paid for."""
    yes_or_no: ClassVar[bool] = False
    """Does each row say yes or no?"""
    one_cell_a_row: ClassVar[bool] = False
    """Does a row add 1 to at most one of all its cells? Then small ones may be exact, given random data."""
    in_column_units: ClassVar[bool] = False
    """Are its values values of its column, so that those of dates are dates?"""
    problem: ClassVar[str | None] = None
    """The problem that lower bounds are known for (`tacit.risk`)."""
    fits: ClassVar[Literal["noise", "ranks", "clamping bounds", "thresholds", "function"]] = "noise"
    """What kind of mechanism fits it."""
    layout: ClassVar[Literal["cells", "ends", "levels", "shares", "tables"]] = "cells"
    """How its values lie: one a cell of its axes, or otherwise."""

    by: tuple[str | Binned, ...] = ()
    where: Expression | None = None

    def __post_init__(self) -> None:
        self._check_words()

    def _check_words(self) -> None:
        """Columns are text, groups are columns, filters are trees, flags are flags; one with checks of its own asks."""
        for name in ("by", "columns"):
            if hasattr(self, name):
                settle(self, **{name: by_columns(members(name, getattr(self, name)))})
        for name in ("column", "numerator", "denominator"):
            if hasattr(self, name):
                settle(self, **{name: text(name, getattr(self, name), empty=False)})
        if hasattr(self, "root"):
            settle(self, root=flag("root", self.root))
        for where in (getattr(self, name) for name in self.filters):
            if where is not None and not isinstance(where, Expression):
                raise InvalidParameter(parameter="where", value=type(where).__name__, must="be a filter")

    @abstractmethod
    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question for a declared table; every error of names, types and bounds appears here."""

    @abstractmethod
    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        """The released parts as exact integer combinations of the aggregates."""

    def histogram(self, question: Question, cells: Sequence[Cells]) -> AnyArray:
        """The finest cells of which the parts are sums, where the question says that they are (`tables.sums`)."""
        (only,) = cells
        (aggregate,) = question.requests[0].aggregates
        return np.ravel(only.values[aggregate])

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """The statistic from noisy parts."""
        assert question.form is not None
        return question.form.value(noisy)

    def aggregates(self, schema: Schema, unit: Unit) -> tuple[Aggregation, ...]:
        """What the engine adds up."""
        return self.on(schema, unit).requests

    def sensitivity(self, unit: Unit, schema: Schema) -> GlobalSensitivity:
        """How far one unit can move the released integers, all parts together, in grid steps."""
        return self.on(schema, unit).sensitivity

    def describe(self) -> dict[str, Any]:
        """The statistic as plain values, for plans and certificates."""
        out: dict[str, Any] = {"kind": self.kind}
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            if name == "by":
                out["by"] = [
                    b if isinstance(b, str) else {"column": b.column, "edges": _plain(b.edges)}
                    for b in self.by
                ]
            elif isinstance(value, Expression):
                out[name] = str(value)
            else:
                out[name] = _plain(value)
        return out

    def _frame(self, schema: Schema, unit: Unit, columns: tuple[str, ...]) -> Frame:
        """What all statistics share: axes, filter, and whether a row may count nowhere."""
        if self.where is not None:
            self.where.check(schema)
        axes = axes_of(self.by, schema)
        absent = (
            self.where is not None
            or any(schema[c].may_be_missing for c in columns)
            or not all(a.always for a in axes)
        )
        support, sensitivity = None, None
        if any(isinstance(a, Open) for a in axes):
            people = is_people(unit)
            support = (CountPeople if people else CountRows)(where=self.where)
            sensitivity = subsets(unit, cells=None)
        return Frame(
            axes=axes, absent=absent, cells=cell_count(axes), support=support, sensitivity=sensitivity
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Axes and filter of a statistic, checked."""

    axes: tuple[Axis, ...]
    absent: bool
    cells: int | None
    support: Aggregate | None
    sensitivity: GlobalSensitivity | None

    def request(
        self, *aggregates: Aggregate, groups: tuple[Axis, ...] | None = None
    ) -> tuple[Aggregation, ...]:
        """One request, with the support of unknown keys where they are."""
        wanted = (*aggregates, *([self.support] if self.support else []))
        return (Aggregation(axes=self.axes, aggregates=tuple(dict.fromkeys(wanted)), groups=groups),)


def people_only(unit: Unit) -> None:
    """A count of people needs to know who a person is."""
    if not is_people(unit):
        raise UnitMismatch(
            left="a count of people",
            right=str(unit),
            hint='protect=people("person_id", ...) says who a person is',
        )


PLAIN = frozenset({str, int, float, bool, type(None)})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        kinds = set(map(type, value))
        if kinds <= PLAIN:
            return list(value)
        if kinds <= {tuple, list} and PLAIN.issuperset(map(type, chain.from_iterable(value))):
            return list(map(list, value))  # pairs of a hierarchy, a hundred thousand of them
        return [_plain(v) for v in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
