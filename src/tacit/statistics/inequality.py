"""Inequality: the Gini coefficient, points of the Lorenz curve and shares of the top, from noisy geometric bins.

A row in bin k at the place u of [0, 1] between its ends adds u to `above` and 1 - u to `below` there. This one
histogram has twice as many cells, the sensitivity of one row, and gives the number of rows and their mean in every
bin. The
position of rows within a bin around that mean remains unknown. The result is enclosed between two cases: all rows at
the mean, and all rows at the two ends. Theorem `inequality-bins`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.errors import InvalidParameter, WrongType
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import members, set_fields, text, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.mechanisms.base import PartNoise
from tacit.mechanisms.spreads import normal_factor
from tacit.sources.axes import Bins, CountRows, OpenAxis, Steps, cell_count
from tacit.sources.columns import Integer, Number
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import By, Part, Question, Statistic, by_columns, filter_of, simplex
from tacit.statistics.forms import Parts, reals
from tacit.statistics.population import INDEPENDENT
from tacit.statistics.weighted import independent_rows

PLACES = 1 << 20
"""Steps of a place within a bin."""
MOST_BINS = 200
SPAN = 1024
"""The first edge above the lowest value is the largest value divided by this, unless it is given."""
TWO_THIRDS = 2 / 3
"""Of the largest part that spread within bins can have: that of rows which lie evenly between the ends."""
BELOW, ABOVE = "below", "above"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inequality(Statistic):
    """Gini coefficient, Lorenz curve and top shares of a number that is not negative, in each group.

    A unit of m rows: add-or-remove m in L1, L2 and Linf; replace-one 2 m, sqrt(2) m, m, in rows.
    """

    kind: ClassVar[str] = "inequality"
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "listed"
    covers: ClassVar[str] = (
        "the population's value, each by itself, however rows lie within a bin around its mean"
    )
    declares: ClassVar[tuple[str, ...]] = (INDEPENDENT,)

    column: str
    bins: int | tuple[float, ...] = 20
    lorenz: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    top: tuple[float, ...] = (0.1, 0.01)

    def __post_init__(self) -> None:
        self._check_words()
        if isinstance(self.bins, tuple | list):
            set_fields(self, bins=members("bins", self.bins))
        else:
            set_fields(self, bins=whole("bins", self.bins, least=2))
        if (self.bins if isinstance(self.bins, int) else len(self.bins) - 1) > MOST_BINS:
            raise InvalidParameter(parameter="bins", value="too many", must=f"be at most {MOST_BINS}")
        for name in ("lorenz", "top"):
            shares = tuple(float(s) if _share(s) else math.nan for s in members(name, getattr(self, name)))
            if any(math.isnan(s) for s in shares):
                raise InvalidParameter(parameter=name, value="a share", must="lie strictly between 0 and 1")
            set_fields(self, **{name: shares})
        set_fields(self, column=text("column", self.column, empty=False))

    def on(self, schema: Schema, unit: Unit) -> Question:
        independent_rows(unit)
        frame = self._frame(schema, unit, (self.column,))
        if any(isinstance(a, OpenAxis) for a in frame.axes):
            raise InvalidParameter(
                parameter="by", value="unknown keys", must="be columns whose keys are declared"
            )
        axis = self._axis(schema)
        axes = (*frame.axes, axis)
        cell_count(axes)
        moved = simplex(PLACES, unit)
        names = (BELOW, ABOVE)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=axes,
            requests=(Aggregation(axes=axes, aggregates=self._wanted(), groups=frame.axes),),
            parts=tuple(Part(name=n, spacing=Fraction(1, PLACES), axes=axes) for n in names),
            sensitivity=moved, sensitivities=dict.fromkeys(names, moved), form=None, details={"steps": axis.steps},
        )  # fmt: skip

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        return self.on(schema, unit)

    def _axis(self, schema: Schema) -> Bins:
        column = schema.measured(self.column)
        if not isinstance(column, Number | Integer) or column.lowest < 0:
            raise WrongType(column=self.column, found=column.kind, wanted="a number that is not negative")
        if isinstance(self.bins, tuple):
            inner = [math.ceil(column.steps_of(e)) for e in self.bins]
            if inner[0] > column.lowest or inner[-1] < column.highest:
                raise InvalidParameter(
                    parameter="bins",
                    value=self.bins[:6],
                    must="reach from the lowest to the highest declared value",
                )
            steps = [column.lowest, *inner[1:-1], column.highest + 1]
        else:
            first = max(column.lowest, 1, column.highest // SPAN)
            ratio = column.highest / first
            inner = [round(first * ratio ** (k / (self.bins - 1))) for k in range(self.bins - 1)]
            inner = [s for s in dict.fromkeys(inner) if column.lowest < s <= column.highest]
            steps = [column.lowest, *inner, column.highest + 1]
        if any(b <= a for a, b in itertools.pairwise(steps)):
            raise InvalidParameter(
                parameter="bins", value="edges", must="increase by at least a step of the grid",
                hint=f"the grid's spacing is {column.spacing}",
            )  # fmt: skip
        edges = tuple(float(s * column.spacing) for s in (*steps[:-1], column.highest))
        return Bins(column=self.column, values=column, edges=edges, steps=tuple(steps))

    def _wanted(self) -> tuple[CountRows, Steps]:
        return CountRows(where=self.where, present=(self.column,)), Steps(
            column=self.column, where=self.where
        )

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        """Places of all rows of a bin together, rounded down once: a row more adds between 0 and all of its own."""
        count, total = self._wanted()
        n, s = (np.asarray(cells[0].values[a]).astype(object) for a in (count, total))
        steps = question.details["steps"]
        lowest = question.schema.measured(self.column).lowest
        above = np.zeros(n.shape, dtype=object)
        for k, (first, after) in enumerate(itertools.pairwise(steps)):
            width = after - 1 - first
            if width:
                above[..., k] = PLACES * (s[..., k] + lowest * n[..., k] - first * n[..., k]) // width
        return {BELOW: np.asarray(PLACES * n - above, dtype=object), ABOVE: above}

    # --- what is made of the bins -----------------------------------------------------------------------------
    def measures(self) -> list[tuple[str, float | None]]:
        """The order of one group's values, with the share that each concerns."""
        return [
            ("gini", None),
            *(("lorenz", s) for s in self.lorenz),
            *(("top share", s) for s in self.top),
        ]

    def listed(self, question: Question) -> dict[str, list[Any]]:
        groups = question.axes[:-1]
        keys, lines = list(itertools.product(*(a.labels for a in groups))), self.measures()
        names: dict[str, list[Any]] = {
            a.column: [k[i] for k in keys for _ in lines] for i, a in enumerate(groups)
        }
        own = {
            "measure": [m for _ in keys for m, _ in lines],
            "of": ["" if s is None else f"{s:g}" for _ in keys for _, s in lines],
        }
        for name, column in own.items():
            while name in names:
                name += "_"
            names[name] = column
        return names

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        return self.answers(question, {}, noisy, 0.95)[0]

    def answers(
        self, question: Question, noise: Mapping[str, PartNoise], noisy: Parts, level: float
    ) -> tuple[Floats, Floats, Floats]:
        """Value, low and high of every line: the enclosure of the bins, and on both sides sampling and noise."""
        law = noise.get(ABOVE)
        variance = 0.0 if law is None else law.mean_variances(1)[0] / PLACES**2
        low, high = self._ends(question)
        parts = np.stack([reals(noisy[n]) / PLACES for n in (BELOW, ABOVE)], axis=-2)
        out: list[tuple[float, float, float]] = []
        for table in parts.reshape(-1, 2, parts.shape[-1]):
            out += [
                interval(lambda x, m=m, s=s: measured(m, s, x, low, high), table, variance, level)  # type: ignore[misc]
                for m, s in self.measures()
            ]
        value, first, last = (np.array(column) for column in zip(*out, strict=True))
        return value, first, last

    def _ends(self, question: Question) -> tuple[Floats, Floats]:
        spacing = float(question.schema.measured(self.column).spacing)
        steps = np.array(question.details["steps"], dtype=np.float64)
        return steps[:-1] * spacing, (steps[1:] - 1) * spacing

    def expects(
        self, question: Question, noise: Mapping[str, PartNoise], level: float, rows: int | None
    ) -> tuple[float | None, float | None, str]:
        return None, None, "depends on how unequal values are; with sampling"


