"""What can be asked, and how far one unit can move it."""

from __future__ import annotations

from tacit.statistics.base import Part, Question, Statistic
from tacit.statistics.counts import Bounds, Count, Margins, bounds, contingency, count, histogram, margins
from tacit.statistics.moments import (
    Mean,
    Proportion,
    Variance,
    mean,
    proportion,
    standard_deviation,
    variance,
)
from tacit.statistics.movement import Movement
from tacit.statistics.planner import read, read_cells
from tacit.statistics.quantiles import Quantiles, median, quantile, quantiles
from tacit.statistics.sparse import SparseCount, SparseQuestion, sparse_histogram
from tacit.statistics.sums import Ratio, Sum, ratio, sum

__all__ = [
    "Bounds",
    "Count",
    "Margins",
    "Mean",
    "Movement",
    "Part",
    "Proportion",
    "Quantiles",
    "Question",
    "Ratio",
    "SparseCount",
    "SparseQuestion",
    "Statistic",
    "Sum",
    "Variance",
    "bounds",
    "contingency",
    "count",
    "histogram",
    "margins",
    "mean",
    "median",
    "proportion",
    "quantile",
    "quantiles",
    "ratio",
    "read",
    "read_cells",
    "sparse_histogram",
    "standard_deviation",
    "sum",
    "variance",
]
