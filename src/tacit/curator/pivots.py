"""Quantiles of weighted sums of independent noise, many cells at once: what exact intervals of ratios need.

A statistic r that is a ratio of parts has coefficients c_i(r) with sum c_i part_i = 0. Then sum c_i noisy_i is the
noise alone, T = sum c_i X_i, and {r : |T(r)| <= t(r)} with Pr[|T| > t] <= 1 - confidence is a confidence set.

Laplace: X = floor(E) - floor(E') with E, E' exponential, so that |X - (E - E')| < 1, and sums of continuous
Laplace variables of scales s_i have Pr[|T| > t] = sum_i e^(-t/s_i) prod_{j != i} s_i^2 / (s_i^2 - s_j^2).
Gaussian: rounding moves a draw by at most 1/2. So t_discrete <= t_continuous + sum |c_i| (or half of it).
Theorem `pivot-intervals`.
"""

from __future__ import annotations

import numpy as np

from tacit.curator.blocks import normal_quantile
from tacit.statistics.forms import Reals

__all__ = ["apart", "gaussian_pivot", "laplace_tail"]

APART = 1e-3


def laplace_tail(scales: Reals, t: Reals) -> Reals:
    """Pr[|sum of independent Laplace| > t]; a row of `scales` for each summand, all distinct (`apart`)."""
    total = np.zeros_like(t)
    for i, s in enumerate(scales):
        weight = np.ones_like(t)
        for j, other in enumerate(scales):
            if j != i:
                weight = weight * (s * s) / (s * s - other * other)
        total += weight * np.exp(-t / s)
    return total


def apart(scales: Reals) -> Reals:
    """The scales in falling order, moved apart upwards: the tail can only grow, and the formula stays stable."""
    ordered = np.sort(scales, axis=0)
    tiny = ordered[-1] * 1e-6
    ordered[0] = np.maximum(ordered[0], tiny)
    for i in range(1, len(ordered)):
        ordered[i] = np.maximum(ordered[i], ordered[i - 1] * (1 + APART))
    return ordered[::-1].copy()


def gaussian_pivot(stds: Reals, confidence: float) -> Reals:
    """t with Pr[|T| > t] = 1 - confidence for independent normal noise of these standard deviations."""
    stds = np.atleast_2d(np.asarray(stds, dtype=np.float64))
    return np.asarray(normal_quantile(confidence) * np.sqrt((stds**2).sum(axis=0)))
