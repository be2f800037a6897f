"""tacit publishes statistics about people without telling on any of them, and certifies each release.

Names are loaded when they are first used, so that importing tacit costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME: dict[str, str] = {
    "Always": "tacit.guarantees",
    "Approximate": "tacit.guarantees",
    "Ask": "tacit.curator",
    "BoundedAdversary": "tacit.guarantees",
    "Concentrated": "tacit.guarantees",
    "Coupled": "tacit.guarantees",
    "Curator": "tacit.curator",
    "Gaussian": "tacit.guarantees",
    "Guarantee": "tacit.guarantees",
    "Neighbours": "tacit.guarantees",
    "NoLaw": "tacit.errors",
    "Plan": "tacit.curator",
    "Pointwise": "tacit.guarantees",
    "Priors": "tacit.guarantees",
    "Profile": "tacit.guarantees",
    "Pure": "tacit.guarantees",
    "RandomData": "tacit.guarantees",
    "Release": "tacit.curator",
    "Releases": "tacit.curator",
    "Renyi": "tacit.guarantees",
    "Schema": "tacit.sources",
    "TacitError": "tacit.errors",
    "ask": "tacit.curator",
    "bins": "tacit.sources",
    "bounds": "tacit.statistics",
    "category": "tacit.sources",
    "compose": "tacit.guarantees",
    "concentrated_budget": "tacit.guarantees",
    "contingency": "tacit.statistics",
    "convert": "tacit.guarantees",
    "count": "tacit.statistics",
    "date": "tacit.sources",
    "flag": "tacit.sources",
    "gaussian_budget": "tacit.guarantees",
    "group": "tacit.guarantees",
    "group_of": "tacit.guarantees",
    "histogram": "tacit.statistics",
    "integer": "tacit.sources",
    "margins": "tacit.statistics",
    "mean": "tacit.statistics",
    "median": "tacit.statistics",
    "number": "tacit.sources",
    "parallel": "tacit.guarantees",
    "people": "tacit.guarantees",
    "post_process": "tacit.guarantees",
    "proportion": "tacit.statistics",
    "quantile": "tacit.statistics",
    "quantiles": "tacit.statistics",
    "ratio": "tacit.statistics",
    "read_plan": "tacit.curator.files",
    "renyi_budget": "tacit.guarantees",
    "repeat": "tacit.guarantees",
    "rows": "tacit.guarantees",
    "standard_deviation": "tacit.statistics",
    "subsample": "tacit.guarantees",
    "sum": "tacit.statistics",
    "theorem": "tacit.guarantees",
    "variance": "tacit.statistics",
}

__all__ = [
    "Always",
    "Approximate",
    "Ask",
    "BoundedAdversary",
    "Concentrated",
    "Coupled",
    "Curator",
    "Gaussian",
    "Guarantee",
    "Neighbours",
    "NoLaw",
    "Plan",
    "Pointwise",
    "Priors",
    "Profile",
    "Pure",
    "RandomData",
    "Release",
    "Releases",
    "Renyi",
    "Schema",
    "TacitError",
    "__version__",
    "ask",
    "bins",
    "bounds",
    "category",
    "compose",
    "concentrated_budget",
    "contingency",
    "convert",
    "count",
    "date",
    "flag",
    "gaussian_budget",
    "group",
    "group_of",
    "histogram",
    "integer",
    "margins",
    "mean",
    "median",
    "number",
    "parallel",
    "people",
    "post_process",
    "proportion",
    "quantile",
    "quantiles",
    "ratio",
    "read_plan",
    "renyi_budget",
    "repeat",
    "rows",
    "standard_deviation",
    "subsample",
    "sum",
    "theorem",
    "variance",
]

if TYPE_CHECKING:
    from tacit.curator import (
        Ask,
        Curator,
        Plan,
        Release,
        Releases,
        ask,
    )
    from tacit.curator.files import (
        read_plan,
    )
    from tacit.errors import (
        NoLaw,
        TacitError,
    )
    from tacit.guarantees import (
        Always,
        Approximate,
        BoundedAdversary,
        Concentrated,
        Coupled,
        Gaussian,
        Guarantee,
        Neighbours,
        Pointwise,
        Priors,
        Profile,
        Pure,
        RandomData,
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
        theorem,
    )
    from tacit.sources import (
        Schema,
        bins,
        category,
        date,
        flag,
        integer,
        number,
    )
    from tacit.statistics import (
        bounds,
        contingency,
        count,
        histogram,
        margins,
        mean,
        median,
        proportion,
        quantile,
        quantiles,
        ratio,
        standard_deviation,
        sum,
        variance,
    )


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
