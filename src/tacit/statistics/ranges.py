"""Range queries: how many rows lie between two edges, for many pairs of edges at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, TooManyCells, UnknownName
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import members, settle
from tacit.guarantees import People, Unit
from tacit.sources.aggregates import CountRows
from tacit.sources.axes import Axis, Binned, axis_of, bins
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import Part, Question, Statistic, filter_of
from tacit.statistics.forms import Linear
from tacit.statistics.sensitivity import GlobalSensitivity, base_unit, boxes, replaced, row_limit
from tacit.statistics.tables import CountTables, never_absent

__all__ = ["Ranges", "Spans", "ranges"]

MOST_BINS = 4096
MOST_RANGES = 10_000
EXACT_BINS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans(Axis):
    """Ranges of neighbouring bins, which may overlap: the keys of what is released, never of what is read."""

    spans: tuple[tuple[Any, Any], ...]

    @property
    def size(self) -> int:
        return len(self.spans)

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges(Statistic):
    """How many rows lie in each of several ranges of neighbouring bins.

    A row lies in one bin, and so in every range that contains it: with N(b) ranges over bin b and N(b, c) over both of
    two bins, a unit of m rows moves the answers by m max N(b) in L1 and m sqrt(max N(b)) in L2 under add-or-remove,
    by m max (N(b) + N(c) - 2 N(b, c)), and its root, under replace-one (or by what one row moves alone, where it may
    lie in no bin). Noise on the answers is rarely best: the bins themselves, or a tree over them, need less. The bins
    are no groups: this holds wherever a person's m rows lie, and all of them are counted.
    """

    kind: ClassVar[str] = "ranges"
    whole: ClassVar[bool] = True

    column: str
    edges: int | tuple[Any, ...]
    at: tuple[tuple[Any, Any], ...] = ()

    def __post_init__(self) -> None:
        self._check_words()
        settle(self, edges=Binned(column=self.column, edges=self.edges).edges)
        pairs = [tuple(members("at", pair)) for pair in members("at", self.at)]
        if any(len(pair) != 2 for pair in pairs):
            raise InvalidParameter(parameter="at", value="an entry", must="be a pair (low, high)")
        if len(set(pairs)) != len(pairs):
            raise InvalidParameter(parameter="at", value=len(pairs), must="be different ranges")
        settle(self, at=tuple(pairs))

    def on(self, schema: Schema, unit: Unit) -> Question:
        if self.by:
            raise InvalidParameter(
                parameter="by", value=self.by, must="be empty for ranges", hint="restrict them with where="
            )
        frame = self._frame(schema, unit, ())
        axis = axis_of(Binned(column=self.column, edges=self.edges), schema)
        count = axis.size or 0
        if count > MOST_BINS:
            raise TooManyCells(cells=count, limit=MOST_BINS, hint="ask for wider bins")
        asked, spans = self._spans(axis)
        absent = frame.absent or not axis.always
        sensitivity = _range_sensitivity(asked, count, unit, absent=absent)
        shown = Spans(column=self.column, spans=spans)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=(shown,),
            requests=(Aggregation(axes=(axis,), aggregates=(CountRows(where=self.where),), groups=()),),
            parts=(Part(name="count", axes=(shown,), exact=sensitivity.none),), sensitivity=sensitivity,
            sensitivities={"count": sensitivity}, form=Linear(part="count"),
            tables=CountTables(
                times=row_limit(unit) * base_unit(unit)[1], replaced=replaced(unit), complete=False, ranges=asked,
                fixed=never_absent(unit, (axis,), self.where is not None),
                sensitivity=boxes([(1, 1)], unit, cells=count, absent=absent),
            ),
        )  # fmt: skip

    def _spans(self, axis: Axis) -> tuple[npt.NDArray[np.int64], tuple[tuple[Any, Any], ...]]:
        """First and last bin of each range, and its ends for people."""
        ends = [e if isinstance(e, tuple) else (e, e) for e in axis.labels]
        lows, highs = [e[0] for e in ends], [e[1] for e in ends]
        if self.at:
            starts, stops = ({str(v): i for i, v in enumerate(side)} for side in (lows, highs))
            asked = []
            for low, high in self.at:
                for known, value in ((starts, low), (stops, high)):
                    if _word(value, known) is None:
                        raise UnknownName(what="end of a bin", name=str(value), known=known)
                asked.append((starts[_word(low, starts) or ""], stops[_word(high, stops) or ""]))
            if any(first > last for first, last in asked):
                raise InvalidParameter(parameter="at", value="a range", must="end where it begins, or after")
        else:
            if len(ends) * (len(ends) + 1) // 2 > MOST_RANGES:
                raise TooManyCells(
                    cells=len(ends) * (len(ends) + 1) // 2, limit=MOST_RANGES,
                    hint="name the ranges: at=[(low, high), ...]",
                )  # fmt: skip
            asked = [(i, j) for i in range(len(ends)) for j in range(i, len(ends))]
        if len(asked) > MOST_RANGES:
            raise TooManyCells(cells=len(asked), limit=MOST_RANGES)
        return np.array(asked, dtype=np.int64), tuple((lows[i], highs[j]) for i, j in asked)

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        assert question.tables is not None
        assert question.tables.ranges is not None
        counts = np.ravel(cells[0].values[CountRows(where=self.where)])
        below = np.concatenate([np.zeros(1, dtype=counts.dtype), np.cumsum(counts, dtype=counts.dtype)])
        first, last = question.tables.ranges.T
        return {"count": below[last + 1] - below[first]}


def _word(value: Any, known: dict[str, int]) -> str | None:
    """The end that a number or date names: 20 names the edge 20.0."""
    for said in (str(value), str(float(value)) if isinstance(value, int) else str(value)):
        if said in known:
            return said
    if isinstance(value, float) and value.is_integer() and str(int(value)) in known:
        return str(int(value))
    return None


def _range_sensitivity(
    asked: npt.NDArray[np.int64], count: int, unit: Unit, *, absent: bool
) -> GlobalSensitivity:
    """The largest move; beyond 512 bins of replaced rows a bound, the sum of the two largest."""
    change = np.zeros(count + 1, dtype=np.int64)
    np.add.at(change, asked[:, 0], 1)
    np.add.at(change, asked[:, 1] + 1, -1)
    over = np.cumsum(change[:-1])
    most = int(over.max())
    if replaced(unit):
        alone = absent or row_limit(unit) > 1 or isinstance(base_unit(unit)[0], People)
        if count > EXACT_BINS:
            most = 2 * most
        else:
            place = np.arange(count)
            inside = (place >= asked[:, :1]) & (place <= asked[:, 1:])
            both = inside.astype(np.float64).T @ inside.astype(np.float64)
            apart = int(np.rint(over[:, None] + over[None, :] - 2 * both).max())
            most = max(apart, most if alone else 0)
    one = GlobalSensitivity(l1=Fraction(most), l2_squared=Fraction(most), linf=Fraction(min(most, 1)))
    return one.times(row_limit(unit) * base_unit(unit)[1])


def ranges(
    column: str,
    bins: int | Iterable[Any],
    *,
    at: Sequence[Sequence[Any]] | None = None,
    where: str | Expression | None = None,
) -> Ranges:
    """How many rows lie between two edges: of all pairs of edges, or of those in `at`, [(low, high), ...].

    The ends of a range are ends of bins: of the first bin its low one, of the last bin its high one.
    """
    edges = _bins(column, bins).edges
    pairs = () if at is None else tuple(tuple(members("at", p)) for p in members("at", at))
    return Ranges(column=column, edges=edges, at=pairs, where=filter_of(where))


_bins = bins
