"""Continuous distributions in many dimensions: normal vectors, and noise shaped by a convex body.

K-norm      r u, r ~ gamma(d + 1), u uniform in K: density proportional to exp(-gauge(y) / noise_scale)
                                                     (Hardt, Talwar 2010)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.checks import check_fields, flag, members, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Enclosure, Matrix, Reals, root, total
from tacit.exact.rounding import Exact, exact_parameter, exact_value
from tacit.noise.grid import ContinuousDistribution, Draws, Needs, coordinate_of, unknown
from tacit.noise.marginals import (
    Ball,
    BoxNoise,
    GammaDifference,
    Marginal,
    MarginalInterval,
    Normal,
    PowerTail,
)

__all__ = [
    "Body",
    "Difference",
    "Ellipsoid",
    "EuclideanBall",
    "FormulaBody",
    "GaussianVector",
    "KNormVector",
    "L1Ball",
    "LinfBall",
    "Sphere",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianVector(ContinuousDistribution):
    """noise_std * L z, z standard normal; L is the identity, or `factor` with covariance L L'."""

    coordinates: int
    noise_std: Exact
    factor: Sequence[Sequence[Exact]] | npt.NDArray[np.float64] | None = None
    _matrix: Matrix | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        d = whole("coordinates", self.coordinates, least=1)
        set_fields(self, coordinates=d)
        check_fields(self, noise_std=exact_value)
        matrix = None if self.factor is None else Matrix("factor", self.factor)
        if matrix is not None and matrix.shape[0] != d:
            raise InvalidParameter(parameter="factor", value=matrix.shape, must=f"have {d} rows")
        object.__setattr__(self, "_matrix", matrix)

    @property
    def dimension(self) -> int:
        return self.coordinates

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """noise_std^2 (L L')_ii."""
        square = exact_parameter("noise_std", self.noise_std) ** 2
        if self.factor is None:
            return (square,) * self.coordinates
        return tuple(square * sum((Fraction(v) ** 2 for v in row), Fraction(0)) for row in self.factor)

    @property
    def covariance(self) -> Floats:
        """noise_std^2 L L', in floats."""
        shape = np.eye(self.coordinates) if self.factor is None else np.asarray(self.factor, dtype=np.float64)
        return np.asarray(float(exact_parameter("noise_std", self.noise_std)) ** 2 * (shape @ shape.T))

    def marginal(self, coordinate: int = 0) -> Marginal:
        variance = float(self.exact_variances[coordinate_of(coordinate, self)])
        if variance == 0.0:
            raise NoLaw(operation="the law of a coordinate", reason="it is always 0: the factor's row is 0")
        return Normal(scale=variance**0.5)

    def needs(self) -> Needs:
        return Needs(normals=self.coordinates if self._matrix is None else self._matrix.shape[1])

    def formula(self, draws: Draws) -> Reals:
        z = draws.normals(self.needs().normals)
        shaped = z if self._matrix is None else self._matrix.apply(z)
        return shaped * draws.real(exact_parameter("noise_std", self.noise_std))


