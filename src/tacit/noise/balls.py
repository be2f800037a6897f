"""Uniform laws on spheres, balls and ellipsoids.

Every formula uses sums, products, quotients and square roots of uniform, exponential and normal numbers:
  sphere      z / |z|
  ball        z / sqrt(|z|^2 + 2 e)                    e exponential (Barthe, Guedon, Mendelson, Naor 2005)
  l1 ball     (e_i - e'_i) / (sum |e_i - e'_i| + e)
  linf ball   2 u - 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.checks import settle, whole
from tacit.exact.enclosures import Enclosure, Reals, root, total
from tacit.exact.matrices import Matrix
from tacit.exact.rationals import Exact, exact_parameter
from tacit.noise.bodies import Body
from tacit.noise.grid import ContinuousDistribution, Draws, Needs, coordinate_of
from tacit.noise.marginal_laws import Ball, BoxNoise, GammaDifference, Interval, PowerTail
from tacit.noise.marginals import Marginal

__all__ = ["Ellipsoid", "EuclideanBall", "L1Ball", "LinfBall", "Sphere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round(ContinuousDistribution):
    """What is alike in all coordinates, which are uncorrelated: one variance for a radius of 1."""

    coordinates: int
    radius: Exact = 1

    def __post_init__(self) -> None:
        settle(self, coordinates=whole("coordinates", self.coordinates, least=1))
        exact_parameter("radius", self.radius)
        settle(self, radius=self.radius)

    @property
    def dimension(self) -> int:
        return self.coordinates

    @property
    def _radius(self) -> Fraction:
        return exact_parameter("radius", self.radius)

    def _unit_variance(self) -> Fraction:
        raise NotImplementedError

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        return (self._unit_variance() * self._radius**2,) * self.coordinates

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        return float(self.exact_variances[0]) * np.eye(self.coordinates)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoundBody(_Round, Body):
    """A ball: K = -K."""

    @property
    def symmetric(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sphere(_Round):
    """Uniform on the sphere of a radius in R^d."""

    def _unit_variance(self) -> Fraction:
        return Fraction(1, self.coordinates)

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return Ball(scale=float(self._radius), dimension=self.coordinates - 2)

    def needs(self) -> Needs:
        return Needs(normals=self.coordinates)

    def formula(self, draws: Draws) -> Reals:
        z = draws.normals(self.coordinates)
        return z / root(total(z * z)) * draws.real(self._radius)


@dataclass(frozen=True, slots=True, kw_only=True)
class EuclideanBall(_RoundBody):
    """Uniform on the ball |x| <= radius in R^d."""

    def _unit_variance(self) -> Fraction:
        return Fraction(1, self.coordinates + 2)

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return Ball(scale=float(self._radius), dimension=self.coordinates)

    def noise_marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return GammaDifference(scale=float(self._radius), shape=(self.coordinates + 1) / 2)

    def needs(self) -> Needs:
        return Needs(normals=self.coordinates, exponentials=1)

    def formula(self, draws: Draws) -> Reals:
        z, e = draws.normals(self.coordinates), draws.exponentials(1)
        length = root(total(z * z) + e * draws.real(Fraction(2)))
        return z / length * draws.real(self._radius)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ellipsoid(Body):
    """Uniform on {L x : |x| <= 1}: the unit ball of the Mahalanobis norm |L^-1 y|, covariance shape L L'."""

    factor: Sequence[Sequence[Exact]] | npt.NDArray[np.float64]
    _matrix: Matrix = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        matrix = Matrix("factor", self.factor)
        if matrix.shape[0] != matrix.shape[1]:
            raise InvalidParameter(parameter="factor", value=matrix.shape, must="be square")
        if matrix.is_singular():
            raise InvalidParameter(parameter="factor", value="singular", must="have an inverse")
        object.__setattr__(self, "_matrix", matrix)

    @property
    def dimension(self) -> int:
        return self._matrix.shape[0]

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """(L L')_ii / (d + 2)."""
        return tuple(square / (self.dimension + 2) for square in row_squares(self.factor))

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """L L' / (d + 2)."""
        shape = np.array(self.factor, dtype=np.float64)
        return np.asarray(shape @ shape.T / (self.dimension + 2))

    def _width(self, coordinate: int) -> float:
        """The square root of (L L')_ii: the coordinate of a ball of this radius."""
        return math.sqrt(row_squares(self.factor)[coordinate_of(coordinate, self)])

    def marginal(self, coordinate: int = 0) -> Marginal:
        return Ball(scale=self._width(coordinate), dimension=self.dimension)

    def noise_marginal(self, coordinate: int = 0) -> Marginal:
        return GammaDifference(scale=self._width(coordinate), shape=(self.dimension + 1) / 2)

    def needs(self) -> Needs:
        return Needs(normals=self.dimension, exponentials=1)

    def formula(self, draws: Draws) -> Reals:
        return self._matrix.apply(EuclideanBall(coordinates=self.dimension).formula(draws))


def row_squares(rows: Sequence[Sequence[Exact]] | npt.NDArray[np.float64]) -> list[Fraction]:
    """The squared length of every row, exactly."""
    return [sum((Fraction(v) ** 2 for v in row), Fraction(0)) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Ball(_RoundBody):
    """Uniform on |x_1| + ... + |x_d| <= radius."""

    def _unit_variance(self) -> Fraction:
        return Fraction(2, (self.coordinates + 1) * (self.coordinates + 2))

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return PowerTail(scale=float(self._radius), dimension=self.coordinates)

    def noise_marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return GammaDifference(scale=float(self._radius), shape=1)

    def needs(self) -> Needs:
        return Needs(exponentials=2 * self.coordinates + 1)

    def formula(self, draws: Draws) -> Reals:
        # e - e' is a signed exponential of the same size law: no separate sign is needed.
        e = draws.exponentials(self.coordinates)
        signed = e - draws.exponentials(self.coordinates)
        return signed / (total(_size(signed)) + draws.exponentials(1)) * draws.real(self._radius)


def _size(values: Reals) -> Reals:
    if isinstance(values, Enclosure):
        return Enclosure(np.abs(values.mid), values.rad)
    return np.abs(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinfBall(_RoundBody):
    """Uniform on max |x_i| <= radius."""

    def _unit_variance(self) -> Fraction:
        return Fraction(1, 3)

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return Interval(scale=float(self._radius), low=-1.0, high=1.0)

    def noise_marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return BoxNoise(scale=float(self._radius), low=-1.0, high=1.0, dimension=self.coordinates)

    def needs(self) -> Needs:
        return Needs(uniforms=self.coordinates)

    def formula(self, draws: Draws) -> Reals:
        u = draws.uniforms(self.coordinates)
        centred = u * draws.real(Fraction(2)) - draws.real(Fraction(1))
        return centred * draws.real(self._radius)
