"""Events: frozen facts about what was run. They describe themselves; accountants only fold.

An event knows the pairs of distributions that dominate it, one for each direction in which neighbours may
differ, and from them everything else. Noise is given relative to the sensitivity *under the neighbour
relation in use*: `noise_multiplier` is noise_std / l2_sensitivity, and the epsilon of Laplace noise is
l1_sensitivity / noise_scale.
"""

from tacit.accounting.events.base import Composed, Event, Repeated, Simple, flatten
from tacit.accounting.events.mechanisms import (
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    PermuteAndFlip,
    Pure,
    RandomizedResponse,
    Staircase,
    Tabulated,
)
from tacit.accounting.events.sampled import PoissonSampled, WithoutReplacement

__all__ = [
    "Approximate",
    "Composed",
    "Concentrated",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Gaussian",
    "Laplace",
    "PermuteAndFlip",
    "PoissonSampled",
    "Pure",
    "RandomizedResponse",
    "Repeated",
    "Simple",
    "Staircase",
    "Tabulated",
    "WithoutReplacement",
    "flatten",
]
