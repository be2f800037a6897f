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
    "BoundedAdversary": "tacit.guarantees",
    "Concentrated": "tacit.guarantees",
    "Coupled": "tacit.guarantees",
    "Gaussian": "tacit.guarantees",
    "Guarantee": "tacit.guarantees",
    "Neighbours": "tacit.guarantees",
    "NoLaw": "tacit.errors",
    "Pointwise": "tacit.guarantees",
    "Priors": "tacit.guarantees",
    "Profile": "tacit.guarantees",
    "Pure": "tacit.guarantees",
    "RandomData": "tacit.guarantees",
    "Renyi": "tacit.guarantees",
    "TacitError": "tacit.errors",
    "compose": "tacit.guarantees",
    "concentrated_budget": "tacit.guarantees",
    "convert": "tacit.guarantees",
    "gaussian_budget": "tacit.guarantees",
    "group": "tacit.guarantees",
    "group_of": "tacit.guarantees",
    "parallel": "tacit.guarantees",
    "people": "tacit.guarantees",
    "post_process": "tacit.guarantees",
    "renyi_budget": "tacit.guarantees",
    "repeat": "tacit.guarantees",
    "rows": "tacit.guarantees",
    "subsample": "tacit.guarantees",
    "theorem": "tacit.guarantees",
}

__all__ = [
    "Always",
    "Approximate",
    "BoundedAdversary",
    "Concentrated",
    "Coupled",
    "Gaussian",
    "Guarantee",
    "Neighbours",
    "NoLaw",
    "Pointwise",
    "Priors",
    "Profile",
    "Pure",
    "RandomData",
    "Renyi",
    "TacitError",
    "__version__",
    "compose",
    "concentrated_budget",
    "convert",
    "gaussian_budget",
    "group",
    "group_of",
    "parallel",
    "people",
    "post_process",
    "renyi_budget",
    "repeat",
    "rows",
    "subsample",
    "theorem",
]

if TYPE_CHECKING:
    from tacit.errors import NoLaw, TacitError
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


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
