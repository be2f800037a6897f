"""Finishing a release so that it reads like a table: whole numbers that are not negative, margins that add up.

Post-processing: released numbers in, numbers out. Values are the nearest valid ones (theorems `nearest-histogram`,
`consistent-margins`). Intervals stay those of the noise, cut at zero: the true counts are valid, so nothing is lost.
"""

from __future__ import annotations

import numpy as np

from tacit.curator.intervals import Estimate
from tacit.curator.treatments import Noisy, Treatment
from tacit.errors import TacitError
from tacit.statistics.base import Question
from tacit.statistics.consistency import nearest_histogram
from tacit.statistics.forms import Reals

__all__ = ["finish"]


def finish(question: Question, treatment: Treatment, noisy: Noisy, estimate: Estimate) -> Estimate:
    """Counts of rows and people: whole, not negative; the tables of margins agree with each other."""
    if question.statistic.kind not in ("count", "margins"):
        return estimate  # means, shares and quantiles already keep to their declared range and order
    low, high = np.maximum(estimate.low, 0.0), np.maximum(estimate.high, 0.0)
    value = _family(question, treatment, noisy) if question.statistic.kind == "margins" else None
    if value is None:
        value = nearest_histogram(estimate.value).astype(np.float64)
    return Estimate(value=value, low=np.minimum(low, value), high=np.maximum(high, value))


def _family(question: Question, treatment: Treatment, noisy: Noisy) -> Reals | None:
    """The tables as one family; None where there are too many columns or cells for it."""
    from tacit.statistics.families import NoisyTable, integer_margins

    variance = max((b.scale**2 * (2 if b.law == "laplace" else 1) for b in treatment.blocks), default=0.0)
    try:
        tables = [
            NoisyTable(
                columns=tuple(a.column for a in part.axes),
                values=np.asarray(noisy.parts[part.name]).astype(np.float64),
                variance=variance,
            )
            for part in question.parts
        ]
        found = integer_margins(tables)
    except TacitError:
        return None
    return np.concatenate([np.ravel(t).astype(np.float64) for t in found])
