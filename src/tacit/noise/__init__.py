"""Randomness: one cryptographic source, and exact laws on integers and grids built on it."""

from __future__ import annotations

from tacit.exact.balls import CertifiedReal
from tacit.exact.enclosures import root, total
from tacit.noise.approximate import SampledBody
from tacit.noise.bodies import (
    Body,
    Difference,
    Ellipsoid,
    EuclideanBall,
    FormulaBody,
    GaussianVector,
    KNorm,
    L1Ball,
    LinfBall,
    Sphere,
)
from tacit.noise.grid import ContinuousLaw, Draws, GridVector, Needs, grid_spacing, rounding_delta
from tacit.noise.laws import (
    Bernoulli,
    Binomial,
    Categorical,
    ComputableLaw,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteLaw,
    FiniteLaw,
    Geometric,
    Staircase,
    permutation,
    uniform_integer,
)
from tacit.noise.scalars import Beta, Gamma
from tacit.noise.source import CryptographicSource, SeededSource, Source, default_source

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Body",
    "Categorical",
    "CertifiedReal",
    "ComputableLaw",
    "ContinuousLaw",
    "CryptographicSource",
    "Difference",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteLaw",
    "Draws",
    "Ellipsoid",
    "EuclideanBall",
    "FiniteLaw",
    "FormulaBody",
    "Gamma",
    "GaussianVector",
    "Geometric",
    "GridVector",
    "KNorm",
    "L1Ball",
    "LinfBall",
    "Needs",
    "SampledBody",
    "SeededSource",
    "Source",
    "Sphere",
    "Staircase",
    "default_source",
    "grid_spacing",
    "permutation",
    "root",
    "rounding_delta",
    "total",
    "uniform_integer",
]