def _share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1


Bounds = tuple[float, float]


def measured(measure: str, share: float | None, x: Floats, low: Floats, high: Floats) -> Bounds:
    """The least and the largest value of a measure, for the rows and means that the bins show."""
    if measure == "gini":
        return gini(x, low, high)
    assert share is not None
    if measure == "lorenz":
        return lorenz(share, x, low, high)
    least, most = lorenz(1 - share, x, low, high)
    return 1 - most, 1 - least


def _means(x: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, float]:
    """Rows and sums of the bins, and their total; noise may make some negative, which keeps sums unbiased."""
    rows, sums = x.sum(axis=0), x[0] * low + x[1] * high
    return rows, sums, float(sums.sum())


def gini(x: Floats, low: Floats, high: Floats) -> Bounds:
    """All rows of a bin at its mean, or at its two ends: sum n s_(k-1) ... by ranks; then the spread within bins."""
    rows, sums, total = _means(x, low, high)
    n = float(rows.sum())
    if not (n > 0 and total > 0):
        return math.nan, math.nan
    rank = 2 * np.cumsum(rows) - rows - n
    between = float((rank * sums).sum() / (n * total))
    # Mean absolute difference of rows at two ends, in shares t and 1 - t: 2 t (1 - t) (high - low).
    within = float((x[0] * x[1] * (high - low)).sum() / (n * total))
    return between, between + max(within, 0.0)


