"""Privacy-loss distributions (PLDs): pairs of distributions, their composition, and its two certified ends.

`README.md` in this folder is the map. Importing the room installs it as the composer of `tacit.guarantees`.
"""

from __future__ import annotations

from tacit.guarantees.curve import install
from tacit.pld.composer import PairComposer
from tacit.pld.pairs.approximate import ApproximatePair
from tacit.pld.pairs.balanced_response import BalancedResponsePair
from tacit.pld.pairs.base import Pair, SwappedPair
from tacit.pld.pairs.bounded_range import ExponentialPair
from tacit.pld.pairs.coin import CoinPair
from tacit.pld.pairs.concentrated import ConcentratedPair
from tacit.pld.pairs.discrete_gaussian import DiscreteGaussianPair
from tacit.pld.pairs.discrete_laplace import DiscreteLaplacePair
from tacit.pld.pairs.exchanged import SampledReplacementPair
from tacit.pld.pairs.gaussian import GaussianPair
from tacit.pld.pairs.group import GroupPair
from tacit.pld.pairs.laplace import LaplacePair
from tacit.pld.pairs.maximum import MaximumPair
from tacit.pld.pairs.mixture import MixturePair
from tacit.pld.pairs.poisson import PoissonSampledPair
from tacit.pld.pairs.product_pair import ProductPair
from tacit.pld.pairs.randomized_response import RandomizedResponsePair
from tacit.pld.pairs.renyi_orders import RenyiPair
from tacit.pld.pairs.shuffled import ShuffledPair
from tacit.pld.pairs.skellam import SkellamPair
from tacit.pld.pairs.staircase import StaircasePair
from tacit.pld.pairs.tabulated import FinitePair
from tacit.pld.pairs.thinned import ThinnedPair
from tacit.pld.pairs.without_replacement import WithoutReplacementPair
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
