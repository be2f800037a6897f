"""Exact discrete distributions, one family a file."""

from __future__ import annotations

from tacit.noise.distributions.base import DiscreteDistribution
from tacit.noise.distributions.binomial import Binomial, Poisson, Skellam
from tacit.noise.distributions.finite import (
    Bernoulli,
    Categorical,
    ComputableDistribution,
    FiniteDistribution,
    permutation,
    uniform_integer,
)
from tacit.noise.distributions.gaussian import DiscreteGaussian
from tacit.noise.distributions.geometric import DiscreteLaplace, DiscreteStaircase, OneSidedGeometric
from tacit.noise.distributions.polya import NegativeBinomial, PolyaDifference

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "ComputableDistribution",
    "DiscreteDistribution",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteStaircase",
    "FiniteDistribution",
    "NegativeBinomial",
    "OneSidedGeometric",
    "Poisson",
    "PolyaDifference",
    "Skellam",
    "permutation",
    "uniform_integer",
]
