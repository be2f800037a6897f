"""Privacy losses: pairs of distributions, their certified curves, and products of them."""

from __future__ import annotations

from tacit.guarantees.losses.continuous import (
    ExponentialPair,
    GaussianPair,
    LaplacePair,
)
from tacit.guarantees.losses.curves import ConcentratedPair, RenyiPair
from tacit.guarantees.losses.derived import GroupPair, MaximumPair, ProductPair, WithoutReplacementPair
from tacit.guarantees.losses.discrete import (
    ApproximatePair,
    DiscreteLaplacePair,
    RandomizedResponsePair,
    StaircasePair,
)
from tacit.guarantees.losses.discrete_gaussian import DiscreteGaussianPair
from tacit.guarantees.losses.mixture import MixturePair
from tacit.guarantees.losses.pair import Pair, SwappedPair
from tacit.guarantees.losses.product import Product
from tacit.guarantees.losses.sampled import PoissonSampledPair
from tacit.guarantees.losses.tabulated import FinitePair

__all__ = [
    "ApproximatePair",
    "ConcentratedPair",
    "DiscreteGaussianPair",
    "DiscreteLaplacePair",
    "ExponentialPair",
    "FinitePair",
    "GaussianPair",
    "GroupPair",
    "LaplacePair",
    "MaximumPair",
    "MixturePair",
    "Pair",
    "PoissonSampledPair",
    "Product",
    "ProductPair",
    "RandomizedResponsePair",
    "RenyiPair",
    "StaircasePair",
    "SwappedPair",
    "WithoutReplacementPair",
]
