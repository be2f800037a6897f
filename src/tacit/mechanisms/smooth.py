"""Smooth bounds on the largest move by one unit of a statistic *on these data*: the median and other order statistics.

The local sensitivity of the data may be far below the global one, but noise of that size would reveal it. A bound S
with S(D) <= e^beta S(D') for neighbours can size the noise (Nissim, Raskhodnikova, Smith 2007). A smooth bound is
computed from the data and is equally secret.
"""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.checks import add_exact, check_fields, integer_array, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Reals
from tacit.exact.rounding import Exact, ball, exact_parameter, exact_value, lower, precision, up, upper
from tacit.guarantees import Approximate, Pure
from tacit.mechanisms.base import (
    Mechanism,
    Released,
    Sensitivity,
    confidence_level,
    epsilon_parameter,
    epsilon_value,
    one_value,
    rounding,
    shown,
)
from tacit.mechanisms.gaussian import delta_parameter, greatest
from tacit.noise import ContinuousDistribution, Draws, Needs, grid_spacing, root, total
from tacit.noise.grid import coordinate_of
from tacit.noise.marginals import GammaDifference, Marginal, Student
from tacit.noise.source import Source, default_source

__all__ = ["SmoothBound", "SmoothLaplace", "SmoothStudent", "median_rank", "smooth_bound"]

# The computed maximum is within this share of the true one; beta is lowered by as much beforehand.
SLACK = Fraction(1, 1 << 30)
DEEP = 4096
BLOCK = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothBound(Sensitivity):
    """A beta-smooth upper bound on the local sensitivity, in the unit of the statistic.

    Assumptions (the caller's proof, or `smooth_bound`): value >= |f(D) - f(D')| for all neighbours D' of these data,
    and value(D) <= e^beta value(D') for all neighbours. The value is data and is not printed.
    """

    value: Exact = field(repr=False)
    beta: Exact

    def __post_init__(self) -> None:
        exact = exact_parameter("value", 1 if _bad(self.value) else self.value, positive=False, any_size=True)
        if _bad(self.value) or exact <= 0:
            raise InvalidParameter(
                parameter="value", value="a smooth bound that is not above 0", must="be finite and above 0",
                hint="a smooth bound of 0 would publish the exact value; add a public floor, which keeps it smooth",
            )  # fmt: skip
        object.__setattr__(self, "value", exact)
        refuse_if(exact_parameter("beta", self.beta, positive=False) < 0, "beta", self.beta, "be at least 0")
        set_fields(self, beta=self.beta)

    @property
    def exact(self) -> Fraction:
        """The value, exactly."""
        return Fraction(self.value)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> SmoothBound:
        """A constant may be added: (S + c)(D) <= e^beta (S + c)(D')."""
        return SmoothBound(value=self.exact + rounding(spacing, dimension, records)[0], beta=self.beta)


