"""Statistics, and their sensitivities to one unit."""

from __future__ import annotations

from tacit.statistics.base import GlobalSensitivity, Part, Question, Statistic, read, read_cells
from tacit.statistics.calibrated import Calibrated, calibrated
from tacit.statistics.clipping import UnclippedMean
from tacit.statistics.consistency import is_valid_histogram, nearest_histogram
from tacit.statistics.counts import (
    ClampingBounds,
    Count,
    Margins,
    clamping_bounds,
    contingency,
    count,
    histogram,
    margins,
)
from tacit.statistics.families import NoisyTable, consistent_margins, fit_table, integer_margins, whole_table
from tacit.statistics.geography import Areas, Geography, geography
from tacit.statistics.hierarchy import Hierarchy, Tree, consistent_tree, hierarchy, whole_cells
from tacit.statistics.inequality import Inequality, inequality
from tacit.statistics.invariants import PublicTotals, public_totals, valid_counts
from tacit.statistics.moments import (
    Mean,
    Proportion,
    Ratio,
    RegressionMoments,
    Sum,
    Variance,
    mean,
    proportion,
    ratio,
    regression_moments,
    standard_deviation,
    sum,
    variance,
)
from tacit.statistics.post_stratified import PostStratified, post_stratified
from tacit.statistics.quantiles import Quantiles, Ranges, median, quantile, quantiles, ranges
from tacit.statistics.rates import Rate, rate
from tacit.statistics.regression_table import RegressionTable, regression
from tacit.statistics.sparse import SparseCount, SparseQuestion, sparse_histogram
from tacit.statistics.survival import SurvivalCurves, survival
from tacit.statistics.synthetic import CountTable, synthetic_rows, tables_of
from tacit.statistics.totals import TableWithTotals, table
from tacit.statistics.weighted import (
    WeightedCount,
    WeightedMean,
    WeightedProportion,
    WeightedRatio,
    WeightedTotal,
)

__all__ = [
    "Areas",
    "Calibrated",
    "ClampingBounds",
    "Count",
    "CountTable",
    "Geography",
    "GlobalSensitivity",
    "Hierarchy",
    "Inequality",
    "Margins",
    "Mean",
    "NoisyTable",
    "Part",
    "PostStratified",
    "Proportion",
    "PublicTotals",
    "Quantiles",
    "Question",
    "Ranges",
    "Rate",
    "Ratio",
    "RegressionMoments",
    "RegressionTable",
    "SparseCount",
    "SparseQuestion",
    "Statistic",
    "Sum",
    "SurvivalCurves",
    "TableWithTotals",
    "Tree",
    "UnclippedMean",
    "Variance",
    "WeightedCount",
    "WeightedMean",
    "WeightedProportion",
    "WeightedRatio",
    "WeightedTotal",
    "calibrated",
    "clamping_bounds",
    "consistent_margins",
    "consistent_tree",
    "contingency",
    "count",
    "fit_table",
    "geography",
    "hierarchy",
    "histogram",
    "inequality",
    "integer_margins",
    "is_valid_histogram",
    "margins",
    "mean",
    "median",
    "nearest_histogram",
    "post_stratified",
    "proportion",
    "public_totals",
    "quantile",
    "quantiles",
    "ranges",
    "rate",
    "ratio",
    "read",
    "read_cells",
    "regression",
    "regression_moments",
    "sparse_histogram",
    "standard_deviation",
    "sum",
    "survival",
    "synthetic_rows",
    "table",
    "tables_of",
    "valid_counts",
    "variance",
    "whole_cells",
    "whole_table",
]
