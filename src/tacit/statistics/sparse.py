"""Sparse histograms: counts over a product of declared columns that is far larger than the table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, TacitError, UnknownName
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import members, set_fields
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact
from tacit.guarantees import GroupOf, Unit
from tacit.mechanisms import L1, L2, Gaussian, Impossible, KeysOfAUnit, SparseHistogram
from tacit.sources.axes import (
    Axis,
    Binned,
    CountPeople,
    CountRows,
    Cut,
    axis_of,
    codes_of,
    domain_of,
    labels_of,
)
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    Part,
    Question,
    Statistic,
    boxes,
    by_columns,
    filter_of,
    group_limit,
    people_only,
    row_limit,
    subsets,
)
from tacit.statistics.forms import Linear

MOST_PATTERNS = 14
Pattern = tuple[tuple[str, tuple[Any, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseQuestion(Question):
    """A sparse histogram on a declared table: the domain, its impossible cells, and what one unit can occupy."""

    domain: int
    impossible: Impossible | None
    contribution: KeysOfAUnit

    @property
    def cells(self) -> int:
        """The number of cells that the columns span, the impossible ones included."""
        return self.domain

    @property
    def coordinates(self) -> int:
        """The number of cells, each of which gets noise, or is treated as if it did."""
        return self.domain

    def occupied(self, cells: Sequence[Cells]) -> tuple[AnyArray, AnyArray]:
        """The occupied cells' keys and counts. PRIVATE: to be given to a mechanism only.

        Rows in cells that were declared impossible are left out, as rows without a key are.
        """
        assert cells[0].keys is not None
        keys, counts = cells[0].keys[0], cells[0].values[self.requests[0].aggregates[0]]
        if self.impossible is None:
            return keys, counts
        possible = ~self.impossible.holds(keys)
        return keys[possible], counts[possible]

    def labels(self, keys: AnyArray) -> dict[str, npt.NDArray[Any]]:
        """The meaning of released keys, column by column."""
        return labels_of(keys, self.axes)

    @property
    def l1_sensitivity(self) -> L1:
        """The L1 sensitivity of all cells together, for Laplace noise."""
        return L1(self.sensitivity.l1)

    @property
    def l2_sensitivity(self) -> L2:
        """The same in the Euclidean norm, for Gaussian noise."""
        return L2.root(self.sensitivity.l2_squared)

    def mechanism(
        self,
        *,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        rule: Literal["hall", "known", "floor"] = "hall",
        occupied: int | None = None,
    ) -> SparseHistogram:
        """Laplace noise for a pure epsilon, Gaussian noise for an (epsilon, delta) or a rho (zCDP)."""
        if rho is not None:
            noise = Gaussian.for_rho(rho=rho, sensitivity=self.l2_sensitivity, dimension=self.domain)
            return SparseHistogram.with_rule(
                noise=noise, domain=self.domain, rule=rule, occupied=occupied, impossible=self.impossible
            )
        if epsilon is None:
            raise InvalidParameter(parameter="epsilon", value=None, must="be given, or rho")
        if delta is None:
            return SparseHistogram.for_target(
                epsilon=epsilon, sensitivity=self.l1_sensitivity, domain=self.domain,
                rule=rule, occupied=occupied, impossible=self.impossible,
            )  # fmt: skip
        return SparseHistogram.for_target(
            epsilon=epsilon, delta=delta, sensitivity=self.l2_sensitivity, domain=self.domain,
            rule=rule, occupied=occupied, impossible=self.impossible,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseCount(Statistic):
    """The number of rows, or people, in each cell of a product of columns with up to 2^200 cells.

    Rows: a row adds 1 to at most one cell. Add-or-remove: m in L1, L2 and Linf for a unit of m rows (all of them in
    one cell). Replace-one: 2m, sqrt(2) m, m. People: a person adds 1 to each of at most t = min(rows, groups, cells)
    cells. Add-or-remove: t, sqrt(t), 1. Replace-one: s, sqrt(s), 1 with s = min(2t, cells). Impossible cells only
    remove rows, so the bounds hold with them as well.
    """

    kind: ClassVar[str] = "sparse_histogram"
    rows_are_drawn_from: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    fits: ClassVar[Literal["noise", "ranks", "clamping bounds", "thresholds"]] = "thresholds"

    columns: tuple[str | Binned, ...]
    of: Literal["rows", "people"] = "rows"
    impossible: tuple[Pattern, ...] = ()

    def __post_init__(self) -> None:
        self._check_words()
        if not self.columns:
            raise EmptyComposition(what="the list of columns", hint="name at least one")
        if not isinstance(self.of, str) or self.of not in ("rows", "people"):
            raise UnknownName(what="thing to count", name=str(self.of), known=("rows", "people"))
        set_fields(self, impossible=members("impossible", self.impossible))
        if len(self.impossible) > MOST_PATTERNS:
            raise InvalidParameter(
                parameter="impossible", value=len(self.impossible), must=f"be at most {MOST_PATTERNS} patterns",
                hint="one pattern may list several values of a column",
            )  # fmt: skip

    def on(self, schema: Schema, unit: Unit) -> SparseQuestion:
        if self.by:
            raise InvalidParameter(
                parameter="by",
                value=self.by,
                must="be empty for a sparse histogram",
                hint="name it as a column",
            )
        self._frame(schema, unit, ())
        axes = tuple(axis_of(c, schema) for c in self.columns)
        domain = domain_of(axes)
        impossible = _impossible(self.impossible, axes, domain)
        people = self.of == "people"
        if people:
            people_only(unit)
            sensitivity = subsets(unit, cells=domain)
        else:
            absent = self.where is not None or impossible is not None or not all(a.always for a in axes)
            sensitivity = boxes([(1, 1)], unit, cells=domain, absent=absent)
        size = unit.size if isinstance(unit, GroupOf) else 1
        keys, rows = group_limit(unit, domain), row_limit(unit)
        return SparseQuestion(
            statistic=self,
            schema=schema,
            unit=unit,
            axes=axes,
            requests=(Aggregation(axes=axes, aggregates=(self._aggregate(),), sparse=True),),
            parts=(Part(name="count", axes=axes, exact=sensitivity.none),),
            sensitivity=sensitivity,
            sensitivities={"count": sensitivity},
            form=Linear(part="count"),
            domain=domain,
            impossible=impossible,
            contribution=KeysOfAUnit(
                keys=size * keys, each=size * (1 if people else rows), total=size * (keys if people else rows)
            ),
        )

    def _aggregate(self) -> CountRows | CountPeople:
        return (CountPeople if self.of == "people" else CountRows)(where=self.where)

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        """The counts of the occupied cells, by increasing key; `question.occupied` has the keys too."""
        assert isinstance(question, SparseQuestion)
        return {"count": question.occupied(cells)[1]}


def sparse_histogram(
    columns: str | Binned | Sequence[str | Binned],
    *,
    where: str | Expression | None = None,
    of: Literal["rows", "people"] = "rows",
    impossible: Sequence[Mapping[str, Any]] = (),
) -> SparseCount:
    """The number of rows (or people) for each combination of keys, most of which have none.

    `impossible` lists combinations that no row can have, each a mapping from columns to a value or a list of values:
    [{"sex": "male", "pregnant": True}]. These cells get no noise and are never released.
    """
    return SparseCount(
        columns=by_columns(columns),
        where=filter_of(where),
        of=of,
        impossible=tuple(_pattern(p) for p in members("impossible", impossible)),
    )


def _pattern(given: object) -> Pattern:
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameter(
            parameter="impossible", value=given, must="be mappings from columns to values",
            hint='[{"sex": "male", "pregnant": True}]',
        )  # fmt: skip
    pairs = []
    for column, values in given.items():
        listed = tuple(values) if isinstance(values, list | tuple | set | frozenset | range) else (values,)
        if not listed:
            raise EmptyComposition(what=f"the list of impossible values of {column!r}")
        pairs.append((str(column), listed))
    return tuple(sorted(pairs, key=lambda p: p[0]))


def _impossible(patterns: Sequence[Pattern], axes: Sequence[Axis], domain: int) -> Impossible | None:
    """The cells that match a pattern: counted by inclusion and exclusion, recognised by the digits of their key."""
    if not patterns:
        return None
    sets = [_codes(p, axes) for p in patterns]
    count = 0
    for size in range(1, len(sets) + 1):
        for chosen in itertools.combinations(sets, size):
            count -= (-1) ** size * _size(chosen, axes)
    if count >= domain:
        raise InvalidParameter(parameter="impossible", value=count, must="leave at least one possible cell")

    def test(keys: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        codes = codes_of(keys, axes)
        out = np.zeros(keys.size, dtype=np.bool_)
        for one in sets:
            match = np.ones(keys.size, dtype=np.bool_)
            for place, values in one.items():
                match &= np.isin(codes[place], list(values))
            out |= match
        return out

    return Impossible(test=test, count=count)


def _size(chosen: Sequence[Mapping[int, frozenset[int]]], axes: Sequence[Axis]) -> int:
    """The number of cells that match all of these patterns."""
    sizes = []
    for place, axis in enumerate(axes):
        here = [one[place] for one in chosen if place in one]
        sizes.append(len(frozenset.intersection(*here)) if here else axis.size or 1)
    return math.prod(sizes)


def _codes(pattern: Pattern, axes: Sequence[Axis]) -> dict[int, frozenset[int]]:
    places = {axis.column: i for i, axis in enumerate(axes)}
    out = {}
    for column, values in pattern:
        if column not in places:
            raise UnknownName(what="column of an impossible combination", name=column, known=places)
        axis = axes[places[column]]
        known: dict[Any, int] | None = None
        if not _each_value(axis):
            known = {_plain(label): i for i, label in enumerate(axis.labels)}
        found = [known.get(_plain(v)) if known is not None else _place(axis, v) for v in values]
        for value, place in zip(values, found, strict=True):
            if place is None:
                raise InvalidParameter(
                    parameter="impossible", value=value, must=f"be a declared key of {column!r}"
                )
        out[places[column]] = frozenset(place for place in found if place is not None)
    return out


def _each_value(axis: Axis) -> bool:
    return isinstance(axis, Cut) and axis.count == axis.levels


def _place(axis: Axis, value: Any) -> int | None:
    """The place of a value on an axis with a key for each, computed: a list of all keys may not fit into memory."""
    assert isinstance(axis, Cut)
    column = axis.values
    try:
        steps = column.steps_of(value)
        place = int(steps) - column.lowest
        here = steps.denominator == 1 and 0 <= place < axis.count and column.label(int(steps)) == value
    except (TacitError, TypeError, ValueError):
        return None
    return place if here else None


def _plain(value: Any) -> Any:
    # True and 1 are equal and hash alike, as a flag's and an integer's keys never are in one column.
    return tuple(value) if isinstance(value, list) else value