def _bad(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def median_rank(count: int) -> int:
    """The rank (from 1) of the lower median."""
    return (whole("count", count, least=1) + 1) // 2


def _padded(values: npt.ArrayLike, low: int, high: int) -> npt.NDArray[Any]:
    low, high = whole("low", low, least=None), whole("high", high, least=None)
    array = integer_array(values).ravel()
    if array.size == 0:
        raise EmptyComposition(
            what="the data", hint="the number of rows is public here and must be at least 1"
        )
    refuse_if(not low < high, "high", high, f"be above low = {low}", "bounds are public")
    if array.dtype != object and not -(1 << 63) <= low < high < 1 << 63:
        array = array.astype(object)
    clamped = np.sort(np.minimum(np.maximum(array, low), high))
    return np.concatenate([np.array([low], array.dtype), clamped, np.array([high], array.dtype)])


def local_sensitivity_at(padded: npt.NDArray[Any], rank: int, distance: int) -> int:
    """A_k = max over t in 0..k+1 of x_(m+t) - x_(m+t-k-1): the largest local sensitivity within k replacements."""
    last = padded.size - 1
    upper = np.minimum(np.arange(rank, rank + distance + 2), last)
    lower = np.maximum(np.arange(rank - distance - 1, rank + 1), 0)
    return int(gaps(padded, upper, lower).max())


def gaps(ordered: npt.NDArray[Any], later: Any, earlier: Any) -> npt.NDArray[Any]:
    """x_later - x_earlier of increasing integers, exactly.

    They are subtracted as integers and only then read as anything else. A difference of two 64-bit integers in
    order lies in [0, 2^64), where unsigned subtraction is exact. Signed subtraction would wrap around, and
    floats would lose the last digits of large numbers before these could cancel.
    """
    if ordered.dtype == object:
        return np.asarray(ordered[later] - ordered[earlier])
    return np.asarray(ordered[later].astype(np.uint64) - ordered[earlier].astype(np.uint64))


def smooth_bound(
    values: npt.ArrayLike, *, beta: Exact, low: int, high: int, rank: int | None = None, spacing: Exact = 1
) -> SmoothBound:
    """The smallest beta-smooth bound for an order statistic (the lower median by default), replace-one neighbours.

    S = max over k of e^(-beta k) A_k = max over i <= m <= j of (x_j - x_i) e^(-beta (j - i - 1)), with x_0 = low and
    x_(n+1) = high; values, low and high are integers in grid steps. O(n log n): the best j does not fall as i
    grows. Computed in floats to one part in 2^30, with beta lowered by as much, so that it is beta-smooth for sure.
    Theorem `smooth-sensitivity`. Source: Nissim, Raskhodnikova, Smith 2007, Prop. 3.4.
    """
    exact_beta, step = exact_parameter("beta", beta), grid_spacing(spacing)
    padded = _padded(values, low, high)
    low, high = int(low), int(high)
    n = padded.size - 2
    m = median_rank(n) if rank is None else whole("rank", rank, least=1)
    refuse_if(m > n, "rank", rank, f"be at most the number of rows, {n}")
    inner = exact_beta - 2 * SLACK
    if inner < 64 * SLACK:
        # So small a beta allows next to no fall-off: the whole range is smooth for every beta.
        return SmoothBound(value=(high - low) * step, beta=exact_beta)
    i, j = _best_pair(padded, m, float(inner))
    with precision(128):
        import flint

        rate = flint.arb(flint.fmpq(inner.numerator, inner.denominator))
        found = int(padded[j]) - int(padded[i])
        # Terms beyond e^-4096 of the range are covered by that constant, which is smooth.
        floor = (high - low) * (-flint.arb(DEEP)).exp()
        size = (found * (-rate * (j - i - 1)).exp() if found else floor).max(floor)
        mantissa, exponent = (size * (1 + flint.arb(flint.fmpq(1, 1 << 31)))).upper().mid().man_exp()
    top = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return SmoothBound(value=min(top, Fraction(high - low)) * step, beta=exact_beta)


def _logs(sizes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Natural logarithms of non-negative integers of any length; -inf for 0."""
    if sizes.dtype == object:
        logs = np.vectorize(lambda v: math.log(v) if v > 0 else -math.inf, otypes=[np.float64])
        return np.asarray(logs(sizes))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sizes.astype(np.float64)))


def _block(
    x: npt.NDArray[Any], beta: float, i_low: int, i_high: int, j_low: int, j_high: int
) -> tuple[float, int, int]:
    """All pairs of a small block at once."""
    i, j = np.arange(i_low, i_high + 1)[:, None], np.arange(j_low, j_high + 1)[None, :]
    # i <= m <= j throughout, so that no difference is negative.
    value = _logs(gaps(x, j, i)) - beta * (j - i - 1)
    value = np.where(j > i, value, -np.inf)
    at = np.unravel_index(int(np.argmax(value)), value.shape)
    return float(value[at]), i_low + int(at[0]), j_low + int(at[1])


def _best_pair(x: npt.NDArray[Any], m: int, beta: float) -> tuple[int, int]:
    """The pair i <= m <= j, i < j, with the largest (x_j - x_i) e^(-beta (j - i - 1)), by divide and conquer."""
    reach = int(min(DEEP / beta + 2, x.size))
    first, last = max(0, m - reach), min(x.size - 1, m + reach)
    best = (-math.inf, m - 1, m)
    stack = [(first, m, m, last)]
    while stack:
        i_low, i_high, j_low, j_high = stack.pop()
        if i_low > i_high:
            continue
        if (i_high - i_low + 1) * (j_high - j_low + 1) <= BLOCK:
            best = max(best, _block(x, beta, i_low, i_high, j_low, j_high))
            continue
        i = (i_low + i_high) // 2
        js = np.arange(max(j_low, i + 1), j_high + 1)
        if js.size == 0:
            j = j_high
        else:
            value = _logs(gaps(x, js, i)) - beta * (js - i - 1)
            at = int(np.argmax(value))
            j = int(js[at])
            if value[at] > best[0]:
                best = (float(value[at]), i, j)
            if not math.isfinite(value[at]):
                # No gap above i, hence none above later ones; earlier ones may still have their best anywhere.
                stack.append((i_low, i - 1, j_low, j_high))
                continue
        stack.append((i_low, i - 1, j_low, j))
        stack.append((i + 1, i_high, j, j_high))
    return best[1], best[2]


# Noise sized by a smooth bound: Laplace for (epsilon, delta), Student and Cauchy for pure epsilon.


@dataclass(frozen=True, slots=True)
class _Laplace(ContinuousDistribution):
    """noise_scale (e - e'), exponentials e, e'."""

    noise_scale: Fraction

    @property
    def dimension(self) -> int:
        return 1

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        return (2 * self.noise_scale**2,)

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return GammaDifference(scale=float(self.noise_scale), shape=1)

    def needs(self) -> Needs:
        return Needs(exponentials=2)

    def formula(self, draws: Draws) -> Reals:
        return (draws.exponentials(1) - draws.exponentials(1)) * draws.real(self.noise_scale)


@dataclass(frozen=True, slots=True)
class _Student(ContinuousDistribution):
    """noise_scale z / sqrt(chi^2_k / k): Student's distribution with k degrees of freedom, Cauchy's for k = 1."""

    noise_scale: Fraction
    degrees: int

    @property
    def dimension(self) -> int:
        return 1

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """k / (k - 2) noise_scale^2."""
        if self.degrees <= 2:
            raise NoLaw(
                operation=f"the variance of Student's law with {self.degrees} degrees of freedom",
                reason="it is infinite up to two degrees",
                hint="take three degrees or more, or quantiles",
            )
        return (Fraction(self.degrees, self.degrees - 2) * self.noise_scale**2,)

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return Student(scale=float(self.noise_scale), degrees=self.degrees)

    def needs(self) -> Needs:
        return Needs(normals=self.degrees + 1)

    def formula(self, draws: Draws) -> Reals:
        z, rest = draws.normals(1), draws.normals(self.degrees)
        length = root(total(rest * rest) * draws.real(Fraction(1, self.degrees)))
        return z / length * draws.real(self.noise_scale)


class SmoothMechanism(Mechanism):
    """value + noise_multiplier S Z, rounded to the grid, S a beta-smooth bound for these data.

    The draw is exact and known to the cell, so that the output is post-processing of the continuous mechanism and
    there is no numerical_delta. The bound is tight only if there are neighbours whose smooth bounds differ by the full
    e^beta *and* whose values differ by the whole bound. Most statistics have no such neighbours; the claim is then
    safe but not tight.
    """

    __slots__ = ()

    noise_multiplier: Exact
    beta: Exact
    spacing: Exact

    @property
    def step(self) -> Fraction:
        """The grid's spacing."""
        return Fraction(self.spacing)

    def _distribution(self, noise_scale: Fraction) -> ContinuousDistribution:
        raise NotImplementedError

    def _check(self) -> None:
        check_fields(self, noise_multiplier=exact_value, beta=exact_value)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))

    def _noise_scale(self, smooth: SmoothBound) -> Fraction:
        if not isinstance(smooth, SmoothBound):
            raise InvalidParameter(
                parameter="smooth", value=type(smooth).__name__, must="be a SmoothBound",
                hint="a global sensitivity D is SmoothBound(value=D, beta=0)",
            )  # fmt: skip
        if Fraction(smooth.beta) > exact_parameter("beta", self.beta):
            raise InvalidParameter(
                parameter="smooth", value=f"a bound of smoothness {float(smooth.beta):g}",
                must=f"be at least as smooth as the mechanism's beta = {float(self.beta):g}",
                hint="compute the smooth bound with the mechanism's own beta",
            )  # fmt: skip
        return exact_parameter("noise_multiplier", self.noise_multiplier) * smooth.exact

    def release(self, value: npt.ArrayLike, smooth: SmoothBound, *, source: Source | None = None) -> Released:
        """The noisy value: one integer on the grid, and the smooth bound of the same data."""
        source = source if source is not None else default_source()
        array = one_value(value, "smooth sensitivity")
        drawn = self.law(smooth).sample(spacing=self.step, source=source)
        return Released(
            values=add_exact(array, drawn.values.reshape(array.shape)),
            spacing=self.step,
            publishable=source.publishable,
        )

    def law(self, smooth: SmoothBound) -> ContinuousDistribution:
        """The noise given the smooth bound, before rounding, with its variance and distribution. The result is as
        secret as the bound.
        """
        return self._distribution(self._noise_scale(smooth))

    def expected_error(self, smooth: SmoothBound) -> float:
        """E |noise| given the smooth bound, grid included. The result is as secret as the bound."""
        return self._mean() * float(self._noise_scale(smooth)) + float(self.step) / 2

    def error_quantile(self, smooth: SmoothBound, confidence: Exact = 0.95) -> float:
        """The bound on the noise given the smooth bound, grid included. The result is as secret as the bound."""
        miss = float(1 - confidence_level(confidence))
        return self._tail_quantile(miss) * float(self._noise_scale(smooth)) + float(self.step) / 2

    def max_error(self, smooth: SmoothBound, *, confidence: Exact = 0.95, dimension: int) -> float:
        """The bound for `dimension` such releases at once."""
        d = whole("dimension", dimension, least=1)
        return self.error_quantile(smooth, float(confidence_level(confidence)) ** (1 / d))

    def _mean(self) -> float:
        raise NotImplementedError

    def _tail_quantile(self, miss: float) -> float:
        raise NotImplementedError


def laplace_delta(*, epsilon: Exact, noise_multiplier: Exact, beta: Exact) -> float:
    """The exact delta of Laplace noise whose scale and centre both move, rounded up; 1 if the formula does not apply.

    With a = 1 / noise_multiplier, Q narrower by e^-beta and shifted by the whole bound:
    delta = (1 - e^-beta)/2 (e^-T1 + e^-T2), T1,2 = (epsilon ∓ a + beta) / (e^beta - 1), if epsilon is at least
    max(a, beta + a e^-beta). Theorem `smooth-laplace` (sharper).
    """
    e, b = exact_parameter("epsilon", epsilon), exact_parameter("beta", beta)
    a = 1 / exact_parameter("noise_multiplier", noise_multiplier)
    if e < a or Fraction(upper(lambda: ball(b) + ball(a) * (-ball(b)).exp())) > e:
        return 1.0

    def formula() -> Any:
        fall = ball(b).expm1()
        tails = (-ball(e - a + b) / fall).exp() + (-ball(e + a + b) / fall).exp()
        return -(-ball(b)).expm1() * tails / 2

    return min(1.0, upper(formula))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothLaplace(SmoothMechanism):
    """value + noise_multiplier S L, L standard Laplace, S beta-smooth: (epsilon, delta) for one number.

    Guarantee: Approximate(epsilon, laplace_delta(...)), from the exact divergence of the two noises.
    The classic choice is noise_multiplier = 2/epsilon and beta = epsilon / (2 ln(2/delta)); for the same multiplier
    the exact divergence allows a larger beta, hence a smaller S. Theorem `smooth-laplace`.
    Source: Nissim, Raskhodnikova, Smith 2007, Lemma 2.7 (at epsilon = 20 that choice has five times the delta).
    """

    epsilon: Exact
    noise_multiplier: Exact
    beta: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        check_fields(self, epsilon=epsilon_value)
        self._check()
        if self._delta() >= 1.0:
            raise InvalidParameter(
                parameter="noise_multiplier", value=self.noise_multiplier, must="fit the epsilon and beta",
                hint="use SmoothLaplace.for_target(epsilon=..., delta=...)",
            )  # fmt: skip

    @classmethod
    def for_target(cls, *, epsilon: Exact, delta: Exact, spacing: Exact = 1) -> SmoothLaplace:
        """noise_multiplier = 2/epsilon, and the largest beta (to one part in 10^5) that the exact delta allows."""
        target, limit = epsilon_parameter(epsilon), delta_parameter(delta)
        multiplier = 2 / target
        beta = greatest(
            lambda b: laplace_delta(epsilon=target, noise_multiplier=multiplier, beta=b) <= limit, target / 2
        )
        return cls(epsilon=target, noise_multiplier=multiplier, beta=beta, spacing=spacing)

    @classmethod
    def classic(cls, *, epsilon: Exact, delta: Exact, spacing: Exact = 1) -> SmoothLaplace:
        """noise_multiplier = 2/epsilon, beta = epsilon / (2 ln(2/delta)), rounded down: the published choice."""
        target, limit = epsilon_parameter(epsilon), delta_parameter(delta)
        beta = Fraction(lower(lambda: ball(target) / (2 * (2 / ball(limit)).log())))
        return cls(epsilon=target, noise_multiplier=2 / target, beta=beta, spacing=spacing)

    def _delta(self) -> float:
        return laplace_delta(epsilon=self.epsilon, noise_multiplier=self.noise_multiplier, beta=self.beta)

    @property
    def bound(self) -> Approximate:
        return Approximate(epsilon=up(epsilon_parameter(self.epsilon)), delta=self._delta())

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("smooth-laplace",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Laplace sized by a smooth bound, rounded",
            "noise_multiplier": shown(exact_parameter("noise_multiplier", self.noise_multiplier)),
            "beta": shown(exact_parameter("beta", self.beta)),
            "spacing": shown(self.step),
            "exact": True,
        }

    def _distribution(self, noise_scale: Fraction) -> ContinuousDistribution:
        return _Laplace(noise_scale)

    def _mean(self) -> float:
        return 1.0

    def _tail_quantile(self, miss: float) -> float:
        return -math.log(miss)


def student_epsilon(*, noise_multiplier: Exact, beta: Exact, degrees: int) -> float:
    """The exact pure epsilon of Student noise whose scale and centre both move, rounded up.

    With a = 1 / noise_multiplier and k degrees: (k+1)/2 A + (k-1)/2 beta, where
    cosh A = max(1 + a^2/2k, cosh beta + a^2 e^-beta / 2k). Theorem `smooth-student` (sharper).
    """
    b = exact_parameter("beta", beta)
    square = 1 / exact_parameter("noise_multiplier", noise_multiplier) ** 2 / (2 * degrees)

    def at(stretch: Fraction) -> Any:
        # arccosh(1 + x) = ln(1 + x + sqrt(x (x + 2))), without cancellation.
        x = 2 * (ball(stretch) / 2).sinh() ** 2 + ball(square) * (-ball(stretch)).exp()
        angle = (x + (x * (x + 2)).sqrt()).log1p()
        return angle * (degrees + 1) / 2 + ball(b) * (degrees - 1) / 2

    return max(upper(lambda: at(Fraction(0))), upper(lambda: at(b)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothStudent(SmoothMechanism):
    """value + noise_multiplier S T, T Student with `degrees` degrees of freedom (1: Cauchy), S beta-smooth.

    Guarantee: Pure(student_epsilon(...)), the exact supremum of the ratio of two such densities. The published
    choice for Cauchy noise (multiplier 6/epsilon, beta = epsilon/6) is 0.23-private at epsilon = 1.
    Cauchy noise has no mean; from two degrees on the expected error is finite. Theorem `smooth-student`.
    Source: Nissim, Raskhodnikova, Smith 2007, Lemma 2.7; Bun, Steinke 2019 (Student).
    """

    noise_multiplier: Exact
    beta: Exact
    degrees: int = 1
    spacing: Exact = 1

    def __post_init__(self) -> None:
        check_fields(self, degrees=partial(whole, least=1))
        self._check()

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, degrees: int = 1, beta: Exact | None = None, spacing: Exact = 1
    ) -> SmoothStudent:
        """The smallest noise (to one part in 10^5) with this epsilon at a given beta.

        The default beta leaves half of the largest possible stretch: epsilon / (2 degrees). A smaller beta
        means a larger S and a smaller multiplier. The better choice depends on the data, and must be made
        without them.
        """
        target = epsilon_parameter(epsilon)
        k = whole("degrees", degrees, least=1)
        chosen = target / (2 * k) if beta is None else exact_parameter("beta", beta)

        def fits(inverse: Fraction) -> bool:
            return Fraction(student_epsilon(noise_multiplier=1 / inverse, beta=chosen, degrees=k)) <= target

        if not fits(target / 10**6):
            raise InvalidParameter(
                parameter="beta", value=beta, must=f"be below epsilon / degrees = {float(target / k):g}",
                hint="the stretch of the noise alone costs beta times the degrees of freedom",
            )  # fmt: skip
        multiplier = 1 / greatest(fits, Fraction(math.exp(min(float(target), 300.0))) + 10)
        return cls(noise_multiplier=multiplier, beta=chosen, degrees=k, spacing=spacing)

    @property
    def bound(self) -> Pure:
        return Pure(
            epsilon=student_epsilon(
                noise_multiplier=self.noise_multiplier, beta=self.beta, degrees=self.degrees
            )
        )

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("smooth-student",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Student sized by a smooth bound, rounded",
            "degrees": int(self.degrees),
            "noise_multiplier": shown(exact_parameter("noise_multiplier", self.noise_multiplier)),
            "beta": shown(exact_parameter("beta", self.beta)),
            "spacing": shown(self.step),
            "exact": True,
        }

    def _distribution(self, noise_scale: Fraction) -> ContinuousDistribution:
        return _Student(noise_scale, int(self.degrees))

    def _mean(self) -> float:
        """E |T| = 2 sqrt(k) Gamma((k+1)/2) / (sqrt(pi) (k-1) Gamma(k/2)); infinite for Cauchy."""
        k = self.degrees
        if k == 1:
            return math.inf
        ratio = math.exp(math.lgamma((k + 1) / 2) - math.lgamma(k / 2))
        return 2 * math.sqrt(k) * ratio / (math.sqrt(math.pi) * (k - 1))

    def _tail_quantile(self, miss: float) -> float:
        from scipy.special import stdtrit

        return float(-stdtrit(self.degrees, miss / 2))
