"""Objective perturbation: the minimiser of a random convex objective, as one pair of distributions.

The curve is known for |epsilon| >= start only, as `factor` times that of Gaussian noise, `shift` further out. Between
the two ends it uses the chord, which no convex curve exceeds (theorems `objective-perturbation`, `objective-groups`,
`objective-bounded`, `objective-log-cosh`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, positive_ball, upper
from tacit.pld.distributions import CurvePLD, PrivacyLossDistribution, pld_curve
from tacit.pld.pairs.base import UpperCurvePair, check_order
from tacit.pld.pairs.gaussian import gaussian_pld, normal_cdf

LOSSES = ("logistic", "bounded", "log-cosh")
"""Slopes of one sign with second derivative p(1 - p) at slope p; slopes of any sign, bounded second derivative; or
slopes M a of any sign with second derivative at most beta (1 - a^2)."""

MOST_CURVATURE = 1e6
"""The largest curvature of a row, in ridges; beyond it nothing is private, and e^curvature overflows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePair(UpperCurvePair):
    """One minimiser of sum of losses + ridge + random linear term, for units of `rows` rows.

    mu is that of one row (largest gradient / noise_std), curvature its largest second derivative over the ridge.
    With m = rows mu: logistic losses have delta(e) <= delta_Gauss(e; m) for e >= rows max(0, curvature - mu^2/2) +
    (rows^2 - rows) mu^2/2; bounded ones delta(e) <= 2^rows delta_Gauss(e - rows ln(1 + curvature); m) for all e;
    log-cosh ones delta(e) <= 2 delta_Gauss(e; m) for e >= rows max(curvature, 2 curvature - mu^2/2) +
    (rows^2 - rows) mu^2/2.
    """

    mu: float
    curvature: float
    rows: int = 1
    loss: str = "logistic"

    def __post_init__(self) -> None:
        require(0 < self.mu < math.inf, parameter="mu", value=self.mu, must="be positive and finite")
        ok = 0 < self.curvature <= MOST_CURVATURE
        require(
            ok,
            parameter="curvature",
            value=self.curvature,
            must=f"be positive and at most {MOST_CURVATURE:g}",
        )
        ok = isinstance(self.rows, int) and 1 <= self.rows <= 512
        require(ok, parameter="rows", value=self.rows, must="be an integer from 1 to 512")
        known = isinstance(self.loss, str) and self.loss in LOSSES
        require(known, parameter="loss", value=self.loss, must=f"be one of {', '.join(LOSSES)}")

    @property
    def factor(self) -> int:
        """The number of added Gaussian curves."""
        if self.loss == "log-cosh":
            return 2
        return 1 if self.loss == "logistic" else 1 << self.rows

    def _shift(self) -> Any:
        return self.rows * (1 + ball(self.curvature)).log() if self.loss == "bounded" else ball(0)

    def _start(self) -> Any:
        """The ball of the epsilon at which the Gaussian part begins; for slopes of any sign far enough out that the
        curve is convex.
        """
        k, mu = self.rows, ball(self.mu)
        if self.loss == "log-cosh":
            c, m = ball(self.curvature), k * mu
            return (k * c.max(2 * c - mu * mu / 2) + (k * k - k) * mu * mu / 2).max(m * m / 2 + m)
        if self.loss == "logistic":
            return k * positive_ball(ball(self.curvature) - mu * mu / 2) + (k * k - k) * mu * mu / 2
        m = k * mu
        return self._shift() + m * m / 2 + m * (2 * (k + 1) * ball(2).log()).sqrt()

    def _tail(self, t: Any) -> Any:
        """factor delta_Gauss(ln t - shift; rows mu), for t at or beyond e^start."""
        m, epsilon = self.rows * ball(self.mu), t.log() - self._shift()
        inner = normal_cdf(m / 2 - epsilon / m) - epsilon.exp() * normal_cdf(-m / 2 - epsilon / m)
        return self.factor * positive_ball(inner)

    def _chord(self, t: Any) -> Any:
        end = self._start().exp()
        top = self._tail(end)
        return top + (1 - top) * (end - t) / (end + 1)

    def curve(self, t: Any) -> Any:
        if bool(t < 1):
            return positive_ball(1 - t + t * self.curve(1 / t)).min(ball(1))
        end = self._start().exp()
        if bool(t >= end):
            return self._tail(t)
        if bool(t <= end):
            return self._chord(t).min(ball(1))
        # Next to the end both are tried, and the larger counts.
        return self._tail(t).max(self._chord(t)).min(ball(1))

    def pld(self) -> PrivacyLossDistribution:
        return CurvePLD.two_sided(self._upper())

    def _upper(self) -> Any:
        law = gaussian_pld(upper(lambda: self.rows * ball(self.mu)))
        start, shift = upper(self._start), upper(self._shift)
        top = upper(lambda: self._tail(ball(start).exp()))

        def values(epsilons: Floats) -> Floats:
            inner = np.maximum(epsilons - shift, 0.0) * (1 - 4 * UNIT)
            tail = self.factor * pld_curve(law, inner)[1] * (1 + 4 * UNIT)
            # 1 - e^(e - start) over 1 + e^-start, whose error is a few units of the exponent.
            ahead = -np.expm1(np.minimum(epsilons - start, 0.0)) + 8 * UNIT * (1 + start)
            chord = (top + (1 - top) * ahead / (1 + math.exp(-start))) * (1 + 16 * UNIT)
            return np.asarray(np.minimum(np.where(epsilons >= start, tail, chord), 1.0))

        return values

    def renyi(self, order: float) -> float:
        """Exact for added Gaussian tails and randomised response between; for bounded losses
        rows ln(1 + curvature) + order m^2/2 + rows ln 2 / (order - 1), at a larger order where that is less."""
        check_order(order)
        if order == math.inf:
            return math.inf

        def formula() -> Any:
            a, m = ball(order), self.rows * ball(self.mu)
            if self.loss == "bounded":
                a = a.max(1 + (2 * self.rows * ball(2).log()).sqrt() / m)
                return self._shift() + a * m * m / 2 + self.rows * ball(2).log() / (a - 1)
            s = self._start()
            middle = (((a - 1) * s).exp() * s.exp() + (-(a - 1) * s).exp()) / (1 + s.exp())
            outside = normal_cdf(m / 2 - s / m) + normal_cdf(-s / m - m / 2)
            inside = 1 - self.factor * outside
            # Tilted by e^((a - 1) loss), the loss is normal with mean (a - 1/2) m^2.
            mean = (a - ball(1) / 2) * m
            tails = normal_cdf(mean - s / m) + normal_cdf(-s / m - mean)
            moment = self.factor * (a * (a - 1) * m * m / 2).exp() * tails + positive_ball(inside) * middle
            return moment.log() / (a - 1)

        return upper(formula)

    def order_for(self, epsilon: float) -> tuple[float, float]:
        """Not used: the curve is known without orders."""
        return 2.0, math.inf
