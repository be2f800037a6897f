"""Euclidean Laplace noise, with a covariance."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter
from tacit.exact.balls import ball, upper
from tacit.exact.checks import settle
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import up
from tacit.guarantees import Pure
from tacit.mechanisms.base import dimension_parameter, epsilon_parameter, shown
from tacit.mechanisms.sensitivity import L2, need
from tacit.mechanisms.shaped import Radial
from tacit.mechanisms.shapes import Mahalanobis
from tacit.noise import Body, EuclideanBall, grid_spacing

__all__ = ["Gamma", "euclidean_dimension", "euclidean_size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gamma(Radial):
    """Euclidean Laplace noise: density proportional to e^(-|x|_Sigma / noise_scale), rounded to the grid.

    r Sigma^(1/2) u with r ~ Gamma(d, noise_scale) and u uniform on the sphere. Guarantee:
    Pure(epsilon = sensitivity / noise_scale), exactly. Assumption: an L2 sensitivity (then `dimension` says d) or a
    Mahalanobis one. Theorem `gamma-mechanism`. Source: Hall 2012, Prop. 1.3.2.
    """

    sensitivity: L2 | Mahalanobis
    noise_scale: Exact
    dimension: int | None = None
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("Gamma", self.sensitivity, (L2, Mahalanobis), "it is sized by a Euclidean norm")
        exact_parameter("noise_scale", self.noise_scale)
        settle(self, noise_scale=self.noise_scale)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        object.__setattr__(self, "dimension", euclidean_dimension(self.sensitivity, self.dimension))

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Exact,
        sensitivity: L2 | Mahalanobis,
        dimension: int | None = None,
        spacing: Exact = 1,
    ) -> Gamma:
        """The smallest noise with this epsilon."""
        target = epsilon_parameter(epsilon)
        need("Gamma", sensitivity, (L2, Mahalanobis), "it is sized by a Euclidean norm")
        size = euclidean_size(sensitivity, grid_spacing(spacing))
        return cls(sensitivity=sensitivity, noise_scale=size / target, dimension=dimension, spacing=spacing)

    @property
    def body(self) -> Body:
        if isinstance(self.sensitivity, Mahalanobis):
            return self.sensitivity.body
        assert self.dimension is not None
        return EuclideanBall(coordinates=self.dimension)

    @property
    def exact_epsilon(self) -> Fraction:
        return euclidean_size(self.sensitivity, self.step) / self._scale

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(self.exact_epsilon))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("gamma-mechanism",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Euclidean Laplace, rounded",
            "noise_scale": shown(self._scale),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }


def euclidean_dimension(sensitivity: L2 | Mahalanobis, dimension: int | None) -> int:
    """The dimension, from the covariance or as given."""
    if isinstance(sensitivity, Mahalanobis):
        if dimension not in (None, sensitivity.dimension):
            raise InvalidParameter(
                parameter="dimension",
                value=dimension,
                must=f"be {sensitivity.dimension}, that of the covariance",
            )
        return sensitivity.dimension
    if dimension is None:
        raise InvalidParameter(
            parameter="dimension", value=None, must="be given with an L2 sensitivity",
            hint="the noise of this mechanism grows with the length of the vector",
        )  # fmt: skip
    return dimension_parameter(dimension)


def euclidean_size(sensitivity: L2 | Mahalanobis, step: Fraction) -> Fraction:
    """The sensitivity in the norm of the noise, rounded up; an L2 one counts in whole squared steps."""
    if isinstance(sensitivity, Mahalanobis):
        return sensitivity.factor_value
    square = sensitivity.squared_steps(step) * step**2
    return Fraction(upper(lambda: ball(square).sqrt()))
