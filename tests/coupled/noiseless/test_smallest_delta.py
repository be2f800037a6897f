"""A refusal names the smallest delta that is possible; a delta above it has an epsilon. By integers throughout."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest

from tacit.coupled.noiseless import exact_sum
from tacit.errors import NoLaw

VALUES, OTHERS = 101, 9


def ways() -> list[int]:
    """In how many ways nine values from 0 to 100 have each sum."""
    out = [1]
    for _ in range(OTHERS):
        following = [0] * (len(out) + VALUES - 1)
        for k, w in enumerate(out):
            for j in range(VALUES):
                following[k + j] += w
        out = following
    return out


def delta_at(sums: list[int], apart: int, epsilon: float) -> Fraction:
    """H between the sum and the sum moved by `apart`: the law is symmetric, so that both directions are alike."""
    factor = Fraction(math.exp(epsilon))
    total = Fraction(0)
    for k, w in enumerate(sums):
        other = sums[k - apart] if k >= apart else 0
        total += max(Fraction(0), w - factor * other)
    return total / VALUES**OTHERS


def test_the_smallest_delta_is_named_and_those_above_it_are_reached() -> None:
    sums = ways()
    floor = Fraction(sum(sums[:50]), VALUES**OTHERS)
    for delta in (1e-9, 8e-9, float(floor) * 0.9999):
        with pytest.raises(NoLaw) as refused:
            exact_sum("uniform(0, 1)", n=10, delta=delta)
        named = re.search(r"smallest delta possible is ([-.\de]+)", str(refused.value))
        assert named is not None
        assert float(floor) <= float(named[1]) <= 1.01 * float(floor)
    for delta in (9.74e-9, 1e-8, 1.1e-8, 1e-6):
        found = exact_sum("uniform(0, 1)", n=10, delta=delta)
        assert found.epsilon_pair is None
        assert delta_at(sums, 50, found.epsilon) <= Fraction(delta) * (1 + Fraction(1, 10**12))
        assert delta_at(sums, 50, 0.98 * found.epsilon) > Fraction(delta)
