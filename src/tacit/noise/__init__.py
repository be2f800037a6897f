"""Randomness: one cryptographic source, and exact distributions on integers and grids built on it."""

from __future__ import annotations

from tacit.exact.enclosures import root as root
from tacit.exact.enclosures import total as total
from tacit.exact.rounding import CertifiedReal as CertifiedReal
from tacit.noise import bodies, caratheodory, distributions, grid, marginals, scalars, source
from tacit.noise.bodies import *
from tacit.noise.caratheodory import *
from tacit.noise.distributions import *
from tacit.noise.grid import *
from tacit.noise.marginals import *
from tacit.noise.scalars import *
from tacit.noise.source import *

__all__ = sorted(
    [
        *bodies.__all__,
        *caratheodory.__all__,
        *distributions.__all__,
        *grid.__all__,
        *marginals.__all__,
        *scalars.__all__,
        *source.__all__,
        "CertifiedReal",
        "root",
        "total",
    ]
)
