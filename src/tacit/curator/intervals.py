"""Intervals for the noise: value, low, high of every cell, from the noisy parts and the known laws of their noise.

They cover the statistic of the declared, clamped and bounded data with at least the stated probability, whatever
these data are. What they do not cover is named in every certificate: clamping, rounding and dropping of values,
and the sampling of the people from a population. All of this is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.blocks import Block
from tacit.curator.pivots import apart, gaussian_pivot, laplace_move, laplace_tail, last_inside
from tacit.errors import NoLaw
from tacit.statistics.base import Question
from tacit.statistics.forms import Average, Form, Linear, Quotient, Reals, Root, Share, Spread, reals

__all__ = ["Estimate", "estimate"]

DOUBLINGS = 60
MEANS = 9
HIDDEN = 0.25
"""A variance whose noise is this share of its divisor is not told apart from any other."""
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
        halves = [
            np.full(np.size(noisy[p.name]), float(by_part[p.name].quantile(confidence, coordinates)))
            if p.name in by_part
            else np.zeros(np.size(noisy[p.name]))
            for p in question.parts
        ]
        half = np.concatenate(halves) if halves else np.zeros(0)
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
            raise NoLaw(operation=f"an interval of a {type(form).__name__}", reason="its pivot is not known")
    return Estimate(value=value, low=np.fmin(low, value), high=np.fmax(high, value))


def _margin(blocks: list[Block | None], weights: list[Reals], value: Reals, confidence: float) -> Reals:
    """At least 0 where |sum w_i X_i| = |value| is within its quantile; continuous, for a search.

    Laplace noise is asked for its tail, so that no quantile is computed.
    """
    held = [(b, np.abs(w)) for b, w in zip(blocks, weights, strict=True) if b is not None]
    if not held:
        return np.where(value == 0, 0.0, -1.0)
    scales = np.stack([b.scale * w for b, w in held])
    if held[0][0].law == "gaussian":
        return gaussian_pivot(scales, confidence) + sum(w for _, w in held) / 2 - np.abs(value)
    moved = sum(w * laplace_move(b.scale) for b, w in held)
    tail = laplace_tail(apart(scales), np.maximum(np.abs(value) - moved, 0.0))
    return np.asarray(np.log(np.maximum(tail, 1e-300)) - math.log1p(-confidence))


def _share(
    form: Share, by_part: Mapping[str, Block], noisy: Mapping[str, Any], confidence: float
) -> tuple[Reals, Reals]:
    """Shares s with |(1 - s) above - s below| <= t(s); parts below 0 count as 0, which only adds shares to the set."""
    a, b = (np.maximum(np.ravel(reals(noisy[n])), 0.0) for n in (form.above, form.below))
    blocks = [by_part.get(form.above), by_part.get(form.below)]

    def margin(s: Reals) -> Reals:
        return _margin(blocks, [1 - s, s], (1 - s) * a - s * b, confidence)

    total = a + b
    anchor = np.divide(a, total, where=total > 0, out=np.full(total.shape, 0.5))
    hidden = total <= 0
    low = np.where(hidden, 0.0, last_inside(margin, anchor, np.zeros_like(anchor)))
    high = np.where(hidden, 1.0, last_inside(margin, anchor, np.ones_like(anchor)))
    shape = np.shape(noisy[form.above])
    return (form.low + form.width * low).reshape(shape), (form.low + form.width * high).reshape(shape)


def _quotient(
    form: Quotient, by_part: Mapping[str, Block], noisy: Mapping[str, Any], confidence: float
) -> tuple[Reals, Reals]:
    """Ratios r with |scale * numerator - r * denominator| <= t(r); unbounded where noise hides the divisor."""
    shape = np.shape(noisy[form.numerator])
    top, bottom = np.ravel(reals(noisy[form.numerator])), np.ravel(reals(noisy[form.denominator]))
    blocks = [by_part.get(form.numerator), by_part.get(form.denominator)]

    def margin(r: Reals) -> Reals:
        weights = [np.full(r.shape, form.scale), np.abs(r)]
        return _margin(blocks, weights, form.scale * top - r * bottom, confidence)

    one = np.ones_like(bottom)
    certain = _margin([blocks[1]], [one], bottom, confidence) < 0
    anchor = form.scale * top / np.where(certain, bottom, 1.0)
    bounds = []
    for sign in (-1.0, 1.0):
        step = np.maximum(np.abs(anchor), form.scale) * 1e-6
        end = anchor + sign * step
        for _ in range(DOUBLINGS):
            grow = (margin(end) >= 0) & certain
            if not grow.any():
                break
            step = np.where(grow, step * 4, step)
            end = anchor + sign * step
        bounds.append(np.where(certain, last_inside(margin, anchor, end), sign * np.inf).reshape(shape))
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

    def mean_margin(m: Reals) -> Reals:
        weights = [-m, 0.5 - m, 1 - m]
        value = weights[0] * b[0] + weights[1] * b[1] + weights[2] * b[2]
        return _margin(blocks, weights, value, mean_level)

    safe = np.where(total > 0, total, 1.0)
    anchor = np.clip((b[2] + b[1] / 2) / safe, 0.0, 1.0)
    first = last_inside(mean_margin, anchor, np.zeros_like(anchor))
    last = last_inside(mean_margin, anchor, np.ones_like(anchor))
    # The noise of one part, as a share of the divisor: how well anything is known here.
    noise = max((x.quantile(level) for x in blocks if x is not None), default=0) / safe
    hidden = (total <= 0) | (mean_margin(anchor) < 0) | (noise >= HIDDEN)
    m = first + (last - first) * np.linspace(0.0, 1.0, MEANS)[:, None]

    # sum (y - m)^2 is never negative; where the noise makes it so, 0 in its place only adds variances to the set.
    square = np.maximum(m * m * b[0] + (m * m - m) * b[1] + (1 - m) ** 2 * b[2], 0.0)

    def margin(v: Reals) -> Reals:
        return _margin(blocks, [m * m - v, m * m - m - v, (1 - m) ** 2 - v], square - v * total, own)

    point = np.minimum(square / safe, 0.25)
    empty = margin(point) < 0
    lows = np.where(empty, point, last_inside(margin, point, np.zeros_like(point)))
    highs = np.where(empty, point, last_inside(margin, point, np.full(point.shape, 0.25)))
    # Between two means, h apart, an end bends by at most h^2/8 times its second derivative (`pivot-intervals`).
    bend = (0.25 + 2 * noise) / (1 - 2 * np.minimum(noise, HIDDEN))
    slack = ((last - first) / (MEANS - 1)) ** 2 * bend
    low = np.where(hidden, 0.0, np.clip(lows.min(axis=0) - slack, 0.0, 0.25))
    high = np.where(hidden, 0.25, np.clip(highs.max(axis=0) + slack, 0.0, 0.25))
    scale = form.width**2
    return (scale * low).reshape(shape), (scale * high).reshape(shape)
