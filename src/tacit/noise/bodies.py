"""Continuous laws in many dimensions: normal vectors, spheres, balls, and noise shaped by a body.

Every formula uses sums, products, quotients and square roots of uniform, exponential and normal numbers:
  sphere      z / |z|
  ball        z / sqrt(|z|^2 + 2 e)                    e exponential (Barthe, Guedon, Mendelson, Naor 2005)
  l1 ball     (e_i - e'_i) / (sum |e_i - e'_i| + e)
  linf ball   2 u - 1
  K-norm      r u, r ~ gamma(d + 1), u uniform in K: density proportional to exp(-gauge(y) / noise_scale)
                                                       (Hardt, Talwar 2010)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.checks import flag, settle, whole
from tacit.exact.enclosures import Enclosure, Reals, root, total
from tacit.exact.matrices import Matrix
from tacit.exact.rationals import Exact, exact_parameter
from tacit.noise.grid import ContinuousDistribution, Draws, Needs

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
        settle(self, coordinates=d)
        exact_parameter("noise_std", self.noise_std)
        settle(self, noise_std=self.noise_std)
        matrix = None if self.factor is None else Matrix("factor", self.factor)
        if matrix is not None and matrix.shape[0] != d:
            raise InvalidParameter(parameter="factor", value=matrix.shape, must=f"have {d} rows")
        object.__setattr__(self, "_matrix", matrix)

    @property
    def dimension(self) -> int:
        return self.coordinates

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """noise_std^2 L L', in floats."""
        shape = np.eye(self.coordinates) if self.factor is None else np.asarray(self.factor, dtype=np.float64)
        return np.asarray(float(exact_parameter("noise_std", self.noise_std)) ** 2 * (shape @ shape.T))

    def needs(self) -> Needs:
        return Needs(normals=self.coordinates if self._matrix is None else self._matrix.shape[1])

    def formula(self, draws: Draws) -> Reals:
        z = draws.normals(self.needs().normals)
        shaped = z if self._matrix is None else self._matrix.apply(z)
        return shaped * draws.real(exact_parameter("noise_std", self.noise_std))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sphere(ContinuousDistribution):
    """Uniform on the sphere of a radius in R^d."""

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
    def covariance(self) -> npt.NDArray[np.float64]:
        """radius^2 / d on the diagonal."""
        d, r = self.coordinates, exact_parameter("radius", self.radius)
        return float(r * r / d) * np.eye(d)

    def needs(self) -> Needs:
        return Needs(normals=self.coordinates)

    def formula(self, draws: Draws) -> Reals:
        z = draws.normals(self.coordinates)
        return z / root(total(z * z)) * draws.real(exact_parameter("radius", self.radius))


class Body(ContinuousDistribution):
    """The uniform law on a convex body that contains 0; `symmetric` says whether K = -K."""

    __slots__ = ()

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether K = -K."""

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """That of a uniform point, in floats; refused where no formula is stated."""
        raise NoLaw(
            operation=f"the covariance of a {type(self).__name__}",
            reason="no formula for the second moments of this body is stated here",
            hint="use a ball, a box or an ellipsoid, or estimate it from draws, which are no data",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EuclideanBall(Body):
    """Uniform on the ball |x| <= radius in R^d."""

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
    def symmetric(self) -> bool:
        return True

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """radius^2 / (d + 2) on the diagonal."""
        d, r = self.coordinates, exact_parameter("radius", self.radius)
        return float(r * r / (d + 2)) * np.eye(d)

    def needs(self) -> Needs:
        return Needs(normals=self.coordinates, exponentials=1)

    def formula(self, draws: Draws) -> Reals:
        z, e = draws.normals(self.coordinates), draws.exponentials(1)
        length = root(total(z * z) + e * draws.real(Fraction(2)))
        return z / length * draws.real(exact_parameter("radius", self.radius))


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
    def covariance(self) -> npt.NDArray[np.float64]:
        """L L' / (d + 2)."""
        shape = np.array(self.factor, dtype=np.float64)
        return np.asarray(shape @ shape.T / (self.dimension + 2))

    def needs(self) -> Needs:
        return Needs(normals=self.dimension, exponentials=1)

    def formula(self, draws: Draws) -> Reals:
        return self._matrix.apply(EuclideanBall(coordinates=self.dimension).formula(draws))


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Ball(Body):
    """Uniform on |x_1| + ... + |x_d| <= radius."""

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
    def symmetric(self) -> bool:
        return True

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """2 radius^2 / ((d + 1) (d + 2)) on the diagonal."""
        d, r = self.coordinates, exact_parameter("radius", self.radius)
        return float(2 * r * r / ((d + 1) * (d + 2))) * np.eye(d)

    def needs(self) -> Needs:
        return Needs(exponentials=2 * self.coordinates + 1)

    def formula(self, draws: Draws) -> Reals:
        # e - e' is a signed exponential of the same size law: no separate sign is needed.
        e = draws.exponentials(self.coordinates)
        signed = e - draws.exponentials(self.coordinates)
        return (
            signed
            / (total(_size(signed)) + draws.exponentials(1))
            * draws.real(exact_parameter("radius", self.radius))
        )


