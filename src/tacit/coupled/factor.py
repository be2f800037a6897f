"""The smallest epsilon of the best simulator at a given delta, between two certified ends.

Every step finds a simulator, whose smallest e^epsilon is exact and an upper end, or a proof that the factor is too
small, a lower end. For delta = 0 and one input there is a closed form (theorem `best-simulator`):

    e^epsilon = max( sum_t max_v P_v(t),  1 / sum_t min_v P_v(t),  sqrt(max_t max_v P_v(t) / min_v P_v(t)) ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tacit.coupled.best import average_of, best_delta, blocks_of, pure_of
from tacit.coupled.cells import Cell
from tacit.coupled.divergence import mixed, smallest_factor
from tacit.coupled.numbers import Distribution, Level
from tacit.coupled.program import Block, solve

__all__ = ["best_factor"]

CLOSE = Fraction(1, 10**7)
"""How near the two ends of e^epsilon are brought together, relatively."""
_STEPS, _PASSES, _LARGEST = 60, 60, 1 << 32


def best_factor(cells: Sequence[Cell], delta: Fraction) -> tuple[Fraction, Fraction | None]:
    """The smallest e^epsilon with which some simulator meets delta; the upper end is None if no finite one was found.

    The hardest block is settled first; then it is asked which blocks need more than that.
    """
    blocks = blocks_of(cells)
    low = high = Fraction(1)
    for _ in range(_PASSES):
        found = best_delta(cells, Level.of_factor(high), blocks=blocks)
        if found.high <= delta or found.hardest is None:
            return low, high
        below, above = _one(found.hardest, delta, high)
        low = max(low, below)
        if above is None:
            return low, None
        if above <= high:
            # The solver's accuracy is reached: what is left is closed by a factor that is a little larger.
            high = high * (1 + CLOSE)
        high = max(high, above)
    return low, None


def _one(block: Block, delta: Fraction, start: Fraction) -> tuple[Fraction, Fraction | None]:
    """The same for one block; `start` is the factor that is tried first. Only proofs move the lower end."""
    if delta == 0 and len(block.inputs) == 1:
        return _closed(block)
    low, high, trial = Fraction(1), _factor(block, average_of(block), delta), start
    for _ in range(_STEPS):
        found = solve([block], trial, trial)[0]
        reached = _factor(block, found.answers, delta)
        before = high
        if reached is not None and (high is None or reached < high):
            high = reached
        too_small = found.low > delta
        if too_small:
            low = max(low, trial)
        if high is None:
            if not too_small or trial >= _LARGEST:
                return low, None
            trial = min(trial * max(trial, Fraction(2)), Fraction(_LARGEST))
            continue
        if high - low <= CLOSE * high or (not too_small and high == before):
            break
        trial = _between(low, high)
    return low, high


def _closed(block: Block) -> tuple[Fraction, Fraction | None]:
    """The closed form, with the square root between two rationals; None where an output settles the value."""
    rows = [cell.real for cell in block.cells]
    most = {t: max(p.get(t, Fraction(0)) for p in rows) for t in block.outputs}
    least = {t: min(p.get(t, Fraction(0)) for p in rows) for t in block.outputs}
    if any(least[t] == 0 for t in most):
        # No finite factor: any lower end is right.
        return Fraction(_LARGEST), None
    whole = max(sum(most.values(), Fraction(0)), 1 / sum(least.values(), Fraction(0)))
    ratio = max(most[t] / least[t] for t in most)
    if whole * whole >= ratio:
        return whole, whole
    bits = 80
    scaled = math.isqrt((ratio.numerator << 2 * bits) // ratio.denominator)
    low, high = max(whole, Fraction(scaled, 1 << bits)), Fraction(scaled + 1, 1 << bits)
    if low * low == ratio:
        high = low
    assert pure_of(block, high) is not None
    return low, high


def _factor(block: Block, answers: dict[Any, Distribution], delta: Fraction) -> Fraction | None:
    most = Fraction(1)
    for cell in block.cells:
        other = mixed(cell.scrubbed, answers)
        for p, q in ((cell.real, other), (other, cell.real)):
            found = smallest_factor(p, q, delta)
            if found is None:
                return None
            most = max(most, found)
    return most


def _between(low: Fraction, high: Fraction) -> Fraction:
    """A short fraction in the middle; far apart ends are closed in by doubling."""
    middle = (low + high) / 2 if high < 4 * low else low * 2
    short = middle.limit_denominator(1 << 30)
    return short if low < short < high else middle
