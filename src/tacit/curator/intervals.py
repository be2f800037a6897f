"""Intervals for the noise: value, low, high of every cell, from the noisy parts and the known laws of their noise.

They cover the statistic of the declared, clamped and bounded data with at least the stated probability, whatever
these data are. What they do not cover is named in every certificate: clamping, rounding and dropping of values,
and the sampling of the people from a population. All of this is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.blocks import Block
from tacit.curator.pivots import apart, gaussian_pivot, laplace_tail
from tacit.statistics.base import Question
from tacit.statistics.forms import Average, Form, Linear, Quotient, Reals, Root, Share, Spread, reals

__all__ = ["Estimate", "estimate"]

BISECTIONS = 48
DOUBLINGS = 60
MEAN_MISS = Fraction(1, 50)
"""The share of the error probability that the mean of a variance gets; the rest is the variance's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Value and interval of every cell."""

    value: Reals
    low: Reals
    high: Reals


def estimate(
    question: Question,
    blocks: tuple[Block, ...],
    noisy: Mapping[str, Any],
    confidence: Fraction,
    *,
    coordinates: int = 1,
) -> Estimate:
    """The statistic of each cell with its interval; `coordinates` > 1 makes that many cells hold at once."""
    form = question.form
    by_part = {name: block for block in blocks for name in block.parts}
    if form is None:  # several tables of counts in a row
        value = question.assemble(noisy)
        half = float(max(b.quantile(confidence, coordinates) for b in blocks)) if blocks else 0.0
        return Estimate(value=value, low=value - half, high=value + half)
    if coordinates > 1 and not isinstance(form, Linear):
        # Independent or not, the misses of the cells add up to at most the whole.
        confidence = 1 - (1 - confidence) / coordinates
        coordinates = 1
    return _of(form, by_part, noisy, confidence, coordinates)


def _of(
    form: Form, by_part: Mapping[str, Block], noisy: Mapping[str, Any], level: Fraction, coordinates: int
) -> Estimate:
    value = form.value(noisy)
    match form:
        case Linear():
            block = by_part.get(form.part)
            half = 0.0 if block is None else block.quantile(level, coordinates) * float(form.spacing)
            return Estimate(value=value, low=value - half, high=value + half)
        case Average():
            block = by_part.get(form.part)
            steps = 0 if block is None else block.quantile(level)
            top = reals(noisy[form.part])
            shifted = [form.value({**noisy, form.part: top + s}) for s in (-steps, steps)]
            return Estimate(value=value, low=shifted[0], high=shifted[1])
        case Share():
            low, high = _share(form, by_part, noisy, float(level))
        case Quotient():
            low, high = _quotient(form, by_part, noisy, float(level))
        case Spread():
            low, high = _spread(form, by_part, noisy, level)
        case Root():
            inner = _of(form.of, by_part, noisy, level, 1)
            return Estimate(value=value, low=np.sqrt(inner.low), high=np.sqrt(inner.high))
        case _:
            raise NotImplementedError(type(form).__name__)
    return Estimate(value=value, low=np.fmin(low, value), high=np.fmax(high, value))


def _unsurprising(blocks: list[Block | None], weights: list[Reals], value: Reals, confidence: float) -> Any:
    """Is |sum w_i X_i| = |value| within its quantile? Asked of the tail, so that no quantile is computed."""
    held = [(b, np.abs(w)) for b, w in zip(blocks, weights, strict=True) if b is not None]
    if not held:
        return value == 0
    scales = np.stack([b.scale * w for b, w in held])
    total = np.sum([w for _, w in held], axis=0)
    if held[0][0].law == "gaussian":
        return np.abs(value) - total / 2 <= gaussian_pivot(scales, confidence)
    return laplace_tail(apart(scales), np.maximum(np.abs(value) - total, 0.0)) >= 1 - confidence


def _outward(inside: Callable[[Reals], Any], start: Reals, end: Reals) -> Reals:
    """The last point on the way from start (inside) to end that is inside; end itself if that is inside."""
    done = np.asarray(inside(end))
    near, far = np.array(start, dtype=np.float64), np.array(end, dtype=np.float64)
    for _ in range(BISECTIONS):
        middle = (near + far) / 2
        good = np.asarray(inside(middle))
        near, far = np.where(good, middle, near), np.where(good, far, middle)
    return np.where(done, end, far)


def _share(
    form: Share, by_part: Mapping[str, Block], noisy: Mapping[str, Any], confidence: float
) -> tuple[Reals, Reals]:
    """Shares s with |(1 - s) above - s below| <= t(s)."""
    a, b = np.ravel(reals(noisy[form.above])), np.ravel(reals(noisy[form.below]))
    blocks = [by_part.get(form.above), by_part.get(form.below)]

    def inside(s: Reals) -> Any:
        return _unsurprising(blocks, [1 - s, s], (1 - s) * a - s * b, confidence)

    total = a + b
    anchor = np.clip(np.divide(a, total, where=total > 0, out=np.full(total.shape, 0.5)), 0.0, 1.0)
    # Where the anchor itself is surprising (both parts hidden by noise) nothing is known.
    hidden = ~np.asarray(inside(anchor)) | (total <= 0)
    low = np.where(hidden, 0.0, _outward(inside, anchor, np.zeros_like(anchor)))
    high = np.where(hidden, 1.0, _outward(inside, anchor, np.ones_like(anchor)))
    shape = np.shape(noisy[form.above])
    return (form.low + form.width * low).reshape(shape), (form.low + form.width * high).reshape(shape)


