"""Events: frozen facts about what was run. They describe themselves; accountants only fold.

An event knows the pairs of distributions that dominate it, one for each direction in which neighbours may
differ, and from them everything else. Noise is given relative to the sensitivity *under the neighbour
relation in use*: `noise_multiplier` is noise_std / l2_sensitivity, and the epsilon of Laplace noise is
l1_sensitivity / noise_scale.
"""

from tacit.accounting.events.base import ComposedEvent, Event, RepeatedEvent, SimpleEvent, flatten
from tacit.accounting.events.mechanisms import (
    ApproximateEvent,
    ConcentratedEvent,
    DiscreteGaussianEvent,
    DiscreteGaussianVectorEvent,
    DiscreteLaplaceEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    PermuteAndFlipEvent,
    PureEvent,
    RandomizedResponseEvent,
    SkellamEvent,
    StaircaseEvent,
    TabulatedEvent,
)
from tacit.accounting.events.sampled import (
    BalancedResponseEvent,
    MixedEvent,
    PoissonSampledEvent,
    SampledWithoutReplacementEvent,
    ShuffledEvent,
)

__all__ = [
    "ApproximateEvent",
    "BalancedResponseEvent",
    "ComposedEvent",
    "ConcentratedEvent",
    "DiscreteGaussianEvent",
    "DiscreteGaussianVectorEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "MixedEvent",
    "PermuteAndFlipEvent",
    "PoissonSampledEvent",
    "PureEvent",
    "RandomizedResponseEvent",
    "RepeatedEvent",
    "SampledWithoutReplacementEvent",
    "ShuffledEvent",
    "SimpleEvent",
    "SkellamEvent",
    "StaircaseEvent",
    "TabulatedEvent",
    "flatten",
]
