"""Treatments of tables: what agencies do to a table before they publish it. None has a guarantee."""

from __future__ import annotations

from tacit.anonymity.treatments.base import Treatment
from tacit.anonymity.treatments.chance import Disturb, ModelDraws, Sample, Swap
from tacit.anonymity.treatments.coding import BottomCode, Collapse, Remove, Round, TopCode
from tacit.anonymity.treatments.correction import (
    CorrectedRegression,
    corrected_covariance,
    corrected_regression,
)
from tacit.anonymity.treatments.groups import MatrixMask, Microaggregate, masked, mdav
from tacit.anonymity.treatments.lost import Lost, compare_tables

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