def lorenz(share: float, x: Floats, low: Floats, high: Floats) -> Bounds:
    """The part of the sum that the lowest `share` of rows has: below a chord, above the two ends' lines."""
    rows, sums, total = _means(x, low, high)
    n = float(rows.sum())
    if not (n > 0 and total > 0):
        return math.nan, math.nan
    reached = np.cumsum(rows)
    place = int(np.argmax(reached >= share * n)) if bool((reached >= share * n).any()) else rows.size - 1
    left = share * n - (float(reached[place]) - float(rows[place]))
    before = float(sums[:place].sum())
    inside = float(np.clip(left / rows[place], 0.0, 1.0)) if rows[place] > 0 else 0.0
    chord = inside * float(sums[place])
    ends = min(left, float(x[0, place])) * low[place] + max(left - float(x[0, place]), 0.0) * high[place]
    most = (before + chord) / total
    return min((before + float(ends)) / total, most), most


def interval(
    measure: Callable[[Floats], Bounds], x: Floats, variance: float, level: float
) -> tuple[float, float, float]:
    """A value between its two bounds, and both bounds moved outwards by the error of sampling and noise.

    The delta method: with g the derivatives by the parts, a row of bin k at place u moves the value by u g_above +
    (1 - u) g_below, whose square is at most u g_above^2 + (1 - u) g_below^2. So sampling has a variance of at most
    sum x g^2, and the noise v sum g^2. One standard deviation of the noise of the former is added.
    """

    def value(y: Floats) -> float:
        least, most = measure(y)
        return least + TWO_THIRDS * (most - least)

    least, most = measure(x)
    here = value(x)
    if not math.isfinite(here):
        return math.nan, 0.0, 1.0
    gradient, step = np.zeros(x.shape), 1e-4 * float(np.abs(x).sum())
    for place in np.ndindex(*x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        up, down = map(value, moved)
        gradient[place] = (up - down) / (2 * step)
    # A measure does not change where all parts grow alike.
    gradient = np.where(np.isfinite(gradient), gradient, 0.0)
    sampled = float((np.maximum(x, 0.0) * gradient**2).sum())
    slack = math.sqrt(variance * float((gradient**4).sum()))
    half = normal_factor(1 - level) * math.sqrt(sampled + variance * float((gradient**2).sum()) + slack)
    ends = (max(min(least, here) - half, 0.0), min(max(most, here) + half, 1.0))
    return min(max(here, ends[0]), ends[1]), ends[0], ends[1]


def inequality(
    column: str,
    by: By = None,
    *,
    bins: int | Iterable[float] = 20,
    lorenz: Sequence[float] = (0.2, 0.4, 0.6, 0.8),
    top: Sequence[float] = (0.1, 0.01),
    where: str | Expression | None = None,
) -> Inequality:
    """The Gini coefficient, points of the Lorenz curve, and the top shares: `inequality("income")`.

    `bins` is a number of geometric bins up to the largest declared value, or edges from the lowest to the largest.
    Intervals include sampling error, noise, and every position of rows within a bin.
    """
    edges: Any = bins if isinstance(bins, Integral) else members("bins", bins)
    return Inequality(
        column=column, by=by_columns(by), where=filter_of(where), bins=edges, lorenz=members("lorenz", lorenz),
        top=members("top", top),
    )  # fmt: skip
