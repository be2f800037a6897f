"""Privacy-loss distributions (PLDs): pairs of distributions, their composition, and its two certified ends.

`README.md` in this folder is the map. Importing the room installs it as the composer of `tacit.guarantees`.
"""

from __future__ import annotations

from tacit.guarantees.curve import install
from tacit.pld.composer import PairComposer
from tacit.pld.continuous import (
    ExponentialPair,
    GaussianPair,
    LaplacePair,
)
from tacit.pld.curves import ConcentratedPair, RenyiPair
from tacit.pld.derived import GroupPair, MaximumPair, ProductPair, WithoutReplacementPair
from tacit.pld.discrete import (
    ApproximatePair,
    DiscreteLaplacePair,
    RandomizedResponsePair,
    StaircasePair,
)
from tacit.pld.discrete_gaussian import DiscreteGaussianPair
from tacit.pld.mixture import MixturePair
from tacit.pld.pair import Pair, SwappedPair
from tacit.pld.product import Product
from tacit.pld.sampled import PoissonSampledPair
from tacit.pld.tabulated import FinitePair

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

install(PairComposer())
