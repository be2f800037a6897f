"""tacit publishes statistics about people without revealing any of them, and certifies each release.

Names and packages load at first use, so that importing tacit costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.2.0"

_HOME: dict[str, str] = {
    "Approximate": "tacit.guarantees",
    "BudgetExceeded": "tacit.errors",
    "Concentrated": "tacit.guarantees",
    "Curator": "tacit.curator",
    "GaussianDP": "tacit.guarantees",
    "Guarantee": "tacit.guarantees",
    "Ledger": "tacit.ledger",
    "NoLaw": "tacit.errors",
    "Plan": "tacit.curator",
    "PrivateKernelRegressor": "tacit.functions.models",
    "PrivateLogisticRegression": "tacit.functions.models",
    "PrivateSVC": "tacit.functions.models",
    "PrivateSVR": "tacit.functions.models",
    "Profile": "tacit.guarantees",
    "Pure": "tacit.guarantees",
    "Query": "tacit.curator",
    "Release": "tacit.curator",
    "Releases": "tacit.curator",
    "Renyi": "tacit.guarantees",
    "Schema": "tacit.sources",
    "TacitError": "tacit.errors",
    "account": "tacit.accounting",
    "bins": "tacit.sources",
    "calibrate": "tacit.accounting",
    "category": "tacit.sources",
    "clamping_bounds": "tacit.statistics",
    "classifier": "tacit.curator.functions",
    "compose": "tacit.guarantees",
    "concentrated_budget": "tacit.guarantees",
    "connect": "tacit.server.client",
    "contingency": "tacit.statistics",
    "convert": "tacit.guarantees",
    "count": "tacit.statistics",
    "date": "tacit.sources",
    "density": "tacit.curator.functions",
    "derived": "tacit.sources",
    "dp_sgd": "tacit.accounting",
    "events": "tacit.accounting",
    "files": "tacit.sources",
    "filter_for": "tacit.accounting",
    "flag": "tacit.sources",
    "gaussian_budget": "tacit.guarantees",
    "group": "tacit.guarantees",
    "group_of": "tacit.guarantees",
    "hierarchy": "tacit.statistics",
    "histogram": "tacit.statistics",
    "inspect": "tacit.curator.custodian",
    "inspect_privately": "tacit.curator.custodian",
    "integer": "tacit.sources",
    "join": "tacit.sources",
    "least_squares": "tacit.curator.fitting",
    "margins": "tacit.statistics",
    "mean": "tacit.statistics",
    "median": "tacit.statistics",
    "number": "tacit.sources",
    "parallel": "tacit.guarantees",
    "people": "tacit.guarantees",
    "post_process": "tacit.guarantees",
    "privacy_curve": "tacit.accounting",
    "proportion": "tacit.statistics",
    "public_totals": "tacit.statistics",
    "quantile": "tacit.statistics",
    "quantiles": "tacit.statistics",
    "query": "tacit.curator",
    "ranges": "tacit.statistics",
    "ratio": "tacit.statistics",
    "read_plan": "tacit.curator.plan_files",
    "regression_function": "tacit.curator.functions",
    "regression_moments": "tacit.statistics",
    "renyi_budget": "tacit.guarantees",
    "repeat": "tacit.guarantees",
    "rows": "tacit.guarantees",
    "sparse_histogram": "tacit.statistics",
    "standard_deviation": "tacit.statistics",
    "subsample": "tacit.guarantees",
    "suggest": "tacit.curator.custodian",
    "sum": "tacit.statistics",
    "synthesise": "tacit.curator.synthesised",
    "variance": "tacit.statistics",
    "watch": "tacit.sources.error_boundary",
}

_PACKAGES = (
    "accounting",
    "anonymity",
    "attacks",
    "audit",
    "coupled",
    "curator",
    "errors",
    "exact",
    "functions",
    "guarantees",
    "ledger",
    "mechanisms",
    "noise",
    "parties",
    "pld",
    "random_data",
    "report",
    "risk",
    "server",
    "sources",
    "statistics",
    "synthesis",
)
"""Packages that `tacit.NAME` loads, and `dir(tacit)` lists."""

_RENAMED: dict[str, str] = {
    "Ask": "tacit.Query",
    "ask": "tacit.query",
    "Always": "tacit.guarantees.Always",
    "BoundedAdversary": "tacit.guarantees.BoundedAdversary",
    "CountTable": "tacit.statistics.CountTable",
    "Coupled": "tacit.guarantees.Coupled",
    "DensityChoice": "tacit.functions.densities.DensityChoice",
    "DensityPlan": "tacit.functions.densities.DensityPlan",
    "FourierBasis": "tacit.functions.bases.FourierBasis",
    "FourierKDE": "tacit.functions.fourier.FourierKDE",
    "FourierPlan": "tacit.functions.fourier.FourierPlan",
    "GaussianKDE": "tacit.functions.densities.GaussianKDE",
    "HermiteBasis": "tacit.functions.bases.HermiteBasis",
    "HistogramBasis": "tacit.functions.bases.HistogramBasis",
    "Neighbours": "tacit.guarantees.Neighbours",
    "Pointwise": "tacit.guarantees.Pointwise",
    "Priors": "tacit.guarantees.Priors",
    "PublicBall": "tacit.functions.models.PublicBall",
    "PublicBox": "tacit.functions.models.PublicBox",
    "RandomData": "tacit.guarantees.RandomData",
    "ReflectedKDE": "tacit.functions.densities.ReflectedKDE",
    "ReleasedDensity": "tacit.functions.densities.ReleasedDensity",
    "SobolevKDE": "tacit.functions.densities.SobolevKDE",
    "WaveletBasis": "tacit.functions.bases.WaveletBasis",
    "compare_densities": "tacit.functions.densities.compare_densities",
    "public_bandwidth": "tacit.functions.densities.public_bandwidth",
    "synthetic_rows": "tacit.statistics.synthetic_rows",
    "theorem": "tacit.guarantees.theorem",
}
"""Names of version 0.1, with their new ones: they work with a DeprecationWarning (docs/renamed.md)."""

__all__ = [
    "Approximate",
    "BudgetExceeded",
    "Concentrated",
    "Curator",
    "GaussianDP",
    "Guarantee",
    "Ledger",
    "NoLaw",
    "Plan",
    "PrivateKernelRegressor",
    "PrivateLogisticRegression",
    "PrivateSVC",
    "PrivateSVR",
    "Profile",
    "Pure",
    "Query",
    "Release",
    "Releases",
    "Renyi",
    "Schema",
    "TacitError",
    "__version__",
    "account",
    "bins",
    "calibrate",
    "category",
    "clamping_bounds",
    "classifier",
    "compose",
    "concentrated_budget",
    "connect",
    "contingency",
    "convert",
    "count",
    "date",
    "density",
    "derived",
    "dp_sgd",
    "events",
    "files",
    "filter_for",
    "flag",
    "gaussian_budget",
    "group",
    "group_of",
    "hierarchy",
    "histogram",
    "inspect",
    "inspect_privately",
    "integer",
    "join",
    "least_squares",
    "margins",
    "mean",
    "median",
    "number",
    "parallel",
    "people",
    "post_process",
    "privacy_curve",
    "proportion",
    "public_totals",
    "quantile",
    "quantiles",
    "query",
    "ranges",
    "ratio",
    "read_plan",
    "regression_function",
    "regression_moments",
    "renyi_budget",
    "repeat",
    "rows",
    "sparse_histogram",
    "standard_deviation",
    "subsample",
    "suggest",
    "sum",
    "synthesise",
    "variance",
    "watch",
]

if TYPE_CHECKING:
    from tacit import (
        accounting as accounting,
    )
    from tacit import (
        anonymity as anonymity,
    )
    from tacit import (
        attacks as attacks,
    )
    from tacit import (
        audit as audit,
    )
    from tacit import (
        coupled as coupled,
    )
    from tacit import (
        curator as curator,
    )
    from tacit import (
        errors as errors,
    )
    from tacit import (
        exact as exact,
    )
    from tacit import (
        functions as functions,
    )
    from tacit import (
        guarantees as guarantees,
    )
    from tacit import (
        ledger as ledger,
    )
    from tacit import (
        mechanisms as mechanisms,
    )
    from tacit import (
        noise as noise,
    )
    from tacit import (
        parties as parties,
    )
    from tacit import (
        pld as pld,
    )
    from tacit import (
        random_data as random_data,
    )
    from tacit import (
        report as report,
    )
    from tacit import (
        risk as risk,
    )
    from tacit import (
        server as server,
    )
    from tacit import (
        sources as sources,
    )
    from tacit import (
        statistics as statistics,
    )
    from tacit import (
        synthesis as synthesis,
    )
    from tacit.accounting import account, calibrate, dp_sgd, events, filter_for, privacy_curve
    from tacit.curator import Curator, Plan, Query, Release, Releases, query
    from tacit.curator.custodian import inspect, inspect_privately, suggest
    from tacit.curator.fitting import least_squares
    from tacit.curator.functions import classifier, density, regression_function
    from tacit.curator.plan_files import read_plan
    from tacit.curator.synthesised import synthesise
    from tacit.errors import BudgetExceeded, NoLaw, TacitError
    from tacit.functions.models import (
        PrivateKernelRegressor,
        PrivateLogisticRegression,
        PrivateSVC,
        PrivateSVR,
    )
    from tacit.guarantees import (
        Approximate,
        Concentrated,
        GaussianDP,
        Guarantee,
        Profile,
        Pure,
        Renyi,
        compose,
        concentrated_budget,
        convert,
        gaussian_budget,
        group,
        group_of,
        parallel,
        people,
        post_process,
        renyi_budget,
        repeat,
        rows,
        subsample,
    )
    from tacit.ledger import Ledger
    from tacit.server.client import connect
    from tacit.sources import Schema, bins, category, date, derived, files, flag, integer, join, number
    from tacit.sources.error_boundary import watch
    from tacit.statistics import (
        clamping_bounds,
        contingency,
        count,
        hierarchy,
        histogram,
        margins,
        mean,
        median,
        proportion,
        public_totals,
        quantile,
        quantiles,
        ranges,
        ratio,
        regression_moments,
        sparse_histogram,
        standard_deviation,
        sum,
        variance,
    )

else:
    # Hidden from type checkers, which would take any name for one that exists.
    def __getattr__(name: str) -> object:
        if name in _HOME:
            value = getattr(importlib.import_module(_HOME[name]), name)
            globals()[name] = value
            return value
        if name in _PACKAGES:
            return importlib.import_module(f"tacit.{name}")
        if name in _RENAMED:
            import warnings

            place, _, new = _RENAMED[name].rpartition(".")
            warnings.warn(
                f"tacit.{name} is now {place}.{new}; the next version has only the new name",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(importlib.import_module(place), new)
        raise AttributeError(f"module 'tacit' has no attribute {name!r}{_nearest(name)}")


def _nearest(name: str) -> str:
    """The likeliest name that was meant, as a question."""
    import difflib

    near = difflib.get_close_matches(name, [*__all__, *_PACKAGES], n=1)
    return f"; did you mean {near[0]!r}?" if near and not name.startswith("_") else ""


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
