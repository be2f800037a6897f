"""Clamping bounds of a number, read off noisy counts over public ranges: post-processing, at no further price."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.balls import ball, upper
from tacit.exact.checks import whole
from tacit.exact.integers import integer_array, real_array
from tacit.exact.rationals import Exact
from tacit.mechanisms.base import confidence_level
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.geometric import Geometric
from tacit.mechanisms.laplace import Laplace
from tacit.noise import DiscreteDistribution

__all__ = ["FoundBounds", "bounds_from_counts", "clamping_threshold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBounds:
    """The outer borders of the ranges that surely hold rows; None where no range stands out of the noise.

    `threshold` is the noisy count from which a range is taken, `confidence` the probability that no empty range was.
    """

    low: float | None
    high: float | None
    threshold: int
    confidence: float

    @property
    def found(self) -> bool:
        """Does any range stand out?"""
        return self.low is not None


def clamping_threshold(
    noise: DiscreteDistribution | Laplace | Gaussian | Geometric,
    *,
    ranges: int,
    confidence: Exact = 0.95,
) -> int:
    """The least c with Pr[all of `ranges` independent noises < c] >= confidence: no empty range reaches it.

    Pr[X < c]^ranges >= confidence, one-sided and without a union bound, by the certified quantile of the law. A range
    with c + t rows is taken but with probability Pr[X < -t].
    """
    law = noise.distribution if isinstance(noise, Laplace | Gaussian | Geometric) else noise
    if not isinstance(law, DiscreteDistribution):
        raise InvalidParameter(
            parameter="noise", value=type(noise).__name__, must="be a distribution of integer noise or its mechanism",
            hint="the mechanism that made the noisy counts",
        )  # fmt: skip
    if isinstance(noise, Laplace | Gaussian) and noise.step != 1:
        raise InvalidParameter(
            parameter="noise",
            value=f"spacing {noise.step}",
            must="have spacing 1",
            hint="counts are whole",
        )
    level, count = confidence_level(confidence), whole("ranges", ranges, least=1)
    each = Fraction(upper(lambda: (ball(level).log() / count).exp()))
    if each >= 1:
        raise InvalidParameter(
            parameter="confidence", value=float(level), must="be further below 1", hint="0.999 is strict"
        )
    return law.quantile(each) + 1


def bounds_from_counts(
    noisy_counts: npt.ArrayLike,
    *,
    edges: npt.ArrayLike,
    noise: DiscreteDistribution | Laplace | Gaussian | Geometric,
    confidence: Exact = 0.95,
) -> FoundBounds:
    """(low, high): from the first to the last range whose noisy count reaches the threshold.

    With probability `confidence` both outer ranges hold at least one row, whatever the data, so that the bounds are
    not stretched by noise. Rows in ranges below the threshold may lie outside; they are to be clamped. The bounds are
    a choice made from a release, hence public from then on.
    """
    counts = integer_array(noisy_counts, name="noisy_counts")
    borders = real_array(edges, name="edges")
    if counts.ndim != 1 or counts.size == 0 or borders.shape != (counts.size + 1,):
        raise InvalidParameter(
            parameter="edges", value=f"shape {borders.shape}", must="have one entry more than noisy_counts",
            hint="the borders of the ranges, in order",
        )  # fmt: skip
    if not bool((np.diff(borders) > 0).all()):
        raise InvalidParameter(parameter="edges", value="an array", must="increase")
    threshold = clamping_threshold(noise, ranges=counts.size, confidence=confidence)
    taken = np.flatnonzero(np.asarray(counts >= threshold).astype(np.bool_))
    low, high = (float(borders[taken[0]]), float(borders[taken[-1] + 1])) if taken.size else (None, None)
    return FoundBounds(
        low=low, high=high, threshold=threshold, confidence=float(confidence_level(confidence))
    )
