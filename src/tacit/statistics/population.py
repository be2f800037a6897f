"""Intervals for a population: sampling error and noise together, by inversion of one test.

Rows are declared to be draws from a population. A statistic R = sum f / sum g over them is the root of

    eta(R) = sum f - R sum g,          Var eta(R) = sum (f - R g)^2 + the variance of its noise,

and both sums are linear in the released parts: eta(R) = (cf - R cg) . p and sum (f - R g)^2 = (cff - 2 R cfg +
R^2 cgg) . p. The R at which eta(R) is not surprising form the interval; the whole range where the noise hides the
divisor. One standard deviation of its own noise is added to the estimated variance, because the root of a noisy
variance that is cut at 0 is too small on average. The quantile is the normal one, raised for the kurtosis of
Laplace noise (Cornish and Fisher). Post-processing; theorem `population-intervals`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.data_classes import dataclass
from tacit.statistics.forms import Form, Parts, reals

INDEPENDENT = "the rows are independent draws from the population"
SHOWN = 4.0
"""This many standard deviations of its noise a divisor must be above 0, or there is no interval."""
STEPS = 80
DOUBLINGS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseMoments:
    """The variance of the noise on a number of a part, in steps, and its fourth cumulant."""

    variance: float = 0.0
    fourth: float = 0.0


def laplace_moments(variance: float) -> NoiseMoments:
    """Moments of the discrete Laplace distribution (two geometric ones subtracted); fourth cumulant 3 v^2 + v."""
    return NoiseMoments(variance=variance, fourth=3 * variance**2 + variance)


Noise = Mapping[str, NoiseMoments]


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationEstimate:
    """Value and ends of every cell; `reach` is the half-width before ends were cut at declared bounds."""

    value: Floats
    low: Floats
    high: Floats
    reach: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationForm(Form):
    """A form whose parts measure the sampling error, too."""

    names: tuple[str, ...]
    typical: tuple[float, ...]
    """The contribution of a row in the middle of its range to each part, in steps: for errors before a row is read."""

    def population(self, parts: Parts, noise: Noise, confidence: float) -> PopulationEstimate:
        """Value and interval for the population."""
        raise NotImplementedError

    def value(self, parts: Parts) -> Floats:
        """The estimate."""
        return self.population(parts, {}, 0.5).value

    def noise_only(self) -> PopulationForm | None:
        """The same for the noise alone; None if the two are not separated."""
        return None

    def typical_of(self, rows: int) -> dict[str, Floats]:
        """Parts of one cell with this many rows in the middle of their ranges."""
        return {n: np.array([rows * each]) for n, each in zip(self.names, self.typical, strict=True)}

    def _stacked(self, parts: Parts) -> Floats:
        return np.stack([reals(parts[n]) for n in self.names])

    def _moments(self, noise: Noise) -> tuple[Floats, Floats]:
        found = [noise.get(n, NoiseMoments()) for n in self.names]
        return np.array([m.variance for m in found]), np.array([m.fourth for m in found])


@dataclass(frozen=True, slots=True, kw_only=True)
class SumCoefficients:
    """sum f, sum g, sum f^2, sum f g and sum g^2 as linear functions of the parts, in steps."""

    f: tuple[float, ...]
    g: tuple[float, ...]
    ff: tuple[float, ...]
    fg: tuple[float, ...]
    gg: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioOfSums(PopulationForm):
    """low + width R for R = sum f / sum g, or sum f itself (`total`); R lies in [least, most].

    `score`: each f is 0 or g, so that the variance at R is R (1 - R) sum g^2 (Wilson's interval where g is 1).
    """

    of: SumCoefficients
    low: float = 0.0
    width: float = 1.0
    least: float = 0.0
    most: float = 1.0
    total: bool = False
    score: bool = False

    def noise_only(self) -> RatioOfSums:
        """Without the sampling error."""
        none = (0.0,) * len(self.names)
        return replace(self, of=replace(self.of, ff=none, fg=none, gg=none))

    def estimator(self, parts: Parts, noise: Noise) -> _Estimator:
        """The linear functions at these parts, and the noise of them."""
        return _Estimator(self, self._stacked(parts), *self._moments(noise))

    def population(self, parts: Parts, noise: Noise, confidence: float) -> PopulationEstimate:
        found = self.estimator(parts, noise)
        if self.total:
            half = found.half(np.zeros(found.f.shape), confidence)
            value = found.f
            return PopulationEstimate(value=value, low=value - half, high=value + half, reach=half)
        anchor, hidden = found.anchor()
        margin = found.margin(confidence)
        ends = [
            np.full(anchor.shape, e) if math.isfinite(e) else _far(margin, anchor, sign, ~hidden)
            for sign, e in ((-1.0, self.least), (1.0, self.most))
        ]
        low, high = (last_inside(margin, anchor, end) for end in ends)
        low, high = np.where(hidden, self.least, low), np.where(hidden, self.most, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(hidden, np.inf, found.half(anchor, confidence) / np.abs(found.g))
        value = np.where(found.g > 0, anchor, _blank(self.least, self.most))
        return PopulationEstimate(
            value=self.low + self.width * value,
            low=self.low + self.width * np.fmin(low, np.where(np.isnan(value), low, value)),
            high=self.low + self.width * np.fmax(high, np.where(np.isnan(value), high, value)),
            reach=self.width * reach,
        )


def _blank(least: float, most: float) -> float:
    """The answer if the noisy parts give no number: the middle of the range, if it has one."""
    middle = 0.5 * (least + most)
    return middle if math.isfinite(middle) else math.nan


class _Estimator:
    """eta, its variance and its noise at every cell of a form of moments."""

    def __init__(self, form: RatioOfSums, p: Floats, variance: Floats, fourth: Floats) -> None:
        self.form, self.p, self.variance, self.fourth = form, p, variance, fourth
        c = form.of
        self.c = {n: np.array(getattr(c, n)) for n in ("f", "g", "ff", "fg", "gg")}
        at = {n: np.tensordot(v, p, axes=1) for n, v in self.c.items()}
        self.f, self.g, self.ff, self.fg, self.gg = (at[n] for n in ("f", "g", "ff", "fg", "gg"))

    def _noise(self, coefficients: Callable[[npt.NDArray[Any]], Floats], r: Floats) -> tuple[Floats, Floats]:
        """Variance and fourth cumulant of the noise of a linear function with coefficients of R."""
        variance, fourth = np.zeros(r.shape), np.zeros(r.shape)
        for i in range(len(self.variance)):
            c = coefficients(np.array(i))
            variance = variance + c**2 * self.variance[i]
            fourth = fourth + c**4 * self.fourth[i]
        return variance, fourth

    def half(self, r: Floats, confidence: float) -> Floats:
        """The bound on |eta(R)|, at this confidence."""
        c = self.c
        own, fourth = self._noise(lambda i: c["f"][i] - r * c["g"][i], r)
        spread = self.ff - 2 * r * self.fg + r * r * self.gg
        if self.form.score:
            spread = r * (1 - r) * self.gg
            blurred, _ = self._noise(lambda i: r * (1 - r) * c["gg"][i], r)
        else:
            blurred, _ = self._noise(lambda i: c["ff"][i] - 2 * r * c["fg"][i] + r * r * c["gg"][i], r)
        variance = np.maximum(spread + np.sqrt(blurred), 0.0) + own
        return quantile(variance, fourth, confidence) * np.sqrt(variance)

    def margin(self, confidence: float) -> Callable[[Floats], Floats]:
        """At least 0 where R is in the interval."""
        return lambda r: self.half(r, confidence) - np.abs(self.f - r * self.g)

    def anchor(self) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """The estimate of R, and where the noise hides its divisor."""
        own, _ = self._noise(lambda i: np.full(self.g.shape, self.c["g"][i]), self.g)
        hidden = ~(self.g > SHOWN * np.sqrt(own)) | ~(self.g > 0)
        ratio = np.divide(self.f, self.g, where=self.g > 0, out=np.zeros(self.f.shape))
        return np.clip(ratio, self.form.least, self.form.most), hidden


def quantile(variance: Floats, fourth: Floats, confidence: float) -> Floats:
    """t with Pr[|X| > t sd] about 1 - confidence: z (1 + k (z^2 - 3) / 24), k the excess kurtosis; at least z."""
    from scipy.special import ndtri

    z = float(-ndtri((1 - confidence) / 2))
    excess = np.divide(fourth, variance**2, where=variance > 0, out=np.zeros(np.shape(variance)))
    return np.asarray(z * (1 + excess * max(z * z - 3, 0.0) / 24))


def last_inside(margin: Callable[[Floats], Floats], start: Floats, end: Floats) -> Floats:
    """The sign change of the margin between start and end, by halving: the outer end of the last bracket."""
    near, far = np.array(start, dtype=np.float64), np.array(end, dtype=np.float64)
    whole = margin(far) >= 0
    for _ in range(STEPS):
        middle = 0.5 * (near + far)
        inside = margin(middle) >= 0
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return np.where(whole, end, far)


def _far(
    margin: Callable[[Floats], Floats], anchor: Floats, sign: float, live: npt.NDArray[np.bool_]
) -> Floats:
    """A point outside of the interval on one side of the anchor; None if the whole side is inside."""
    step = np.maximum(np.abs(anchor), 1e-12) * 1e-6
    end = anchor + sign * step
    for _ in range(DOUBLINGS):
        grow = (margin(end) >= 0) & live
        if not grow.any():
            break
        step = np.where(grow, step * 4, step)
        end = anchor + sign * step
    return end


# --- products of polynomials that sum to one: what rows add, and what moments are made of it -----------------------
#
# A block is a list of polynomials in one variable x of [0, 1], none of them negative, whose sum is at most 1 and is 1
# at x = 1. Products over blocks have the same property, so that a row adds to all parts together at most 1 (times the
# largest weight): one simplex, one sensitivity (theorem `survey-weights`).

BLOCKS: dict[str, tuple[tuple[int, ...], ...]] = {
    "weight": ((0, 2, -2), (0, 0, 1)),
    "square": ((1, -2, 1), (0, 2, -2), (0, 0, 1)),
    "line": ((1, -1), (0, 1)),
    "size": ((0, 1),),
}
"""SumCoefficients of 1, x, x^2 of each polynomial: 2x(1-x), x^2; (1-x)^2, 2x(1-x), x^2; 1-x, x; x."""
MEMBERS: dict[str, tuple[str, ...]] = {
    "weight": ("light", "heavy"), "square": ("low", "middle", "high"), "line": ("below", "above"), "size": ("",),
}  # fmt: skip
MONOMIALS: dict[str, tuple[tuple[float, ...], ...]] = {
    "weight": ((math.nan, math.nan), (0.5, 1.0), (0.0, 1.0)),
    "square": ((1.0, 1.0, 1.0), (0.0, 0.5, 1.0), (0.0, 0.0, 1.0)),
    "line": ((1.0, 1.0), (0.0, 1.0), (0.0, 1.0)),
    "size": ((math.nan,), (1.0,), (math.nan,)),
}
"""1, x and x^2 as combinations of the polynomials; a line's x is 0 or 1. A part of a block without a value is NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A block, and the number of levels of its variable: 0..levels represent 0..1."""

    block: str
    levels: int = 1


def part_names(variables: Sequence[Variable]) -> tuple[str, ...]:
    """One name a product, the last block fastest."""
    words = itertools.product(*(MEMBERS[v.block] for v in variables))
    return tuple(" ".join(filter(None, each)) or "all" for each in words)


def degree(variable: Variable) -> int:
    """The degree of the block's polynomials, which all are brought to."""
    return max(len(p) for p in BLOCKS[variable.block]) - 1


def simplex_total(variables: Sequence[Variable]) -> int:
    """The largest contribution of a row to all parts together, in steps: the product of levels^degree."""
    return math.prod(v.levels ** degree(v) for v in variables)


def powers(variables: Sequence[Variable]) -> list[tuple[int, ...]]:
    """The exponents of the sums that make up the parts; without a weight if its power is 0."""
    return list(
        itertools.product(*(range(0 if MONOMIALS[v.block][0][0] == 1.0 else 1, degree(v) + 1) for v in variables))
    )  # fmt: skip


def part_integers(variables: Sequence[Variable], sums: Mapping[tuple[int, ...], Any]) -> dict[str, AnyArray]:
    """The parts, exactly, from sums over rows of products of powers of levels: homogeneous, so that all are whole."""
    out: dict[str, AnyArray] = {}
    choices = [BLOCKS[v.block] for v in variables]
    for name, polynomials in zip(part_names(variables), itertools.product(*choices), strict=True):
        total: Any = 0
        for exponents in powers(variables):
            factor = 1
            for variable, polynomial, power in zip(variables, polynomials, exponents, strict=True):
                each = polynomial[power] if power < len(polynomial) else 0
                factor *= each * variable.levels ** (degree(variable) - power)
            if factor:
                total = total + factor * np.asarray(sums[exponents]).astype(object)
        out[name] = np.asarray(total, dtype=object)
    return out


def moment(variables: Sequence[Variable], exponents: Sequence[int], scale: float = 1.0) -> Floats:
    """sum over rows of the product of x_i^(exponent_i), as coefficients of the parts in steps, times `scale`."""
    out = np.array([scale / simplex_total(variables)])
    for variable, power in zip(variables, exponents, strict=True):
        out = np.multiply.outer(out, np.array(MONOMIALS[variable.block][power])).ravel()
    return out


def typical_parts(variables: Sequence[Variable]) -> tuple[float, ...]:
    """The contribution of a row in the middle of every variable, in steps."""
    out = np.array([float(simplex_total(variables))])
    for variable in variables:
        each = [math.fsum(c * 0.5**k for k, c in enumerate(p)) for p in BLOCKS[variable.block]]
        out = np.multiply.outer(out, np.array(each)).ravel()
    return tuple(out.tolist())


Affine = Mapping[tuple[int, ...], float]
"""A function of the value variables: coefficients by exponents."""


def coefficients(
    variables: Sequence[Variable],
    f: Affine,
    g: Affine,
    *,
    weight: float | None = None,
    variance: bool = True,
) -> SumCoefficients:
    """The linear functions for f and g, weighted where the first variable is a weight of this largest value.

    Without `variance` the squares are left out, and the sampling error is unknown.
    """

    def times(a: Affine, b: Affine) -> dict[tuple[int, ...], float]:
        out: dict[tuple[int, ...], float] = {}
        for (i, x), (j, y) in itertools.product(a.items(), b.items()):
            key = tuple(p + q for p, q in zip(i, j, strict=True))
            out[key] = out.get(key, 0.0) + x * y
        return out

    def of(function: Affine, power: int) -> tuple[float, ...]:
        total = np.zeros(len(part_names(variables)))
        for exponents, c in function.items():
            whole = exponents if weight is None else (power, *exponents)
            scale = c if weight is None else c * weight**power
            total = total + moment(variables, whole, scale)
        return tuple(total.tolist())

    if not variance:
        none = (0.0,) * len(part_names(variables))
        return SumCoefficients(f=of(f, 1), g=of(g, 1), ff=none, fg=none, gg=none)
    return SumCoefficients(
        f=of(f, 1), g=of(g, 1), ff=of(times(f, f), 2), fg=of(times(f, g), 2), gg=of(times(g, g), 2)
    )  # fmt: skip


# --- rows of clusters: what differs between primary sampling units is all that is needed ----------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters(PopulationForm):
    """The same from totals of each primary sampling unit (PSU), drawn within strata.

    The last axis of every part is that of the PSUs. v = sum over strata of m / (m - 1) sum (d - mean d)^2 with
    d = f - R g of a PSU contains the sampling error and the noise, which both differ between PSUs
    independently. Student's t with PSUs less strata degrees of freedom.
    """

    f: tuple[float, ...]
    g: tuple[float, ...]
    strata: tuple[int, ...]
    """The stratum of each PSU, by number."""
    low: float = 0.0
    width: float = 1.0
    least: float = 0.0
    most: float = 1.0
    total: bool = False

    @property
    def freedom(self) -> int:
        """PSUs less strata."""
        return len(self.strata) - len(set(self.strata))

    def population(self, parts: Parts, noise: Noise, confidence: float) -> PopulationEstimate:
        from scipy.special import stdtrit

        p = self._stacked(parts)
        f, g = (np.tensordot(np.array(c), p, axes=1) for c in (self.f, self.g))
        ff, fg, gg = (self._between(a, b) for a, b in ((f, f), (f, g), (g, g)))
        f, g = f.sum(axis=-1), g.sum(axis=-1)
        t = float(stdtrit(self.freedom, 0.5 + confidence / 2))
        if self.total:
            half = t * np.sqrt(ff)
            return PopulationEstimate(value=f, low=f - half, high=f + half, reach=half)
        ratio = np.clip(np.divide(f, g, where=g > 0, out=np.full(f.shape, np.nan)), self.least, self.most)
        # {R : (f - R g)^2 <= t^2 (ff - 2 R fg + R^2 gg)}, Fieller's set: an interval where g is away from 0.
        a, b, c = g * g - t * t * gg, f * g - t * t * fg, f * f - t * t * ff
        hidden = ~((a > 0) & (g > 0))
        room = np.sqrt(np.maximum(b * b - a * c, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (b - room) / a, (b + room) / a
            reach = np.where(
                hidden, np.inf, t * np.sqrt(np.maximum(ff - 2 * ratio * fg + ratio**2 * gg, 0)) / g
            )
        low = np.where(hidden, self.least, np.clip(low, self.least, self.most))
        high = np.where(hidden, self.most, np.clip(high, self.least, self.most))
        value = np.where(np.isnan(ratio), _blank(self.least, self.most), ratio)
        return PopulationEstimate(
            value=self.low + self.width * value, low=self.low + self.width * np.fmin(low, value),
            high=self.low + self.width * np.fmax(high, value), reach=self.width * reach,
        )  # fmt: skip

    def _between(self, a: Floats, b: Floats) -> Floats:
        """sum over strata of m / (m - 1) sum (a - mean a)(b - mean b)."""
        place = np.array(self.strata)
        total = np.zeros(a.shape[:-1])
        for stratum in np.unique(place):
            x, y = a[..., place == stratum], b[..., place == stratum]
            m = x.shape[-1]
            x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
            total = total + m / (m - 1) * (x * y).sum(axis=-1)
        return total


# --- public weights over an axis: standardised rates and post-stratified estimates ----------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Standardised(PopulationForm):
    """The sum over the keys of the last axis of a public weight times the estimate there; with `total` the
    weights are numbers of people.

    The estimates of different keys have independent errors: variances add, each by the delta method.
    """

    of: RatioOfSums
    weights: tuple[float, ...]

    def noise_only(self) -> Standardised:
        """Without the sampling error."""
        return replace(self, of=self.of.noise_only())

    def typical_of(self, rows: int) -> dict[str, Floats]:
        """This many rows at each key of the axis."""
        one = self.of.typical_of(rows)
        return {n: np.broadcast_to(v[:, None], (1, len(self.weights))) for n, v in one.items()}

    def population(self, parts: Parts, noise: Noise, confidence: float) -> PopulationEstimate:
        found = self.of.estimator(parts, noise)
        value, half = standardised(found, np.array(self.weights), confidence)
        scaled = self.of.low * math.fsum(self.weights) + self.of.width * value
        reach = self.of.width * half
        return PopulationEstimate(value=scaled, low=scaled - reach, high=scaled + reach, reach=reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeTo(PopulationForm):
    """Every estimate over that at one key of an axis, with intervals on the logarithmic scale.

    The logarithms of two independent estimates have variances that add. No value if the noise and the sample
    leave 0 as a possible value of either.
    """

    of: RatioOfSums | Standardised
    axis: int
    place: int

    def noise_only(self) -> RelativeTo:
        """Without the sampling error."""
        return replace(self, of=self.of.noise_only())

    def typical_of(self, rows: int) -> dict[str, Floats]:
        """Two groups with this many rows each, of which the first is the reference."""
        return {n: np.concatenate([v, v]) for n, v in self.of.typical_of(rows).items()}

    def population(self, parts: Parts, noise: Noise, confidence: float) -> PopulationEstimate:
        found = self.of.population(parts, noise, confidence)
        axis = min(self.axis, found.value.ndim - 1)
        place = min(self.place, found.value.shape[axis] - 1)
        first, reach = (np.take(a, [place], axis=axis) for a in (found.value, found.reach))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            each, own = found.reach / found.value, reach / first
            known = (found.value > 0) & (each < 1) & (first > 0) & (own < 1)
            ratio = np.where(known, found.value / first, np.nan)
            factor = np.exp(np.sqrt(each**2 + own**2))
        same = np.arange(found.value.shape[axis]) == place
        same = same.reshape([-1 if i == axis else 1 for i in range(found.value.ndim)])
        factor = np.where(same, 1.0, factor)
        low, high = ratio / factor, ratio * factor
        return PopulationEstimate(value=ratio, low=low, high=high, reach=high - ratio)


def standardised(found: _Estimator, weights: Floats, confidence: float) -> tuple[Floats, Floats]:
    """sum w R and a bound on its error; no number if the noise hides a divisor."""
    c, (_, hidden) = found.c, found.anchor()
    # Not cut at its range: cutting would move the sum upwards or downwards.
    anchor = np.divide(found.f, found.g, where=~hidden, out=np.zeros(found.f.shape))
    own, fourth = found._noise(lambda i: c["f"][i] - anchor * c["g"][i], anchor)
    spread = np.maximum(found.ff - 2 * anchor * found.fg + anchor**2 * found.gg, 0.0)
    blurred, _ = found._noise(lambda i: c["ff"][i] - 2 * anchor * c["fg"][i] + anchor**2 * c["gg"][i], anchor)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(hidden, np.nan, weights / np.where(found.g > 0, found.g, 1.0))
    variance = ((spread + own) * each**2).sum(axis=-1)
    slack = np.sqrt((blurred * each**4).sum(axis=-1))
    fourth = (fourth * each**4).sum(axis=-1)
    value = np.where(hidden, np.nan, anchor * weights).sum(axis=-1)
    variance = variance + slack
    return value, quantile(variance, fourth, confidence) * np.sqrt(variance)


def spacing_of(variables: Sequence[Variable], largest: Fraction = Fraction(1)) -> Fraction:
    """The size of a step of a part, in rows or in weight."""
    return largest / simplex_total(variables)
