"""Least squares from released moments: coefficients with intervals, as post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.curator.release import Release
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.mechanisms.base import confidence_level
from tacit.statistics.forms import reals
from tacit.statistics.products import LEVELS, RegressionMoments

__all__ = ["Coefficients", "least_squares"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coefficients:
    """The constant and one slope a column, in the columns' own units, with intervals that hold all at once.

    They cover the least-squares coefficients of the declared, clamped and scaled data, and are unbounded where the
    noise hides whether there is one solution (theorem `noisy-least-squares`).
    """

    names: tuple[str, ...]
    value: Floats
    low: Floats
    high: Floats
    confidence: float
    publishable: bool = True

    @property
    def table(self) -> Any:
        """As a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(
            {"term": list(self.names), "value": self.value, "low": self.low, "high": self.high}
        )

    def __str__(self) -> str:
        said = [
            f"{n}: {v:.6g} ({a:.6g} to {b:.6g})"
            for n, v, a, b in zip(self.names, self.value, self.low, self.high, strict=True)
        ]
        return "\n".join([*said, f"intervals: {self.confidence:g} for all at once, for the noise only"])


def least_squares(release: Release, *, confidence: float = 0.95) -> Coefficients:
    """The coefficients of a release of `regression_moments`: b = A^-1 c for the noisy A = sum g g', c = sum g y.

    If every number is within its half-width H (of A) and h (of c), the coefficients without noise are within r of b,
    r = (I - G)^-1 |A^-1| (h + H |b|), G = |A^-1| H, wherever the spectral radius of G is below one.
    """
    statistic = release.planned.question.statistic if isinstance(release, Release) else None
    if not isinstance(statistic, RegressionMoments):
        raise InvalidParameter(
            parameter="release", value=type(release).__name__, must="be a release of regression moments",
            hint='tacit.regression_moments(["age"], "income")',
        )  # fmt: skip
    level = confidence_level(confidence)
    size = len(statistic.columns) + 2
    half = release.planned.treatment.half_widths(level, coordinates=len(statistic.pairs)).get("moments", 0.0)
    given = reals(release.noisy.parts["moments"]) / LEVELS**2
    wide = np.broadcast_to(np.asarray(half, dtype=np.float64), given.shape) / LEVELS**2
    noisy, reach = np.zeros((size, size)), np.zeros((size, size))
    for k, (i, j) in enumerate(statistic.pairs):
        noisy[i, j] = noisy[j, i] = given[k]
        reach[i, j] = reach[j, i] = wide[k]
    b, r = _solved(noisy[:-1, :-1], noisy[:-1, -1], reach[:-1, :-1], reach[:-1, -1])
    columns = [release.planned.question.schema.measured(n) for n in (*statistic.columns, statistic.outcome)]
    middle = np.array([float((c.lowest + c.highest) * c.spacing / 2) for c in columns])
    scale = np.array([float(c.width * c.spacing / 2) for c in columns])
    shift = np.concatenate([[1.0], -middle[:-1] / scale[:-1]])
    value = np.concatenate([[middle[-1] + scale[-1] * (shift @ b)], scale[-1] * b[1:] / scale[:-1]])
    with np.errstate(invalid="ignore"):
        most = np.where(shift == 0, 0.0, np.abs(shift) * r).sum()
    error = np.concatenate([[scale[-1] * most], scale[-1] * r[1:] / scale[:-1]])
    return Coefficients(
        names=("(constant)", *statistic.columns), value=value, low=value - error, high=value + error,
        confidence=float(level), publishable=release.publishable,
    )  # fmt: skip


def _solved(a: Floats, c: Floats, wide_a: Floats, wide_c: Floats) -> tuple[Floats, Floats]:
    """The solution, and how far the one without noise may be from it."""
    nothing = np.full(c.shape, np.nan), np.full(c.shape, np.inf)
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return nothing
    b = inverse @ c
    if not bool(np.isfinite(b).all()):
        return nothing
    size = np.abs(inverse)
    g = size @ wide_a
    if not bool(np.isfinite(g).all()) or float(np.abs(np.linalg.eigvals(g)).max()) >= 1 - 1e-9:
        return b, np.full(c.shape, np.inf)
    r = np.linalg.solve(np.eye(c.size) - g, size @ (wide_c + wide_a @ np.abs(b)))
    # What rounding in doubles does is far below a part in a million.
    return b, r * (1 + 1e-6) + 1e-9 * np.abs(b)
