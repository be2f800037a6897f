"""Means before clamping: a bound on the loss by clamping at the upper end, with its price.

A fifth of the price buys the number of rows above the declared bound b. No private statistic can estimate the size of
these values (theorem `clipping-told`). So the caller declares one fact about them: a largest value, a mean square, or
a Pareto tail. The upper end of the interval is raised by what that fact allows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter, NoLaw, UnitMismatch, UnknownName, WrongType
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import positive, set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Rows, Unit
from tacit.sources.axes import CountAbove
from tacit.sources.columns import Date
from tacit.sources.query import Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import GlobalSensitivity, Part, Question, Statistic, base_unit, boxes
from tacit.statistics.forms import Parts, reals
from tacit.statistics.population import Noise, NoiseMoments, PopulationEstimate, PopulationForm, RatioOfSums
from tacit.statistics.weighted import WeightedMean

VALUES, OUTSIDE = 4, 1
"""Shares of the price, in fifths."""
TAILS = ("maximum", "mean_square", "pareto")
SAID = {
    "maximum": "no value is above {:g}",
    "mean_square": "the mean of the squared values is at most {:g}",
    "pareto": "values above the bound have a tail that falls as fast as a Pareto law with exponent {:g}",
}


def beyond_of(given: Any) -> tuple[str, float]:
    """`beyond={"maximum": 1e7}`, `{"mean_square": ...}` or `{"pareto": 2}`: one declared fact about values
    above the bound.
    """
    if not isinstance(given, Mapping):
        raise InvalidParameter(
            parameter="beyond", value=type(given).__name__, must="be a table", hint='{"pareto": 2}'
        )
    for word in given:
        if word not in TAILS:
            raise UnknownName(what="word in beyond", name=str(word), known=TAILS)
    if not given:
        raise NoLaw(
            operation="an interval for a mean that was not clamped",
            reason="without a fact about the largest values every private interval is sometimes wider than "
            "k (M - x) / n, for all k below ln((1 - a) / a) / epsilon and every M that may occur",
            counterexample="k rows that move from x to M change the mean by k (M - x) / n, and an "
            "answer that notices them reveals k people",
            hint='declare one: beyond={"maximum": 1e7}, {"mean_square": ...} or {"pareto": 2}',
        )
    if len(given) > 1:
        raise InvalidParameter(parameter="beyond", value=sorted(given), must="state one fact")
    ((word, value),) = given.items()
    number = float(positive("beyond", value))
    if word == "pareto" and number <= 1:
        raise InvalidParameter(
            parameter="beyond", value=number, must="have an exponent above 1: else no mean exists"
        )
    return word, number


@dataclass(frozen=True, slots=True, kw_only=True)
class UnclippedMean(Statistic):
    """The mean of a number, with an interval for the mean of its values before they were clamped at the upper bound.

    The parts of the mean count four times, the number of rows above the bound once: their moves add up.
    """

    kind: ClassVar[str] = "unclipped_mean"

    column: str
    beyond: tuple[str, float]

    def __post_init__(self) -> None:
        self._check_words()
        set_fields(self, column=text("column", self.column, empty=False))
        told = self.beyond
        if not isinstance(told, tuple | list) or len(told) != 2:
            raise InvalidParameter(
                parameter="beyond", value=type(told).__name__, must="be a word and a number"
            )
        set_fields(self, beyond=beyond_of({told[0]: told[1]} if isinstance(told[0], str) else {"": told[1]}))

    def on(self, schema: Schema, unit: Unit) -> Question:
        return self._question(schema, unit, drawn=False)

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        return self._question(schema, unit, drawn=True)

    def _question(self, schema: Schema, unit: Unit, *, drawn: bool) -> Question:
        if not isinstance(base_unit(unit)[0], Rows):
            raise UnitMismatch(
                left="a count of clamped values", right=str(unit),
                hint="rows of people are kept as clamped values: use protect=rows(), one row a person",
            )  # fmt: skip
        column = schema.measured(self.column)
        if isinstance(column, Date) or column.outside != "clamp":
            raise WrongType(column=self.column, found=column.kind, wanted='a number with outside="clamp"')
        top = float(column.highest * column.spacing)
        word, number = self.beyond
        if (word == "maximum" and number < top) or top <= 0:
            raise InvalidParameter(
                parameter="beyond", value=number, must="lie above the declared bound, which is above 0"
            )
        inner = WeightedMean(column=self.column, by=self.by, where=self.where).drawn(schema, unit)
        if inner.support is not None:
            raise InvalidParameter(parameter="by", value=self.kind, must="be columns with declared keys")
        form = inner.form
        assert isinstance(form, RatioOfSums)
        steps = inner.parts[0].spacing.denominator
        own = boxes([(0, OUTSIDE * steps)], unit, cells=inner.cells, absent=True)
        moved = _added(inner.sensitivity, own)
        noisy = [p for p in inner.parts if not p.exact]
        parts = (*inner.parts, Part(name="outside", spacing=noisy[0].spacing, axes=inner.axes))
        (request,) = inner.requests
        told = INDEPENDENT_SAID if drawn else ()
        return replace(
            inner, statistic=self, parts=parts, sensitivity=moved,
            requests=(replace(request, aggregates=(*request.aggregates, self._above())),),
            sensitivities={p.name: inner.sensitivities[p.name] if p.exact else moved for p in inner.parts}
            | {"outside": moved},
            form=Unclipped(
                names=(*form.names, "outside"), typical=(*form.typical, 0.0), top=top, tail=word, number=number,
                of=_scaled(form if drawn else form.noise_only(), [p.name for p in noisy]), steps=float(steps),
                drawn=drawn,
            ),
            details={
                "inner": inner, "steps": steps, "declared": (),
                "sample": told,
                "assumes": (SAID[word].format(number),),
            },
        )  # fmt: skip

    def _above(self) -> CountAbove:
        return CountAbove(column=self.column, where=self.where)

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        inner: Question = question.details["inner"]
        found = inner.integers(cells)
        exact = {p.name for p in inner.parts if p.exact}
        out = {
            name: values
            if name in exact
            else np.asarray(VALUES * np.asarray(values).astype(object), dtype=object)
            for name, values in found.items()
        }
        above = np.asarray(cells[0].values[self._above()]).astype(object)
        return {**out, "outside": np.asarray(OUTSIDE * question.details["steps"] * above, dtype=object)}


INDEPENDENT_SAID = ("the rows are independent draws from the population",)


def _added(inner: GlobalSensitivity, own: GlobalSensitivity) -> GlobalSensitivity:
    return GlobalSensitivity(
        l1=VALUES * inner.l1 + own.l1,
        l2_squared=VALUES**2 * inner.l2_squared + own.l2_squared,
        linf=max(VALUES * inner.linf, own.linf),
    )


def _scaled(form: RatioOfSums, noisy: Sequence[str]) -> RatioOfSums:
    """The same for parts that count four times."""

    def of(coefficients: Sequence[float]) -> tuple[float, ...]:
        return tuple(c / VALUES if n in noisy else c for n, c in zip(form.names, coefficients, strict=True))

    made = replace(form.of, **{n: of(getattr(form.of, n)) for n in ("f", "g", "ff", "fg", "gg")})
    typical = tuple(VALUES * t if n in noisy else t for n, t in zip(form.names, form.typical, strict=True))
    return replace(form, of=made, typical=typical)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclipped(PopulationForm):
    """The interval of a clamped mean, its upper end raised by what rows above the bound can add.

    Half of the error probability is for the mean, half for the number of rows above (one side).
    """

    of: RatioOfSums
    top: float
    tail: str
    number: float
    steps: float
    drawn: bool

    def noise_only(self) -> Unclipped:
        """Without the sampling error."""
        return replace(self, of=self.of.noise_only(), drawn=False)

    def typical_of(self, rows: int) -> dict[str, Floats]:
        """No row above the bound."""
        return {**self.of.typical_of(rows), "outside": np.zeros(1)}

    def population(self, parts: Parts, noise: Noise, confidence: float) -> PopulationEstimate:
        from scipy.special import ndtri

        miss = (1 - confidence) / 2
        found = self.of.population(parts, noise, 1 - miss)
        law = noise.get("outside", NoiseMoments())
        unit = OUTSIDE * self.steps
        above, variance = reals(parts["outside"]) / unit, law.variance / unit**2
        rows = np.tensordot(
            np.array(self.of.of.g), np.stack([reals(parts[n]) for n in self.of.names]), axes=1
        )
        # One side of Laplace noise: its exponential tail is above the normal one.
        z = float(-ndtri(miss))
        reach = max(z, -math.log(2 * miss) / math.sqrt(2)) * math.sqrt(variance)
        most = np.maximum(above + reach, 0.0)
        if self.drawn:
            # The mean m of a Poisson number k with k >= m - z sqrt(m): the number above is rare.
            most = (z / 2 + np.sqrt(z * z / 4 + most)) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(rows > 0, np.minimum(most / rows, 1.0), 1.0)
        allowance = {
            "maximum": share * (self.number - self.top),
            "mean_square": np.sqrt(self.number * share),
            "pareto": share * self.top / (self.number - 1 if self.tail == "pareto" else 1.0),
        }[self.tail]
        return PopulationEstimate(
            value=found.value, low=found.low, high=found.high + allowance, reach=found.reach + allowance
        )
