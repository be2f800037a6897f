"""Gamma and beta numbers on a grid.

Shapes that are multiples of 1/2 are sums of exponentials and half a squared normal. Any other shape is drawn by lazy
inversion of the incomplete gamma or beta function at the borders of the grid's cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.checks import check_fields, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Reals, total
from tacit.exact.rounding import Ball, Exact, ball, exact_parameter, exact_value, grid_spacing
from tacit.noise.distributions.base import Inverter
from tacit.noise.grid import ContinuousDistribution, Draws, GridVector, Needs, coordinate_of, rounding_delta
from tacit.noise.marginals import Beta, GammaNumber, Marginal
from tacit.noise.reals import Exponentials
from tacit.noise.source import Source, default_source

__all__ = ["ContinuousBeta", "ContinuousGamma", "SampledBody"]

MOST_TERMS = 1 << 12


def _summed(name: str, value: Exact) -> bool:
    """Whether a sum of exponentials is suitable: a multiple of 1/2, and not too long."""
    twice = 2 * exact_parameter(name, value)
    return twice.denominator == 1 and twice <= 2 * MOST_TERMS


def _half_integer(name: str, value: Exact) -> tuple[int, bool]:
    """Whole part, and whether a half remains."""
    twice = int(2 * exact_parameter(name, value))
    return twice // 2, bool(twice % 2)


def _gamma_needs(parts: tuple[int, bool]) -> Needs:
    return Needs(exponentials=parts[0], normals=int(parts[1]))


def _gamma(draws: Draws, parts: tuple[int, bool]) -> Reals:
    whole, half = parts
    result = total(draws.exponentials(whole)) if whole else None
    if half:
        z = draws.normals(1)
        square = z * z * draws.real(Fraction(1, 2))
        result = square if result is None else result + square
    return result


@dataclass(frozen=True, slots=True)
class _Cells:
    """Pr[floor(x/g + 1/2) >= k] = Pr[x >= (k - 1/2) g]."""

    spacing: Fraction
    beyond: Callable[[Fraction], Ball]

    def survival(self, k: int) -> Ball:
        return self.beyond((k - Fraction(1, 2)) * self.spacing)

    def survivals(self) -> Iterator[Ball]:
        raise NotImplementedError


def _invert(
    beyond: Callable[[Fraction], Ball], spacing: Exact, size: int | None, source: Source | None
) -> GridVector:
    step = grid_spacing(spacing)
    rows = 1 if size is None else whole("size", size, least=0)
    source = source if source is not None else default_source()
    inverter = Inverter(_Cells(step, beyond))
    drawn = [inverter.resolve(int(word), source) for word in source.words(rows)]
    wide = any(v >= 1 << 63 for v in drawn)
    values = np.array(drawn, dtype=object if wide else np.int64).reshape(rows, 1)
    return GridVector(
        values=values[0] if size is None else values,
        spacing=step,
        numerical_delta=0.0,
        publishable=source.publishable,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousGamma(ContinuousDistribution):
    """Density proportional to x^(shape-1) exp(-x / noise_scale); any shape > 0, exact."""

    shape: Exact
    noise_scale: Exact

    def __post_init__(self) -> None:
        check_fields(self, shape=exact_value, noise_scale=exact_value)

    @property
    def dimension(self) -> int:
        return 1

    @property
    def exact_means(self) -> tuple[Fraction, ...]:
        """shape noise_scale."""
        return (exact_parameter("shape", self.shape) * exact_parameter("noise_scale", self.noise_scale),)

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """shape noise_scale^2."""
        return (exact_parameter("shape", self.shape) * exact_parameter("noise_scale", self.noise_scale) ** 2,)

    @property
    def variance(self) -> float:
        """shape noise_scale^2."""
        return float(self.exact_variances[0])

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        scale, shape = (float(exact_parameter(n, getattr(self, n))) for n in ("noise_scale", "shape"))
        return GammaNumber(scale=scale, shape=shape)

    def needs(self) -> Needs:
        return _gamma_needs(_half_integer("shape", self.shape))

    def formula(self, draws: Draws) -> Reals:
        value = _gamma(draws, _half_integer("shape", self.shape))
        return value * draws.real(exact_parameter("noise_scale", self.noise_scale))

    def sample(self, *, spacing: Exact, size: int | None = None, source: Source | None = None) -> GridVector:
        if _summed("shape", self.shape):
            return ContinuousDistribution.sample(self, spacing=spacing, size=size, source=source)
        shape, scale = exact_parameter("shape", self.shape), exact_parameter("noise_scale", self.noise_scale)

        def beyond(x: Fraction) -> Ball:
            return ball(x / scale).gamma_upper(ball(shape), regularized=1)

        return _invert(beyond, spacing, size, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousBeta(ContinuousDistribution):
    """G_a / (G_a + G_b) for independent gammas: density proportional to x^(a-1) (1-x)^(b-1), exact."""

    a: Exact
    b: Exact

    def __post_init__(self) -> None:
        check_fields(self, a=exact_value, b=exact_value)

    @property
    def dimension(self) -> int:
        return 1

    @property
    def exact_means(self) -> tuple[Fraction, ...]:
        """a / (a + b)."""
        a, b = exact_parameter("a", self.a), exact_parameter("b", self.b)
        return (a / (a + b),)

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """a b / ((a + b)^2 (a + b + 1))."""
        a, b = exact_parameter("a", self.a), exact_parameter("b", self.b)
        return (a * b / ((a + b) ** 2 * (a + b + 1)),)

    @property
    def variance(self) -> float:
        """a b / ((a + b)^2 (a + b + 1))."""
        return float(self.exact_variances[0])

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return Beta(a=float(exact_parameter("a", self.a)), b=float(exact_parameter("b", self.b)))

    def needs(self) -> Needs:
        return _gamma_needs(_half_integer("a", self.a)) + _gamma_needs(_half_integer("b", self.b))

    def formula(self, draws: Draws) -> Reals:
        first = _gamma(draws, _half_integer("a", self.a))
        return first / (first + _gamma(draws, _half_integer("b", self.b)))

    def sample(self, *, spacing: Exact, size: int | None = None, source: Source | None = None) -> GridVector:
        if _summed("a", self.a) and _summed("b", self.b):
            return ContinuousDistribution.sample(self, spacing=spacing, size=size, source=source)
        a, b = exact_parameter("a", self.a), exact_parameter("b", self.b)

        def beyond(x: Fraction) -> Ball:
            # 1 - X is Beta(b, a): the upper tail without a subtraction.
            return ball(max(1 - x, Fraction(0))).beta_lower(ball(b), ball(a), regularized=1)

        return _invert(beyond, spacing, size, source)


# A convex body given by somebody's floating-point sampler, with what its error can cost.
#
# The other distributions of this room are exact. Here the sampler is a black box with a declared error, so the result
# carries a `numerical_delta` above 0 and supports an approximate guarantee only.

RADIUS_FAILURE = 2.0**-100


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledBody:
    """Uniform vectors on a convex body by a float sampler, rounded to a grid with a bound on the cost.

    sampler(count, source) returns an array (count, d); except with `failure_probability` each row is within
    `absolute_error` (in every coordinate) of an ideal row, whose coordinates have densities below
    `marginal_density_bound` and are at most `reach` in size. These four numbers are the caller's proof.
    """

    coordinates: int
    sampler: Callable[[int, Source], npt.NDArray[np.float64]]
    absolute_error: float
    marginal_density_bound: float
    reach: float
    failure_probability: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, coordinates=partial(whole, least=1))
        for name in ("absolute_error", "marginal_density_bound", "reach"):
            exact_parameter(name, getattr(self, name))
            set_fields(self, **{name: getattr(self, name)})
        if not 0 <= exact_parameter("failure_probability", self.failure_probability, positive=False) <= 1:
            raise InvalidParameter(
                parameter="failure_probability", value=self.failure_probability, must="lie between 0 and 1"
            )

    def sample(self, *, spacing: Exact, size: int | None = None, source: Source | None = None) -> GridVector:
        """Uniform vectors on the body, on the grid."""
        return self._released(None, spacing, size, source)

    def sample_knorm(
        self, *, noise_scale: Exact, spacing: Exact, size: int | None = None, source: Source | None = None
    ) -> GridVector:
        """r u with r ~ Gamma(d + 1, noise_scale): the K-norm distribution of this body, on the grid.

        A coordinate's density is at most M E[1/r] = M / (d * noise_scale). r stays below the Chernoff
        quantile of 2^-100, beyond which the draw counts as failed.
        """
        return self._released(exact_parameter("noise_scale", noise_scale), spacing, size, source)

    def _released(
        self, noise_scale: Fraction | None, spacing: Exact, size: int | None, source: Source | None
    ) -> GridVector:
        step = grid_spacing(spacing)
        rows = 1 if size is None else whole("size", size, least=0)
        source = source if source is not None else default_source()
        vectors = np.asarray(self.sampler(rows, source), dtype=np.float64).reshape(rows, self.coordinates)
        error, density, failure = self.absolute_error, self.marginal_density_bound, self.failure_probability
        limit = self.reach + error
        if not (np.abs(vectors) <= limit).all():
            raise NotCertified(
                what="a body's sampler",
                reason="it gave a value that is not finite or lies beyond the declared reach",
            )
        if noise_scale is not None:
            scale = float(noise_scale)
            radius = Exponentials.draw((rows, self.coordinates + 1), source).enclosure().total()
            most = _gamma_quantile(self.coordinates + 1)
            vectors = vectors * (radius.mid * scale)
            # r is known to (d+1) 2^-47 + r (d+4) 2^-51, and products to 2^-51 of themselves.
            loose = (self.coordinates + 1) * 2.0**-46 + most * (self.coordinates + 8) * 2.0**-50
            error = scale * (most * error + limit * loose)
            density, failure = density / (self.coordinates * scale), failure + RADIUS_FAILURE
            limit *= scale * most
        inverse = float(1 / step)
        error += limit * 2.0**-50
        if not np.isfinite(vectors).all() or limit * inverse > 2.0**52:
            raise NotCertified(
                what="a rounded draw",
                reason="the grid is too fine for floats",
                hint="choose a coarser grid",
            )
        cost = rounding_delta(
            coordinates=max(rows, 1) * self.coordinates,
            absolute_error=error,
            spacing=step,
            marginal_density_bound=density,
            failure_probability=min(1.0, max(rows, 1) * failure),
        )
        values = np.floor(np.clip(vectors * inverse, -(2.0**62), 2.0**62) + 0.5).astype(np.int64)
        return GridVector(
            values=values[0] if size is None else values,
            spacing=step,
            numerical_delta=cost,
            publishable=source.publishable,
        )


def _gamma_quantile(shape: int) -> float:
    """t with Pr[Gamma(shape) > t] <= 2^-100, by Chernoff: exp(-(t - k - k ln(t/k)))."""
    t = float(shape) + 1.0
    while t - shape - shape * math.log(t / shape) < 70.0:
        t *= 1.1
    return t
