"""K-norm noise for the image of the L1 ball: the smallest body that all moves of linear queries lie in.

A unit moves M theta by a column of M (add-or-remove) or by a difference of two (replace-one), and K is the convex
hull of these moves and their mirror images. The noise is exact: a facet's cone is chosen with probability
proportional to a determinant of integers, and in the cone the noise is a sum of its corners with exponential
weights. See docs/theory/polytope-noise.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.checks import settle, whole
from tacit.exact.enclosures import Reals
from tacit.exact.integers import unmasked
from tacit.exact.matrices import Matrix
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import up
from tacit.guarantees import Pure
from tacit.mechanisms.base import confidence_level, epsilon_parameter, shown
from tacit.mechanisms.hulls import Point, facets
from tacit.mechanisms.shaped import ShapedMechanism
from tacit.noise import (
    ContinuousDistribution,
    Draws,
    FiniteDistribution,
    GridVector,
    Marginal,
    Needs,
    RoundedMarginal,
    grid_spacing,
    total,
)
from tacit.noise.grid import coordinate_of
from tacit.noise.marginal_laws import RangeNoise
from tacit.noise.marginal_sums import ExponentialSums
from tacit.noise.source import Source

__all__ = ["PolytopeNorm", "RangeNorm"]


def corner_points(points: object) -> tuple[Point, ...]:
    """Whole points of one dimension: a corner that was cut short would make the noise too small for the move."""
    try:
        rows = [tuple(p) for p in points]  # type: ignore[attr-defined]
    except TypeError:
        rows = []
    unmasked(points, name="points")
    if not rows or not rows[0] or len({len(p) for p in rows}) != 1:
        raise InvalidParameter(
            parameter="points", value=type(points).__name__, must="be points of one dimension, at least one"
        )
    return tuple(tuple(whole("points", x, least=None) for x in p) for p in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cone(ContinuousDistribution):
    """noise_scale * sum_i E_i v_i: density proportional to e^(-gauge / noise_scale) on one facet's cone."""

    corners: tuple[Point, ...]
    noise_scale: Fraction

    @property
    def dimension(self) -> int:
        return len(self.corners)

    def needs(self) -> Needs:
        return Needs(exponentials=self.dimension)

    @property
    def exact_means(self) -> tuple[Fraction, ...]:
        return tuple(sum(x) * self.noise_scale for x in zip(*self.corners, strict=True))

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        return tuple(sum(v * v for v in x) * self.noise_scale**2 for x in zip(*self.corners, strict=True))

    @property
    def covariance(self) -> Floats:
        corners = np.array(self.corners, dtype=np.float64)
        return np.asarray(corners.T @ corners * float(self.noise_scale) ** 2)

    def marginal(self, coordinate: int = 0) -> Marginal:
        i = coordinate_of(coordinate, self)
        return ExponentialSums(
            scale=float(self.noise_scale), loads=(tuple(float(p[i]) for p in self.corners),)
        )

    def formula(self, draws: Draws) -> Reals:
        columns = Matrix("corners", [[p[i] for p in self.corners] for i in range(self.dimension)])
        return columns.apply(draws.exponentials(self.dimension)) * draws.real(self.noise_scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolytopeNorm(ShapedMechanism):
    """Noise of density e^(-gauge(x) / noise_scale), K the hull of integer points and their mirror images; rounded.

    Guarantee: Pure(epsilon = times / noise_scale), where one unit moves the statistic by at most `times` points' worth
    (a move in times * K). Assumption: the points span the space. Exact: no numerical error.
    Theorem `polytope-noise`. Source: Hardt, Talwar 2010, for the mechanism; the sampler is proved on the page.
    """

    points: tuple[Point, ...]
    noise_scale: Exact
    times: int = 1
    spacing: Exact = 1
    cones: tuple[tuple[Point, ...], ...] = field(init=False, repr=False, compare=False)
    volumes: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact_parameter("noise_scale", self.noise_scale)
        settle(self, noise_scale=self.noise_scale)
        settle(self, times=whole("times", self.times, least=1))
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        object.__setattr__(self, "points", corner_points(self.points))
        cones, volumes = facets(self.points)
        object.__setattr__(self, "cones", cones)
        object.__setattr__(self, "volumes", volumes)

    @classmethod
    def for_epsilon(
        cls, *, epsilon: Exact, points: Sequence[Point], times: int = 1, spacing: Exact = 1
    ) -> PolytopeNorm:
        """The smallest noise with this epsilon."""
        scale = whole("times", times, least=1) / epsilon_parameter(epsilon)
        return cls(points=corner_points(points), noise_scale=scale, times=times, spacing=spacing)

    @property
    def _scale(self) -> Fraction:
        return exact_parameter("noise_scale", self.noise_scale)

    @property
    def coordinates(self) -> int:
        return len(self.points[0])

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(self.times / self._scale))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("polytope-noise",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "K-norm of the hull of moves, rounded",
            "corners": [list(p) for p in sorted({p for cone in self.cones for p in cone})],
            "noise_scale": shown(self._scale),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }

    @property
    def law(self) -> ContinuousDistribution:
        raise NoLaw(
            operation="one formula for the noise of a polytope",
            reason="it is a mixture: a cone is drawn first",
            hint="`covariance` and `marginal(i)` have its numbers",
        )

    def marginal(self, coordinate: int = 0) -> RoundedMarginal:
        """The law of what is drawn for one count, in grid steps: sums of exponentials, mixed over the cones."""
        i = whole("coordinate", coordinate, least=0)
        if i >= self.coordinates:
            raise InvalidParameter(
                parameter="coordinate", value=coordinate, must=f"be below the dimension {self.coordinates}"
            )
        shares: dict[tuple[float, ...], int] = {}
        for cone, volume in zip(self.cones, self.volumes, strict=True):
            loads = tuple(sorted(float(p[i]) for p in cone if p[i]))
            shares[loads] = shares.get(loads, 0) + volume
        weights = tuple(v / sum(self.volumes) for v in shares.values())
        one = ExponentialSums(scale=float(self._scale), loads=tuple(shares), weights=weights)
        return one.rounded(self.step)

    def _draw(self, source: Source) -> GridVector:
        which = int(FiniteDistribution(weights=self.volumes).sample(size=(1,), source=source)[0])
        return _Cone(corners=self.cones[which], noise_scale=self._scale).sample(
            spacing=self.step, source=source
        )

    @property
    def covariance(self) -> Floats:
        """E X X' of the noise before rounding: sum over cones of volume (sum v v' + (sum v)(sum v)')."""
        corners = np.array(self.cones, dtype=np.float64)
        share = np.array(self.volumes, dtype=np.float64)
        share /= share.sum()
        middle = corners.sum(axis=1)
        out = np.einsum("c,cki,ckj->ij", share, corners, corners)
        return np.asarray((out + np.einsum("c,ci,cj->ij", share, middle, middle)) * float(self._scale) ** 2)

    @property
    def noise_std(self) -> float:
        """The largest standard deviation of a coordinate of what is drawn, grid included."""
        return self._largest_std()

    def mean_sizes(self, combinations: Floats) -> Floats:
        """E |c X| for each row c, by Fourier inversion in each cone (floats; before rounding)."""
        corners = np.array(self.cones, dtype=np.float64) * float(self._scale)
        share = np.array(self.volumes, dtype=np.float64)
        share /= share.sum()
        loads = np.einsum("mi,cki->mck", combinations, corners)
        return np.asarray((mean_size(loads) * share).sum(axis=1))

    def expected_error(self) -> float:
        """max_i E |X_i|, plus half a grid step at most."""
        return float(self.mean_sizes(np.eye(self.coordinates)).max() + self.step / 2)

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """A bound: |X_i| <= reach * gauge(X), and gauge(X) is Gamma(d, noise_scale) distributed."""
        return self.max_error(confidence=confidence)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """The same bound holds for all coordinates at once."""
        from scipy.special import gammaincinv

        _same(dimension, self.coordinates)
        reach = max(abs(x) for p in self.points for x in p)
        level = float(confidence_level(confidence))
        return float(reach * float(self._scale) * gammaincinv(self.coordinates, level) + self.step / 2)