def _size(values: Reals) -> Reals:
    if isinstance(values, Enclosure):
        return Enclosure(np.abs(values.mid), values.rad)
    return np.abs(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinfBall(Body):
    """Uniform on max |x_i| <= radius."""

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
    def symmetric(self) -> bool:
        return True

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """radius^2 / 3 on the diagonal."""
        d, r = self.coordinates, exact_parameter("radius", self.radius)
        return float(r * r / 3) * np.eye(d)

    def needs(self) -> Needs:
        return Needs(uniforms=self.coordinates)

    def formula(self, draws: Draws) -> Reals:
        u = draws.uniforms(self.coordinates)
        centred = u * draws.real(Fraction(2)) - draws.real(Fraction(1))
        return centred * draws.real(exact_parameter("radius", self.radius))


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaBody(Body):
    """A convex body given by a sampler: a formula in the primitives whose value is uniform on the body.

    Assumption (the caller's proof): `sampler(draws)` is uniform on a convex body that contains 0 when the
    primitives are ideal. It is written with +, -, *, / and `root`, for both kinds of real.
    """

    coordinates: int
    primitives: Needs
    sampler: Callable[[Draws], Reals]
    is_symmetric: bool = False

    def __post_init__(self) -> None:
        settle(self, coordinates=whole("coordinates", self.coordinates, least=1))
        settle(self, is_symmetric=flag("is_symmetric", self.is_symmetric))

    @property
    def dimension(self) -> int:
        return self.coordinates

    @property
    def symmetric(self) -> bool:
        return self.is_symmetric

    def needs(self) -> Needs:
        return self.primitives

    def formula(self, draws: Draws) -> Reals:
        return self.sampler(draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class KNormVector(ContinuousDistribution):
    """r u with r ~ Gamma(d + 1, noise_scale), u uniform in K: density prop. to exp(-gauge / noise_scale)."""

    body: Body
    noise_scale: Exact

    def __post_init__(self) -> None:
        exact_parameter("noise_scale", self.noise_scale)
        settle(self, noise_scale=self.noise_scale)
        if not isinstance(self.body, Body):
            raise InvalidParameter(parameter="body", value=type(self.body).__name__, must="be a convex body")

    @property
    def dimension(self) -> int:
        return self.body.dimension

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """(d + 1) (d + 2) noise_scale^2 times that of a uniform point: E r^2 of the Gamma radius; K = -K, so 0 is the
        mean. NoLaw where the body has no formula."""
        if not self.body.symmetric:
            raise NoLaw(
                operation="the covariance of K-norm noise", reason="a body that is not symmetric has a mean of its own",
                hint="take the difference of two such noises, or estimate it from draws",
            )  # fmt: skip
        d, scale = self.dimension, exact_parameter("noise_scale", self.noise_scale)
        return float((d + 1) * (d + 2) * scale * scale) * self.body.covariance

    def needs(self) -> Needs:
        return self.body.needs() + Needs(exponentials=self.dimension + 1)

    def formula(self, draws: Draws) -> Reals:
        radius = total(draws.exponentials(self.dimension + 1))
        return (
            self.body.formula(draws) * radius * draws.real(exact_parameter("noise_scale", self.noise_scale))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(ContinuousDistribution):
    """A - B for independent A, B with the same law; for bodies that are not symmetric."""

    distribution: ContinuousDistribution

    @property
    def dimension(self) -> int:
        return self.distribution.dimension

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """Twice that of one; NoLaw where it has none."""
        one = getattr(self.distribution, "covariance", None)
        if one is None:
            raise NoLaw(
                operation="the covariance of a difference", reason="the law it is made of has no formula for it",
                hint="estimate it from draws",
            )  # fmt: skip
        return np.asarray(2 * one)

    def needs(self) -> Needs:
        return self.distribution.needs() + self.distribution.needs()

    def formula(self, draws: Draws) -> Reals:
        return self.distribution.formula(draws) - self.distribution.formula(draws)
