"""Survival: the time until an event, for people of whom some are observed for a shorter time.

People are counted by the bin of their time and by their outcome: an event, of one of several declared causes,
or none (censored). Everything else is made of these counts (`tacit.statistics.life_tables`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, WrongType
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import is_number, members, plain, set_fields, text, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.mechanisms.base import PartNoise
from tacit.sources.axes import Axis, Bins, CountRows, OpenAxis, axis_of
from tacit.sources.columns import Category, Flag, Integer, Number
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    By,
    Part,
    Question,
    Statistic,
    boxes,
    by_columns,
    column_of,
    filter_of,
    row_limit,
    sum_within,
)
from tacit.statistics.forms import Parts, reals
from tacit.statistics.life_tables import LifeTable, compared

MOST_BINS = 400
LARGEST = 1e100
CELLS, BEYOND = "people", "beyond"
CURVES = ("survival", "survival, all at once", "cumulative hazard")
TWO_GROUPS = ("hazard ratio", "log-rank z")


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalCurves(Statistic):
    """Curves of survival, hazard and incidence by group, numbers at risk, restricted mean and median.

    A row adds 1 to one cell of (group, bin, outcome), so that add-or-remove moves the cells by 1 in L1, L2 and Linf,
    replace-one by 2, sqrt(2) and 1. A person has one row: several would not be independent. Bins are [a, b); a time at
    the last edge or beyond is observed to the end, whatever happened then. Theorem `survival-intervals`.
    """

    kind: ClassVar[str] = "survival"
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "listed"
    covers: ClassVar[str] = (
        "the population's value, each by itself but for the band of all bins at once; for numbers at risk the people "
        "of the table"
    )
    declares: ClassVar[tuple[str, ...]] = (
        "the people are independent draws from the population",
        "nobody was left out or stopped being observed for a reason that has to do with what would happen next",
        "everybody was observed from the first edge on",
    )

    time: str
    event: str
    bins: int | tuple[float, ...]
    censored: str | int | None = None
    horizon: float | None = None

    def __post_init__(self) -> None:
        self._check_words()
        for name in ("time", "event"):
            set_fields(self, **{name: text(name, getattr(self, name), empty=False)})
        if self.time == self.event:
            raise InvalidParameter(
                parameter="event", value=self.event, must="be another column than the time"
            )
        for by in self.by:
            if column_of(by) in (self.time, self.event):
                raise InvalidParameter(
                    parameter="by", value=column_of(by), must="be another column than time and event"
                )
        counted = isinstance(self.bins, Integral | bool)
        set_fields(self, bins=whole("bins", self.bins, least=None) if counted else _edges(self.bins))
        if self.horizon is not None:
            set_fields(self, horizon=_finite("horizon", self.horizon))
        if self.censored is not None:
            set_fields(self, censored=plain(self.censored))
            if isinstance(self.censored, bool) or not isinstance(self.censored, str | int):
                raise InvalidParameter(
                    parameter="censored", value=type(self.censored).__name__, must="be a key of a category"
                )
        count = self.bins if isinstance(self.bins, int) else len(self.bins) - 1
        if not 1 <= count <= MOST_BINS:
            raise InvalidParameter(parameter="bins", value=count, must=f"be between 1 and {MOST_BINS} bins")

    def on(self, schema: Schema, unit: Unit) -> Question:
        if row_limit(unit) > 1:
            raise InvalidParameter(
                parameter="protect", value=str(unit), must="have one row a person for a survival curve",
                hint="several rows of one person are not independent; make a table with one row each",
            )  # fmt: skip
        frame = self._frame(schema, unit, (self.time, self.event))
        if any(isinstance(a, OpenAxis) for a in frame.axes):
            raise InvalidParameter(
                parameter="by", value="unknown keys", must="be columns whose keys are declared",
                hint="declare category([...])",
            )  # fmt: skip
        edges, times = self._times(schema)
        events = self._events(schema)
        read = (*frame.axes, times, events)
        inside = Bins(column=self.time, values=times.values, edges=times.edges[:-1], steps=times.steps[:-1])
        axes = (*frame.axes, inside, events)
        groups, cells = (math.prod(a.size or 0 for a in some) for some in (frame.axes, axes))
        sensitivity, inside_only, behind = (
            boxes([(1, 1)], unit, cells=n, absent=True) for n in (groups + cells, cells, groups)
        )
        details = {"edges": edges, "bins": self._horizon(edges), "causes": self._causes(events)}
        return Question(
            statistic=self, schema=schema, unit=unit, axes=axes,
            requests=(Aggregation(axes=read, aggregates=(CountRows(where=self.where),), groups=frame.axes),),
            parts=(Part(name=CELLS, axes=axes), Part(name=BEYOND, axes=frame.axes)), sensitivity=sensitivity,
            sensitivities={CELLS: inside_only, BEYOND: behind}, form=None, details=details,
        )  # fmt: skip

    def _times(self, schema: Schema) -> tuple[tuple[float, ...], Bins]:
        """The edges, and the axis of the bins with a last bin for all later times."""
        column = schema.measured(self.time)
        if not isinstance(column, Number | Integer):
            raise WrongType(
                column=self.time, found=column.kind, wanted="a number",
                hint="the time from entry to event or end of observation, as a number of days or months",
            )  # fmt: skip
        low, high = float(column.lowest * column.spacing), float(column.highest * column.spacing)
        if isinstance(self.bins, int):
            edges: tuple[Any, ...] = tuple(low + (high - low) * k / self.bins for k in range(self.bins + 1))
        else:
            edges = self.bins
        if len(edges) < 2:
            raise EmptyComposition(what="the list of bins", hint="give at least two edges")
        steps = [math.ceil(column.steps_of(e)) for e in edges]
        if any(b <= a for a, b in itertools.pairwise(steps)):
            raise InvalidParameter(
                parameter="bins", value=edges[:6], must="increase by at least a step of the grid",
                hint=f"the grid's spacing is {column.spacing}",
            )  # fmt: skip
        if steps[0] > column.lowest:
            raise InvalidParameter(
                parameter="bins", value=edges[0], must=f"begin at the lowest time, {low:g}",
                hint="delayed entry is not offered: everybody is observed from the beginning",
            )  # fmt: skip
        if steps[-1] > column.highest:
            raise InvalidParameter(
                parameter="bins",
                value=edges[-1],
                must=f"end within the declared times, at {high:g} or before",
            )
        after = column.highest + 1
        return tuple(map(float, edges)), Bins(
            column=self.time, values=column, edges=(*edges, math.inf), steps=(*steps, after)
        )

    def _events(self, schema: Schema) -> Axis:
        """The axis of outcomes: a flag, or a category with a named key for no event."""
        column = schema[self.event]
        axis = axis_of(self.event, schema) if isinstance(column, Flag | Category) else None
        if axis is None or isinstance(axis, OpenAxis):
            raise WrongType(
                column=self.event, found=column.kind, wanted="a flag, or a category with declared keys",
                hint="declare flag() where 1 or true is an event, or category([...]) with censored= the key for none",
            )  # fmt: skip
        if isinstance(column, Flag) == (self.censored is not None):
            raise InvalidParameter(
                parameter="censored", value=self.censored,
                must="name the key for no event of a category, and be left out for a flag",
                hint=f"{self.event} is declared as {column.kind}",
            )  # fmt: skip
        if isinstance(column, Category) and (self.censored not in axis.labels or len(axis.labels) < 2):
            raise InvalidParameter(
                parameter="censored", value=self.censored, must=f"be one of the keys of {self.event}, of at least two",
                hint=f"they are {', '.join(map(str, axis.labels[:6]))}",
            )  # fmt: skip
        return axis

    def _causes(self, axis: Axis) -> tuple[int, tuple[int, ...]]:
        """The place of the censored on the axis, and those of the causes."""
        nothing = 0 if self.censored is None else axis.labels.index(self.censored)
        return nothing, tuple(k for k in range(axis.size or 0) if k != nothing)

    def _horizon(self, edges: Sequence[float]) -> int:
        """The number of bins in the restricted mean."""
        if self.horizon is None:
            return len(edges) - 1
        if self.horizon not in edges[1:]:
            raise InvalidParameter(
                parameter="horizon", value=self.horizon, must="be an edge of the bins above the first",
                hint=f"they are {', '.join(f'{e:g}' for e in edges[1:7])}",
            )  # fmt: skip
        return edges.index(float(self.horizon))

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        """Everybody behind the last edge counts as one number, whether an event happened there or not."""
        held = cells[0].values[CountRows(where=self.where)]
        return {CELLS: held[..., :-1, :], BEYOND: held[..., -1, :].sum(axis=-1)}

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """The values alone."""
        return self.answers(question, {}, noisy, 0.95)[0]

    # --- what is made of the cells ------------------------------------------------------------------------
    def listed(self, question: Question) -> dict[str, list[Any]]:
        """Group, kind of value, and the time that it concerns."""
        groups = question.axes[:-2]
        keys = list(itertools.product(*(a.labels for a in groups)))
        edges = question.details["edges"]
        lines = list(self._lines(question))
        names: dict[str, list[Any]] = {
            a.column: [k[i] for k in keys for _ in lines] for i, a in enumerate(groups)
        }
        more = self._two_groups(question)
        if more:
            for i, axis in enumerate(groups):
                names[axis.column] += [f"{_word(keys[0][i])} against {_word(keys[1][i])}"] * len(more)
        if more:
            names = {n: list(map(_word, column)) for n, column in names.items()}
        own = {
            "measure": [m for _ in keys for m, _ in lines] + more,
            "time": [t for _ in keys for _, t in lines] + [edges[-1]] * len(more),
        }
        for name, column in own.items():
            while name in names:
                name += "_"
            names[name] = column
        return names

    def _lines(self, question: Question) -> Iterable[tuple[str, float]]:
        """The order of one group's values."""
        edges = question.details["edges"]
        yield from (("at risk", t) for t in edges[:-1])
        for name in CURVES:
            yield from ((name, t) for t in edges[1:])
        for cause in self._named(question):
            yield from ((f"incidence of {cause}", t) for t in edges[1:])
        yield "restricted mean", edges[question.details["bins"]]
        yield "median", edges[-1]

    def _named(self, question: Question) -> list[str]:
        """The causes, if there are several."""
        _, causes = question.details["causes"]
        return [str(question.axes[-1].labels[k]) for k in causes] if len(causes) > 1 else []

    def _two_groups(self, question: Question) -> list[str]:
        """Comparisons of groups, for exactly two groups."""
        return [*TWO_GROUPS] if math.prod(a.size or 0 for a in question.axes[:-2]) == 2 else []

    def tables(self, question: Question, noise: Mapping[str, PartNoise], noisy: Parts) -> list[LifeTable]:
        """The life table of each group."""
        held, beyond = reals(noisy[CELLS]), np.ravel(reals(noisy[BEYOND]))
        held = held.reshape(-1, *held.shape[-2:])
        nothing, causes = question.details["causes"]
        law = noise.get(CELLS)
        variance = 0.0 if law is None else law.mean_variances(1)[0]
        return [
            LifeTable(
                events=group[:, causes].T, censored=group[:, nothing], beyond=float(last),
                edges=np.array(question.details["edges"]), noise_variance=variance,
                within=lambda count, level: sum_within(law, count, level),
            )
            for group, last in zip(held, beyond, strict=True)
        ]  # fmt: skip

    def answers(
        self, question: Question, noise: Mapping[str, PartNoise], noisy: Parts, level: float
    ) -> tuple[Floats, ...]:
        """Value, low and high of every line."""
        tables = self.tables(question, noise, noisy)
        bands: list[Any] = []
        for table in tables:
            alone, together = table.survival(level)
            bands += [table.numbers_at_risk(level), alone, together, table.hazard(level)]
            bands += [table.incidence(k, level) for k, _ in enumerate(self._named(question))]
            bands += [table.restricted_mean(question.details["bins"], level), table.median(level)]
        if self._two_groups(question):
            found = compared(tables[0], tables[1], level)
            bands += [found[name] for name in TWO_GROUPS]
        value, low, high = (np.concatenate([np.ravel(b[i]) for b in bands]) for i in range(3))
        return value, low, high

    def expects(
        self, question: Question, noise: Mapping[str, PartNoise], level: float, rows: int | None
    ) -> tuple[float | None, float | None, str]:
        """The half-width of S in the middle of the bins, for this many people of whom half have an event by the end."""
        if rows is None:
            return None, None, "depends on the number of people of a group: give rows= for a guess"
        edges = np.array(question.details["edges"])
        k, (_, causes) = edges.size - 1, question.details["causes"]
        held = np.zeros((k, len(causes) + 1))
        held[:, causes[0]] = -np.diff(rows * 0.5 ** (np.arange(k + 1) / k))
        table = self.tables(question, noise, {CELLS: held, BEYOND: np.array([rows / 2])})[0]
        (_, low, high), _ = table.survival(level)
        half = float(high[(k - 1) // 2] - low[(k - 1) // 2]) / 2
        if not math.isfinite(half):
            return None, None, f"at {rows:,} people the curve would end before the middle of its bins"
        about = f"S in the middle of the bins, for {rows:,} people of whom half have an event by the end; with sampling"
        return None, half, about


def _finite(name: str, value: Any) -> Any:
    own = plain(value)
    if not is_number(own) or not -LARGEST <= own <= LARGEST:
        raise InvalidParameter(parameter=name, value=value, must="be a finite number")
    return own


def _edges(bins: object) -> tuple[Any, ...]:
    return tuple(_finite("bins", e) for e in members("bins", bins))


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return " to ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def survival(
    time: str,
    event: str,
    bins: int | Iterable[float],
    *,
    by: By = None,
    censored: str | int | None = None,
    horizon: float | None = None,
    where: str | Expression | None = None,
) -> SurvivalCurves:
    """Survival curves: `time` until the `event` or the end of observation, in bins, for each group of `by`.

    `bins` is a number of equal bins or their edges, `event` a flag, or a category of causes with `censored` the key for
    none. `horizon` is the edge for the restricted mean; the last edge by default. Intervals hold sampling and
    noise. Few wide bins have less noise than many.
    """
    edges: Any = bins
    return SurvivalCurves(
        time=time, event=event, bins=edges, by=by_columns(by), censored=censored, horizon=horizon,
        where=filter_of(where),
    )  # fmt: skip