class Body(ContinuousDistribution):
    """The uniform distribution on a convex body that contains 0; `symmetric` says whether K = -K."""

    __slots__ = ()

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether K = -K."""

    def noise_marginal(self, coordinate: int = 0) -> Marginal:
        """The distribution of one coordinate of K-norm noise, noise_scale 1. Theorem `body-marginals`."""
        coordinate_of(coordinate, self)
        raise unknown("the law of a coordinate of K-norm noise", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaBody(Body):
    """A convex body given by a sampler: a formula in the primitives whose value is uniform on the body.

    Assumption (the caller's proof): `sampler(draws)` is uniform on a convex body that contains 0 when the
    primitives are ideal. The formula uses +, -, *, / and `root`, for both kinds of real. A formula does not
    determine its moments. `declared_mean` (0 for a symmetric body) and `declared_covariance` of the uniform
    point are the caller's; without them no variance is known. They do not determine the distribution of one
    coordinate.
    """

    coordinates: int
    primitives: Needs
    sampler: Callable[[Draws], Reals]
    is_symmetric: bool = False
    declared_covariance: Sequence[Sequence[Exact]] | None = None
    declared_mean: Sequence[Exact] | None = None

    def __post_init__(self) -> None:
        check_fields(self, coordinates=partial(whole, least=1), is_symmetric=flag)
        if self.declared_mean is not None:
            set_fields(self, declared_mean=_row("declared_mean", self.declared_mean, self.coordinates))
        if self.declared_covariance is not None:
            rows = [
                _row("declared_covariance", row, self.coordinates)
                for row in members("declared_covariance", self.declared_covariance)
            ]
            square = [[rows[j][i] for j in range(len(rows))] for i in range(self.coordinates)]
            if [list(row) for row in rows] != square or any(rows[i][i] <= 0 for i in range(len(rows))):
                raise InvalidParameter(
                    parameter="declared_covariance", value=f"{len(rows)} rows",
                    must="be a symmetric matrix with a row for each coordinate and a diagonal above 0",
                )  # fmt: skip
            set_fields(self, declared_covariance=tuple(rows))

    @property
    def dimension(self) -> int:
        return self.coordinates

    @property
    def symmetric(self) -> bool:
        return self.is_symmetric

    def _declared(self) -> list[list[Fraction]]:
        if self.declared_covariance is None or (self.declared_mean is None and not self.symmetric):
            raise NoLaw(
                operation="the moments of a FormulaBody",
                reason="a sampler's formula says nothing of them",
                hint="give declared_covariance (and declared_mean, if the body is not symmetric)",
            )
        return [[Fraction(v) for v in row] for row in self.declared_covariance]

    @property
    def exact_means(self) -> tuple[Fraction, ...]:
        self._declared()
        if self.declared_mean is None:
            return (Fraction(0),) * self.coordinates
        return tuple(Fraction(v) for v in self.declared_mean)

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        return tuple(row[i] for i, row in enumerate(self._declared()))

    @property
    def covariance(self) -> Floats:
        return np.array([[float(v) for v in row] for row in self._declared()])

    def needs(self) -> Needs:
        return self.primitives

    def formula(self, draws: Draws) -> Reals:
        return self.sampler(draws)


def _row(name: str, values: Sequence[Exact], length: int) -> tuple[Fraction, ...]:
    row = tuple(exact_parameter(name, v, positive=False) for v in members(name, values))
    refuse_if(len(row) != length, name, len(row), f"have {length} entries")
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class KNormVector(ContinuousDistribution):
    """r u with r ~ Gamma(d + 1, noise_scale), u uniform in K: density prop. to exp(-gauge / noise_scale).

    With m and C the mean and covariance of u: mean (d+1) noise_scale m, covariance (d+1) noise_scale^2
    [(d+2) C + m m'], from E r and E r^2 of the radius.
    """

    body: Body
    noise_scale: Exact

    def __post_init__(self) -> None:
        check_fields(self, noise_scale=exact_value)
        if not isinstance(self.body, Body):
            raise InvalidParameter(parameter="body", value=type(self.body).__name__, must="be a convex body")

    @property
    def dimension(self) -> int:
        return self.body.dimension

    @property
    def _scale(self) -> Fraction:
        return exact_parameter("noise_scale", self.noise_scale)

    @property
    def exact_means(self) -> tuple[Fraction, ...]:
        return tuple((self.dimension + 1) * self._scale * m for m in self.body.exact_means)

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        d, square = self.dimension, self._scale**2
        own = zip(self.body.exact_variances, self.body.exact_means, strict=True)
        return tuple((d + 1) * square * ((d + 2) * v + m * m) for v, m in own)

    @property
    def covariance(self) -> Floats:
        d, mean = self.dimension, np.array([float(m) for m in self.body.exact_means])
        factor = float((d + 1) * self._scale**2)
        return np.asarray(factor * ((d + 2) * self.body.covariance + np.outer(mean, mean)))

    def marginal(self, coordinate: int = 0) -> Marginal:
        return self.body.noise_marginal(coordinate).scaled(float(self._scale))

    def needs(self) -> Needs:
        return self.body.needs() + Needs(exponentials=self.dimension + 1)

    def formula(self, draws: Draws) -> Reals:
        radius = total(draws.exponentials(self.dimension + 1))
        return self.body.formula(draws) * radius * draws.real(self._scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(ContinuousDistribution):
    """A - B for independent A, B with the same distribution, for asymmetric bodies."""

    distribution: ContinuousDistribution

    @property
    def dimension(self) -> int:
        return self.distribution.dimension

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """Twice those of one."""
        return tuple(2 * v for v in self.distribution.exact_variances)

    @property
    def covariance(self) -> Floats:
        """Twice the value for one; NoLaw if there is none."""
        return np.asarray(2 * self.distribution.covariance)

    def marginal(self, coordinate: int = 0) -> Marginal:
        return self.distribution.marginal(coordinate).difference()

    def needs(self) -> Needs:
        return self.distribution.needs() + self.distribution.needs()

    def formula(self, draws: Draws) -> Reals:
        return self.distribution.formula(draws) - self.distribution.formula(draws)


# Uniform distributions on spheres, balls and ellipsoids.
#
# Every formula uses sums, products, quotients and square roots of uniform, exponential and normal numbers:
#   sphere      z / |z|
#   ball        z / sqrt(|z|^2 + 2 e)                    e exponential (Barthe, Guedon, Mendelson, Naor 2005)
#   l1 ball     (e_i - e'_i) / (sum |e_i - e'_i| + e)
#   linf ball   2 u - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round(ContinuousDistribution):
    """The variance of every coordinate for a radius of 1. Coordinates are uncorrelated and have one distribution."""

    coordinates: int
    radius: Exact = 1

    def __post_init__(self) -> None:
        check_fields(self, coordinates=partial(whole, least=1), radius=exact_value)

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
        refuse_if(matrix.shape[0] != matrix.shape[1], "factor", matrix.shape, "be square")
        refuse_if(matrix.is_singular(), "factor", "singular", "have an inverse")
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
        # e - e' is a signed exponential of the same size distribution: no separate sign is needed.
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
        return MarginalInterval(scale=float(self._radius), low=-1.0, high=1.0)

    def noise_marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return BoxNoise(scale=float(self._radius), low=-1.0, high=1.0, dimension=self.coordinates)

    def needs(self) -> Needs:
        return Needs(uniforms=self.coordinates)

    def formula(self, draws: Draws) -> Reals:
        u = draws.uniforms(self.coordinates)
        centred = u * draws.real(Fraction(2)) - draws.real(Fraction(1))
        return centred * draws.real(self._radius)
