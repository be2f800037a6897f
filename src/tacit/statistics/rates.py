"""Events for each unit of time at risk: rates, standardised rates, and ratios of rates.

A row has events d of [0, e] and a time at risk y of [0, t], and adds 3 d t to the part `events` and 2 y e to the part
`time`, in steps. This is one vector, of which the events get three fifths of the price (theorem
`population-intervals`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter, UnknownName, WrongType
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import positive, set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.sources.axes import Axis, Factor, OpenAxis, Products, axis_of, cell_count
from tacit.sources.columns import Date, Measured
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import By, Part, Question, Statistic, boxes, by_columns, column_of, filter_of
from tacit.statistics.population import (
    PopulationForm,
    RatioOfSums,
    RelativeTo,
    Standardised,
    SumCoefficients,
)

EVENTS, TIME = 3, 2
"""Shares of the price, in fifths."""
MOST_LEVELS = 1 << 30
POISSON = "events are independent given the time at risk, and their number is as a Poisson law says"

Standard = tuple[str, tuple[tuple[str, float], ...]] | None


def standard_of(given: Mapping[str, Any] | None) -> Standard:
    """`standard={"age": {"0 to 19": 22, ...}}`: public weights of the keys of one column."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(given) != 1:
        raise InvalidParameter(
            parameter="standard", value=type(given).__name__, must="give the weights of one column",
            hint='{"age": {"young": 0.4, "old": 0.6}}',
        )  # fmt: skip
    ((column, weights),) = given.items()
    if not isinstance(weights, Mapping) or not weights:
        raise InvalidParameter(parameter="standard", value=str(column), must="have a weight for each key")
    return text("standard", column, empty=False), tuple(
        (str(key), float(positive("standard", weight))) for key, weight in weights.items()
    )


def checked_standard(value: Any) -> Standard:
    """The field, checked: as `standard_of` makes it."""
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2 or not isinstance(value[1], tuple | list):
        raise InvalidParameter(
            parameter="standard", value=type(value).__name__, must="name a column and its weights"
        )
    pairs = [tuple(p) if isinstance(p, tuple | list) else () for p in value[1]]
    if any(len(p) != 2 for p in pairs):
        raise InvalidParameter(parameter="standard", value=len(pairs), must="be pairs of a key and a weight")
    return standard_of({value[0]: dict(pairs)})


