"""Gamma and beta numbers on a grid.

Shapes that are multiples of 1/2 are sums of exponentials and half a squared normal; any other shape is
drawn by lazy inversion of the incomplete gamma or beta function at the borders of the grid's cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.exact.balls import Ball, ball
from tacit.exact.checks import settle, whole
from tacit.exact.enclosures import Reals, total
from tacit.exact.rationals import Exact, exact_parameter
from tacit.noise.grid import ContinuousDistribution, Draws, GridVector, Needs, coordinate_of, grid_spacing
from tacit.noise.lazy_inversion import Inverter
from tacit.noise.marginal_laws import Beta, GammaNumber
from tacit.noise.marginals import Marginal
from tacit.noise.source import Source, default_source

__all__ = ["ContinuousBeta", "ContinuousGamma"]

MOST_TERMS = 1 << 12


def _summed(name: str, value: Exact) -> bool:
    """Whether a sum of exponentials serves: a multiple of 1/2, and not too long."""
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
        exact_parameter("shape", self.shape)
        settle(self, shape=self.shape)
        exact_parameter("noise_scale", self.noise_scale)
        settle(self, noise_scale=self.noise_scale)

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
        exact_parameter("a", self.a)
        settle(self, a=self.a)
        exact_parameter("b", self.b)
        settle(self, b=self.b)

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
