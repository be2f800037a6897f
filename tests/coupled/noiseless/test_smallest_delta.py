"""A refusal names the smallest delta that is possible; a delta above it has an epsilon. By integers throughout."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

import pytest

from tacit.coupled.noiseless import ExactAnswer, exact_sum, exact_vector_sum
from tacit.coupled.noiseless.decisions import exact_argmax, exact_mode
from tacit.coupled.noiseless.regression import exact_regression
from tacit.errors import NoLaw

VALUES, OTHERS = 101, 9
GAUSSIAN = "normal(0, 1, clamp=(-2.5, 2.5))"


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


START = {"regression": 1e-2, "rectangle": 1e-3}
ASKED: dict[str, Callable[[float], ExactAnswer]] = {
    "rectangle": lambda d: exact_sum(GAUSSIAN, n=12, delta=d, assume="rectangle"),
    "vector": lambda d: exact_vector_sum(["uniform(0, 1)"] * 2, n=10, delta=d),
    "regression": lambda d: (
        exact_regression("uniform(-1, 1)", "uniform(-1, 1)", sizes=(30, 40), delta=d).answer
    ),
    "arg-max": lambda d: exact_argmax(["bernoulli(0.5)", "bernoulli(0.4)", "bernoulli(0.1)"], n=999, delta=d),
    "mode": lambda d: exact_mode({"a": "1/2", "b": "3/10", "c": "1/5"}, n=50, unknown_rows=45, delta=d),
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_delta_that_a_refusal_names_is_granted(asked: str) -> None:
    with pytest.raises(NoLaw) as refused:
        ASKED[asked](START.get(asked, 1e-7))
    named = re.search(
        r"smallest delta (?:possible|that this bound reaches) is (\d[-.\de]*)", str(refused.value)
    )
    assert named is not None
    assert math.isfinite(ASKED[asked](float(named[1])).epsilon)
    with pytest.raises(NoLaw):
        ASKED[asked](float(named[1]) * 0.85)
