"""Events: frozen facts about the mechanisms that ran. Each event describes itself; accountants combine the
descriptions.

An event knows the pairs of distributions that dominate it, one for each direction in which neighbours may
differ, and from them everything else. Noise is given relative to the sensitivity *under the neighbour
relation in use*: `noise_multiplier` is noise_std / l2_sensitivity, and the epsilon of Laplace noise is
l1_sensitivity / noise_scale.
"""

from tacit.accounting.events import mechanisms, sampled
from tacit.accounting.events.mechanisms import *
from tacit.accounting.events.sampled import *

__all__ = sorted([*mechanisms.__all__, *sampled.__all__])
