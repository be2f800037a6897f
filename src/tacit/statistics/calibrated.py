"""Means and totals calibrated to public totals after the noise: the generalised regression estimator (GREG).

A row is z = (1, x, y) with columns scaled to [-1, 1] by their declared bounds, and a weight q of [0, 1]. Released are
parts of which A = sum w z z' and Q = sum w^2 z z' are linear functions. With b from the noisy A the mean of the
population is

    y + (public mean of x - x) b,      variance (mean square of g'z) sum w^2 (y - z'b)^2 + the noise of g'(c - A b).

With one column x the parts are products of Bernstein polynomials (`survey-weights`), with several

    sum 2q(1-q) t_ij z_i z_j  and  sum q^2 t_ij z_i z_j     (i <= j; sum t_ij z_i z_j where no weight is used)

as one vector: t is 3 for the number of rows, 2 for means and 1 for products, because errors of products matter
to second order only. Theorem `calibrated-totals`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import is_number, positive, set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.mechanisms import RoundedGaussian
from tacit.mechanisms.base import PartNoise
from tacit.sources.axes import Axis, Factor, Listed, OpenAxis, Products, cell_count
from tacit.sources.columns import Measured
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    By,
    GlobalSensitivity,
    Part,
    Question,
    Statistic,
    base_unit,
    by_columns,
    filter_of,
    replaced,
    simplex,
)
from tacit.statistics.forms import Parts, reals
from tacit.statistics.population import (
    BLOCKS,
    INDEPENDENT,
    SHOWN,
    NoiseMoments,
    Variable,
    laplace_moments,
    moment,
    part_integers,
    part_names,
    powers,
    quantile,
    simplex_total,
    spacing_of,
)
from tacit.statistics.weighted import (
    COARSE,
    FINE,
    OF_ITS_ROW,
    WEIGHTED,
    independent_rows,
    levels_of,
    value_column,
    weight_column,
)

WEIGHT_LEVELS, OWN_LEVELS = 1 << 12, 1 << 12
"""Levels of a weight; a column has its own steps where they are at most `OWN_LEVELS`, else `FINE` ones."""
REACH = 1 << 18
"""Scaled columns reach from about -REACH to REACH steps."""
MOST_COLUMNS = 12
EDGE = 2.0234
"""The 99% quantile of the Tracy-Widom distribution of real symmetric matrices."""
SPREAD = 0.35
"""A guess of a column's standard deviation, in halves of its range, for errors before a row is read."""
ROWS, LIGHT, HEAVY = "rows", "light", "heavy"
MEAN, TOTAL, WEIGHTS = "mean", "total", "sum of weights"
MEASURES = (MEAN, TOTAL, WEIGHTS)
TRUE_TOTALS = (
    "the population and the totals that were given are those of the population that the sample was drawn from"
)

Figures = float | tuple[tuple[str, float], ...]
"""A public number, or one for each key of `by`."""


def _pairs(size: int) -> list[tuple[int, int]]:
    return list(itertools.combinations_with_replacement(range(size), 2))


def _times(i: int, j: int) -> int:
    """The multiple in which a product is released."""
    return 3 if i == j == 0 else 2 if i == 0 else 1


