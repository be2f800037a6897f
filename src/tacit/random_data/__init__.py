"""Releases under random differential privacy: private for most data, not for all. See docs/random-data.md."""

from __future__ import annotations

from tacit.random_data.base import RandomMechanism
from tacit.random_data.bins import ChosenBins, ReleasedBins
from tacit.random_data.changes import (
    ChangesByQuantile,
    ChangesBySmoothness,
    ReleasedStatistic,
    pair_changes,
)
from tacit.random_data.histogram import RandomHistogram, ReleasedHistogram, worst_share
from tacit.random_data.observed import observed_range_delta
from tacit.random_data.predictive import (
    PredictiveHistogram,
    conformal_cells,
    conformal_gamma,
    conformal_interval,
)
from tacit.random_data.proportion import RandomProportion, ReleasedCount, pair_differs
from tacit.random_data.referee import Referee, Worst, ordered_failure, sampled_failure
from tacit.random_data.sampling import SampledSensitivity, dkw_draws, sample_sensitivities
from tacit.random_data.survey import Overlap, OverlapCount, OverlapHistogram, counts_differ

__all__ = [
    "ChangesByQuantile",
    "ChangesBySmoothness",
    "ChosenBins",
    "Overlap",
    "OverlapCount",
    "OverlapHistogram",
    "PredictiveHistogram",
    "RandomHistogram",
    "RandomMechanism",
    "RandomProportion",
    "Referee",
    "ReleasedBins",
    "ReleasedCount",
    "ReleasedHistogram",
    "ReleasedStatistic",
    "SampledSensitivity",
    "Worst",
    "conformal_cells",
    "conformal_gamma",
    "conformal_interval",
    "counts_differ",
    "dkw_draws",
    "observed_range_delta",
    "ordered_failure",
    "pair_changes",
    "pair_differs",
    "sample_sensitivities",
    "sampled_failure",
    "worst_share",
]
