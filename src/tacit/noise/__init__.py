"""Randomness: one cryptographic source, and exact laws on integers and grids built on it."""

from __future__ import annotations

from tacit.exact.balls import CertifiedReal
from tacit.exact.enclosures import root, total
from tacit.noise.bodies import (
    Body,
    Difference,
    Ellipsoid,
    EuclideanBall,
    FormulaBody,
    GaussianVector,
    KNormVector,
    L1Ball,
    LinfBall,
    Sphere,
)
from tacit.noise.caratheodory import (
    CaratheodoryBody,
    caratheodory_gauge,
    caratheodory_second_moments,
    caratheodory_volume,
)
from tacit.noise.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    ComputableDistribution,
    DiscreteDistribution,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    FiniteDistribution,
    NegativeBinomial,
    OneSidedGeometric,
    Poisson,
    PolyaDifference,
    Skellam,
    permutation,
    uniform_integer,
)
from tacit.noise.grid import ContinuousDistribution, Draws, GridVector, Needs, grid_spacing, rounding_delta
from tacit.noise.marginals import Marginal, RoundedMarginal
from tacit.noise.scalars import ContinuousBeta, ContinuousGamma, SampledBody
from tacit.noise.source import CryptographicSource, SeededSource, Source, default_source

__all__ = [
    "Bernoulli",
    "Binomial",
    "Body",
    "CaratheodoryBody",
    "Categorical",
    "CertifiedReal",
    "ComputableDistribution",
    "ContinuousBeta",
    "ContinuousDistribution",
    "ContinuousGamma",
    "CryptographicSource",
    "Difference",
    "DiscreteDistribution",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteStaircase",
    "Draws",
    "Ellipsoid",
    "EuclideanBall",
    "FiniteDistribution",
    "FormulaBody",
    "GaussianVector",
    "GridVector",
    "KNormVector",
    "L1Ball",
    "LinfBall",
    "Marginal",
    "Needs",
    "NegativeBinomial",
    "OneSidedGeometric",
    "Poisson",
    "PolyaDifference",
    "RoundedMarginal",
    "SampledBody",
    "SeededSource",
    "Skellam",
    "Source",
    "Sphere",
    "caratheodory_gauge",
    "caratheodory_second_moments",
    "caratheodory_volume",
    "default_source",
    "grid_spacing",
    "permutation",
    "root",
    "rounding_delta",
    "total",
    "uniform_integer",
]