def _quotient(
    form: Quotient, by_part: Mapping[str, Block], noisy: Mapping[str, Any], confidence: float
) -> tuple[Reals, Reals]:
    """Ratios r with |scale * numerator - r * denominator| <= t(r); unbounded where noise hides the divisor."""
    shape = np.shape(noisy[form.numerator])
    top, bottom = np.ravel(reals(noisy[form.numerator])), np.ravel(reals(noisy[form.denominator]))
    blocks = [by_part.get(form.numerator), by_part.get(form.denominator)]

    def inside(r: Reals) -> Any:
        weights = [np.full(r.shape, form.scale), np.abs(r)]
        return _unsurprising(blocks, weights, form.scale * top - r * bottom, confidence)

    one = np.ones_like(bottom)
    certain = ~np.asarray(_unsurprising([blocks[1]], [one], bottom, confidence))
    anchor = form.scale * top / np.where(certain, bottom, 1.0)
    bounds = []
    for sign in (-1.0, 1.0):
        step = np.maximum(np.abs(anchor), form.scale) * 1e-6
        end = anchor + sign * step
        for _ in range(DOUBLINGS):
            grow = np.asarray(inside(end)) & certain
            if not grow.any():
                break
            step = np.where(grow, step * 4, step)
            end = anchor + sign * step
        bounds.append(np.where(certain, _outward(inside, anchor, end), sign * np.inf).reshape(shape))
    return bounds[0], bounds[1]


def _spread(
    form: Spread, by_part: Mapping[str, Block], noisy: Mapping[str, Any], level: Fraction
) -> tuple[Reals, Reals]:
    """Variances v for which some mean m in its own interval makes sum (y - m)^2 - v n unsurprising.

    In Bernstein parts sum (y - m)^2 - v n = (m^2 - v) b0 + (m^2 - m - v) b1 + ((1 - m)^2 - v) b2, with b1 counted so
    that y^2 = b2 and y = b2 + b1 / 2. The mean gets a small share of the error probability, the variance the rest.
    """
    miss = 1 - level
    shape = np.shape(noisy[form.names[0]])
    b = [np.ravel(reals(noisy[n])) for n in form.names]
    blocks = [by_part.get(n) for n in form.names]
    total = b[0] + b[1] + b[2]
    mean_level, own = float(1 - miss * MEAN_MISS), float(1 - miss * (1 - MEAN_MISS))

    def mean_inside(m: Reals) -> Any:
        weights = [-m, 0.5 - m, 1 - m]
        value = weights[0] * b[0] + weights[1] * b[1] + weights[2] * b[2]
        return _unsurprising(blocks, weights, value, mean_level)

    safe = np.where(total > 0, total, 1.0)
    anchor = np.clip((b[2] + b[1] / 2) / safe, 0.0, 1.0)
    hidden = (total <= 0) | ~np.asarray(mean_inside(anchor))
    first = _outward(mean_inside, anchor, np.zeros_like(anchor))
    last = _outward(mean_inside, anchor, np.ones_like(anchor))
    lows, highs = [], []
    for part in np.linspace(0.0, 1.0, 9):
        m = first + (last - first) * part

        def inside(v: Reals, m: Reals = m) -> Any:
            weights = [m * m - v, m * m - m - v, (1 - m) ** 2 - v]
            value = weights[0] * b[0] + weights[1] * b[1] + weights[2] * b[2]
            return _unsurprising(blocks, weights, value, own)

        point = np.clip((m * m * b[0] + (m * m - m) * b[1] + (1 - m) ** 2 * b[2]) / safe, 0.0, 0.25)
        good = np.asarray(inside(point))
        hidden_here = ~good
        lows.append(np.where(hidden_here, np.inf, _outward(inside, point, np.zeros_like(point))))
        highs.append(np.where(hidden_here, -np.inf, _outward(inside, point, np.full(point.shape, 0.25))))
    # Between the nine means the ends bend by less than the square of the spacing; one more spacing squared covers it.
    slack = ((last - first) / 8) ** 2
    low = np.clip(np.min(lows, axis=0) - slack, 0.0, 0.25)
    high = np.clip(np.max(highs, axis=0) + slack, 0.0, 0.25)
    nothing = hidden | ~np.isfinite(low) | ~np.isfinite(high) | (low > high)
    low, high = np.where(nothing, 0.0, low), np.where(nothing, 0.25, high)
    scale = form.width**2
    return (scale * low).reshape(shape), (scale * high).reshape(shape)
