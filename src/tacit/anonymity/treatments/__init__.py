"""Treatments of tables: what agencies do to a table before they publish it. None has a guarantee."""

from __future__ import annotations

from tacit.anonymity.treatments.lost import (
    CorrectedRegression,
    Lost,
    compare_tables,
    corrected_covariance,
    corrected_regression,
)
from tacit.anonymity.treatments.methods import (
    BottomCode,
    Collapse,
    Disturb,
    MatrixMask,
    Microaggregate,
    ModelDraws,
    Remove,
    Round,
    Sample,
    Swap,
    TopCode,
    Treatment,
    masked,
    mdav,
)

__all__ = [
    "BottomCode",
    "Collapse",
    "CorrectedRegression",
    "Disturb",
    "Lost",
    "MatrixMask",
    "Microaggregate",
    "ModelDraws",
    "Remove",
    "Round",
    "Sample",
    "Swap",
    "TopCode",
    "Treatment",
    "compare_tables",
    "corrected_covariance",
    "corrected_regression",
    "masked",
    "mdav",
]