def standard_axis(
    standard: tuple[str, tuple[tuple[str, float], ...]], by: Sequence[Any], schema: Schema
) -> tuple[Axis, tuple[float, ...]]:
    """The axis of a standard's column, and the weights in its order."""
    column, pairs = standard
    if column in {column_of(b) for b in by}:
        raise InvalidParameter(parameter="standard", value=column, must="name a column that is not in `by`")
    axis = axis_of(column, schema)
    if isinstance(axis, OpenAxis):
        raise InvalidParameter(parameter="standard", value=column, must="name a column with declared keys")
    given, labels = dict(pairs), [str(label) for label in axis.labels]
    for key in given:
        if key not in labels:
            raise UnknownName(what=f"key of {column!r} in standard", name=key, known=tuple(labels))
    left = [label for label in labels if label not in given]
    if left:
        raise InvalidParameter(
            parameter="standard", value=left[0], must=f"have a weight for each declared key of {column!r}"
        )
    return axis, tuple(given[label] for label in labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Statistic):
    """per * (sum of events) / (sum of time), over rows that have both, in each cell; standardised, or relative.

    A unit of m rows moves the parts by the corners of a box, 3 and 2 in the unit e t: see `boxes`.
    """

    kind: ClassVar[str] = "rate"

    events: str
    time: str
    per: float = 1.0
    standard: Standard = None
    against: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        self._check_words()
        for name in ("events", "time"):
            set_fields(self, **{name: text(name, getattr(self, name), empty=False)})
        set_fields(self, per=float(positive("per", self.per)), standard=checked_standard(self.standard))
        if self.events == self.time:
            raise InvalidParameter(parameter="time", value=self.time, must="be another column")
        if self.against is not None:
            if not isinstance(self.against, tuple | list) or len(self.against) != 2:
                raise InvalidParameter(
                    parameter="against",
                    value=type(self.against).__name__,
                    must="be a column and one of its keys",
                )
            set_fields(self, against=(text("against", self.against[0]), str(self.against[1])))

    def on(self, schema: Schema, unit: Unit) -> Question:
        return self._question(schema, unit, drawn=False)

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        return self._question(schema, unit, drawn=True)

    def _question(self, schema: Schema, unit: Unit, *, drawn: bool) -> Question:
        events, time = (_from_zero(schema, n) for n in (self.events, self.time))
        frame = self._frame(schema, unit, (self.events, self.time))
        if frame.support is not None:
            raise InvalidParameter(
                parameter="by", value=self.kind, must="be columns with declared keys",
                hint="a rate needs its time at risk in every group",
            )  # fmt: skip
        e, t = (min(c.highest, MOST_LEVELS) for c in (events, time))
        axes = frame.axes
        form: RatioOfSums | Standardised = self._form(events, time, e, t, drawn=drawn)
        if self.standard is not None:
            axis, weights = standard_axis(self.standard, self.by, schema)
            axes, whole = (*axes, axis), math.fsum(weights)
            shares = tuple(w / whole for w in weights)
            plain = self._form(events, time, e, t, drawn=drawn)
            form = Standardised(names=form.names, typical=form.typical, of=plain, weights=shares)
        made: PopulationForm = form
        if self.against is not None:
            place = self._reference(frame.axes)
            made = RelativeTo(names=form.names, typical=form.typical, of=form, axis=place[0], place=place[1])
        cells = cell_count(axes)
        moved = boxes([(0, EVENTS * e * t), (0, TIME * e * t)], unit, cells=cells, absent=True)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=(Aggregation(axes=axes, aggregates=tuple(self._sums(e, t)), groups=frame.axes),),
            parts=tuple(Part(name=n, spacing=Fraction(1, e * t), axes=axes) for n in form.names),
            sensitivity=moved, sensitivities=dict.fromkeys(form.names, moved), form=made,
            details={"sample": (POISSON,) if drawn else (), "levels": (e, t)},
        )  # fmt: skip

    def _sums(self, e: int, t: int) -> list[Products]:
        pairs = ((self.events, e), (self.time, t))
        return [
            Products(
                factors=(Factor(column=name, power=1, levels=levels, from_zero=True),), where=self.where,
                present=(self.events, self.time),
            )
            for name, levels in pairs
        ]  # fmt: skip

    def _form(self, events: Measured, time: Measured, e: int, t: int, *, drawn: bool) -> RatioOfSums:
        f = float(events.highest * events.spacing) / (EVENTS * t * e)
        g = float(time.highest * time.spacing) / (TIME * e * t)
        score = self.standard is None
        # At a rate R the number of events has variance R times the time; or the number itself, where rates are added.
        of = SumCoefficients(
            f=(f, 0.0), g=(0.0, g), gg=(0.0, 0.0),
            ff=(f, 0.0) if drawn and not score else (0.0, 0.0),
            fg=(0.0, -g / 2) if drawn and score else (0.0, 0.0),
        )  # fmt: skip
        return RatioOfSums(
            names=("events", "time"), typical=(EVENTS * t * e * 0.5, TIME * e * t * 0.5), of=of,
            low=0.0, width=self.per, least=0.0, most=math.inf,
        )  # fmt: skip

    def _reference(self, axes: Sequence[Axis]) -> tuple[int, int]:
        """The axis of `against`, and the place of its key."""
        assert self.against is not None
        column, key = self.against
        names = [a.column for a in axes]
        if column not in names:
            raise InvalidParameter(parameter="against", value=column, must="name a column of `by`")
        labels = [str(label) for label in axes[names.index(column)].labels]
        if key not in labels:
            raise UnknownName(what=f"key of {column!r} in against", name=key, known=tuple(labels))
        return names.index(column), labels.index(key)

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        e, t = question.details["levels"]
        d, y = (np.asarray(cells[0].values[one]).astype(object) for one in self._sums(e, t))
        return {
            "events": np.asarray(EVENTS * t * d, dtype=object),
            "time": np.asarray(TIME * e * y, dtype=object),
        }


def _from_zero(schema: Schema, name: str) -> Measured:
    column = schema.measured(name)
    if isinstance(column, Date) or column.lowest < 0 or column.highest <= 0:
        raise WrongType(
            column=name, found=column.kind, wanted="a number or flag between 0 or more and a largest value"
        )
    return column


def rate(
    events: str,
    time: str,
    by: By = None,
    *,
    where: str | Expression | None = None,
    per: float = 1.0,
    standard: Mapping[str, Any] | None = None,
    against: Mapping[str, Any] | None = None,
) -> Rate:
    """Events for `per` units of time at risk, in each group: `rate("died", "years", per=1000)`.

    `standard={"age": {...}}` adds up the rates of a column's keys with public weights (direct standardisation).
    `against={"sex": "m"}` divides every rate by that of one group, with an interval on the scale of logarithms.
    """
    place = None
    if against is not None:
        if not isinstance(against, Mapping) or len(against) != 1:
            raise InvalidParameter(
                parameter="against", value=type(against).__name__, must="name one column and a key",
                hint='{"sex": "m"}',
            )  # fmt: skip
        ((column, key),) = against.items()
        place = (str(column), str(key))
    return Rate(
        events=events, time=time, by=by_columns(by), where=filter_of(where), per=per,
        standard=standard_of(standard), against=place,
    )  # fmt: skip


def with_standard(form: RatioOfSums, weights: tuple[float, ...], *, total: bool) -> Standardised:
    """A mean in each key of the last axis, with public weights; for a `total` the weights are numbers of people."""
    whole = 1.0 if total else math.fsum(weights)
    return Standardised(
        names=form.names, typical=form.typical, of=replace(form, total=False),
        weights=tuple(w / whole for w in weights),
    )  # fmt: skip
