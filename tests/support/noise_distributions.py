"""Quantiles of noise and intervals of ratios by other means than the product's: an oracle for widths."""

from __future__ import annotations

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

DRAWS = 400_000
POINTS = 65


def laplace_quantile(scale: Fraction, confidence: Fraction) -> int:
    """The least t with Pr[|X| > t] = 2 q^(t+1) / (1 + q) <= 1 - confidence, q = e^(-1/scale), in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        rate = Decimal(scale.denominator) / Decimal(scale.numerator)
        q = (-rate).exp()
        miss = Decimal((1 - confidence).numerator) / Decimal((1 - confidence).denominator)
        return max(0, math.ceil(-((miss * (1 + q) / 2).ln()) / rate - 1))


def gaussian_quantile(std: float, confidence: Fraction) -> int:
    """The least t with Pr[|Z| >= t + 1/2] <= 1 - confidence."""
    miss = float(1 - confidence)
    low, high = -1, math.ceil(10 * std) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if math.erfc((middle + 0.5) / std / math.sqrt(2)) <= miss else (middle, high)
        )
    return high


def law_of(applied: Any) -> str:
    """Which noise is applied, by the name of its mechanism."""
    return {"Laplace": "laplace", "RoundedGaussian": "gaussian", "Staircase": "staircase"}[
        type(applied.mechanism).__name__
    ]


def scale_of(applied: Any) -> Fraction:
    """The scale of Laplace noise, or the standard deviation of Gaussian noise, as it was given."""
    return Fraction(
        applied.mechanism.noise_scale if law_of(applied) == "laplace" else applied.mechanism.noise_std
    )


def noise_quantile(applied: Any, confidence: Fraction) -> int:
    """What the noise of one cell stays within."""
    if law_of(applied) == "laplace":
        return laplace_quantile(scale_of(applied), confidence)
    return gaussian_quantile(float(scale_of(applied)), confidence)


@functools.cache
def _draws(law: str, count: int) -> Any:
    random = np.random.default_rng(11)
    return random.laplace(size=(count, DRAWS)) if law == "laplace" else random.normal(size=(count, DRAWS))


def weighted_quantile(law: str, scales: Any, confidence: float) -> float:
    """The quantile of |sum s_i X_i| for independent X_i of scale (or standard deviation) 1, by simulation."""
    scales = np.asarray(scales, dtype=float)
    if law == "gaussian":
        # erfc(z / sqrt 2) = 0.05
        assert confidence == 0.95
        return 1.959963984540054 * math.sqrt(float((scales**2).sum()))
    total = scales @ _draws(law, len(scales))
    return float(np.quantile(np.abs(total), confidence))


@functools.cache
def _pair_table(law: str, confidence: float) -> Any:
    return np.array([weighted_quantile(law, (1 - s, s), confidence) for s in np.linspace(0, 1, POINTS)])


def pair_quantile(law: str, first: Any, second: Any, confidence: float) -> Any:
    """The same for two scales, arrays: a table in the share of the second, since the quantile is homogeneous."""
    total = np.abs(first) + np.abs(second)
    share = np.abs(second) / np.where(total > 0, total, 1.0)
    return total * np.interp(share, np.linspace(0, 1, POINTS), _pair_table(law, confidence))
