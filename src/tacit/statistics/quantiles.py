"""Quantiles, several at once: the counts on a fine public grid, from which a mechanism selects."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, TooManyCells, UnknownName
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import flag, members, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import People, Unit
from tacit.mechanisms.sparse_keys import key_integers
from tacit.sources.axes import Axis, Binned, CountRows, Cut, axis_of, bins, cell_count
from tacit.sources.columns import Measured, Number
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    By,
    CountTables,
    GlobalSensitivity,
    Part,
    Question,
    Statistic,
    base_unit,
    boxes,
    by_columns,
    filter_of,
    never_absent,
    replaced,
    row_limit,
)
from tacit.statistics.forms import Linear, Parts
from tacit.statistics.population import INDEPENDENT
from tacit.statistics.weighted import independent_rows

RESOLUTION = 4096
"""The default resolution in requests: the curator chooses it (`finest_cut`)."""
FINEST = 1 << 16
MOST_CELLS = 1 << 23
USUAL = 1 << 20
"""Ranges of a histogram, and of the histograms of all groups together, that are read to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(Statistic):
    """The values below which given shares of the rows lie, in each cell: all shares from one histogram.

    The part is the histogram over equal ranges between the declared bounds: over `resolution` of them, or,
    without it, as fine as the column's grid, the number of groups and 65,536 allow. A mechanism may join
    neighbouring ranges. A row is counted in one of them, so it moves like Count. These ranges are no groups.
    Groups are the keys of `by` alone, and within them all rows of a person are counted, of which there are at
    most m. A selection by rank uses the score -|#(values below t) - q n|, which one unit of m rows moves by m
    max(q, 1 - q) under add-or-remove and by m under replace-one (`rank_sensitivity`).

    Without `interval` nothing is spent on intervals: a selection by rank then has none, and gets all of the price.
    """

    kind: ClassVar[str] = "quantiles"
    in_column_units: ClassVar[bool] = True
    fits: ClassVar[Literal["noise", "ranks", "clamping bounds", "thresholds"]] = "ranks"
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "shares"

    column: str
    at: tuple[float, ...]
    resolution: int = RESOLUTION
    interval: bool = True

    def __post_init__(self) -> None:
        self._check_words()
        set_fields(self, interval=flag("interval", self.interval))
        set_fields(self, at=members("at", self.at))
        if not self.at:
            raise EmptyComposition(what="the list of shares", hint="for example at=[0.25, 0.5, 0.75]")
        for share in self.at:
            if isinstance(share, bool) or not isinstance(share, int | float | Fraction) or not 0 < share < 1:
                raise InvalidParameter(
                    parameter="at", value=share, must="lie strictly between 0 and 1", hint="0.5 is the median"
                )
        set_fields(self, at=tuple(float(s) if isinstance(s, float) else s for s in self.at))
        if list(self.at) != sorted(set(self.at)):
            raise InvalidParameter(parameter="at", value=self.at, must="increase")
        set_fields(self, resolution=whole("resolution", self.resolution, least=2))

    def on(self, schema: Schema, unit: Unit) -> Question:
        column = schema.measured(self.column)
        frame = self._frame(schema, unit, (self.column,))
        if frame.support is not None:
            raise InvalidParameter(
                parameter="by", value=[str(b) for b in self.by], must="have known keys for quantiles",
                hint="declare category([...]), or release the keys first and declare those",
            )  # fmt: skip
        count = min(self.resolution, column.width + 1)
        if self.resolution == RESOLUTION:
            count = finest_cut(column.width + 1, cell_count(frame.axes) or 1)
        fine = Cut(column=self.column, values=column, count=count)
        axes = (*frame.axes, fine)
        sensitivity = boxes([(1, 1)], unit, cells=cell_count(axes), absent=frame.absent)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=(Aggregation(axes=axes, aggregates=(CountRows(where=self.where),), groups=frame.axes),),
            parts=(Part(name="counts", axes=axes),),
            sensitivity=sensitivity, sensitivities={"counts": sensitivity}, form=None,
            details={
                "bins": count,
                "rank_sensitivity": {float(q): rank_sensitivity(q, unit) for q in self.at},
            },
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """As other statistics, and `interval` only if there is none."""
        said = super().to_dict()
        return {k: v for k, v in said.items() if k != "interval" or not self.interval}

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        if not self.interval:
            raise InvalidParameter(
                parameter="interval", value=False, must="be left out with sampling=True",
                hint="only the interval shows the sampling error",
            )  # fmt: skip
        independent_rows(unit)
        question = self.on(schema, unit)
        return replace(question, details={**question.details, "sample": (INDEPENDENT,)})

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        return {"counts": cells[0].values[CountRows(where=self.where)]}

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """Quantiles of the histogram, in order. Negative counts are read as 0, and an empty cell as the middle."""
        counts = np.maximum(np.asarray(noisy["counts"]).astype(np.float64), 0.0)
        edges = range_edges(question, question.details["bins"])
        below = np.concatenate([np.zeros((*counts.shape[:-1], 1)), np.cumsum(counts, axis=-1)], axis=-1)
        flat = below.reshape(-1, below.shape[-1])
        out = np.empty((len(flat), len(self.at)))
        for i, ranks in enumerate(flat):
            for j, share in enumerate(self.at):
                total = ranks[-1]
                k = int(np.searchsorted(ranks, share * total, side="left")) if total > 0 else len(ranks) // 2
                k = max(k, 1)
                step = ranks[k] - ranks[k - 1]
                inside = (share * total - ranks[k - 1]) / step if step > 0 else 0.5
                out[i, j] = edges[k - 1] + (edges[k] - edges[k - 1]) * inside
        return out.reshape((*counts.shape[:-1], len(self.at)))