def _same(given: int | None, dimension: int) -> None:
    if given is not None and given != dimension:
        raise InvalidParameter(
            parameter="dimension", value=given, must=f"be {dimension}, the noise's dimension"
        )


def mean_size(loads: Floats) -> Floats:
    """E |sum_k a_k E_k| over the last axis, E_k independent standard exponentials.

    E |X| = (2/pi) int_0^inf (1 - Re phi(t)) / t^2 dt with phi(t) = prod 1 / (1 - i a_k t), t = tan(s) / std.
    """
    nodes, weights = np.polynomial.legendre.leggauss(96)
    s = (nodes + 1) * np.pi / 4
    u = np.tan(s)
    size = np.sqrt((loads**2).sum(axis=-1) + loads.sum(axis=-1) ** 2)
    scaled = np.divide(loads, size[..., None], out=np.zeros_like(loads), where=size[..., None] > 0)
    out = np.zeros(size.shape)
    for value, weight in zip(u, weights, strict=True):
        phi = (1 / (1 - 1j * scaled * value)).prod(axis=-1)
        out += weight * np.pi / 4 * (1 - phi.real) * (1 + 1 / value**2)
    return np.asarray(2 / np.pi * out * size)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeNorm(ShapedMechanism):
    """Noise of density e^(-g(x) / noise_scale), g(x) = max(0, x_1..x_d) - min(0, x_1..x_d), for one-way margins.

    One row added to a table of d yes-or-no columns moves their d counts by a corner of the cube, all moves being
    up or all down: g is the gauge of exactly that hull. T (U_i - U_0) has this law, T ~ Gamma(d + 2, noise_scale),
    U uniform. Guarantee: Pure(times / noise_scale). Variance (d+2)(d+3)/6 noise_scale^2 a count, where independent
    Laplace noise has 2 d^2. Theorem `polytope-noise`. Source: Hardt, Talwar 2010; the law is derived on the page.
    """

    dimension: int
    noise_scale: Exact
    times: int = 1
    spacing: Exact = 1

    def __post_init__(self) -> None:
        settle(self, dimension=whole("dimension", self.dimension, least=1))
        settle(self, times=whole("times", self.times, least=1))
        exact_parameter("noise_scale", self.noise_scale)
        settle(self, noise_scale=self.noise_scale)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))

    @classmethod
    def for_epsilon(cls, *, epsilon: Exact, dimension: int, times: int = 1, spacing: Exact = 1) -> RangeNorm:
        """The smallest noise with this epsilon."""
        scale = whole("times", times, least=1) / epsilon_parameter(epsilon)
        return cls(dimension=dimension, noise_scale=scale, times=times, spacing=spacing)

    @property
    def coordinates(self) -> int:
        return self.dimension

    @property
    def _scale(self) -> Fraction:
        return exact_parameter("noise_scale", self.noise_scale)

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(self.times / self._scale))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("polytope-noise",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "range norm, rounded",
            "noise_scale": shown(self._scale),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }

    @property
    def law(self) -> ContinuousDistribution:
        return _Range(coordinates=self.coordinates, noise_scale=self._scale)

    def _draw(self, source: Source) -> GridVector:
        return self.law.sample(spacing=self.step, source=source)

    @property
    def noise_std(self) -> float:
        """About sqrt((d+2)(d+3)/6) noise_scale: of what is drawn, grid included."""
        return self._largest_std()

    def expected_error(self) -> float:
        """E |X_i| = (d+2)/3 noise_scale, plus half a grid step at most."""
        return float((self.coordinates + 2) / 3 * float(self._scale) + self.step / 2)

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """What one count stays within: Pr[|X_i| > t] = E (1 - t/T)^2 over T > t, by incomplete gamma functions."""
        from scipy.special import gammaincc, gammaincinv

        d, miss = self.coordinates, 1 - float(confidence_level(confidence))
        low, high = 0.0, float(gammaincinv(d, 1 - miss))
        while high - low > 1e-9 * high:
            t = (low + high) / 2
            tail = gammaincc(d + 2, t) - 2 * t / (d + 1) * gammaincc(d + 1, t)
            tail += t * t / (d * (d + 1)) * gammaincc(d, t)
            low, high = (t, high) if tail > miss else (low, t)
        return float(high * float(self._scale) + self.step / 2)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """What all counts stay within at once: a bound, |X_i| <= g(X), which is Gamma(d, noise_scale) distributed."""
        from scipy.special import gammaincinv

        _same(dimension, self.coordinates)
        level = float(confidence_level(confidence))
        return float(float(self._scale) * gammaincinv(self.coordinates, level) + self.step / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range(ContinuousDistribution):
    coordinates: int
    noise_scale: Fraction

    @property
    def dimension(self) -> int:
        return self.coordinates

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """(d+2)(d+3)/6 noise_scale^2: U_i - U_0 has variance 1/6."""
        d = self.coordinates
        return ((d + 2) * (d + 3) * self.noise_scale**2 / 6,) * d

    @property
    def covariance(self) -> Floats:
        """Half of the variance between two counts, which share U_0."""
        return float(self.exact_variances[0]) / 2 * (np.eye(self.coordinates) + 1)

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return RangeNoise(scale=float(self.noise_scale), dimension=self.coordinates)

    def needs(self) -> Needs:
        return Needs(uniforms=self.coordinates + 1, exponentials=self.coordinates + 2)

    def formula(self, draws: Draws) -> Reals:
        radius = total(draws.exponentials(self.coordinates + 2)) * draws.real(self.noise_scale)
        return (draws.uniforms(self.coordinates) - draws.uniforms(1)) * radius
