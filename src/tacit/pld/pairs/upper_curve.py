"""Pairs known only through an upper curve, from Rényi divergences."""

from __future__ import annotations

import math
from typing import Any

from tacit.exact.balls import ball, positive_ball
from tacit.exact.rounding import Interval
from tacit.pld.pairs.base import UNBOUNDED, Pair

__all__ = ["UpperCurvePair"]


class UpperCurvePair(Pair):
    """Upper bounds in both directions: the pair is its own swap."""

    __slots__ = ()
    exact = False
    exact_in_products = False

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    def order_for(self, epsilon: float) -> tuple[float, float]:
        """A good order for this epsilon, and an upper bound on the divergence at it."""
        raise NotImplementedError

    def curve(self, t: Any) -> Any:
        if bool(t < 1):
            return (1 - t + t * self._from_order(1 / t)).min(ball(1))
        return self._from_order(t).min(ball(1))

    def _from_order(self, t: Any) -> Any:
        epsilon = t.log()
        order, divergence = self.order_for(float(epsilon.mid()))
        if math.isinf(divergence):
            return ball(1)
        a = ball(order)
        bound = ((a - 1) * (self.ball_at(order, divergence) - epsilon) + a * (-1 / a).log1p()).exp() / (a - 1)
        return positive_ball(bound)

    def ball_at(self, order: float, divergence: float) -> Any:
        """The divergence bound at an order, as a ball."""
        return ball(divergence)
