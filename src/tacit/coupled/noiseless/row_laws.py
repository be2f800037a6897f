"""The assumed source of a row: a distribution on a declared grid, in exact rationals.

Records lie on a grid low, low + step, ..., high. A continuous distribution is an assumption about the world. tacit
records its rounding to the grid, with the tails on the two ends. Its probabilities have `DIGITS` binary digits.
`rounding` bounds the lost total variation, which every delta that rests on the distribution counts once for
each row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import partial, reduce
from typing import Any

from tacit.coupled.numbers import as_distribution, as_probability
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.checks import check_fields, is_number, plain, refuse_if, text
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, ball, exact_parameter, precision, scaled_floor

DIGITS = 128
MOST_VALUES = 1 << 20
HUNDREDTH = 100
UNBOUNDED = (
    "a row that may take any value, however large, shows through every sum: whatever the other rows are, some value "
    "of one row moves the answer beyond them, and delta is 1"
)


def as_typed(parameter: str, value: object) -> Fraction:
    """A typed number: the float 0.01 stands for one hundredth, a text such as "1/3" for a third."""
    if isinstance(value, str):
        try:
            value = Fraction(value.strip()) if len(value) <= 60 and abs(_power(value)) <= 300 else None
        except (ValueError, ZeroDivisionError):
            value = None
        if value is None:
            raise InvalidParameter(parameter=parameter, value="a text", must='be a number, or such as "1/3"')
    number = plain(value)
    if is_number(number) and isinstance(number, float) and math.isfinite(number):
        number = Fraction(repr(number))
    return exact_parameter(parameter, number, positive=False)


def _power(number: str) -> int:
    """The exponent in a text, read first because Fraction would write out all its zeros."""
    _, _, power = number.lower().partition("e")
    return int(power) if power else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLaw:
    """Probabilities of low, low + step, low + 2 step, ...: they add up to exactly 1, and the ends are possible."""

    name: str
    low: Fraction
    step: Fraction
    weights: tuple[Fraction, ...] = field(repr=False)
    rounding: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_fields(
            self,
            name=partial(text, empty=False),
            low=partial(exact_parameter, positive=False),
            step=exact_parameter,
        )
        if not isinstance(self.weights, tuple) or not self.weights:
            raise InvalidParameter(parameter="weights", value=type(self.weights).__name__, must="be a tuple")
        found = as_distribution("rows", dict(enumerate(self.weights)))
        first, last = min(found), max(found)
        object.__setattr__(self, "low", self.low + first * self.step)
        object.__setattr__(self, "weights", tuple(found.get(k, Fraction(0)) for k in range(first, last + 1)))

    @property
    def high(self) -> Fraction:
        """The largest value."""
        return self.low + (len(self.weights) - 1) * self.step

    @property
    def width(self) -> Fraction:
        """The distance from the smallest value to the largest."""
        return self.high - self.low

    @property
    def support(self) -> tuple[int, ...]:
        """The places, in steps above low, of values that can occur."""
        return tuple(k for k, w in enumerate(self.weights) if w)

    @property
    def mean(self) -> Fraction:
        """The expected value."""
        return self.low + self.step * sum((k * w for k, w in enumerate(self.weights)), Fraction(0))

    @property
    def variance(self) -> Fraction:
        """The expected squared distance from the mean."""
        middle = (self.mean - self.low) / self.step
        return self.step**2 * sum((w * (k - middle) ** 2 for k, w in enumerate(self.weights)), Fraction(0))

    @property
    def log_concave(self) -> bool:
        """Is w(k)^2 >= w(k-1) w(k+1) everywhere, without gaps? Then so is the distribution of every sum of such rows.

        Uniform weights are. A distribution whose rounding was counted is tested in its written form.
        """
        w = self.weights
        return all(w) and all(w[k] ** 2 >= w[k - 1] * w[k + 1] for k in range(1, len(w) - 1))

    def reduced(self) -> RowLaw:
        """The same distribution on the coarsest grid with all its values: sums never leave that grid."""
        common = reduce(math.gcd, self.support)
        if common <= 1:
            return self
        return RowLaw(
            name=self.name,
            low=self.low,
            step=self.step * common,
            weights=self.weights[::common],
            rounding=self.rounding,
        )

    def describe(self) -> str:
        """The distribution in words."""
        ends = f"from {_short(self.low)} to {_short(self.high)}"
        return f"{self.name}, recorded on the grid of {_short(self.step)} {ends}"


def _short(value: Fraction) -> str:
    """A number for a sentence."""
    number = float(value)
    return f"{number:.12g}" if Fraction(repr(number)) == value else str(value)


def _grid(low: Fraction, high: Fraction, grid: object) -> tuple[Fraction, int]:
    """(step, steps from low to high): the declared grid, or a hundredth of the range."""
    if high <= low:
        raise InvalidParameter(
            parameter="high", value=float(high), must="be above low", hint="a constant row hides nothing"
        )
    step = (high - low) / HUNDREDTH if grid is None else as_typed("grid", grid)
    if step <= 0:
        raise InvalidParameter(parameter="grid", value=float(step), must="be above 0")
    steps = (high - low) / step
    if steps.denominator != 1:
        raise InvalidParameter(
            parameter="grid",
            value=float(step),
            must=f"divide the range from {_short(low)} to {_short(high)} into whole steps",
            hint="records, ends and simulator must lie on one grid: off the grid delta is 1",
        )
    if steps + 1 > MOST_VALUES:
        raise InvalidParameter(
            parameter="grid",
            value=float(step),
            must=f"give at most {MOST_VALUES} values",
            hint="record the rows on a coarser grid",
        )
    return step, int(steps)


def _end(parameter: str, value: object) -> Fraction:
    """One end of a range; refuses an infinite one, with the reason."""
    word = value.strip().lower().lstrip("+-") if isinstance(value, str) else plain(value)
    if word in ("inf", "infinity") or (isinstance(word, float) and math.isinf(word)):
        raise NoLaw(
            operation="an exact answer from unbounded rows",
            reason=UNBOUNDED,
            hint="declare two finite ends, and clamp what is recorded to them",
        )
    return as_typed(parameter, value)


def uniform(low: object, high: object, *, grid: object = None) -> RowLaw:
    """Every value of the grid from low to high, both included, equally likely."""
    a, b = _end("low", low), _end("high", high)
    step, steps = _grid(a, b, grid)
    return RowLaw(
        name=f"uniform({_short(a)}, {_short(b)})",
        low=a,
        step=step,
        weights=(Fraction(1, steps + 1),) * (steps + 1),
    )


def normal(mean: object, std: object, *, clamp: object = None, grid: object = None) -> RowLaw:
    """A normal variable, clamped, then rounded to the grid, with the tails at the ends, as in Groce 2014, 6.3.4."""

    def below(z: Ball) -> Ball:
        return (z / ball(2).sqrt()).erf() / 2

    return _clamped("normal", mean, "std", std, clamp, grid, below)


def laplace(mean: object, noise_scale: object, *, clamp: object = None, grid: object = None) -> RowLaw:
    """A Laplace variable, clamped, then rounded to the grid."""

    def below(z: Ball) -> Ball:
        sign = z.sgn()
        return sign * (1 - (-z * sign).exp()) / 2

    return _clamped("laplace", mean, "noise_scale", noise_scale, clamp, grid, below)


def _clamped(
    kind: str,
    mean: object,
    spread: str,
    size: object,
    clamp: object,
    grid: object,
    below: Callable[[Ball], Ball],
) -> RowLaw:
    middle, scale = as_typed("mean", mean), as_typed(spread, size)
    if scale <= 0:
        raise InvalidParameter(
            parameter=spread, value=float(scale), must="be above 0", hint="a constant row hides nothing"
        )
    if clamp is None:
        raise NoLaw(
            operation=f"an exact answer from unbounded {kind} rows",
            reason=UNBOUNDED,
            hint=f"clamp what is recorded: {kind}(0, 1, clamp=(-2.5, 2.5))",
        )
    if not isinstance(clamp, tuple | list) or len(clamp) != 2:
        raise InvalidParameter(parameter="clamp", value=type(clamp).__name__, must="be (low, high)")
    a, b = _end("clamp", clamp[0]), _end("clamp", clamp[1])
    step, steps = _grid(a, b, grid)
    edges = [(a + (2 * k + 1) * step / 2 - middle) / scale for k in range(steps)]
    unit = 1 << DIGITS
    with precision(2 * DIGITS):
        half = ball(Fraction(1, 2))
        heights = [-half, *(below(ball(edge)) for edge in edges), half]
        # Rounded up, so that what is possible stays possible; the heaviest value gives it back.
        cells = [scaled_floor(high - low, DIGITS)[1] + 1 for low, high in itertools.pairwise(heights)]
    heaviest = max(range(len(cells)), key=cells.__getitem__)
    cells[heaviest] += unit - sum(cells)
    return RowLaw(
        name=f"{kind}({_short(middle)}, {_short(scale)}, clamp=({_short(a)}, {_short(b)}))",
        low=a,
        step=step,
        weights=tuple(Fraction(c, unit) for c in cells),
        rounding=Fraction(2 * len(cells), unit),
    )


def bernoulli(probability: object) -> RowLaw:
    """1 with this probability, else 0."""
    p = as_typed("probability", probability)
    if not 0 < p < 1:
        raise InvalidParameter(
            parameter="probability",
            value=float(p),
            must="lie strictly between 0 and 1",
            hint="a row with a known value adds no uncertainty",
        )
    return RowLaw(name=f"bernoulli({_short(p)})", low=Fraction(0), step=Fraction(1), weights=(1 - p, p))


def table(weights: Mapping[Any, Any], *, grid: object = None, name: str = "") -> RowLaw:
    """Values with their probabilities, which add up to exactly 1; the grid is the coarsest that holds them all."""
    if not isinstance(weights, Mapping) or not weights:
        raise InvalidParameter(
            parameter="rows", value=type(weights).__name__, must="map values to probabilities"
        )
    given: dict[Fraction, Fraction] = {}
    for value, weight in weights.items():
        place = as_typed("value", value)
        chance = as_probability("rows", weight if not isinstance(weight, float) else repr(weight))
        given[place] = given.get(place, Fraction(0)) + chance
    found = as_distribution("rows", given)
    refuse_if(len(found) < 2, "rows", "one value", "have two values at least", "a constant row hides nothing")
    low, high = min(found), max(found)
    step = _common([v - low for v in found]) if grid is None else as_typed("grid", grid)
    if step <= 0 or any(((v - low) / step).denominator != 1 for v in found):
        raise InvalidParameter(parameter="grid", value=float(step), must="hold every value of the table")
    if (high - low) / step + 1 > MOST_VALUES:
        raise InvalidParameter(parameter="grid", value=float(step), must=f"give at most {MOST_VALUES} values")
    places = {int((v - low) / step): w for v, w in found.items()}
    told = ", ".join(f"{_short(v)}: {found[v]}" for v in sorted(found)[:6])
    more = "" if len(found) <= 6 else f", and {len(found) - 6} more"
    return RowLaw(
        name=name or f"table({told}{more})",
        low=low,
        step=step,
        weights=tuple(places.get(k, Fraction(0)) for k in range(int((high - low) / step) + 1)),
    )


def _common(gaps: list[Fraction]) -> Fraction:
    """The greatest rational of which all are whole multiples."""
    bottom = math.lcm(*(g.denominator for g in gaps))
    return Fraction(math.gcd(*(int(g * bottom) for g in gaps)), bottom)
