"""Noise on integers whose probabilities are summed value by value: discrete Gaussian and Skellam noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.audit.basics import Curve, Unconfirmed, exact

if TYPE_CHECKING:
    from flint import arb

__all__ = ["WIDEST", "discrete_gaussian", "skellam"]

WIDEST = 200_000
"""Integer noise is summed value by value: up to this many values on a side."""


def _integer_noise(weights: list[arb], beyond: arb, s: int) -> Curve:
    """Symmetric integer noise with weights at 0, 1, ... whose ratio to the moved ones is monotone; moved by s.

    `beyond` bounds the mass of one tail after the last weight.
    """
    n = len(weights)
    tails = [beyond] * (n + 1)
    for k in range(n - 1, -1, -1):
        tails[k] = tails[k + 1] + weights[k]
    whole = 2 * tails[0] - weights[0]

    def weight(k: int) -> arb:
        return weights[abs(k)]

    def above(k: int) -> arb:
        """Pr[noise >= k]."""
        return (tails[k] if k >= 0 else whole - tails[1 - k]) / whole

    def h(x: arb) -> arb:
        t, low, high = x.exp(), s - n + 1, n - 1  # the first k with Pr[k - s] > t Pr[k]
        while low < high:
            middle = (low + high) // 2
            if weight(middle - s) > t * weight(middle):
                high = middle
            else:
                low = middle + 1
        return above(low - s) - t * above(low) + 2 * (1 + t) * beyond / whole

    return h


def discrete_gaussian(given: Mapping[str, Any]) -> Curve:
    """Weights e^{-k^2 / (2 noise_std^2)}."""
    s = int(given["sensitivity"])
    std = Fraction(given["noise_multiplier"]) * s
    last = math.ceil(float(std) * 20) + 2 * s + 10
    if last > WIDEST:
        raise Unconfirmed("discrete Gaussian noise is too wide to be summed value by value")
    scale = -1 / (2 * exact(std) ** 2)
    weights = [(scale * k * k).exp() for k in range(last)]
    # The ratio of neighbouring weights only falls: a geometric series from the last one on.
    ratio = weights[-1] / weights[-2]
    return _integer_noise(weights, weights[-1] * ratio / (1 - ratio), s)


def skellam(given: Mapping[str, Any]) -> Curve:
    """Weights I_k(variance), the difference of two Poisson counts."""
    s, variance = int(given["sensitivity"]), Fraction(given["noise_variance"])
    last = math.ceil(20 * math.sqrt(float(variance))) + 2 * s + 60
    if last > WIDEST:
        raise Unconfirmed("Skellam noise is too wide to be summed value by value")
    v = exact(variance)
    weights = [exact(0)] * last
    weights[-1], weights[-2] = v.bessel_i(last - 1), v.bessel_i(last - 2)
    for k in range(last - 2, 0, -1):  # I_{k-1} = I_{k+1} + (2k/v) I_k: a sum of positive terms
        weights[k - 1] = weights[k + 1] + 2 * k / v * weights[k]
    ratio = weights[-1] / weights[-2]
    return _integer_noise(weights, weights[-1] * ratio / (1 - ratio), s)