def figures(name: str, value: Any) -> Figures:
    """A public number, or pairs of a key and its number in the order of the keys."""
    if isinstance(value, Mapping):
        value = tuple(value.items())
    if not isinstance(value, tuple | list):
        try:
            number = float(value) if is_number(value) else math.nan
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise InvalidParameter(
                parameter=name, value=type(value).__name__, must="be a number, or one for each key of `by`"
            )
        return number
    if not value or not all(isinstance(v, tuple | list) and len(v) == 2 for v in value):
        raise InvalidParameter(parameter=name, value=type(value).__name__, must="have a number for each key")
    made = {str(key): figures(name, number) for key, number in value}
    if any(not isinstance(v, float) for v in made.values()) or len(made) < len(value):
        raise InvalidParameter(parameter=name, value="keys", must="have one number for each key")
    return tuple(sorted(made.items()))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated(Statistic):
    """The population's mean and total of a column, calibrated to public totals of others, in each group.

    With one column a row moves all parts by the largest weight: see `simplex`. With several it adds at most U = REACH^2
    WEIGHT_LEVELS^2 times t_ij to the entries of one cell: add-or-remove U sum t in L1, U sqrt(sum t^2) in L2, 3 U in
    Linf; replace-one twice, sqrt(2) times, 4 U.
    """

    kind: ClassVar[str] = "calibrated"
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "listed"
    covers: ClassVar[str] = (
        "the population's mean and total, each by itself; the sum of weights is that of this table"
    )

    declares: ClassVar[tuple[str, ...]] = (TRUE_TOTALS,)

    column: str
    population: Figures
    totals: tuple[tuple[str, Figures], ...]
    survey_weight: str = ""

    def __post_init__(self) -> None:
        self._check_words()
        set_fields(self, survey_weight=text("survey_weight", self.survey_weight))
        if not isinstance(self.totals, tuple | list) or not self.totals:
            raise EmptyComposition(
                what="the public totals", hint='totals={"employees": 52_000}: columns and their public sums'
            )
        if any(not isinstance(t, tuple | list) or len(t) != 2 for t in self.totals):
            raise InvalidParameter(
                parameter="totals", value=len(self.totals), must="name columns and their sums"
            )
        pairs = sorted(
            (text("totals", name, empty=False), figures("totals", sums)) for name, sums in self.totals
        )
        names = [name for name, _ in pairs]
        if len(names) > MOST_COLUMNS:
            raise InvalidParameter(parameter="totals", value=len(names), must=f"be at most {MOST_COLUMNS}")
        if len({*names, self.column, self.survey_weight}) < len(names) + 2:
            raise InvalidParameter(
                parameter="totals", value=names, must="name different columns, without the estimated one and the weight"
            )  # fmt: skip
        number = figures("population", self.population)
        for one in [number] if isinstance(number, float) else [v for _, v in number]:
            positive("population", one)
        set_fields(self, totals=tuple(pairs), population=number)
        if len(self.by) > 1:
            raise InvalidParameter(parameter="by", value=len(self.by), must="be one column at most")

    # --- what is asked of the table -----------------------------------------------------------------------
    @property
    def names(self) -> tuple[str, ...]:
        """The scaled columns, the estimated one last."""
        return (*(name for name, _ in self.totals), self.column)

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        return self.on(schema, unit)

    def on(self, schema: Schema, unit: Unit) -> Question:
        independent_rows(unit)
        weight = weight_column(schema, self.survey_weight) if self.survey_weight else None
        columns = {name: value_column(schema, name) for name in self.names}
        frame = self._frame(schema, unit, (*self.names, *([self.survey_weight] if weight else [])))
        if any(isinstance(a, OpenAxis) for a in frame.axes):
            raise InvalidParameter(
                parameter="by", value="unknown keys", must="be a column whose keys are declared"
            )
        largest = Fraction(1) if weight is None else weight.highest * weight.spacing
        details: dict[str, Any] = {
            "means": self._means(schema, frame.axes), "largest": float(largest),
            "declared": (OF_ITS_ROW,) if weight else (),
            "sample": (WEIGHTED if weight else INDEPENDENT, TRUE_TOTALS),
        }  # fmt: skip
        made = self._simplex if len(self.totals) == 1 else self._entries
        more, parts, moved = made(columns, None if weight is None else weight.highest, frame.axes, unit)
        details |= more
        wanted = tuple(self._sum(details, powers) for powers in details["sums"])
        for part in parts:
            cell_count(part.axes)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes, parts=parts,
            requests=(Aggregation(axes=frame.axes, aggregates=wanted, groups=frame.axes),), sensitivity=moved,
            sensitivities={p.name: moved for p in parts}, form=None, details=details,
        )  # fmt: skip

    def _simplex(
        self, columns: Mapping[str, Measured], weight: int | None, axes: tuple[Axis, ...], unit: Unit
    ) -> tuple[dict[str, Any], tuple[Part, ...], GlobalSensitivity]:
        """The parts of a weighted ratio of two columns, at the sensitivity of one row of the largest weight."""
        most = FINE if weight is None else COARSE
        variables = [Variable(block="square", levels=levels_of(c.width, most)) for c in columns.values()]
        if weight is not None:
            variables.insert(0, Variable(block="weight", levels=levels_of(weight, most)))
        spacing = spacing_of(variables)
        parts = tuple(Part(name=name, spacing=spacing, axes=axes) for name in part_names(variables))
        details = {"variables": tuple(variables), "sums": tuple(powers(variables))}
        return details, parts, simplex(simplex_total(variables), unit, axes)

    def _entries(
        self, columns: Mapping[str, Measured], weight: int | None, axes: tuple[Axis, ...], unit: Unit
    ) -> tuple[dict[str, Any], tuple[Part, ...], GlobalSensitivity]:
        """The entries of z z' in multiples t, for light and for heavy rows."""
        most = [c.width if c.width <= OWN_LEVELS else FINE for c in columns.values()]
        weighed = 1 if weight is None else min(weight, WEIGHT_LEVELS)
        words = ("1", *self.names)
        pairs = tuple(f"{words[i]} * {words[j]}" for i, j in _pairs(len(words)))
        entries = (*axes, Listed(column="moment", values=pairs, complete=True))
        steps = REACH**2 * weighed**2
        names = (ROWS,) if weight is None else (LIGHT, HEAVY)
        parts = tuple(Part(name=name, spacing=Fraction(1, steps), axes=entries) for name in names)
        columns_of = [tuple(of.count(i) for i in range(len(most))) for of in _monomials(len(most))]
        sums = [((k, *of) if weight else of) for k in ((1, 2) if weight else (0,)) for of in columns_of]
        variables = tuple(Variable(block="line", levels=n) for n in ([weighed] if weight else []) + most)
        return {"variables": variables, "sums": tuple(sums)}, parts, _sensitivity(len(words), steps, unit)

    def _sum(self, details: Mapping[str, Any], exponents: Sequence[int]) -> Products:
        """Sum of a product of powers of levels, over the rows that have all columns; the weight comes first."""
        named = ((self.survey_weight,) if self.survey_weight else ()) + self.names
        factors = tuple(
            Factor(column=n, power=power, levels=v.levels, from_zero=bool(self.survey_weight) and i == 0)
            for i, (n, v, power) in enumerate(zip(named, details["variables"], exponents, strict=True))
            if power
        )
        return Products(factors=factors, where=self.where, present=named)

    def _means(self, schema: Schema, axes: Sequence[Axis]) -> tuple[tuple[float, ...], ...]:
        """The population of each group, and the public means of the columns on their scales."""
        labels = [str(label) for label in axes[0].labels] if axes else [""]
        out = []
        for label in labels:
            count = _figure("population", self.population, label, labels)
            scaled = []
            for name, sums in self.totals:
                low, width = _ends(schema, name)
                mean = 2 * (_figure("totals", sums, label, labels) / count - low) / width - 1
                if not abs(mean) <= 1 + 1e-9:
                    raise InvalidParameter(
                        parameter="totals", value=name, must="give a mean within the declared bounds of the column",
                        hint="the total over the population, and the population itself, are of all members",
                    )  # fmt: skip
                scaled.append(mean)
            out.append((count, *scaled))
        return tuple(out)

    # --- rows to integers ---------------------------------------------------------------------------------
    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        details = question.details
        sums = {
            powers: np.asarray(cells[0].values[self._sum(details, powers)]).astype(object)
            for powers in details["sums"]
        }
        if len(self.totals) == 1:
            return part_integers(details["variables"], sums)
        return self._products(details, sums)

    def _products(
        self, details: Mapping[str, Any], sums: Mapping[tuple[int, ...], AnyArray]
    ) -> dict[str, AnyArray]:
        """Products of centred levels, each column times the whole number that brings it near `REACH`."""
        weighted = bool(self.survey_weight)
        levels = [v.levels for v in details["variables"]]
        weighed, levels = (levels[0], levels[1:]) if weighted else (1, levels)
        gains = [REACH, *(REACH // n for n in levels)]

        def summed(power: int, *of: int) -> Any:
            counts = tuple(of.count(i) for i in range(len(levels)))
            return sums[(power, *counts) if weighted else counts]

        def centred(power: int, i: int, j: int) -> Any:
            """sum q^power z_i z_j, with z = 2 u - L for a column of L levels and 1 for the constant."""
            one = summed(power)
            if j == 0:
                return one
            b = levels[j - 1]
            if i == 0:
                return 2 * summed(power, j - 1) - b * one
            a, own, other = levels[i - 1], summed(power, i - 1), summed(power, j - 1)
            return 4 * summed(power, i - 1, j - 1) - 2 * b * own - 2 * a * other + a * b * one

        made: dict[str, list[Any]] = {name: [] for name in ((LIGHT, HEAVY) if weighted else (ROWS,))}
        for i, j in _pairs(len(self.names) + 1):
            factor = _times(i, j) * gains[i] * gains[j]
            if not weighted:
                made[ROWS].append(factor * centred(0, i, j))
                continue
            first, second = (centred(power, i, j) for power in (1, 2))
            made[LIGHT].append(factor * 2 * (weighed * first - second))
            made[HEAVY].append(factor * second)
        return {
            name: np.stack([np.asarray(e, dtype=object) for e in entries], axis=-1)
            for name, entries in made.items()
        }

    # --- noisy integers to estimates ----------------------------------------------------------------------
    def listed(self, question: Question) -> dict[str, list[Any]]:
        keys = list(question.axes[0].labels) if question.axes else [None]
        measure = "measure"
        while any(a.column == measure for a in question.axes):
            measure += "_"
        names: dict[str, list[Any]] = {a.column: [k for k in keys for _ in MEASURES] for a in question.axes}
        return names | {measure: [m for _ in keys for m in MEASURES]}

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        return self.answers(question, {}, noisy, 0.95)[0]

    def answers(
        self, question: Question, noise: Mapping[str, PartNoise], noisy: Parts, level: float
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Value, low, high and half-width of every line; the whole range if the noise hides the number of rows."""
        law = next((noise[p.name] for p in question.parts if p.name in noise), None)
        return self._from(question, noisy, NoiseMoments() if law is None else _moments(law), level)

    def _from(
        self, question: Question, noisy: Parts, moments: NoiseMoments, level: float
    ) -> tuple[Floats, Floats, Floats, Floats]:
        details, maps = question.details, self.maps(question)
        low, width = _ends(question.schema, self.column)
        middle, half = low + width / 2, width / 2
        out: list[tuple[float, float, float, float]] = []
        cells = len(details["means"])
        parts = np.concatenate([reals(noisy[p.name]).reshape(cells, -1) for p in question.parts], axis=1)
        for cell, (count, *public) in zip(parts, details["means"], strict=True):
            found = estimated(cell, maps, np.array(public), moments, level)
            value, first, last = (
                middle + half * float(np.clip(found.mean + side * found.half, -1.0, 1.0))
                if side or found.shown
                else middle
                for side in (0, -1, 1)
            )
            out.append((value, first, last, half * found.half))
            out.append((count * value, count * first, count * last, count * half * found.half))
            rows, within = found.weights * details["largest"], found.weights_half * details["largest"]
            out.append((rows, rows - within, rows + within, within))
        columns = [np.array(c) for c in zip(*out, strict=True)]
        return columns[0], columns[1], columns[2], columns[3]

    def maps(self, question: Question) -> Maps:
        """How A and Q follow from the parts, in steps."""
        size, variables = len(self.names) + 1, question.details["variables"]
        if len(self.totals) == 1:
            scaled = [{(0, 0): 1.0}, {(1, 0): 2.0, (0, 0): -1.0}, {(0, 1): 2.0, (0, 0): -1.0}]

            def of(i: int, j: int, power: int) -> Floats:
                weight = (power,) if self.survey_weight else ()
                terms = itertools.product(scaled[i].items(), scaled[j].items())
                products = [
                    (tuple(a + b for a, b in zip(p, q, strict=True)), x * y) for (p, x), (q, y) in terms
                ]
                return np.asarray(
                    sum(moment(variables, (*weight, *exponents), c) for exponents, c in products)
                )

            first, second = (
                np.array([[of(i, j, power) for j in range(size)] for i in range(size)]) for power in (1, 2)
            )
            return Maps(first=first, second=second)
        levels = [v.levels for v in variables]
        weighed, levels = (levels[0], levels[1:]) if self.survey_weight else (1, levels)
        reach = [REACH, *(REACH // n * n for n in levels)]
        pairs = _pairs(size)
        single = np.zeros((size, size, len(pairs)))
        for k, (i, j) in enumerate(pairs):
            single[i, j, k] = single[j, i, k] = 1 / (_times(i, j) * reach[i] * reach[j] * weighed**2)
        if not self.survey_weight:
            return Maps(first=single, second=single)
        none = np.zeros_like(single)
        return Maps(
            first=np.concatenate([single / 2, single], axis=2), second=np.concatenate([none, single], axis=2)
        )

    def expects(
        self, question: Question, noise: Mapping[str, PartNoise], level: float, rows: int | None
    ) -> tuple[float | None, float | None, str]:
        """The half-width of a mean of values that spread over a third of their range, without the other columns."""
        if rows is None:
            return None, None, "depends on the number of rows of a group: give rows= for a guess"
        noisy = self._typical(question, rows)
        half = float(self.answers(question, noise, noisy, level)[3][0])
        if not math.isfinite(half):
            return (
                None,
                None,
                f"at {rows:,} rows the noise hides their number: there would be no interval",
            )
        about = f"the mean of a group with {rows:,} rows, if values spread over a third of their range; with sampling"
        return None, half, about

    def _typical(self, question: Question, rows: int) -> dict[str, Floats]:
        """Parts of rows of half the largest weight, whose columns lie at both sides of the middle, independently."""
        cells = len(question.details["means"])
        if len(self.totals) == 1:
            blocks = [(0.5,)] * bool(self.survey_weight) + [(0.5 - SPREAD / 2, 0.5 + SPREAD / 2)] * len(
                self.names
            )
            total = np.zeros(len(question.parts))
            for corner in itertools.product(*blocks):
                each = np.array([float(rows) * simplex_total(question.details["variables"]) / 4])
                for u, variable in zip(corner, question.details["variables"], strict=True):
                    block = [math.fsum(c * u**k for k, c in enumerate(p)) for p in BLOCKS[variable.block]]
                    each = np.multiply.outer(each, np.array(block)).ravel()
                total += each
            return {p.name: np.full(cells, v) for p, v in zip(question.parts, total, strict=True)}
        maps, size = self.maps(question), len(self.names) + 1
        pairs, last = _pairs(size), len(_pairs(size))
        steps = np.array([1 / maps.second[i, j, k - last] for k, (i, j) in enumerate(pairs)])
        squares = np.array([(1.0 if i == 0 else SPREAD**2) * (i == j) for i, j in pairs]) * rows * steps
        shares = {ROWS: 1.0, LIGHT: 0.5, HEAVY: 0.25}
        return {p.name: np.broadcast_to(shares[p.name] * squares, (cells, last)) for p in question.parts}


def _ends(schema: Schema, name: str) -> tuple[float, float]:
    column = schema.measured(name)
    return float(column.lowest * column.spacing), float(column.width * column.spacing)


def _figure(parameter: str, given: Figures, label: str, labels: Sequence[str]) -> float:
    """The number of this group."""
    if isinstance(given, float):
        if labels != [""]:
            raise InvalidParameter(
                parameter=parameter, value="one number", must="be given for each key of `by`"
            )
        return given
    known = dict(given)
    for key in known:
        if key not in labels:
            raise UnknownName(what=f"key in {parameter}", name=key, known=tuple(labels))
    if label not in known:
        raise InvalidParameter(
            parameter=parameter, value=label, must="be given for each declared key of `by`"
        )
    return known[label]


def _sensitivity(size: int, unit_steps: int, unit: Unit) -> GlobalSensitivity:
    """Entries t_ij z_i z_j with |z| at most 1, times a weight: theorem `calibrated-totals`."""
    times = [_times(i, j) for i, j in _pairs(size)]
    two = 2 if replaced(unit) else 1
    one = GlobalSensitivity(
        l1=Fraction(two * sum(times) * unit_steps),
        l2_squared=Fraction(two * sum(t * t for t in times) * unit_steps**2),
        linf=Fraction((4 if two == 2 else 3) * unit_steps),
    )
    return one.times(base_unit(unit)[1])


def _moments(mechanism: PartNoise) -> NoiseMoments:
    """Variance and fourth cumulant of the noise of one number, in steps."""
    variance = mechanism.mean_variances(1)[0]
    gaussian = isinstance(mechanism, RoundedGaussian)
    return NoiseMoments(variance=variance) if gaussian else laplace_moments(variance)


def _monomials(columns: int) -> list[tuple[int, ...]]:
    """The monomials of degree at most two, as the columns to multiply."""
    each = range(columns)
    return [(), *((i,) for i in each), *itertools.combinations_with_replacement(each, 2)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Maps:
    """A = first . parts and Q = second . parts: arrays of rows, columns and parts."""

    first: Floats
    second: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibratedMean:
    """A mean on the scale of y with its half-width, and the sum of weights with the half-width of its noise."""

    mean: float
    half: float
    weights: float
    weights_half: float

    @property
    def shown(self) -> bool:
        """Whether a mean exists, or the noise hides the number of rows."""
        return math.isfinite(self.half)


def estimated(parts: Floats, maps: Maps, public: Floats, noise: NoiseMoments, level: float) -> CalibratedMean:
    """The calibrated mean from noisy parts; `public` are the means of x, in the order of the columns."""

    def noise_of(coefficients: Floats) -> tuple[float, float]:
        """Variance of the noise of a linear function of the parts, and how far that goes at this level."""
        variance = noise.variance * float((coefficients**2).sum())
        fourth = noise.fourth * float((coefficients**4).sum())
        return variance, fourth

    a, q = maps.first @ parts, maps.second @ parts
    own, fourth = noise_of(maps.first[0, 0])
    within = _raised(own, fourth, level) * math.sqrt(own)
    count = float(a[0, 0])
    if not (count > 0 and count > SHOWN * math.sqrt(own)):
        return CalibratedMean(mean=0.0, half=math.inf, weights=count, weights_half=within)
    x, y = a[0, 1:-1] / count, float(a[0, -1]) / count
    inside = a[1:-1, 1:-1] - count * np.outer(x, x)
    across = a[1:-1, -1] - count * x * y
    # No direction is used in which the noise could be all that there is: any b is right, to first order.
    values, vectors = np.linalg.eigh(inside)
    k = x.size
    entry = max(noise_of(maps.first[i, j])[0] for i in range(1, k + 1) for j in range(1, k + 1))
    least = math.sqrt(entry) * (2 * math.sqrt(k) + EDGE * k ** (-1 / 6))
    values = np.maximum(values, max(least, 1e-9 * count))
    inverse = vectors @ np.diag(1 / values) @ vectors.T
    slopes, gap = inverse @ across, public - x
    b = np.array([y - float(x @ slopes), *slopes])
    h = inverse @ gap
    g = np.array([1 / count - float(h @ x), *h])
    e = np.array([*-b, 1.0])
    blurred, _ = noise_of(np.einsum("i,j,ijp->p", e, e, maps.second))
    squares = float(e @ q @ e) + math.sqrt(blurred)
    # The sample's own slopes leave smaller residuals: rows less columns, in effective numbers of rows.
    free = max(1 - k * float(q[0, 0]) / count**2, 0.5)
    turned = vectors.T @ h
    sampled = (1 / count**2 + float(turned**2 @ values) / count) * max(squares, 0.0) / free
    drawn, fourth = noise_of(np.einsum("i,j,ijp->p", g, e, maps.first[:-1]))
    half = _raised(sampled + drawn, fourth, level) * math.sqrt(sampled + drawn)
    return CalibratedMean(mean=y + float(gap @ slopes), half=half, weights=count, weights_half=within)


def _raised(variance: float, fourth: float, level: float) -> float:
    """The quantile of the whole error, for this excess of its noise."""
    return float(quantile(np.array([variance]), np.array([fourth]), level)[0])


def calibrated(
    column: str,
    by: By = None,
    *,
    population: Any,
    totals: Mapping[str, Any],
    survey_weight: str | None = None,
    where: str | Expression | None = None,
) -> Calibrated:
    """Mean and total of a column, calibrated to public totals of other columns (the GREG estimator).

    `calibrated("turnover", population=9_000, totals={"employees": 52_000}, survey_weight="w")`. With `by=`, the
    population and every total have a number for each key. Intervals hold sampling and noise.
    """
    if not isinstance(totals, Mapping):
        raise InvalidParameter(
            parameter="totals", value=type(totals).__name__, must="name columns and their public sums",
            hint='totals={"employees": 52_000}',
        )  # fmt: skip
    weight = "" if survey_weight is None else text("survey_weight", survey_weight, empty=False)
    return Calibrated(
        column=column, by=by_columns(by), where=filter_of(where), survey_weight=weight, population=population,
        totals=tuple(totals.items()),
    )  # fmt: skip
