"""What is easily forgotten: values in the middle, runs of corners, digits that are lost."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx

from tacit.coupled.noiseless import exact_sum, laplace, normal, table
from tacit.coupled.noiseless.sums import _Runs
from tacit.coupled.numbers import smallest_factor


def test_a_value_in_the_middle_can_be_the_worst() -> None:
    """Nearly all mass on even values: an odd value in the middle of the range is harder to hide than the ends."""
    law = table({0: "49/200", 2: "49/200", 4: "49/200", 6: "49/200", 3: "2/100"})
    answer = exact_sum(law, n=8, delta=0.05)
    total = {0: Fraction(1)}
    for _ in range(7):
        out: dict[int, Fraction] = {}
        for k, w in total.items():
            for j, v in enumerate(law.weights):
                out[k + j] = out.get(k + j, Fraction(0)) + w * v
        total = out

    def shift(by: int) -> dict[int, Fraction]:
        return {k + by: w for k, w in total.items() if w}

    def pair(x: int, y: int) -> float:
        factor = smallest_factor(shift(x), shift(y), Fraction(0.05))
        return math.inf if factor is None else math.log(factor)

    gaps = max(pair(x, y) for x in (0, 2, 3, 4, 6) for y in (0, 2, 3, 4, 6))
    ends = max(pair(0, 6), pair(6, 0))
    assert gaps > 1.5 * ends
    assert answer.epsilon_pair is not None
    assert gaps <= answer.epsilon_pair <= gaps + 1e-5


def test_a_run_of_corners_is_covered_by_its_bound() -> None:
    """The bound of a run is no smaller than what each of its corners needs; with fewer rows it is larger."""
    runs = _Runs(Fraction(1, 5), Fraction(3, 5), 60, 1e-3)
    for first, last in ((0, 9), (20, 23), (50, 60)):
        laws = runs._laws([(first, last), *((k, k) for k in range(first, last + 1))])
        bound, *corners = [runs._found(law, {0: 0.5, 1: 0.5}).factor for law in laws]
        assert bound > max(corners)


def test_what_writing_a_law_down_loses_is_counted() -> None:
    """The weights against balls of many digits: the total variation is at most what the law says."""
    old = ctx.prec
    ctx.prec = 400
    try:
        root = arb(2).sqrt()
        edges = [(arb(-2) + arb(2 * k + 1) / 8) / root for k in range(16)]
        heights = [arb(-1), *(e.erf() for e in edges), arb(1)]
        law = normal(0, 1, clamp=(-2, 2), grid="1/4")
        apart = arb(0)
        for k, w in enumerate(law.weights):
            true = (heights[k + 1] - heights[k]) / 2
            apart += abs(true - arb(w.numerator) / arb(w.denominator))
        assert 0 < float(apart / 2) <= float(law.rounding) < 1e-36
    finally:
        ctx.prec = old
    assert laplace(0, 1, clamp=(-1, 1), grid="1/2").rounding > 0
