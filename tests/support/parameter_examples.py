"""One right call for everything public that takes parameters, and what is not called because only tacit makes it.

A new mechanism or event declares its `example` itself; any other class or function in a public room must be named
here: the contract test finds out.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

import tacit.mechanisms
from tacit.accounting import events
from tacit.guarantees import Approximate, Concentrated, GaussianDP, Pure, Rows
from tacit.mechanisms import (
    L1,
    L2,
    Contribution,
    CountSensitivity,
    Gauge,
    Laplace,
    RandomizedResponse,
    Score,
    Workload,
)
from tacit.noise import LinfBall
from tacit.sources import parse
from tacit.statistics import Areas, count

CUBE = LinfBall(coordinates=2)
COUNT_NOISE = Laplace(sensitivity=L1(1), noise_scale=1)

MECHANISMS: dict[str, dict[str, Any]] = {
    "Box": {"low": [-1, -2], "high": [1, 2]},
    "Contribution": {"value": 1, "body": CUBE, "replace": True},
    "CountSensitivity": {"value": 1},
    "CumulativeGaussian": {
        "bins": 8, "l2_squared": 1, "noise_std": 100_000, "bits": 12, "total_is_public": False
    },
    "CumulativeTree": {"bins": 8, "l1": 1, "epsilon": 1, "total_is_public": False},
    "Exponential": {"epsilon": 1, "sensitivity": Score(1)},
    "Gamma": {"sensitivity": L2(1), "noise_scale": 1, "dimension": 2, "spacing": 1},
    "Gauge": {"value": 1, "body": CUBE},
    "Gaussian": {"sensitivity": L2(1), "noise_std": 3, "dimension": 2, "spacing": 1},
    "GaussianSelection": {
        "noise_std": 3, "threshold": 30, "keys": 2, "replaced": False, "group": 1, "epsilon": 1
    },
    "Geometric": {"epsilon": 1, "sensitivity": CountSensitivity(1)},
    "Grid": {"spacing": 1},
    "HullGauge": {"value": 1, "body": CUBE},
    "Impossible": {"test": lambda k: k > 5, "count": 3},
    "InterquartileRangeByTest": {"proposed": L1(1), "test_epsilon": 1, "release_epsilon": 1, "delta": 1e-6},
    "IntervalExponential": {"sensitivity": L1(1), "noise_scale": 1, "low": 0, "high": 8, "spacing": 1},
    "KNorm": {"sensitivity": Gauge(1, CUBE), "noise_scale": 1, "spacing": 1},
    "KNormDifference": {"sensitivity": Contribution(1, CUBE), "noise_scale": 1, "spacing": 1},
    "HadamardResponse": {"epsilon": 1, "categories": 3},
    "KeysOfAUnit": {"keys": 2, "each": 2, "total": 3},
    "L1": {"value": 1},
    "L2": {"value": 1},
    "Laplace": {"sensitivity": L1(1), "noise_scale": 1, "spacing": 1},
    "Linf": {"value": 1},
    "Mahalanobis": {"value": 1, "covariance": [[1, 0], [0, 1]]},
    "MedianByTest": {"proposed": L1(1), "test_epsilon": 1, "release_epsilon": 1, "delta": 1e-6, "spacing": 1},
    "OptimalSelection": {"epsilon": 1, "delta": 1e-4, "keys": 2, "replaced": False, "group": 1},
    "PermuteAndFlip": {"epsilon": 1, "sensitivity": Score(1)},
    "PolytopeNorm": {"points": [(1, 0), (0, 1)], "noise_scale": 1, "times": 1, "spacing": 1},
    "QuantileSelection": {
        "bins": 8, "share": 0.5, "rank_sensitivity": 0.5, "epsilon": 1, "confidence": 0.9
    },
    "RandomizedResponse": {"epsilon": 1, "categories": 3},
    "RangeNorm": {"dimension": 2, "noise_scale": 1, "times": 1, "spacing": 1},
    "RangeTree": {"cells": 2, "branching": 2, "mechanisms": (COUNT_NOISE, COUNT_NOISE)},
    "RankSelection": {
        "bins": 8, "shares": (0.25, 0.5), "epsilon": 1, "rows": 2, "replaced": True, "grouped": True
    },
    "SparseRankSelection": {
        "bins": 8, "shares": (0.25, 0.5), "epsilon": 1, "rows": 2, "replaced": True, "grouped": True,
        "origin": 0.5, "unit": 3,
    },
    "ShapedTables": {
        "sizes": (2, 3), "noise_scale": 1, "times": 1, "replaced": True, "complete": True, "fixed": False
    },
    "RoundedGaussian": {"sensitivity": L2(1), "noise_std": 3, "dimension": 2, "spacing": 1},
    "Score": {"value": 1, "monotone": False},
    "Selection": {
        "epsilon": 1, "sensitivity": Score(1), "candidates": ["a", "b"], "method": "permute-and-flip"
    },
    "Simplex": {"vertices": [[-1, -1], [2, 0], [0, 2]]},
    "SmoothBound": {"value": 1, "beta": 1},
    "SmoothLaplace": {"epsilon": 1, "noise_multiplier": 4, "beta": 0.05, "spacing": 1},
    "SmoothStudent": {"noise_multiplier": 4, "beta": 0.1, "degrees": 3, "spacing": 1},
    "SparseHistogram": {"noise": COUNT_NOISE, "domain": 100, "threshold": 5},
    "StableHistogram": {"noise": COUNT_NOISE, "threshold": 20},
    "StatisticByTest": {
        "statistic": len, "distance": len, "proposed": L1(1), "test_epsilon": 1, "release_epsilon": 1, "delta": 1e-6,
        "spacing": 1, "numbers": 1, "proof": "a lemma",
    },
    "SubsetSelection": {"epsilon": 1, "categories": 5, "subset": 2, "share": 0.1},
    "TwoQuestions": {
        "first": RandomizedResponse(epsilon=1), "second": RandomizedResponse(epsilon=1, categories=3)
    },
    "local_mechanism": {"epsilon": 1, "categories": 5, "most_bits": 100, "share": 0.1},
    "Staircase": {"epsilon": 1, "sensitivity": CountSensitivity(2), "spacing": 1, "gamma": 0.5},
    "TruncatedGeometric": {"epsilon": 1, "low": 0, "high": 10, "sensitivity": CountSensitivity(1)},
    "Workload": {"matrix": [[1, 0], [1, 1]], "neighbours": "add-or-remove", "rows": 2, "absent": True},
    "choose": {"workload": Workload(matrix=np.eye(2, dtype=int)), "epsilon": 1, "ordered": False},
    "fourier_contribution": {"frequencies": 2, "replace": True},
    "fourier_l1": {"frequencies": 2, "dimension": 1, "replace": True},
    "fourier_l2": {"frequencies": 2, "dimension": 1, "replace": True},
    "fourier_noise": {
        "frequencies": 2, "epsilon": 1, "delta": 1e-6, "replace": True, "dimension": 1, "records": 1, "spacing": 1
    },
    "fourier_spacing": {"frequencies": 2, "body": True},
    "gauge": {"body": CUBE, "points": [[1.0, 2.0]]},
    "gaussian_wins_from": {"epsilon": 1, "delta": 1e-6},
    "hall_threshold": {"noise": COUNT_NOISE, "cells": 100, "occupied": 2},
    "margin_errors": {"sizes": [2, 3], "order": 1, "epsilon": 1, "rows": 1, "complete": False},
    "margin_matrices": {"sizes": [2, 3], "order": 1},
    "median_rank": {"count": 5},
    "noise_floor": {"noise": COUNT_NOISE, "cells": 1 << 30, "expected_false": 10},
    "on_grid": {"values": [1.0, 2.5], "spacing": 1},
    "one_way_margins": {"columns": 3, "epsilon": 1, "rows": 1},
    "partition_selection": {"epsilon": 1, "delta": 1e-4, "keys": 2, "replaced": False, "group": 1},
    "prefix_matrix": {"cells": 3},
    "range_matrix": {"cells": 3},
    "smooth_bound": {"values": [1, 2, 3], "beta": 1, "low": 0, "high": 10, "rank": 2, "spacing": 1},
}  # fmt: skip

NOISE: dict[str, dict[str, Any]] = {
    "Bernoulli": {"probability_of_one": 0.5},
    "ContinuousBeta": {"a": 1, "b": 2},
    "Binomial": {"trials": 5, "probability_of_one": 0.5},
    "Categorical": {"log_weights": [0, -1]},
    "DiscreteGaussian": {"noise_std": 3},
    "DiscreteLaplace": {"noise_scale": 3},
    "Ellipsoid": {"factor": [[1, 0], [0, 2]]},
    "CaratheodoryBody": {"frequencies": 3},
    "EuclideanBall": {"coordinates": 2, "radius": 1},
    "FiniteDistribution": {"weights": [1, 2]},
    "ContinuousGamma": {"shape": 2, "noise_scale": 1},
    "GaussianVector": {"coordinates": 2, "noise_std": 1},
    "NegativeBinomial": {"shape": 0.5, "noise_scale": 2},
    "OneSidedGeometric": {"noise_scale": 2},
    "Poisson": {"mean_count": 2},
    "PolyaDifference": {"shape": 0.5, "noise_scale": 2},
    "Skellam": {"noise_variance": 2},
    "KNormVector": {"body": CUBE, "noise_scale": 1},
    "L1Ball": {"coordinates": 2, "radius": 1},
    "LinfBall": {"coordinates": 2, "radius": 1},
    "caratheodory_gauge": {"points": [[1.0, 2.0]]},
    "caratheodory_second_moments": {"frequencies": 3},
    "caratheodory_volume": {"frequencies": 3},
    "KeyedSource": {"key": bytes(32)},
    "SeededSource": {"seed": 1},
    "Sphere": {"coordinates": 2, "radius": 1},
    "DiscreteStaircase": {"epsilon": 1, "sensitivity": 2, "gamma": 0.5},
    "grid_spacing": {"spacing": 1},
    "rounding_delta": {
        "coordinates": 2, "absolute_error": 1e-9, "spacing": 1, "marginal_density_bound": 1.0,
        "failure_probability": 0.0,
    },
}  # fmt: skip

EVENTS: dict[str, dict[str, Any]] = {
    "ApproximateEvent": {"epsilon": 1, "delta": 1e-6},
    "BalancedResponseEvent": {"epsilon": 1, "outcomes": 4, "supporting": 2, "shared": 1},
    "ComposedEvent": {"events": (events.PureEvent(epsilon=1),)},
    "ConcentratedEvent": {"rho": 0.5},
    "DiscreteGaussianEvent": {"noise_multiplier": 2, "sensitivity": 2},
    "DiscreteGaussianVectorEvent": {"noise_std": 5, "squared_sensitivity": 2, "coordinates": 2},
    "DiscreteLaplaceEvent": {"epsilon": 1, "sensitivity": 2},
    "ExponentialEvent": {"epsilon": 1},
    "GaussianEvent": {"noise_multiplier": 2},
    "LaplaceEvent": {"epsilon": 1},
    "MixedEvent": {"events": (events.PureEvent(epsilon=1),), "weights": (0.5,)},
    "PermuteAndFlipEvent": {"epsilon": 1},
    "PoissonSampledEvent": {"event": events.GaussianEvent(noise_multiplier=2), "sampling_rate": 0.1},
    "PureEvent": {"epsilon": 1},
    "RandomizedResponseEvent": {"epsilon": 1, "categories": 3},
    "RepeatedEvent": {"event": events.PureEvent(epsilon=1), "times": 3},
    "ShuffledEvent": {"event": events.RandomizedResponseEvent(epsilon=1), "people": 10},
    "SkellamEvent": {"noise_variance": 2, "sensitivity": 2},
    "StaircaseEvent": {"epsilon": 1, "gamma": 0.5},
    "TabulatedEvent": {"p": (0.5, 0.5), "q": (0.25, 0.75)},
    "SampledWithoutReplacementEvent": {
        "event": events.GaussianEvent(noise_multiplier=2),
        "sampling_rate": 0.1,
    },
    "flatten": {"events": events.PureEvent(epsilon=1)},
}

ACCOUNTING: dict[str, dict[str, Any]] = {
    "AdvancedFilter": {"budget": Approximate(epsilon=1, delta=1e-6), "share": 0.5},
    "ApproximateFilter": {"budget": Approximate(epsilon=1, delta=1e-6)},
    "ConcentratedFilter": {"budget": Concentrated(rho=1)},
    "GaussianFilter": {"budget": GaussianDP(mu=1)},
    "PureFilter": {"budget": Pure(epsilon=1)},
    "RenyiFilter": {"order": 2, "epsilon": 1},
    "CorrelatedNoise": {"strategy": "square_root", "steps": 8, "participations": 2, "separation": 3},
    "TrainingRun": {"records": 100, "batch_size": 10, "steps": 5, "noise_multiplier": 2, "sampling": "poisson"},
    "dp_sgd": {"records": 100, "batch_size": 10, "epochs": 2, "noise_multiplier": 2},
    "loss_distribution": {"events": events.PureEvent(epsilon=1), "step": 0.5, "points": 2},
    "LossDistribution": {"step": 0.5, "lowest": -1, "probabilities": [0.3, 0.3, 0.4], "infinite": 0.0},
    "privacy_curve": {"events": events.PureEvent(epsilon=1), "epsilons": [0.5], "points": 3},
    "account": {"events": events.PureEvent(epsilon=1), "delta": 1e-6},
    "bound_of": {"events": events.PureEvent(epsilon=1), "accountant": "pure"},
    "calibrate": {
        "plan": lambda noise: events.GaussianEvent(noise_multiplier=noise),
        "epsilon": 1, "delta": 1e-5, "more_noise": True,
    },
    "covers": {
        "bound": Pure(epsilon=1), "events": [events.PureEvent(epsilon=1)], "neighbours": "add-or-remove",
    },
    "filter_for": {"budget": Pure(epsilon=1)},
    "profile_of": {"events": events.PureEvent(epsilon=1), "neighbours": "add-or-remove"},
}  # fmt: skip

GUARANTEES: dict[str, dict[str, Any]] = {
    "Approximate": {"epsilon": 1, "delta": 1e-6},
    "BoundedAdversary": {"assumption": "AES", "advantage": 1e-9},
    "Concentrated": {"rho": 1},
    "Coupled": {"priv": "the row", "alt": "the rest", "family": 3},
    "GaussianDP": {"mu": 1},
    "GroupOf": {"of": Rows(), "size": 2},
    "Guarantee": {"bound": Pure(epsilon=1), "unit": Rows()},
    "People": {"column": "id", "at_most": 3, "groups": 2},
    "Pointwise": {"epsilon": 1, "delta": 1e-6},
    "Priors": {"family": "all", "unknown_rows": 3},
    "Pure": {"epsilon": 1},
    "RandomData": {"gamma": 0.01},
    "Renyi": {"orders": (2.0, 3.0), "epsilons": (0.5, 0.7)},
    "Rows": {},
    "group_of": {"unit": Rows(), "size": 2},
    "people": {"column": "id", "at_most": 3, "groups": 2},
    "rows": {},
}

LAWS: dict[str, dict[str, Any]] = {
    "concentrated_budget": {"epsilon": 1, "delta": 1e-6, "printed": False},
    "convert": {"bound": Pure(epsilon=1), "to": Concentrated},
    "gaussian_budget": {"epsilon": 1, "delta": 1e-6},
    "group": {"what": Pure(epsilon=1), "size": 2},
    "post_process": {"what": Pure(epsilon=1)},
    "renyi_budget": {"epsilon": 1, "delta": 1e-6},
    "repeat": {"part": Pure(epsilon=1), "times": 3},
    "subsample": {"what": Pure(epsilon=1), "rate": 0.1, "scheme": "poisson"},
}
"""Functions of bounds; their numbers and flags are fed, what they say of bounds is tested with the laws."""

STATISTICS: dict[str, dict[str, Any]] = {
    "Calibrated": {"column": "age", "population": 100.0, "totals": (("sick", 30.0),)},
    "ClampingBounds": {"column": "age"},
    "Count": {"of": "rows"},
    "Geography": {"levels": ("state",), "areas": Areas((("a",), ("b",)))},
    "Hierarchy": {"columns": ("state",)},
    "Inequality": {"column": "age", "bins": 4},
    "Margins": {"columns": ("state", "sick"), "order": 1},
    "Mean": {"column": "age"},
    "PostStratified": {"column": "age", "standard": ("state", (("a", 5.0), ("b", 6.0))), "largest_weight": 4},
    "Proportion": {"of": parse("sick")},
    "Quantiles": {"column": "age", "at": (0.5,), "resolution": 16},
    "Rate": {"events": "sick", "time": "age", "per": 2},
    "Ratio": {"numerator": "age", "denominator": "income"},
    "Ranges": {"column": "age", "edges": 4},
    "RegressionTable": {"outcome": "income", "columns": ("age", "state")},
    "SparseCount": {"columns": ("state",)},
    "Sum": {"column": "age"},
    "SurvivalCurves": {"time": "age", "event": "sick", "bins": 4, "horizon": None},
    "UnclippedMean": {"column": "age", "beyond": ("pareto", 2.0)},
    "TableWithTotals": {"columns": ("state", "sick"), "totals": "all"},
    "Variance": {"column": "age", "root": False},
    "WeightedCount": {"survey_weight": "income"},
    "WeightedMean": {"column": "age", "survey_weight": "income"},
    "WeightedProportion": {"of": parse("sick"), "survey_weight": "income"},
    "WeightedRatio": {"numerator": "age", "denominator": "income", "survey_weight": "w"},
    "WeightedTotal": {"column": "age", "survey_weight": "income"},
    "calibrated": {"column": "age", "population": 100, "totals": {"sick": 30}},
    "clamping_bounds": {"column": "age"},
    "contingency": {"columns": ["state", "sick"]},
    "count": {"by": "state"},
    "geography": {"levels": ["state"], "areas": {"state": ["a", "b"]}},
    "hierarchy": {"columns": ["state"]},
    "histogram": {"column": "age", "bins": 4},
    "inequality": {"column": "age", "bins": 4},
    "margins": {"columns": ["state", "sick"], "order": 1},
    "mean": {"column": "age"},
    "median": {"column": "age", "resolution": 16},
    "post_stratified": {"column": "age", "standard": {"state": {"a": 5, "b": 6}}, "largest_weight": 4},
    "proportion": {"of": "sick"},
    "public_totals": {"total": 100},
    "quantile": {"column": "age", "at": 0.5, "resolution": 16},
    "quantiles": {"column": "age", "at": [0.25, 0.5], "resolution": 16},
    "ranges": {"column": "age", "bins": 4},
    "rate": {"events": "sick", "time": "age", "per": 2},
    "ratio": {"numerator": "age", "denominator": "income"},
    "regression": {"outcome": "income", "on": ["age", "state"]},
    "sparse_histogram": {"columns": ["state"]},
    "standard_deviation": {"column": "age"},
    "sum": {"column": "age"},
    "survival": {"time": "age", "event": "sick", "bins": 4},
    "table": {"rows": "state", "columns": "sick"},
    "variance": {"column": "age"},
}

SOURCES: dict[str, dict[str, Any]] = {
    "Category": {"values": ("a", "b")},
    "Date": {"low": datetime.date(2020, 1, 1), "high": datetime.date(2021, 1, 1)},
    "Flag": {"missing": False},
    "Integer": {"low": 0, "high": 10, "missing": 1},
    "Number": {"low": 0.0, "high": 10.0, "missing": 1.0},
    "bins": {"column": "age", "edges": 4},
    "category": {"values": ["a", "b"]},
    "date": {"low": "2020-01-01", "high": "2021-01-01"},
    "flag": {"missing": True},
    "integer": {"low": 0, "high": 10, "missing": 1},
    "number": {"low": 0, "high": 10, "spacing": 0.5, "missing": 1},
}

CURATOR: dict[str, dict[str, Any]] = {
    "Query": {"statistic": count()},
    "query": {"statistic": count(), "name": "n", "weight": 1, "interval": 0.9, "rows": 10, "epsilon": 1},
    "price": {"epsilon": 0.5, "delta": 1e-6},
}


def declared(room: Any, attribute: str = "example") -> dict[str, dict[str, Any]]:
    """What the classes of a room declare of themselves."""
    found = {name: getattr(getattr(room, name), attribute, None) for name in room.__all__}
    return {name: dict(given) for name, given in found.items() if given}


DECLARED_EVENTS: list[events.SimpleEvent] = [
    getattr(events, name)(**given) for name, given in declared(events).items()
]
"""One event of each class that declares an example: the tests of all events take them in."""
EVENTS |= declared(events)
MECHANISMS |= declared(tacit.mechanisms)
