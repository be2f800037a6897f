"""A convex body given by somebody's floating-point sampler, with what its error can cost.

The other laws of this room are exact. Here the sampler is a black box with a declared error, so the result
carries a `numerical_delta` above 0 and supports an approximate guarantee only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.checks import settle, whole
from tacit.exact.rationals import Exact, exact_parameter
from tacit.noise.grid import GridVector, grid_spacing, rounding_delta
from tacit.noise.reals import Exponentials
from tacit.noise.source import Source, default_source

__all__ = ["SampledBody"]

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
        settle(self, coordinates=whole("coordinates", self.coordinates, least=1))
        for name in ("absolute_error", "marginal_density_bound", "reach"):
            exact_parameter(name, getattr(self, name))
            settle(self, **{name: getattr(self, name)})
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
        """r u with r ~ Gamma(d + 1, noise_scale): the K-norm law of this body, on the grid.

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
