"""Exact sums of several columns: against exact products, and one column against itself."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from tacit.coupled.noiseless import exact_sum, exact_vector_sum
from tacit.errors import InvalidParameter, NoLaw


def uniform_sum(points: int, count: int) -> list[Fraction]:
    law = [Fraction(1)]
    for _ in range(count):
        out = [Fraction(0)] * (len(law) + points - 1)
        for i, a in enumerate(law):
            for j in range(points):
                out[i + j] += a / points
        law = out
    return law


def divergence(law: list[Fraction], shifts: tuple[int, int], factor: Fraction) -> Fraction:
    """H of both coordinates moved against none moved, by all points of the plane."""

    def at(k: int) -> Fraction:
        return law[k] if 0 <= k < len(law) else Fraction(0)

    reach = range(-4, len(law) + 5)
    return sum(
        (
            max(Fraction(0), at(i - shifts[0]) * at(j - shifts[1]) - factor * at(i) * at(j))
            for i, j in itertools.product(reach, reach)
        ),
        Fraction(0),
    )


def test_two_uniform_columns_by_exact_products() -> None:
    answer = exact_vector_sum(["uniform(0, 4, grid=1)"] * 2, n=13, delta=1e-2)
    law = uniform_sum(5, 12)
    factor = Fraction(math.exp(answer.epsilon))
    for shifts in itertools.product((-2, -1, 0, 1, 2), repeat=2):
        assert divergence(law, shifts, factor) <= Fraction(1, 100)
    assert divergence(law, (2, 2), Fraction(math.exp(answer.epsilon * 0.98))) > Fraction(1, 100)
    assert answer.epsilon_pair is not None
    assert divergence(law, (4, 4), Fraction(math.exp(answer.epsilon_pair))) <= Fraction(1, 100)


def test_one_column_is_a_sum_and_more_columns_tell_more() -> None:
    one = exact_vector_sum(["uniform(0, 1)"], n=1000, delta=1e-5).epsilon
    single = exact_sum("uniform(0, 1)", n=1000, delta=1e-5).epsilon
    assert single <= one <= single * 1.01
    two = exact_vector_sum(["uniform(0, 1)"] * 2, n=1000, delta=1e-5).epsilon
    # Two coordinates of one shift are a shift of sqrt(2) as far, about; the thesis adds their epsilons.
    assert 1.3 * one < two < 1.6 * one
    mixed = exact_vector_sum(["uniform(0, 1)", "normal(0, 1, clamp=(-2.5, 2.5))"], n=1000, delta=1e-5)
    assert mixed.epsilon > two
    assert mixed.theorem == "prism-sums"
    assert "contains a prism" in mixed.sentence


def test_what_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        exact_vector_sum([], n=100, delta=1e-3)
    with pytest.raises(NoLaw, match="smallest delta that this bound reaches"):
        exact_vector_sum(["uniform(0, 4, grid=1)"] * 2, n=3, delta=1e-6)
    with pytest.raises(InvalidParameter):
        exact_vector_sum(["uniform(0, 1)"] * 2, n=100, delta=1e-3, unknown_rows=101)
