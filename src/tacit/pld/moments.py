"""Log-moments of gridded losses: where the composed loss lies, and how far it can stray."""

from __future__ import annotations

import math

import numpy as np

from tacit.exact.arrays import Floats

__all__ = ["LogMoments", "row_moments"]


class LogMoments:
    """K(tilt) = sum_i n_i ln sum_k p_ik e^(tilt l_k), over parts laid end to end."""

    def __init__(self, parts: list[tuple[Floats, Floats, float]]) -> None:
        self.losses = np.concatenate([p[0] for p in parts])
        with np.errstate(divide="ignore"):
            self.logs = np.concatenate([np.log(p[1]) for p in parts])
        self.counts = np.array([p[2] for p in parts], dtype=np.float64)
        sizes = np.array([len(p[0]) for p in parts])
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.owner = np.repeat(np.arange(len(parts)), sizes)

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """K, K' (the tilted mean) and K'' (the tilted variance)."""
        exponents = self.logs + tilt * self.losses
        peaks = np.maximum.reduceat(exponents, self.starts)
        weights = np.exp(exponents - peaks[self.owner])
        sums = np.add.reduceat(weights, self.starts)
        means = np.add.reduceat(weights * self.losses, self.starts) / sums
        centred = self.losses - means[self.owner]
        variances = np.add.reduceat(weights * centred * centred, self.starts) / sums
        k = float(np.dot(self.counts, peaks + np.log(sums)))
        return k, float(np.dot(self.counts, means)), float(np.dot(self.counts, variances))

    def log_moment(self, tilt: float) -> float:
        """K alone."""
        exponents = self.logs + tilt * self.losses
        peaks = np.maximum.reduceat(exponents, self.starts)
        sums = np.add.reduceat(np.exp(exponents - peaks[self.owner]), self.starts)
        return float(np.dot(self.counts, peaks + np.log(sums)))


def row_moments(masses: Floats, losses: Floats, tilt: float) -> Floats:
    """ln sum_k p_k e^(tilt l_k) of each row."""
    exponents = tilt * losses
    peak = float(np.max(exponents))
    if peak - float(np.min(exponents)) < 600.0:
        return np.asarray(peak + np.log(masses @ np.exp(exponents - peak)))
    with np.errstate(divide="ignore"):
        logs = np.log(masses) + exponents
    peaks = np.max(logs, axis=1)
    return np.asarray(peaks + np.log(np.sum(np.exp(logs - peaks[:, None]), axis=1)))


def tilted(masses: Floats, losses: Floats, tilt: float, log_a: Floats) -> Floats:
    """p_k e^(tilt l_k)/A of each row, without overflow of the factors."""
    exponents = tilt * losses
    if float(np.max(np.abs(exponents))) < 300.0 and float(np.max(np.abs(log_a))) < 300.0:
        return np.asarray(masses * np.exp(exponents)[None, :] * np.exp(-log_a)[:, None])
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.log(masses) + exponents[None, :] - log_a[:, None]))


def log_one_minus(values: Floats) -> Floats:
    """ln(1 - x), finite at x = 1."""
    return np.log1p(-np.minimum(values, 1 - 2.0**-53))


def clipped_exp(x: float) -> float:
    """e^x, at most e^700."""
    return math.exp(min(x, 700.0))