def finest_cut(levels: int, groups: int) -> int:
    """The ranges of each group's histogram: every value its own, or a power of two times 4096."""
    most = min(FINEST, max(RESOLUTION, MOST_CELLS // groups))
    if levels <= most:
        return levels
    count = 1 << (most.bit_length() - 1)
    while count > RESOLUTION and count * levels >= 1 << 52:
        count //= 2
    return count


def fine_column(column: Measured, bins: int) -> Measured:
    """The column on a grid with at least this many values, if possible, by halving its spacing.

    A declared grid coarser than the usual one (2^20 values) stays.
    """
    while (
        isinstance(column, Number)
        and USUAL <= column.width < bins
        and 2 * max(abs(column.lowest), abs(column.highest), column.width * bins // 2) < 1 << 50
    ):
        column = replace(column, grid=column.spacing / 2)
    return column


def occupied_ranges(question: Question, bins: int) -> Question:
    """The same question, read as the occupied ranges among this number of ranges in each group, which may be
    millions.
    """
    statistic: Any = question.statistic
    fine = fine_column(question.schema.measured(statistic.column), bins)
    axes = (*question.axes, Cut(column=statistic.column, values=fine, count=bins))
    request = Aggregation(
        axes=axes, aggregates=(CountRows(where=statistic.where),), groups=question.axes, sparse=True
    )
    return replace(question, requests=(request,), details={**question.details, "bins": bins})


def histograms(question: Question, cells: Sequence[Cells]) -> list[tuple[AnyArray, AnyArray]]:
    """(occupied ranges, counts) of every group, in the order of the groups. PRIVATE: for a mechanism only."""
    (read,) = cells
    assert read.keys is not None
    bins, (aggregate,) = question.details["bins"], question.requests[0].aggregates
    keys, counts = key_integers(read.keys[0]).astype(np.int64), np.asarray(read.values[aggregate])
    groups = cell_count(question.axes) or 1
    ends = np.searchsorted(keys, np.arange(groups + 1) * bins)
    return [(keys[a:b] - g * bins, counts[a:b]) for g, (a, b) in enumerate(itertools.pairwise(ends.tolist()))]


def range_steps(question: Question, bins: int) -> npt.NDArray[np.int64]:
    """The first step of each of this many equal ranges of the column, and the first step behind the last (as `Cut`)."""
    return step_at(question, bins, np.arange(bins + 1, dtype=np.int64))


def step_at(question: Question, bins: int, keys: AnyArray) -> npt.NDArray[np.int64]:
    """The first step of some of these ranges."""
    statistic: Any = question.statistic
    column = fine_column(question.schema.measured(statistic.column), bins)
    levels, keys = column.width + 1, np.asarray(keys, dtype=np.int64)
    # Products are below 2^52 unless every value has its own range.
    return np.asarray(column.lowest + (keys if bins == levels else -(-keys * levels // bins)))


def range_edges(question: Question, bins: int) -> Floats:
    """The same as values: steps are below 2^52 and their spacing is a power of two, so no product is rounded."""
    statistic: Any = question.statistic
    spacing = fine_column(question.schema.measured(statistic.column), bins).spacing
    return range_steps(question, bins).astype(np.float64) * float(spacing)


def joined(counts: AnyArray, bins: int) -> AnyArray:
    """Histograms over fewer ranges: neighbours are added up; the new number divides the old one."""
    array = np.asarray(counts)
    if array.shape[-1] == bins:
        return array
    return np.asarray(array.reshape(*array.shape[:-1], bins, -1).sum(axis=-1))


def rank_sensitivity(share: float, unit: Unit) -> Fraction:
    """The largest move of |#(values below t) - q n| by one unit, for any t.

    A row adds (b, 1) to (#below, n), b in {0, 1}, or (0, 0): it moves the difference by b - q in {-q, 1 - q}.
    Add-or-remove: m max(q, 1 - q). Replace-one: m times the distance of the extremes, m. For a group of units m counts
    the rows of all of them.
    """
    q, m = Fraction(share), row_limit(unit) * base_unit(unit)[1]
    return Fraction(m) if replaced(unit) else m * max(q, 1 - q)


def quantiles(
    column: str,
    *,
    at: float | Sequence[float] = (0.25, 0.5, 0.75),
    by: By = None,
    where: str | Expression | None = None,
    resolution: int = RESOLUTION,
) -> Quantiles:
    """Several quantiles of a number or date at once, or one, in each group."""
    shares = (at,) if isinstance(at, int | float | Fraction) else members("at", at)
    return Quantiles(
        column=column, at=shares, by=by_columns(by), where=filter_of(where), resolution=resolution
    )


def quantile(
    column: str,
    at: float,
    *,
    by: By = None,
    where: str | Expression | None = None,
    resolution: int = RESOLUTION,
) -> Quantiles:
    """One quantile of a number or date, in each group."""
    return quantiles(column, at=(at,), by=by, where=where, resolution=resolution)


def median(
    column: str, by: By = None, *, where: str | Expression | None = None, resolution: int = RESOLUTION
) -> Quantiles:
    """The middle value of a number or date, in each group."""
    return quantile(column, 0.5, by=by, where=where, resolution=resolution)


# Range queries: how many rows lie between two edges, for many pairs of edges at once.

MOST_BINS = 4096
MOST_RANGES = 10_000
EXACT_BINS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans(Axis):
    """Ranges of neighbouring bins, which may overlap: the keys of a release, never of a read."""

    spans: tuple[tuple[Any, Any], ...]

    @property
    def size(self) -> int:
        return len(self.spans)

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges(Statistic):
    """The number of rows in each of several ranges of neighbouring bins.

    A row lies in one bin, and so in every range that contains it: with N(b) ranges over bin b and N(b, c) over both of
    two bins, a unit of m rows moves the answers by m max N(b) in L1 and m sqrt(max N(b)) in L2 under add-or-remove,
    by m max (N(b) + N(c) - 2 N(b, c)), and its root, under replace-one (or by what one row moves alone, where it may
    lie in no bin). Noise on the answers is rarely best: the bins themselves, or a tree over them, need less.
    The bins are no groups: all of a person's m rows count, wherever they lie.
    """

    kind: ClassVar[str] = "ranges"
    whole: ClassVar[bool] = True

    column: str
    edges: int | tuple[Any, ...]
    at: tuple[tuple[Any, Any], ...] = ()

    def __post_init__(self) -> None:
        self._check_words()
        set_fields(self, edges=Binned(column=self.column, edges=self.edges).edges)
        pairs = [tuple(members("at", pair)) for pair in members("at", self.at)]
        if any(len(pair) != 2 for pair in pairs):
            raise InvalidParameter(parameter="at", value="an entry", must="be a pair (low, high)")
        if len(set(pairs)) != len(pairs):
            raise InvalidParameter(parameter="at", value=len(pairs), must="be different ranges")
        set_fields(self, at=tuple(pairs))

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
    """The number of rows between two edges: for all pairs of edges, or for those in `at`, [(low, high), ...].

    The ends of a range are ends of bins: of the first bin its low one, of the last bin its high one.
    """
    edges = _bins(column, bins).edges
    pairs = () if at is None else tuple(tuple(members("at", p)) for p in members("at", at))
    return Ranges(column=column, edges=edges, at=pairs, where=filter_of(where))


_bins = bins
