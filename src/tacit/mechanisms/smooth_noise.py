"""Noise sized by a smooth bound: Laplace for (epsilon, delta), Student and Cauchy for pure epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy.typing as npt

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.balls import ball, lower, upper
from tacit.exact.checks import settle, whole
from tacit.exact.enclosures import Reals
from tacit.exact.integers import add_exact
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import up
from tacit.guarantees import Approximate, Pure
from tacit.mechanisms.base import Mechanism, confidence_level, epsilon_parameter, one_value, shown
from tacit.mechanisms.calibrate import greatest
from tacit.mechanisms.gaussian import delta_parameter
from tacit.mechanisms.grid import Released
from tacit.mechanisms.smooth import SmoothBound
from tacit.noise import ContinuousDistribution, Draws, Needs, grid_spacing, root, total
from tacit.noise.grid import coordinate_of
from tacit.noise.marginal_laws import GammaDifference, Student
from tacit.noise.marginals import Marginal
from tacit.noise.source import Source, default_source

__all__ = ["SmoothLaplace", "SmoothStudent"]


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
    """noise_scale z / sqrt(chi^2_k / k): Student's law with k degrees of freedom, Cauchy's for k = 1."""

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
    there is no numerical_delta. The bound is reached only if neighbours exist whose smooth bounds differ by the full
    e^beta *and* whose values differ by the whole bound; for most statistics they do not, and the claim is safe
    but not tight.
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
        exact_parameter("noise_multiplier", self.noise_multiplier)
        settle(self, noise_multiplier=self.noise_multiplier)
        exact_parameter("beta", self.beta)
        settle(self, beta=self.beta)
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
        """The noise given the smooth bound, before rounding, with its variance and distribution. As secret as the
        bound is."""
        return self._distribution(self._noise_scale(smooth))

    def expected_error(self, smooth: SmoothBound) -> float:
        """E |noise| given the smooth bound, grid included. As secret as the bound is."""
        return self._mean() * float(self._noise_scale(smooth)) + float(self.step) / 2

    def error_quantile(self, smooth: SmoothBound, confidence: Exact = 0.95) -> float:
        """What the noise stays within given the smooth bound, grid included. As secret as the bound is."""
        miss = float(1 - confidence_level(confidence))
        return self._tail_quantile(miss) * float(self._noise_scale(smooth)) + float(self.step) / 2

    def max_error(self, smooth: SmoothBound, *, confidence: Exact = 0.95, dimension: int) -> float:
        """For `dimension` such releases at once."""
        d = whole("dimension", dimension, least=1)
        return self.error_quantile(smooth, float(confidence_level(confidence)) ** (1 / d))

    def _mean(self) -> float:
        raise NotImplementedError

    def _tail_quantile(self, miss: float) -> float:
        raise NotImplementedError


def laplace_delta(*, epsilon: Exact, noise_multiplier: Exact, beta: Exact) -> float:
    """The exact delta of Laplace noise whose scale and centre both move, rounded up; 1 where the formula has no hold.

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
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
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
        settle(self, degrees=whole("degrees", self.degrees, least=1))
        self._check()

    @classmethod
    def for_epsilon(
        cls, *, epsilon: Exact, degrees: int = 1, beta: Exact | None = None, spacing: Exact = 1
    ) -> SmoothStudent:
        """The smallest noise (to one part in 10^5) with this epsilon at a given beta.

        The default beta leaves half of what the stretch may take at most: epsilon / (2 degrees). A smaller beta means
        a larger S and a smaller multiplier; which is better depends on the data, and must be chosen without them.
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
