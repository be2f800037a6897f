"""Continuous noise in many dimensions, drawn exactly and rounded to the grid: what its mechanisms share.

The values are on the grid and rounding commutes with adding a grid point, so that the output is the rounding of
(value + continuous noise): post-processing of a mechanism whose densities are known.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.integers import add_exact, integer_array
from tacit.exact.rationals import Exact, exact_parameter
from tacit.mechanisms.base import Mechanism, confidence_level, dimension_parameter
from tacit.mechanisms.bodies import Moments, moments
from tacit.mechanisms.grid import Released
from tacit.noise import Body, ContinuousDistribution, GridVector, KNormVector, RoundedMarginal, SampledBody
from tacit.noise.source import Source, default_source

__all__ = ["Radial", "ShapedMechanism"]

NODES = 400


class ShapedMechanism(Mechanism):
    """Noise of one law on R^d for one vector of d integers on a grid."""

    __slots__ = ()

    spacing: Exact

    @property
    def step(self) -> Fraction:
        """The grid's spacing."""
        return Fraction(self.spacing)

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """The length of the vectors that are released."""

    @abstractmethod
    def _draw(self, source: Source) -> GridVector: ...

    @property
    @abstractmethod
    def law(self) -> ContinuousDistribution:
        """The law of the noise, in the statistic's unit, before it is rounded to the grid."""

    @property
    def covariance(self) -> Floats:
        """That of the noise before rounding, which adds about spacing^2 / 12 to every variance."""
        return self.law.covariance

    def marginal(self, coordinate: int = 0) -> RoundedMarginal:
        """The law of what is drawn for one coordinate, in grid steps; NoLaw where none is known."""
        return self.law.marginal(coordinate).rounded(self.step)

    def _largest_std(self) -> float:
        """Of the coordinates of what is drawn, grid included; rounding counts as uniform where no law is known."""
        variances = self.covariance.diagonal()
        widest = int(np.argmax(variances))
        try:
            return self.marginal(widest).std * float(self.step)
        except NoLaw:
            return float(np.sqrt(variances[widest] + float(self.step) ** 2 / 12))

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """values + noise; exactly `coordinates` integers, of any size."""
        source = source if source is not None else default_source()
        array = integer_array(values)
        if array.size != self.coordinates:
            raise InvalidParameter(
                parameter="values",
                value=f"{array.size} numbers",
                must=f"be {self.coordinates} numbers",
                hint="the shape of the noise is fixed by the sensitivity's dimension",
            )
        noise = self._draw(source)
        return Released(
            values=add_exact(array, noise.values.reshape(array.shape)),
            spacing=self.step,
            publishable=noise.publishable,
            numerical_delta=noise.numerical_delta,
        )


class Radial(ShapedMechanism):
    """r u with r ~ Gamma(d + 1, noise_scale) and u uniform in a body: errors from the body's moments."""

    __slots__ = ()

    noise_scale: Exact

    @property
    @abstractmethod
    def body(self) -> Body | SampledBody:
        """The body K."""

    @property
    def _scale(self) -> Fraction:
        return exact_parameter("noise_scale", self.noise_scale)

    @property
    def coordinates(self) -> int:
        return self.body.dimension if isinstance(self.body, Body) else self.body.coordinates

    def _moments(self) -> tuple[Moments, int, float]:
        return moments(self.body), self.coordinates, float(self._scale)

    @property
    def law(self) -> ContinuousDistribution:
        if isinstance(self.body, SampledBody):
            raise NoLaw(
                operation="the law of K-norm noise of a SampledBody",
                reason="its sampler is a black box, of which only bounds are declared",
                hint="give the sampler as a formula with its moments: FormulaBody(..., declared_covariance=...)",
            )
        return KNormVector(body=self.body, noise_scale=self._scale)

    def _draw(self, source: Source) -> GridVector:
        if isinstance(self.body, SampledBody):
            return self.body.sample_knorm(noise_scale=self._scale, spacing=self.step, source=source)
        return self.law.sample(spacing=self.step, source=source)

    def expected_error(self) -> float:
        """max_i E |X_i| = (d + 1) noise_scale max_i E |u_i|, plus half a grid step at most."""
        m, d, scale = self._moments()
        return float((d + 1) * scale * m.size.max() + self.step / 2)

    @property
    def noise_std(self) -> float:
        """The largest standard deviation of a coordinate of what is drawn, grid included: about
        sqrt((d+1)(d+2) E u_i^2) noise_scale."""
        return self._largest_std()

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """What every single coordinate stays within with this probability; integrated numerically."""
        m, d, scale = self._moments()
        return self._quantile(m, d, scale, float(1 - confidence_level(confidence)))

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """What all coordinates stay within at once: the better of two bounds.

        gauge(X) is Gamma(d, noise_scale) distributed and |X_i| <= reach * gauge(X), exact for a cube; or the
        union of the coordinates' tails.
        """
        from scipy.special import gammaincinv

        m, d, scale = self._moments()
        if dimension is not None and dimension_parameter(dimension) != d:
            raise InvalidParameter(
                parameter="dimension", value=dimension, must=f"be {d}, the body's dimension"
            )
        level = confidence_level(confidence)
        by_gauge = float(m.reach.max() * scale * gammaincinv(d, float(level)) + self.step / 2)
        return min(by_gauge, self._quantile(m, d, scale, float(1 - level) / d))

    def _quantile(self, m: Moments, d: int, scale: float, miss: float) -> float:
        from scipy.special import gammaincinv

        if m.tails is None:
            return float(m.reach.max() * scale * gammaincinv(d, 1 - miss) + self.step / 2)
        widest = m.tails[int(np.argmax(m.reach))]
        # r at the middle of equally likely slices of Gamma(d + 1), finer in the upper tail.
        edges = 1 - np.concatenate(
            [np.linspace(1, 0.01, NODES), np.geomspace(0.01, 1e-3 * miss, NODES)[1:], [0.0]]
        )
        weights = np.diff(edges)
        radius = gammaincinv(d + 1, np.minimum(edges[1:], 1 - 1e-16))
        low, high = 0.0, float(m.reach.max() * gammaincinv(d, 1 - miss / 2))
        while high - low > 1e-9 * high:
            t = (low + high) / 2
            low, high = (t, high) if float((weights * widest(t / radius)).sum()) > miss else (low, t)
        return float(high * scale + self.step / 2)
