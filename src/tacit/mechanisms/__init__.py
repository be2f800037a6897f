"""Mechanisms: numbers in, noisy numbers out, each with its bound, its error and its law of noise."""

from __future__ import annotations

from tacit.mechanisms.base import AdditiveMechanism, Grid, Mechanism, Released, on_grid
from tacit.mechanisms.bodies import Box, Contribution, Gauge, HullGauge, Mahalanobis, Simplex, gauge
from tacit.mechanisms.bounded import TruncatedDiscreteLaplace
from tacit.mechanisms.cumulative import Cumulated, Cumulative, CumulativeGaussian, CumulativeTree
from tacit.mechanisms.fourier import (
    FourierNoise,
    fourier_contribution,
    fourier_l1,
    fourier_l2,
    fourier_noise,
    fourier_spacing,
)
from tacit.mechanisms.gaussian import Gaussian, RoundedGaussian
from tacit.mechanisms.knorm import Gamma, KNorm, KNormDifference
from tacit.mechanisms.laplace import Geometric, Laplace, Staircase, TruncatedGeometric
from tacit.mechanisms.linear import (
    Answers,
    Candidate,
    MarginPlan,
    choose,
    gaussian_wins_from,
    margin_errors,
    one_way_margins,
)
from tacit.mechanisms.local import (
    EstimatedCount,
    EstimatedTable,
    LocalMechanism,
    RandomizedResponse,
    Reports,
    ResponseComparison,
)
from tacit.mechanisms.partition import (
    GaussianSelection,
    Kept,
    OptimalSelection,
    PartitionSelection,
    partition_selection,
)
from tacit.mechanisms.polytope import PolytopeNorm, RangeNorm
from tacit.mechanisms.propose_test_release import InterquartileRangeByTest, MedianByTest, Tested
from tacit.mechanisms.quantiles import FoundBounds, NoisyQuantiles, QuantileSelection
from tacit.mechanisms.ranges import RangeTree, TreeCounts
from tacit.mechanisms.selection import (
    Chosen,
    Exponential,
    IntervalExponential,
    PermuteAndFlip,
    Selected,
    Selection,
)
from tacit.mechanisms.sensitivity import L1, L2, CountSensitivity, Linf, Score, Sensitivity
from tacit.mechanisms.smooth import SmoothBound, SmoothLaplace, SmoothStudent, median_rank, smooth_bound
from tacit.mechanisms.sparse import SparseHistogram, SparseReleased, SparseTable, hall_threshold, noise_floor
from tacit.mechanisms.sparse_keys import Impossible
from tacit.mechanisms.stability import KeysOfAUnit, StableHistogram, StableReleased
from tacit.mechanisms.strategies import Workload, margin_matrices, prefix_matrix, range_matrix
from tacit.mechanisms.subset_selection import (
    HadamardResponse,
    LocalCandidate,
    LocalChoice,
    SubsetSelection,
    local_mechanism,
)
from tacit.mechanisms.tables import ReleasedTables, ShapedTables
from tacit.mechanisms.two_questions import Correlation, IndependenceTest, JointTable, TwoQuestions

__all__ = [
    "L1",
    "L2",
    "AdditiveMechanism",
    "Answers",
    "Box",
    "Candidate",
    "Chosen",
    "Contribution",
    "Correlation",
    "CountSensitivity",
    "Cumulated",
    "Cumulative",
    "CumulativeGaussian",
    "CumulativeTree",
    "EstimatedCount",
    "EstimatedTable",
    "Exponential",
    "FoundBounds",
    "FourierNoise",
    "Gamma",
    "Gauge",
    "Gaussian",
    "GaussianSelection",
    "Geometric",
    "Grid",
    "HadamardResponse",
    "HullGauge",
    "Impossible",
    "IndependenceTest",
    "InterquartileRangeByTest",
    "IntervalExponential",
    "JointTable",
    "KNorm",
    "KNormDifference",
    "Kept",
    "KeysOfAUnit",
    "Laplace",
    "Linf",
    "LocalCandidate",
    "LocalChoice",
    "LocalMechanism",
    "Mahalanobis",
    "MarginPlan",
    "Mechanism",
    "MedianByTest",
    "NoisyQuantiles",
    "OptimalSelection",
    "PartitionSelection",
    "PermuteAndFlip",
    "PolytopeNorm",
    "QuantileSelection",
    "RandomizedResponse",
    "RangeNorm",
    "RangeTree",
    "Released",
    "ReleasedTables",
    "Reports",
    "ResponseComparison",
    "RoundedGaussian",
    "Score",
    "Selected",
    "Selection",
    "Sensitivity",
    "ShapedTables",
    "Simplex",
    "SmoothBound",
    "SmoothLaplace",
    "SmoothStudent",
    "SparseHistogram",
    "SparseReleased",
    "SparseTable",
    "StableHistogram",
    "StableReleased",
    "Staircase",
    "SubsetSelection",
    "Tested",
    "TreeCounts",
    "TruncatedDiscreteLaplace",
    "TruncatedGeometric",
    "TwoQuestions",
    "Workload",
    "choose",
    "fourier_contribution",
    "fourier_l1",
    "fourier_l2",
    "fourier_noise",
    "fourier_spacing",
    "gauge",
    "gaussian_wins_from",
    "hall_threshold",
    "local_mechanism",
    "margin_errors",
    "margin_matrices",
    "median_rank",
    "noise_floor",
    "on_grid",
    "one_way_margins",
    "partition_selection",
    "prefix_matrix",
    "range_matrix",
    "smooth_bound",
]
