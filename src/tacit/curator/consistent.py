"""Finishing a release so that it reads like a table: whole numbers that are not negative, tables that add up.

Post-processing: released numbers in, numbers out. Values are the nearest valid ones (theorems `nearest-histogram`,
`consistent-margins`, `tree-least-squares`), and agree with declared public totals. Intervals stay those of the noise,
cut at zero: the true counts are valid, so nothing is lost.
"""

from __future__ import annotations

import numpy as np

from tacit.curator.intervals import Estimate
from tacit.curator.random_counts import OnRandomData
from tacit.curator.treatments import Noisy, Treatment
from tacit.errors import TacitError
from tacit.exact.arrays import Floats
from tacit.statistics.base import Question
from tacit.statistics.consistency import nearest_histogram
from tacit.statistics.invariants import valid_counts

__all__ = ["finish"]


def finish(question: Question, treatment: Treatment, noisy: Noisy, estimate: Estimate) -> Estimate:
    """Counts of rows and people: whole, not negative; the tables of a release agree with each other."""
    if not question.statistic.agrees:
        return estimate  # means, shares and quantiles already keep to their declared range and order
    if isinstance(treatment, OnRandomData):
        return treatment.finish(question, noisy, estimate)
    low, high = np.maximum(estimate.low, 0.0), np.maximum(estimate.high, 0.0)
    alone = question.statistic.layout == "cells" and not question.details.get("public")
    value = None if alone else _family(question, treatment, noisy)
    if value is None:
        value = nearest_histogram(estimate.value).astype(np.float64)
    value = value.reshape(np.shape(estimate.value))
    return Estimate(
        value=value, low=np.minimum(low, value), high=np.maximum(high, value), reach=estimate.farthest
    )


def _family(question: Question, treatment: Treatment, noisy: Noisy) -> Floats | None:
    """The tables as one family; None where there are too many columns or cells for it."""
    spread = treatment.variances()
    try:
        found = valid_counts(question, noisy.parts, {p.name: spread.get(p.name, 0.0) for p in question.parts})
    except TacitError:
        return None
    return np.concatenate([np.ravel(found[p.name]).astype(np.float64) for p in question.parts])
