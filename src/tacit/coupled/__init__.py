"""Coupled worlds: the disclosure of a release to somebody who does not know everything, and an exact checker for it.

Priors over (data, auxiliary knowledge), pairs (alt, priv), simulators; the definitions of the family as types; the
smallest delta of a finite mechanism, with both ends certified, against a given or the best simulator.
"""

from tacit.coupled import composition, definitions, files, mechanisms, numbers, pairs, priors, verdict
from tacit.coupled.composition import *
from tacit.coupled.definitions import *
from tacit.coupled.files import *
from tacit.coupled.mechanisms import *
from tacit.coupled.numbers import *
from tacit.coupled.pairs import *
from tacit.coupled.priors import *
from tacit.coupled.verdict import *
from tacit.guarantees.laws.conditions import (
    pair_of_values as pair_of_values,
)
from tacit.guarantees.laws.conditions import (
    posterior_coupled as posterior_coupled,
)
from tacit.guarantees.laws.conditions import (
    posterior_coupled_printed as posterior_coupled_printed,
)
from tacit.guarantees.laws.conditions import (
    posterior_pufferfish as posterior_pufferfish,
)
from tacit.guarantees.laws.conditions import (
    semantic_to_dp as semantic_to_dp,
)

__all__ = sorted(
    [
        *composition.__all__,
        *definitions.__all__,
        *files.__all__,
        *mechanisms.__all__,
        *numbers.__all__,
        *pairs.__all__,
        *priors.__all__,
        *verdict.__all__,
        "pair_of_values",
        "posterior_coupled",
        "posterior_coupled_printed",
        "posterior_pufferfish",
        "semantic_to_dp",
    ]
)
