"""Intervals for a population, where the rows are declared to be independent draws from it.

With probability 1 - a/2 the noise interval holds the sample's share or mean, and with probability 1 - a/4 the noisy
total shows at least n rows; then the sample's share lies near the population's: Clopper and Pearson's exact ends for
shares, Hoeffding's width * sqrt(ln(8/a) / (2 n)) for means of values in the declared range. The misses add up to at
most a (theorem `risk-decomposition`). It is a declaration about how the rows came about, and stands in the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.intervals import Estimate, estimate, margin_of, noise_by_part
from tacit.curator.pivots import last_inside
from tacit.curator.treatments import Noisy, Treatment
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.guarantees import Unit
from tacit.mechanisms.part_noise import PartNoise
from tacit.statistics.base import Question
from tacit.statistics.forms import Average, Share, reals
from tacit.statistics.sensitivity import row_limit

__all__ = ["DECLARED", "check", "population"]

DECLARED = "the rows are independent draws from the population"


def check(question: Question, unit: Unit) -> None:
    """Refuse a sampling model where the rows cannot be independent, or the statistic has no bound for it."""
    if not isinstance(question.form, Share | Average):
        raise InvalidParameter(
            parameter="sampling", value=question.statistic.kind, must="be declared for a mean or a proportion",
            hint="other statistics have intervals for the noise only",
        )  # fmt: skip
    if row_limit(unit) > 1:
        raise InvalidParameter(
            parameter="sampling", value=str(unit), must="be declared where a person has one row",
            hint="several rows of one person are not independent draws",
        )  # fmt: skip


def population(question: Question, treatment: Treatment, noisy: Noisy, confidence: Fraction) -> Estimate:
    """Value and interval for the population."""
    miss = 1 - confidence
    form = question.form
    assert isinstance(form, Share | Average)
    inner = estimate(question, treatment.noise, noisy.parts, 1 - miss / 2)
    rows = _rows(question, form, noise_by_part(treatment.noise), noisy.parts, float(miss / 4))
    low, high = (inner.low - form.low) / form.width, (inner.high - form.low) / form.width
    tail = float(miss / 8)
    if question.statistic.yes_or_no:
        low, high = _exact(low, rows, tail, -1), _exact(high, rows, tail, 1)
    else:
        with np.errstate(divide="ignore"):
            reach = np.sqrt(math.log(1 / tail) / (2 * np.maximum(rows, 0.0)))
        low, high = low - reach, high + reach
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    return Estimate(value=inner.value, low=form.low + form.width * low, high=form.low + form.width * high)


def _rows(
    question: Question,
    form: Share | Average,
    noise: Mapping[str, PartNoise],
    parts: Mapping[str, Any],
    miss: float,
) -> Floats:
    """At least so many rows, except with probability `miss` (one side)."""
    if isinstance(form, Average):
        return reals(parts[form.rows])
    spacing = next(float(p.spacing) for p in question.parts if p.name == form.above)
    each = form.width / spacing
    total = reals(parts[form.above]) + reals(parts[form.below])
    noises = [noise.get(n) for n in (form.above, form.below)]
    if not any(noises):
        return np.asarray(total / each)
    # One side of the sum of both noises: a symmetric law, so that twice the miss is shared by two sides.
    margin, one = margin_of(noises), np.ones(1)

    def inside(t: Floats) -> Floats:
        return margin([one, one], t, 1 - 2 * miss)

    far = one
    while bool((inside(far) >= 0).any()):
        far = 2 * far
    reach = float(last_inside(inside, np.zeros(1), far)[0]) + 1
    return np.maximum((total - reach) / each, 0.0)


def _exact(share: Floats, rows: Floats, tail: float, side: int) -> Floats:
    """Clopper and Pearson's end for this share of at least `rows` rows; nothing is known of no rows."""
    from scipy.special import betaincinv

    n = np.floor(rows)
    k = np.clip(np.ceil(share * n) if side > 0 else np.floor(share * n), 0, n)
    with np.errstate(invalid="ignore"):
        if side > 0:
            return np.where(k >= n, 1.0, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - tail))
        return np.where((k <= 0) | (n <= 0), 0.0, betaincinv(np.maximum(k, 1e-9), n - k + 1, tail))
