"""Mechanisms: numbers in, noisy numbers out, each with its bound, its error and its law of noise."""

from __future__ import annotations

from tacit.mechanisms.base import AdditiveMechanism, Mechanism
from tacit.mechanisms.bodies import Box, Simplex, gauge
from tacit.mechanisms.clamping_bounds import FoundBounds
from tacit.mechanisms.cumulative import Cumulated, Cumulative, CumulativeTree
from tacit.mechanisms.cumulative_gaussian import CumulativeGaussian
from tacit.mechanisms.exponential import Chosen, Exponential
from tacit.mechanisms.fourier import FourierNoise, fourier_noise, fourier_spacing
from tacit.mechanisms.fourier_sensitivity import fourier_contribution, fourier_l1, fourier_l2
from tacit.mechanisms.gamma import Gamma
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.geometric import Geometric, TruncatedGeometric
from tacit.mechanisms.grid import Grid, Released, on_grid
from tacit.mechanisms.hadamard_response import HadamardResponse
from tacit.mechanisms.interval import IntervalExponential
from tacit.mechanisms.knorm import KNorm, KNormDifference
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.linear import Answers, Candidate, choose
from tacit.mechanisms.local import EstimatedCount, EstimatedTable, LocalMechanism, Reports
from tacit.mechanisms.local_choice import LocalCandidate, LocalChoice, local_mechanism
from tacit.mechanisms.margins import MarginPlan, gaussian_wins_from, margin_errors, one_way_margins
from tacit.mechanisms.partition import Kept, OptimalSelection, PartitionSelection
from tacit.mechanisms.partition_gaussian import GaussianSelection, partition_selection
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.polytope import PolytopeNorm, RangeNorm
from tacit.mechanisms.propose_test_release import InterquartileRangeByTest, MedianByTest, Tested
from tacit.mechanisms.quantile_selection import QuantileSelection
from tacit.mechanisms.quantiles import NoisyQuantiles
from tacit.mechanisms.randomized_response import RandomizedResponse, ResponseComparison
from tacit.mechanisms.ranges import RangeTree, TreeCounts
from tacit.mechanisms.rounded_gaussian import RoundedGaussian
from tacit.mechanisms.selection import Selected, Selection
from tacit.mechanisms.sensitivity import L1, L2, CountSensitivity, Linf, Score, Sensitivity
from tacit.mechanisms.shapes import Contribution, Gauge, HullGauge, Mahalanobis
from tacit.mechanisms.smooth import SmoothBound, median_rank, smooth_bound
from tacit.mechanisms.smooth_noise import SmoothLaplace, SmoothStudent
from tacit.mechanisms.sparse import SparseHistogram, SparseReleased, hall_threshold, noise_floor
from tacit.mechanisms.sparse_choices import SparseTable
from tacit.mechanisms.sparse_keys import Impossible
from tacit.mechanisms.stability import KeysOfAUnit, StableHistogram, StableReleased
from tacit.mechanisms.staircase import Staircase
from tacit.mechanisms.subset_selection import SubsetSelection
from tacit.mechanisms.tables import ReleasedTables, ShapedTables
from tacit.mechanisms.two_questions import Correlation, IndependenceTest, JointTable, TwoQuestions
from tacit.mechanisms.workloads import Workload, margin_matrices, prefix_matrix, range_matrix

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
