"""Privacy-loss distributions (PLDs): pairs of distributions, their composition, and its two certified ends.

`README.md` in this folder is the map. Importing the room installs it as the composer of `tacit.guarantees`.
"""

from __future__ import annotations

from tacit.guarantees.bounds.profile import install
from tacit.pld.composer import PairComposer
from tacit.pld.pairs.base import Pair, SwappedPair
from tacit.pld.pairs.derived import (
    ApproximatePair,
    ConcentratedPair,
    GroupPair,
    MaximumPair,
    ProductPair,
    RenyiPair,
)
from tacit.pld.pairs.gaussian import DiscreteGaussianPair, GaussianPair
from tacit.pld.pairs.laplace import (
    DiscreteLaplacePair,
    ExponentialPair,
    LaplacePair,
    SkellamPair,
    StaircasePair,
)
from tacit.pld.pairs.objective import ObjectivePair
from tacit.pld.pairs.responses import BalancedResponsePair, CoinPair, FinitePair, RandomizedResponsePair
from tacit.pld.pairs.sampled import (
    MixturePair,
    PoissonSampledPair,
    SampledReplacementPair,
    ThinnedPair,
    WithoutReplacementPair,
)
from tacit.pld.pairs.shuffled import ShuffledPair
from tacit.pld.product import Product

__all__ = [
    "ApproximatePair",
    "BalancedResponsePair",
    "CoinPair",
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
    "ObjectivePair",
    "Pair",
    "PoissonSampledPair",
    "Product",
    "ProductPair",
    "RandomizedResponsePair",
    "RenyiPair",
    "SampledReplacementPair",
    "ShuffledPair",
    "SkellamPair",
    "StaircasePair",
    "SwappedPair",
    "ThinnedPair",
    "WithoutReplacementPair",
]

install(PairComposer())
