"""What no simulator can better: a lower end of epsilon, from the two values of a row that are hardest to hide.

If F given x and F given x' are both (epsilon, delta)-close to one law, they are (2 epsilon, (1 + e^epsilon) delta)-
close to each other (theorem `simulator-to-pair`). So epsilon is at least the solution of

    H_{2 epsilon}(S + x || S + x') = (1 + e^epsilon) delta,

here with the lower end on the left. For a count with p_i = lambda the value 0 alone gives (1 - lambda)^{m} =
(1 + e^epsilon) delta.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.coupled.noiseless.lattice import SumLaw
from tacit.exact.arrays import UNIT

__all__ = ["least_epsilon"]

MOST_EPSILON = 700.0


def least_epsilon(law: SumLaw, gap: int, delta: float) -> float:
    """An epsilon below which no simulator hides two values of a row that are `gap` steps apart."""
    size = len(law.low) + gap
    left = law.at(law.start, size, upper=False), law.at(law.start, size, upper=True)
    right = law.at(law.start - gap, size, upper=False), law.at(law.start - gap, size, upper=True)
    # Beyond the points an upper end is not 0, but `outside` altogether.
    rest = law.outside

    def shown(epsilon: float) -> bool:
        """Is it proved that this epsilon is too small?"""
        factor = math.exp(2 * epsilon) * (1 + 1e-14 * (1 + 2 * epsilon))
        most = (1 + math.exp(epsilon)) * (1 + 1e-14 * (1 + epsilon)) * delta
        for low, high in ((left[0], right[1]), (right[0], left[1])):
            with np.errstate(over="ignore"):
                gained = np.maximum(low - factor * high, 0.0)
            if float(np.sum(gained)) * (1 - UNIT * size) - factor * rest > most:
                return True
        return False

    if not shown(0.0):
        return 0.0
    low, high = 0.0, 1e-6
    while shown(high) and high < MOST_EPSILON / 2:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if shown(middle) else (low, middle)
    return low
