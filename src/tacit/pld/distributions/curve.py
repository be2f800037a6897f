"""Losses known only through an upper curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.exact.arrays import UNIT, Column, Floats
from tacit.pld.distributions.base import PrivacyLossDistribution, unsampled_loss
from tacit.pld.grid import Gridded, chord_masses

__all__ = ["CurvePLD"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePLD(PrivacyLossDistribution):
    """Upper values of h(e^l) at all real l, vectorised and rounded up."""

    values: Callable[[Floats], Floats]
    reverse: Callable[[Floats], Floats] | None = None
    """The same for the swapped pair, where it is known better than through 1 - t + t h(1/t)."""

    @staticmethod
    def two_sided(upper: Callable[[Floats], Floats]) -> CurvePLD:
        """From delta(epsilon >= 0) that holds in both directions: 1 - t + t h(1/t) below t = 1."""

        def values(losses: Floats) -> Floats:
            bound = np.minimum(upper(np.abs(losses)), 1.0)
            below = -np.expm1(np.minimum(losses, 0.0)) + np.exp(np.minimum(losses, 0.0)) * bound
            return np.asarray(np.minimum(np.where(losses >= 0, bound, below) * (1 + 8 * UNIT), 1.0))

        return CurvePLD(values=values, reverse=values)

    def swapped(self) -> CurvePLD:
        inner = self.values

        def values(losses: Floats) -> Floats:
            t = np.exp(np.minimum(losses, 700.0))
            # Beyond e^700 the identity has no digits left: the value at that point bounds it.
            found = 1 - t + t * inner(-np.minimum(losses, 700.0)) + 16 * UNIT * t
            return np.asarray(np.clip(found, 0.0, 1.0))

        return CurvePLD(values=values if self.reverse is None else self.reverse, reverse=inner)

    def sampled(self, rate: Column) -> CurvePLD:
        inner, back = self.values, self.reverse

        def values(losses: Floats) -> Floats:
            base = unsampled_loss(losses, rate)
            inside = np.isfinite(base)
            # The argument is rounded; h is 1-Lipschitz in t, so a few units of t cover it.
            found = rate * inner(np.where(inside, base, 0.0)) + 32 * UNIT * np.exp(np.minimum(losses, 0.0))
            found = np.where(losses > 0, rate * inner(np.where(inside, base * (1 - 32 * UNIT), 0.0)), found)
            outside = -np.expm1(np.minimum(losses, 0.0)) + 8 * UNIT
            return np.asarray(np.minimum(np.where(inside, found, outside), 1.0))

        def reverse(losses: Floats) -> Floats:
            """(1 - (1-q) t) h'(q t/(1 - (1-q) t)), h' the curve of the swapped pair that is sampled; 0 from
            t = 1/(1-q) on. The value rises with the rest 1 - (1-q) t at equal t, which is rounded up."""
            assert back is not None
            moved = (1 - rate) * np.expm1(np.minimum(losses, 40.0))
            rest = rate - moved + 8 * UNIT * (rate + np.abs(moved))
            inside = (rest > 0) & (losses < 40.0)
            safe = np.where(inside, rest, 1.0)
            base = losses + np.log(rate) - np.log(safe)
            base = base - 32 * UNIT * (1 + np.abs(losses) + np.abs(np.log(rate)) + np.abs(np.log(safe)))
            found = safe * back(np.where(inside, base, 0.0)) * (1 + 8 * UNIT)
            return np.asarray(np.where(inside, np.minimum(found, 1.0), 0.0))

        return CurvePLD(values=values, reverse=None if back is None else reverse)

    def extent(self, right: float, left: float) -> tuple[float, float]:
        scales = np.exp2(np.arange(-60.0, 24.0, 0.125))

        def reach(values: Floats, tail: float) -> float:
            over = np.flatnonzero(values <= max(tail, 1e-290))
            return float(scales[over[0]]) if len(over) else float(scales[-1])

        above = self.values(scales)
        # P(L < -l) <= e^-l H_l(Q||P); where that is not known, about as small as the curve on this side.
        below = above if self.reverse is None else self.reverse(scales) * np.exp(-np.minimum(scales, 700.0))
        return max(-reach(below, left), -700.0), reach(above, right)

    known_from_below = False

    def on_grid(self, step: float, first: int, last: int) -> Gridded:
        losses = np.arange(first, last + 1, dtype=np.float64) * step
        masses, infinite = chord_masses(losses, self.values(losses))
        return Gridded(
            start=first,
            masses=masses[None, :],
            infinite_high=np.array([infinite]),
            infinite_low=np.zeros(1),
            slack=4 * UNIT * (abs(first) + abs(last)) * step,
            kappa=np.full((1, len(losses) - 1), np.inf),
            cell_masses=np.ones((1, len(losses) - 1)),
            bottom=np.zeros(1),
        )

    def ends(self, epsilons: Floats, t: Floats) -> tuple[Floats, Floats]:
        return np.zeros_like(epsilons), self.values(epsilons)

    def _between(self, edges: Floats) -> tuple[Floats, Floats]:
        masses = np.maximum(chord_masses(edges, self.values(edges))[0], 1e-300)
        return edges, masses / masses.sum()
