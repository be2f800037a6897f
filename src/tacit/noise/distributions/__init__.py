"""Exact discrete laws, one family a file."""

from __future__ import annotations

from tacit.noise.distributions.base import DiscreteDistribution
from tacit.noise.distributions.binomial import Binomial
from tacit.noise.distributions.computable import ComputableDistribution
from tacit.noise.distributions.finite import Bernoulli, Categorical, FiniteDistribution
from tacit.noise.distributions.gaussian import DiscreteGaussian
from tacit.noise.distributions.geometric import DiscreteLaplace, OneSidedGeometric
from tacit.noise.distributions.polya import NegativeBinomial, PolyaDifference
from tacit.noise.distributions.skellam import Poisson, Skellam
from tacit.noise.distributions.staircase import DiscreteStaircase
from tacit.noise.distributions.uniform import permutation, uniform_integer

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
