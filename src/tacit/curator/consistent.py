"""Finishing a release so that it reads like a table: whole numbers that are not negative. Post-processing.

The values are the nearest valid ones; the intervals stay those of the noise, cut at zero, and so keep their coverage,
since the true counts are valid.
"""

from __future__ import annotations

import numpy as np

from tacit.curator.intervals import Estimate
from tacit.curator.treatments import Noisy, Treatment
from tacit.statistics.base import Question

__all__ = ["finish"]


def finish(question: Question, treatment: Treatment, noisy: Noisy, estimate: Estimate) -> Estimate:
    """Counts of rows and people: not negative. Other statistics already respect their declared range."""
    if question.statistic.kind not in ("count", "margins"):
        return estimate
    value = np.maximum(estimate.value, 0.0)
    return Estimate(value=value, low=np.maximum(estimate.low, 0.0), high=np.maximum(estimate.high, 0.0))
