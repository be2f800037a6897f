"""Exact discrete laws, one family a file."""

from __future__ import annotations

from tacit.noise.laws.base import DiscreteLaw
from tacit.noise.laws.binomial import Binomial
from tacit.noise.laws.computable import ComputableLaw
from tacit.noise.laws.finite import Bernoulli, Categorical, FiniteLaw
from tacit.noise.laws.gaussian import DiscreteGaussian
from tacit.noise.laws.geometric import DiscreteLaplace, Geometric
from tacit.noise.laws.staircase import Staircase
from tacit.noise.laws.uniform import permutation, uniform_integer

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "ComputableLaw",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteLaw",
    "FiniteLaw",
    "Geometric",
    "Staircase",
    "permutation",
    "uniform_integer",
]
