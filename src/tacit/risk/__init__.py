"""Risk: optimal counts, lower bounds for every mechanism, and the price of privacy.

Names load at first use: the solver alone needs numpy and nothing heavier.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.risk.bayes import HistogramBayes, histogram_bayes
    from tacit.risk.bodies import RiskBody, risk_shadow
    from tacit.risk.certificate import Certificate, Loss
    from tacit.risk.count import Equalizer, OptimalCount, equalizer, optimal_count, risk_body
    from tacit.risk.finite import OptimalFinite, optimal_finite
    from tacit.risk.minimax import LowerBound, lower_bound, lower_bounds, two_party_floor, uniform_count
    from tacit.risk.prices import (
        Decomposition,
        Price,
        curve,
        decompose,
        expected_errors,
        price,
        sampling_error,
    )
    from tacit.risk.releases import ReleasePrice, quick_count, release_price

_HOME: dict[str, str] = {
    "Certificate": "certificate",
    "Decomposition": "prices",
    "Equalizer": "count",
    "HistogramBayes": "bayes",
    "Loss": "certificate",
    "LowerBound": "minimax",
    "OptimalCount": "count",
    "OptimalFinite": "finite",
    "Price": "prices",
    "ReleasePrice": "releases",
    "RiskBody": "bodies",
    "curve": "prices",
    "decompose": "prices",
    "equalizer": "count",
    "expected_errors": "prices",
    "histogram_bayes": "bayes",
    "lower_bound": "minimax",
    "lower_bounds": "minimax",
    "optimal_count": "count",
    "optimal_finite": "finite",
    "price": "prices",
    "quick_count": "releases",
    "release_price": "releases",
    "risk_body": "count",
    "risk_shadow": "bodies",
    "sampling_error": "prices",
    "two_party_floor": "minimax",
    "uniform_count": "minimax",
}

__all__ = [
    "Certificate",
    "Decomposition",
    "Equalizer",
    "HistogramBayes",
    "Loss",
    "LowerBound",
    "OptimalCount",
    "OptimalFinite",
    "Price",
    "ReleasePrice",
    "RiskBody",
    "curve",
    "decompose",
    "equalizer",
    "expected_errors",
    "histogram_bayes",
    "lower_bound",
    "lower_bounds",
    "optimal_count",
    "optimal_finite",
    "price",
    "quick_count",
    "release_price",
    "risk_body",
    "risk_shadow",
    "sampling_error",
    "two_party_floor",
    "uniform_count",
]


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for one that exists.
    def __getattr__(name: str) -> object:
        if name in _HOME:
            value = getattr(importlib.import_module(f"tacit.risk.{_HOME[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'tacit.risk' has no attribute {name!r}")
