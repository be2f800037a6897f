"""Releases under random differential privacy: private for most data, not for all. See docs/random-data.md."""

from __future__ import annotations

from tacit.random_data.base import RandomMechanism
from tacit.random_data.changes import (
    ChangesByQuantile,
    ChangesBySmoothness,
    ReleasedStatistic,
    SampledSensitivity,
    dkw_draws,
    observed_range_delta,
    pair_changes,
    sample_sensitivities,
)
from tacit.random_data.histogram import (
    ChosenBins,
    RandomHistogram,
    RandomProportion,
    ReleasedBins,
    ReleasedCount,
    ReleasedHistogram,
    pair_differs,
    worst_share,
)
from tacit.random_data.predictive import (
    PredictiveHistogram,
    conformal_cells,
    conformal_gamma,
    conformal_interval,
)
from tacit.random_data.survey import (
    Overlap,
    OverlapCount,
    OverlapHistogram,
    Referee,
    Worst,
    counts_differ,
    ordered_failure,
    sampled_failure,
)

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
