"""Quantiles with intervals from noisy cumulative counts: post-processing, at no further price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.integers import real_array
from tacit.exact.rationals import Exact, exact_parameter
from tacit.mechanisms.base import confidence_level
from tacit.mechanisms.cumulative import Cumulated

__all__ = ["NoisyQuantiles", "quantiles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyQuantiles:
    """value, low and high, of shape (..., shares): in order along the last axis, and low <= value <= high."""

    value: Floats
    low: Floats
    high: Floats
    publishable: bool


def quantiles(
    noisy: Cumulated, *, shares: Sequence[Exact], edges: npt.ArrayLike, confidence: Exact = 0.95
) -> NoisyQuantiles:
    """The values below which the given shares of the rows lie, each with an interval of this confidence.

    t* is the first bin with F(t*) >= q N in the true counts. Then F(t*) - q N >= 0 > F(t* - 1) - q N, so the noisy
    ones are at least -c and at most c, each but with probability (1 - confidence) / 2, where c is the quantile of
    the exact law of the noise of F(t) - q N. The interval is the hull of the bins t that satisfy both: it holds the
    bin t*, and so the quantile of the rows themselves (clamped to the edges), with the confidence, without a union
    over bins. Each interval has the confidence by itself; for all m of them at once ask 1 - (1 - confidence) / m.
    The value is one past the number of bins with noisy F(t) < q N, placed linearly inside its bin.
    """
    levels, level = _checked(noisy, shares), confidence_level(confidence)
    borders = increasing_edges(noisy.mechanism.bins, edges)
    tail = float((1 - level) / 2)
    below, bins = noisy.below, noisy.mechanism.bins
    cells = below.shape[:-1]
    # Float arithmetic leaves at most this much of the rows (0 for the tree, whose ranks are exact).
    residual = float(getattr(noisy.mechanism, "residual", 0.0))
    total = np.maximum(below[..., -1:], 0.0)
    value, low, high = (np.empty((*cells, len(levels))) for _ in range(3))
    for j, share in enumerate(levels):
        difference = below - float(share) * below[..., -1:]
        nearest = np.abs(difference).reshape(-1, bins + 1).min(axis=0) if difference.size else None
        c = noisy.mechanism.half_widths(tail, share=share, near=nearest)
        slack = (2 * residual + 4e-16) * (np.abs(below[..., -1:]) + c[-1])
        enough = difference[..., 1:] >= -c[1:] - slack
        before = difference[..., :-1] <= c[:-1] + slack
        # Of all the rows at least q N lie in all the bins, and the first bin has none before it.
        enough[..., -1] = True
        before[..., 0] = True
        fits = enough & before
        none = ~fits.any(axis=-1)
        first = np.where(none, bins, np.argmax(fits, axis=-1))
        last = np.where(none, -1, bins - 1 - np.argmax(fits[..., ::-1], axis=-1))
        at, inside = _point(below, float(share) * total, bins)
        value[..., j] = borders[at] + (borders[at + 1] - borders[at]) * inside
        # An empty set of bins is as rare as a miss; then the interval is the value's own bin.
        low[..., j] = borders[np.minimum(first, at)]
        high[..., j] = borders[np.maximum(last, at) + 1]
    value = np.maximum.accumulate(value, axis=-1)
    high = np.maximum.accumulate(np.maximum(high, value), axis=-1)
    low = np.minimum.accumulate(np.minimum(low, value)[..., ::-1], axis=-1)[..., ::-1]
    return NoisyQuantiles(value=value, low=low, high=high, publishable=noisy.publishable)


def _point(below: Floats, rank: Floats, bins: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """The bin (from 0) that is one past the number of bins with F(t) < rank, and the place inside it."""
    short = below[..., 1:] < rank
    at = np.minimum(short.sum(axis=-1), bins - 1)
    left = np.take_along_axis(below, at[..., None], axis=-1)
    right = np.take_along_axis(below, at[..., None] + 1, axis=-1)
    step = right - left
    inside = np.where(step > 0, (rank - left) / np.where(step > 0, step, 1.0), 0.5)
    return at, np.clip(inside, 0.0, 1.0)[..., 0]


def _checked(noisy: Cumulated, shares: Sequence[Exact]) -> list[Fraction]:
    if not isinstance(noisy, Cumulated):
        raise InvalidParameter(
            parameter="noisy", value=type(noisy).__name__, must="be released cumulative counts"
        )
    levels = [exact_parameter("shares", s, positive=False) for s in shares]
    if not levels:
        raise EmptyComposition(what="the list of shares", hint="for example [0.25, 0.5, 0.75]")
    for share in levels:
        if not 0 < share < 1:
            raise InvalidParameter(
                parameter="shares", value=float(share), must="lie strictly between 0 and 1"
            )
    if levels != sorted(levels):
        raise InvalidParameter(parameter="shares", value=list(shares), must="be in order")
    return levels


def increasing_edges(bins: int, edges: npt.ArrayLike) -> Floats:
    """The borders of the bins, in order."""
    borders = real_array(edges, name="edges")
    if borders.shape != (bins + 1,) or not bool((np.diff(borders) > 0).all()):
        raise InvalidParameter(
            parameter="edges", value=f"shape {borders.shape}", must=f"be {bins + 1} increasing numbers",
            hint="K bins have K + 1 edges",
        )  # fmt: skip
    return borders
