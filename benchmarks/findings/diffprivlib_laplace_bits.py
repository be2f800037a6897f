"""diffprivlib 0.6.6: the lowest bits of Laplace(epsilon=1, sensitivity=1).randomise(x) tell 0 from 1.

Run in an environment with diffprivlib 0.6.6. A sum of 1 and noise has no bit below 2^-53; noise on 0 has. `tacit audit`
found the event after some hundred outputs; this script counts it on fresh outputs.
"""

from __future__ import annotations

import math

from diffprivlib.mechanisms import Laplace


def lowest_bit(z: float) -> int:
    """The exponent of the lowest set bit."""
    mantissa, exponent = math.frexp(z)
    whole = abs(int(math.ldexp(mantissa, 53)))
    return exponent - 53 + (whole & -whole).bit_length() - 1


RUNS = 2000
for x in (0.0, 1.0):
    outputs = [Laplace(epsilon=1, sensitivity=1).randomise(x) for _ in range(RUNS)]
    print(
        f"input {x:g}: {sum(lowest_bit(z) <= -54 for z in outputs if z)} of {RUNS} outputs have a bit at 2^-54 or below"
    )
